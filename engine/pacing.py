"""When a call may be sent. One pacer per provider and key knows all its limits together.

A call comes here from the gateway before each attempt and returns here after it. Four gates in a
fixed order: a pause of the whole key (Retry-After, or headers that say "none left"), concurrency
(slow start, one cut per 429 episode), requests, tokens. All of them are looked at in one
synchronous step, `_gate`, and taken in one synchronous step, `_admit`: no permit is held while
waiting for another. Waiters are served by priority (older pairs first), then first come; only the
head is ever woken, by one timer or by a release. Knows nothing of HTTP, calls or strategies.
"""

import asyncio
import heapq
import random

from dikast.engine.buckets import LearnedRate, RequestGate, TokenGate
from dikast.engine.errors import ProviderError
from dikast.engine.events import Events, KeyPaused, LimitChanged
from dikast.engine.model import Record
from dikast.engine.ports import Clock, PacerStats, Permit, RateInfo

PAUSE_FIRST_S = 1.0
PAUSE_CAP_S = 60.0
PAUSE_MARGIN_S = 0.02
JITTER_S = 0.05
START_UNKNOWN = 8
PROBED_AFTER = 24


class Limits(Record, frozen=True):
    """What is known of a provider's key. None means "not known": it is learned while running.

    `requests_per_min`, `tokens_per_min`: the provider's limits. `concurrency_max`: requests in
    the air at most. `concurrency_start`: where slow start begins; None is 8 for a key whose
    request limit is unknown, and `concurrency_max` where the limit is stated.
    """

    requests_per_min: int | None = None
    tokens_per_min: int | None = None
    concurrency_max: int = 512
    concurrency_start: int | None = None


class Leave(Permit):
    """A permit: the tokens reserved, and the 429 episode in which it was given."""

    __slots__ = ("episode", "tokens")

    def __init__(self, tokens: int, episode: int) -> None:
        self.tokens = tokens
        self.episode = episode


_Waiter = tuple[int, int, int, "asyncio.Future[Leave]"]


