"""One judge call, from the strategy's question to a durable answer: store, pacing, retry.

A strategy sees only `PairAsk`. Behind it a call meets, in this order: the call store (has it been
answered before?), the flights (is the same question in the air right now?), the budget, the
pacer of its provider's key, the provider (one attempt), the retry policy, and again the store:
no completion is used before it would survive `kill -9`. Knows no HTTP, no files and no strategy.
"""

import asyncio
import random
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from dikast.engine.budget import Budget, estimate_tokens
from dikast.engine.errors import ConfigError, ProviderError, RunStopped, StoreError
from dikast.engine.events import CallDone, CallFailed, CallRetried, CallSent, Events
from dikast.engine.model import Call, Completion, Usage
from dikast.engine.ports import CallStore, Clock, Pacer, PacerStats, Provider
from dikast.engine.retry import Again, GiveUp, RetryPolicy, RetryState, decide

# A provider that failed this many calls for good and never answered one is taken for dead: a run
# of a million pairs must not turn a mistyped address into a million failures.
DEAD_AFTER_CALLS = 20

T = TypeVar("T")


class _Lane:
    """One provider with its pacer and what is known of its health."""

    def __init__(self, provider: Provider, pacer: Pacer) -> None:
        self.provider = provider
        self.pacer = pacer
        self.answered = False
        self.failed_calls = 0


class Gateway:
    """Answers calls for all pairs of one engine.

    Args:
        providers: by the name that `Judge.provider` uses.
        pacers: one for each provider, same names.
        store: completions by key, or None to pay again for what was asked before.
        retry: bounds of the retries of a call.
        clock: time.
        rng: randomness of the back-off.
        events: where calls are announced.
        budget: cap on what this gateway spends.
    """

    def __init__(
        self,
        providers: Mapping[str, Provider],
        pacers: Mapping[str, Pacer],
        *,
        store: CallStore | None,
        retry: RetryPolicy,
        clock: Clock,
        rng: random.Random,
        events: Events,
        budget: Budget,
    ) -> None:
        self._lanes = {name: _Lane(each, pacers[name]) for name, each in providers.items()}
        self._store = store
        self._retry = retry
        self._clock = clock
        self._rng = rng
        self._events = events
        self.budget = budget
        self._flights: dict[str, asyncio.Future[Completion | None]] = {}
        self._stopped: RunStopped | None = None
        # Tasks that wait for their turn or for a back-off: a stop sends them home at once.
        self._waiting: set[asyncio.Task[Any]] = set()
        self._sent_home: set[asyncio.Task[Any]] = set()
        self.in_flight = 0
        self.calls_sent = 0

    @property
    def stopped(self) -> RunStopped | None:
        """Why no further call is sent, if so."""
        return self._stopped

    def stop(self, stop: RunStopped) -> RunStopped:
        """Send no further call; the first reason stays. What is in the air comes home."""
        if self._stopped is None:
            self._stopped = stop
            self._sent_home.update(self._waiting)
            for task in self._waiting:
                task.cancel()
        return self._stopped

    async def _unless_stopped(self, wait: Coroutine[Any, Any, T]) -> T:
        """Await a turn or a back-off; a stop of the run ends the wait.

        Raises:
            RunStopped: the run stopped meanwhile.
        """
        if self._stopped is not None:
            wait.close()
            raise self._stopped
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            return await wait
        except asyncio.CancelledError:
            # `stop` cancels, and so may others; only its own cancellation becomes a stop.
            if task in self._sent_home and task.uncancel() == 0:
                assert self._stopped is not None
                raise self._stopped from None
            raise
        finally:
            self._waiting.discard(task)
            self._sent_home.discard(task)

    def pacer_stats(self) -> list[PacerStats]:
        """The state of every key."""
        return [lane.pacer.snapshot() for lane in self._lanes.values()]

    async def ask(self, call: Call, priority: int) -> Completion:
        """The completion of `call`, from the store or from the provider.

        Raises:
            ProviderError: failed for good, `attempts` says after how many attempts.
            RunStopped: no further call is sent in this run.
            ConfigError: the judge names a provider that does not exist.
        """
        key = call.key()
        while True:
            if (stored := self._recall(key)) is not None:
                self._announce_done(call, key, stored, cost_usd=0.0)
                return stored
            flight = self._flights.get(key)
            if flight is None:
                return await self._lead(call, key, priority)
            # Somebody else asks the same right now. None means that this one was cancelled, and
            # then the question is still open.
            shared = await asyncio.shield(flight)
            if shared is not None:
                return _as_stored(shared)

    async def _lead(self, call: Call, key: str, priority: int) -> Completion:
        """Ask for everybody who wants this answer now: budget, attempts, store."""
        flight: asyncio.Future[Completion | None] = asyncio.get_running_loop().create_future()
        self._flights[key] = flight
        try:
            lane = self._lane_of(call)
            tokens_in, tokens_out = estimate_tokens(call)
            prices = call.judge.prices
            reserved_usd = paid_usd = 0.0
            if prices is not None:
                reserved_usd = Usage(input=tokens_in, output=tokens_out).cost_usd(prices)
                await self._reserve(reserved_usd)
            try:
                completion = await self._attempts(lane, call, key, tokens_in + tokens_out, priority)
                if prices is not None:
                    paid_usd = completion.usage.cost_usd(prices)
            finally:
                self.budget.settle(reserved_usd, paid_usd)
            completion = msgspec.structs.replace(completion, key=key)
            if self._store is not None:
                await self._keep(key, completion)
        except (ProviderError, RunStopped) as error:
            flight.set_exception(error)
            flight.exception()  # nobody may be waiting: mark it as seen
            raise
        except BaseException:
            flight.set_result(None)
            raise
        finally:
            del self._flights[key]
        flight.set_result(completion)
        self._announce_done(call, key, completion, cost_usd=paid_usd)
        return completion

    def _lane_of(self, call: Call) -> _Lane:
        lane = self._lanes.get(call.judge.provider)
        if lane is None:
            raise ConfigError(
                f"judge {call.judge.name!r} names the provider {call.judge.provider!r}, "
                f"which is not configured; known are {', '.join(sorted(self._lanes)) or 'none'}"
            )
        return lane

    async def _reserve(self, usd: float) -> None:
        try:
            await self.budget.reserve(usd)
        except RunStopped as stop:
            raise self.stop(stop) from None

    def _recall(self, key: str) -> Completion | None:
        if self._store is None:
            return None
        try:
            return self._store.get(key)
        except StoreError as error:
            raise self.stop(RunStopped("store", str(error))) from error

    async def _keep(self, key: str, completion: Completion) -> None:
        assert self._store is not None
        try:
            await self._store.put(key, completion)
        except StoreError as error:
            raise self.stop(RunStopped("store", str(error))) from error

    async def _attempts(
        self, lane: _Lane, call: Call, key: str, tokens: int, priority: int
    ) -> Completion:
        # One coroutine for the loop and the attempt: every frame between a worker and its socket
        # is kept for each call in the air, and they push each other out of the cache.
        state, pacer = RetryState(), lane.pacer
        # The time that bounds the retries begins with the first failure: waiting for the key's
        # capacity is no part of it.
        failing_since_s: float | None = None
        while True:
            permit = await self._unless_stopped(pacer.acquire(tokens, priority))
            if self._stopped is not None:  # it may have happened while this call waited
                pacer.release(permit, used_tokens=0)
                raise self._stopped
            self._announce_sent(call, key, state.attempt)
            self.in_flight += 1
            self.calls_sent += 1
            try:
                reply = await lane.provider.complete(call)
            except ProviderError as error:
                pacer.release(permit, error=error)
                now_s = self._clock.now()
                failing_since_s = now_s if failing_since_s is None else failing_since_s
                verdict = decide(self._retry, state, error, now_s - failing_since_s, self._rng)
                if isinstance(verdict, GiveUp):
                    error.attempts = verdict.attempts
                    self._give_up(lane, call, key, error)
                    raise
                self._announce_retry(call, key, error, state.attempt, verdict)
            except BaseException:
                pacer.release(permit)
                raise
            else:
                usage = reply.completion.usage
                # A provider that reports no usage is taken to have used the estimate.
                used = usage.input + usage.output or permit.tokens
                pacer.release(permit, used_tokens=used, rate=reply.rate)
                lane.answered = True
                return reply.completion
            finally:
                self.in_flight -= 1
            state = verdict.state
            if verdict.wait_s > 0:
                await self._unless_stopped(self._clock.sleep(verdict.wait_s))

    def _announce_sent(self, call: Call, key: str, attempt: int) -> None:
        if self._events.active:
            self._events.emit(
                CallSent(key=key, pacer=call.judge.provider, pair_id=call.pair_id, attempt=attempt)
            )

    def _announce_retry(
        self, call: Call, key: str, error: ProviderError, attempt: int, again: Again
    ) -> None:
        if self._events.active:
            self._events.emit(
                CallRetried(
                    key=key,
                    pacer=call.judge.provider,
                    pair_id=call.pair_id,
                    kind=error.kind,
                    attempt=attempt,
                    wait_s=again.wait_s,
                    spent=again.spent,
                )
            )

    def _give_up(self, lane: _Lane, call: Call, key: str, error: ProviderError) -> None:
        """Book a call that failed for good; some failures speak of the whole run."""
        name = call.judge.provider
        if self._events.active:
            self._events.emit(
                CallFailed(
                    key=key,
                    pacer=name,
                    pair_id=call.pair_id,
                    kind=error.kind,
                    attempts=error.attempts,
                    message=error.message,
                )
            )
        stop: RunStopped | None = None
        if error.kind == "rate":
            # Refused until the patience for it was over, or told to wait longer than that.
            text = f"provider {name!r} keeps refusing as too fast: {error.message}; resume later"
            stop = RunStopped("quota", text)
        elif error.kind == "quota":
            stop = RunStopped(
                "quota", f"provider {name!r} says its quota is used up: {error.message}"
            )
        elif error.kind == "auth":
            stop = RunStopped("auth", f"provider {name!r} refuses the key: {error.message}")
        elif error.kind in ("transient", "timeout", "malformed") and not lane.answered:
            lane.failed_calls += 1
            if lane.failed_calls >= DEAD_AFTER_CALLS:
                stop = RunStopped(
                    "dead",
                    f"provider {name!r} answered none of its first {lane.failed_calls} calls; "
                    f"the last error was: {error.message}",
                )
        if stop is not None:
            raise self.stop(stop) from error

    def _announce_done(
        self, call: Call, key: str, completion: Completion, *, cost_usd: float
    ) -> None:
        if self._events.active:
            self._events.emit(
                CallDone(
                    key=key,
                    pacer=call.judge.provider,
                    pair_id=call.pair_id,
                    latency_s=completion.latency_s,
                    from_store=completion.from_store,
                    cost_usd=cost_usd,
                )
            )

    def __repr__(self) -> str:
        return (
            f"Gateway({len(self._lanes)} providers, {self.in_flight} in flight, "
            f"{len(self._flights)} flights)"
        )