class KeyPacer:
    """See the module. Implements `ports.Pacer`.

    Args:
        name: shown in progress and events.
        limits: what is known of the key.
        clock: time.
        rng: draws the jitter after a pause.
        events: where changes of limits are announced.
    """

    def __init__(
        self, name: str, limits: Limits, clock: Clock, rng: random.Random, events: Events
    ) -> None:
        self.name = name
        self._limits = limits
        self._clock = clock
        self._rng = rng
        self._events = events
        self._in_flight = 0
        self._episode = 0
        self._pause_until_s = float("-inf")
        self._pauses_in_a_row = 0
        self._successes = 0
        stated = limits.requests_per_min is not None
        start = limits.concurrency_start or (limits.concurrency_max if stated else START_UNKNOWN)
        self._concurrency = float(min(start, limits.concurrency_max))
        self._slow_start = True
        self._waiters: list[_Waiter] = []
        self._sequence = 0
        self._timer: asyncio.TimerHandle | None = None
        self._requests: RequestGate | None = None
        self._tokens: TokenGate | None = None
        self._learned: LearnedRate | None = None
        self._opened = False

    def _open(self) -> None:
        """Gates read the loop's clock, so they are made when the first call comes."""
        self._opened = True
        if self._limits.requests_per_min is not None:
            self._requests = RequestGate(self._limits.requests_per_min, self._clock)
        else:
            self._learned = LearnedRate(self._clock)
        if self._limits.tokens_per_min is not None:
            self._tokens = TokenGate(self._limits.tokens_per_min, self._clock)

    async def acquire(self, tokens: int, priority: int) -> Leave:
        """Wait for leave to send; see `ports.Pacer.acquire`.

        Raises:
            ProviderError: kind "oversized", when a whole minute's tokens would not do.
        """
        if not self._opened:
            self._open()
        self._refuse_oversized(tokens)
        if not self._waiters and self._gate(tokens) is None:
            return self._admit(tokens)
        future: asyncio.Future[Leave] = asyncio.get_running_loop().create_future()
        self._sequence += 1
        heapq.heappush(self._waiters, (priority, self._sequence, tokens, future))
        self._pump()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.release(future.result(), used_tokens=0)
            else:
                self._pump()
            raise

    def _refuse_oversized(self, tokens: int) -> None:
        gate = self._tokens
        if gate is not None and tokens > gate.tokens_per_min:
            raise ProviderError(
                "oversized",
                f"the request needs about {tokens:,} tokens, but the key {self.name!r} has "
                f"{gate.tokens_per_min:,.0f} a minute; raise tokens_per_min, lower max_tokens or "
                "shorten the pair",
            )

    def _gate(self, tokens: int) -> tuple[str, float | None] | None:
        """None when a request may go now, else why not and the seconds until asking is worth it.

        No seconds means that only a release can open the gate.
        """
        pause_s = self._pause_until_s - self._clock.now()
        if pause_s > 0:
            return "retry_after", pause_s
        if self._in_flight >= int(self._concurrency):
            return "concurrency", None
        if self._requests is not None and (wait_s := self._requests.wait_s()) > 0:
            return "requests", wait_s
        if self._learned is not None and (wait_s := self._learned.wait_s()) > 0:
            return "requests", wait_s
        if self._tokens is not None and (wait_s := self._tokens.wait_s(tokens)) > 0:
            return "tokens", wait_s
        return None

    def _admit(self, tokens: int) -> Leave:
        self._in_flight += 1
        if self._requests is not None:
            self._requests.take()
        if self._learned is not None:
            self._learned.take()
        if self._tokens is not None:
            self._tokens.take(tokens)
        return Leave(tokens, self._episode)

    def _pump(self) -> None:
        """Admit from the head of the queue as long as the gates are open, then set one timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            _, _, tokens, future = self._waiters[0]
            if future.done():
                heapq.heappop(self._waiters)
                continue
            closed = self._gate(tokens)
            if closed is None:
                heapq.heappop(self._waiters)
                future.set_result(self._admit(tokens))
                continue
            if closed[1] is not None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(closed[1], self._pump)
            return

    def release(
        self,
        permit: Permit,
        *,
        used_tokens: int | None = None,
        rate: RateInfo | None = None,
        error: ProviderError | None = None,
    ) -> None:
        """Give the slot back and learn from how it went; see `ports.Pacer.release`."""
        assert isinstance(permit, Leave)
        saturated = self._in_flight >= int(self._concurrency) * 0.9
        self._in_flight -= 1
        if used_tokens is not None and self._tokens is not None:
            self._tokens.settle(permit.tokens, used_tokens)
        if rate is not None:
            self._learn_from_headers(rate)
        if (error is not None and error.retry_after_s is not None) or _is_rate(error):
            self._hold_back(permit, error)
        elif error is None and used_tokens:
            self._succeeded(permit, saturated)
        self._pump()

    def _succeeded(self, permit: Leave, saturated: bool) -> None:
        if self._learned is not None:
            self._learned.succeeded()
        if permit.episode != self._episode:
            return  # sent before the last cut: it says nothing of the limits since
        self._pauses_in_a_row = 0
        self._successes += 1
        if not saturated or self._concurrency >= self._limits.concurrency_max:
            return
        if self._slow_start:
            # Stay small until more requests have passed than the burst of a small key: all that
            # is in the air at the first 429 is refused too. Then quadruple each round trip.
            step = 0.0 if self._successes < PROBED_AFTER else 3.0
        else:
            step = 1.0 / self._concurrency
        self._concurrency = min(self._concurrency + step, float(self._limits.concurrency_max))

    def _hold_back(self, permit: Leave, error: ProviderError | None) -> None:
        """A 429 (or a Retry-After on a 503): pause the whole key; cut once per episode."""
        assert error is not None
        first = permit.episode == self._episode
        if first:
            self._episode += 1
            self._pauses_in_a_row += 1
        asked_s = error.retry_after_s
        if asked_s is None:
            if not first:
                return  # this episode has its pause
            asked_s = min(PAUSE_CAP_S, PAUSE_FIRST_S * 2.0 ** (min(self._pauses_in_a_row, 32) - 1))
        # Positive only: nobody may knock inside the window.
        wait_s = asked_s + PAUSE_MARGIN_S + self._rng.uniform(0.0, JITTER_S)
        until_s = self._clock.now() + wait_s
        if first:
            self._cut(error, wait_s)
        if until_s > self._pause_until_s:
            self._pause_until_s = until_s
            if self._events.active:
                self._events.emit(KeyPaused(pacer=self.name, wait_s=wait_s, why=error.kind))

    def _cut(self, error: ProviderError, wait_s: float) -> None:
        if not _is_rate(error):
            return
        self._slow_start = False
        if self._learned is not None:
            self._learned.cut(wait_s)
            self._announce("requests_per_s", self._learned.per_s or 0.0, "429")
        else:
            self._concurrency = max(1.0, self._concurrency / 2)
            self._announce("concurrency", self._concurrency, "429")
        if self._learned is not None:
            # The rate is the brake from now on; concurrency only has to leave it room.
            self._concurrency = max(self._concurrency, min(32.0, self._limits.concurrency_max))

    def _learn_from_headers(self, rate: RateInfo) -> None:
        limit = rate.requests_limit
        if limit and (self._requests is None or limit < self._requests.requests_per_min):
            self._requests = RequestGate(limit, self._clock)
            self._learned = None
            self._concurrency = float(self._limits.concurrency_max)
            self._announce("requests_per_min", limit, "headers")
        tokens = rate.tokens_limit
        if tokens and (self._tokens is None or tokens < self._tokens.tokens_per_min):
            self._tokens = TokenGate(tokens, self._clock)
            self._announce("tokens_per_min", tokens, "headers")
        for remaining, reset_s in (
            (rate.requests_remaining, rate.requests_reset_s),
            (rate.tokens_remaining, rate.tokens_reset_s),
        ):
            if remaining == 0 and reset_s and reset_s > 0:
                # Not a 429: one request's worth of room comes back long before the full reset.
                share_s = reset_s if not limit else min(reset_s, 60.0 / limit)
                self._pause_until_s = max(self._pause_until_s, self._clock.now() + share_s)

    def _announce(self, what: str, value: float, why: str) -> None:
        if self._events.active:
            self._events.emit(LimitChanged(pacer=self.name, what=what, value=value, why=why))

    def snapshot(self) -> PacerStats:
        """Counts for progress and tests."""
        waiting = [each for each in self._waiters if not each[3].done()]
        closed = self._gate(min(waiting)[2]) if waiting else None
        return PacerStats(
            name=self.name,
            in_flight=self._in_flight,
            concurrency=self._concurrency,
            waiting={closed[0]: len(waiting)} if closed else {},
            paused_s=max(0.0, self._pause_until_s - self._clock.now()),
        )

    def __repr__(self) -> str:
        return (
            f"KeyPacer({self.name}, {self._in_flight} of {self._concurrency:.0f} in flight, "
            f"{len(self._waiters)} waiting)"
        )


def _is_rate(error: ProviderError | None) -> bool:
    return error is not None and error.kind == "rate"