def _as_stored(completion: Completion) -> Completion:
    """A shared completion, marked as not paid by this call."""
    return msgspec.structs.replace(completion, from_store=True)


class PairAsk:
    """The `Ask` of one pair: passes calls on and keeps the pair's bill.

    `cost_usd` is what the completions cost when they were bought, also those that came from the
    store: the price of the outcome, not of this run.
    """

    __slots__ = (
        "_gateway",
        "_priority",
        "calls",
        "cost_usd",
        "simulated",
        "stored_calls",
        "usage",
    )

    def __init__(self, gateway: Gateway, priority: int) -> None:
        self._gateway = gateway
        self._priority = priority
        self.usage: Usage | None = None
        self.cost_usd = 0.0
        self.calls = 0
        self.stored_calls = 0
        self.simulated = False

    async def __call__(self, call: Call) -> Completion:
        """See `Gateway.ask`."""
        completion = await self._gateway.ask(call, self._priority)
        self.calls += 1
        if completion.from_store:
            self.stored_calls += 1
        if completion.served_by is not None and completion.served_by.startswith("simulated:"):
            self.simulated = True  # a simulated judge behind real HTTP, or out of the store
        usage = completion.usage
        self.usage = usage if self.usage is None else self.usage.plus(usage)
        if call.judge.prices is not None:
            self.cost_usd += usage.cost_usd(call.judge.prices)
        return completion
