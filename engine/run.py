"""The whole journey on one screen: source, intake, workers, strategy, gateway, sink, ledger.

`Engine` binds a strategy to its providers and can judge in three ways: `judge_one` (inside a
service), `judge` (a stream of pairs to a stream of outcomes) and `run` (a source to a sink, with
a ledger). All three use the same scheduler and the same gateway; there is no second code path.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from dikast.engine.budget import Budget
from dikast.engine.clock import SystemClock
from dikast.engine.delivery import AsTheyCome, Delivery, InTurn
from dikast.engine.errors import (
    ConfigError,
    DikastError,
    ReaderGone,
    RunStopped,
    SinkError,
    StopReason,
)
from dikast.engine.events import Events, RunStarted, RunStopping
from dikast.engine.gateway import Gateway, PairAsk
from dikast.engine.intake import Intake
from dikast.engine.ledger import Ledger, LedgerBook
from dikast.engine.model import Outcome, Record, Subject
from dikast.engine.pacing import KeyPacer, Limits
from dikast.engine.ports import (
    CallStore,
    Clock,
    Observer,
    Pacer,
    PacerStats,
    Provider,
    SharedLimit,
    Sink,
    Source,
    Strategy,
)
from dikast.engine.retry import RetryPolicy
from dikast.engine.scheduler import Desk, Scheduler
from dikast.engine.sharing import SharedPacer
from dikast.engine.sources import IterableSource
from dikast.engine.spec import spec_hash, spec_tree


class RunReport(Record, frozen=True):
    """How a run ended. `stopped` is the reason it ended early, None when the input was finished."""

    ledger: Ledger
    spec: str
    strategy: str
    duration_s: float
    requests_sent: int
    stopped: StopReason | None = None
    message: str | None = None

    @property
    def complete(self) -> bool:
        """True when every row of the input has an outcome and the ledger adds up."""
        ledger = self.ledger
        return (
            self.stopped is None
            and ledger.input_complete
            and ledger.not_run == 0
            and ledger.adds_up()
        )


class Snapshot(Record, frozen=True):
    """The run at one moment, for progress."""

    ledger: Ledger
    in_flight: int
    pacers: list[PacerStats]


class _IntoQueue:
    """Delivery into the queue behind `Engine.judge`."""

    def __init__(self, queue: asyncio.Queue[Outcome]) -> None:
        self._queue = queue

    async def write(self, turn: int, outcome: Outcome) -> None:
        await self._queue.put(outcome)

    def skip(self, turn: int) -> None:
        """The stream simply has no such outcome."""


class Engine:
    """Judges pairs with one strategy over any number of providers.

    Use it as an async context manager; leaving it closes the providers and the store.

    Args:
        strategy: how a pair becomes an outcome.
        providers: by the name that the judges use.
        limits: rate limits of a provider's key, by the same name; none means "learn them".
        store: completions that are never paid twice, or None to do without.
        retry: bounds of the retries of one call.
        workers: pairs judged at the same time.
        budget_usd: hard cap on spending, or None. Judges without prices count as free.
        drain_s: seconds that open pairs get to finish after `drain`.
        clock: time; the default follows the running loop.
        seed: seeds the back-off's randomness.
        observers: called synchronously with every event.
        shared: a limit that this engine's keys share with other workers, or None.
        shared_workers: the fewest workers to reckon with when the shared limit is gone.
    """

    def __init__(
        self,
        strategy: Strategy,
        providers: Mapping[str, Provider],
        *,
        limits: Mapping[str, Limits] | None = None,
        store: CallStore | None = None,
        retry: RetryPolicy | None = None,
        workers: int = 512,
        budget_usd: float | None = None,
        drain_s: float = 30.0,
        clock: Clock | None = None,
        seed: int = 0,
        observers: tuple[Observer, ...] = (),
        shared: SharedLimit | None = None,
        shared_workers: int = 1,
    ) -> None:
        self._providers = dict(providers)
        self._shared = shared
        self._store = store
        self._workers = workers
        self._drain_s = drain_s
        self._clock: Clock = clock or SystemClock()
        self._events = Events(observers)
        self.spec_tree = spec_tree(strategy)
        self.spec = spec_hash(self.spec_tree)
        self.strategy_name = strategy.name
        self.simulated = any(getattr(each, "simulated", False) for each in providers.values())
        rng = random.Random(seed)
        own = {
            name: KeyPacer(
                name,
                (limits or {}).get(name, Limits()),
                self._clock,
                random.Random(rng.random()),
                self._events,
            )
            for name in providers
        }
        self._together: dict[str, SharedPacer] = {}
        if shared is not None:
            self._together = {
                name: SharedPacer(pacer, shared, self._clock, self._events, workers=shared_workers)
                for name, pacer in own.items()
            }
        pacers: Mapping[str, Pacer] = self._together or own
        self._gateway = Gateway(
            self._providers,
            pacers,
            store=store,
            retry=retry or RetryPolicy(),
            clock=self._clock,
            rng=rng,
            events=self._events,
            budget=Budget(budget_usd),
        )
        self._scheduler = Scheduler(
            strategy,
            self._gateway,
            clock=self._clock,
            events=self._events,
            spec=self.spec,
            simulated=self.simulated,
        )
        self._book = LedgerBook()
        self._desk = Desk()
        self._intake: Intake | None = None
        self._draining: RunStopped | None = None
        self._drain_over = asyncio.Event()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the store, then the providers; may be called twice."""
        self._closed = True
        async with contextlib.AsyncExitStack() as stack:
            for provider in self._providers.values():
                stack.push_async_callback(provider.aclose)
            if self._store is not None:
                stack.push_async_callback(self._store.aclose)
            if self._shared is not None:
                stack.push_async_callback(self._shared.aclose)
            for pacer in self._together.values():
                stack.push_async_callback(pacer.aclose)

    def _refuse_when_closed(self) -> None:
        # Its store and connections are gone: it would pay again, or fail pair by pair.
        if self._closed:
            raise ConfigError("this engine is closed; judge inside its `async with`")

    def asker(self, priority: int = 0) -> PairAsk:
        """An `Ask` for calls that belong to no pair, with a bill of its own.

        They meet the same store, budget, pacing and retries as those of pairs. Lower `priority`
        goes first.
        """
        return PairAsk(self._gateway, priority)

    @property
    def store(self) -> CallStore | None:
        """Where completions are kept, if anywhere."""
        return self._store

    async def judge_one(self, pair: Subject) -> Outcome:
        """Judge one pair, or one item, now.

        Raises:
            RunStopped: quota, budget, key or store forbid further calls.
            ConfigError: the engine is closed.
        """
        self._refuse_when_closed()
        return await self._scheduler.judge(pair)

    async def judge(
        self, pairs: Iterable[Subject] | AsyncIterable[Subject]
    ) -> AsyncGenerator[Outcome, None]:
        """Judge a stream of pairs or items; outcomes come in the order of their completion.

        Reads no further ahead than the workers and one batch. Leaving the loop early (or being
        cancelled) cancels what is open; close it with `contextlib.aclosing` to wait for that.

        Raises:
            RunStopped: the run had to stop; the outcomes so far were yielded before.
            ConfigError: the engine is closed.
        """
        self._refuse_when_closed()
        queue: asyncio.Queue[Outcome] = asyncio.Queue(maxsize=self._workers)
        delivery = _IntoQueue(queue)
        book, desk = LedgerBook(), Desk()
        intake = Intake(IterableSource(pairs), book)

        crew = asyncio.gather(
            *(self._scheduler.work(intake, book, delivery, desk) for _ in range(self._workers))
        )
        getter: asyncio.Task[Outcome] | None = None
        try:
            while not (crew.done() and queue.empty()):
                if not queue.empty():
                    yield queue.get_nowait()
                    continue
                getter = asyncio.create_task(queue.get())
                await asyncio.wait((getter, crew), return_when=asyncio.FIRST_COMPLETED)
                if getter.done():
                    yield getter.result()
                else:
                    getter.cancel()
            crew.result()
        finally:
            crew.cancel()
            left = [crew] if getter is None else [crew, getter]
            if getter is not None:
                getter.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await intake.aclose()
        if self._gateway.stopped is not None:
            raise self._gateway.stopped

    async def run(
        self,
        source: Source,
        sink: Sink,
        *,
        is_done: Callable[[str], bool] | None = None,
        limit: int | None = None,
        ordered: bool = False,
    ) -> RunReport:
        """Judge all of `source` into `sink` and give account of it.

        Args:
            source: where the pairs come from; closed at the end.
            sink: where the outcomes go; flushed but not closed.
            is_done: says of an id whether an earlier run has done it.
            limit: the most rows to read, or None.
            ordered: write in input order; a slow pair then holds up those behind it as soon as
                every worker has an outcome that waits for it.

        Raises:
            InputError: the source as a whole cannot be read.
            ConfigError: strategy and configuration do not fit each other, or the engine is closed.
        """
        self._refuse_when_closed()
        started_s = self._clock.now()
        self._book = LedgerBook()
        self._intake = intake = Intake(source, self._book, is_done=is_done, limit=limit)
        if self._draining is not None:
            intake.close()
        self._events.emit(RunStarted(spec=self.spec, strategy=self.strategy_name))

        delivery: Delivery = InTurn(sink) if ordered else AsTheyCome(sink)
        workers = [
            asyncio.create_task(self._scheduler.work(intake, self._book, delivery, self._desk))
            for _ in range(self._workers)
        ]
        failure = await self._wait_for(workers, intake)
        stop = self._gateway.stopped or self._draining
        for settle in (intake.aclose, sink.flush):
            try:
                await settle()
            except SinkError as error:  # a topic as input commits when it closes
                failure = failure or error
        if isinstance(failure, SinkError):
            reason: StopReason = "pipe" if isinstance(failure, ReaderGone) else "sink"
            stop = RunStopped(reason, str(failure))
        elif failure is not None:
            raise failure
        return self._report(stop, started_s)

    async def _wait_for(
        self, workers: list[asyncio.Task[None]], intake: Intake
    ) -> DikastError | None:
        """Wait for end-of-stream in every worker; drain and cancel on the way when told to."""
        pending: set[asyncio.Task[Any]] = set(workers)
        watch = asyncio.create_task(self._watch_drain())
        failure: DikastError | None = None
        try:
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_EXCEPTION)
                for task in done:
                    error = None if task.cancelled() else task.exception()
                    if isinstance(error, DikastError):
                        failure = failure or error
                        intake.close()
                        self._desk.cancel()
                    elif error is not None:
                        raise error
        finally:
            watch.cancel()
            for task in pending:
                task.cancel()
            await asyncio.gather(watch, *pending, return_exceptions=True)
        return failure

    async def _watch_drain(self) -> None:
        """After `drain`, give open pairs their time, then cancel them."""
        await self._drain_over.wait()
        await self._clock.sleep(self._drain_s)
        self._desk.cancel()

    def _report(self, stop: RunStopped | None, started_s: float) -> RunReport:
        ledger = self._book.snapshot(self._gateway.budget.spent_usd)
        if stop is not None and ledger.input_complete and ledger.not_run == 0:
            # It was told to stop when there was nothing left to do.
            stop = None if stop.reason in ("interrupted", "budget") else stop
        if stop is not None:
            self._events.emit(RunStopping(reason=stop.reason, message=stop.message))
        return RunReport(
            ledger=ledger,
            spec=self.spec,
            strategy=self.strategy_name,
            duration_s=self._clock.now() - started_s,
            requests_sent=self._gateway.calls_sent,
            stopped=stop.reason if stop else None,
            message=stop.message if stop else None,
        )

    def drain(self, message: str = "interrupted") -> None:
        """Take in no more pairs; those that are open get `drain_s` to finish."""
        if self._draining is None:
            self._draining = RunStopped("interrupted", message)
        if self._intake is not None:
            self._intake.close()
        self._drain_over.set()

    def cancel(self, message: str = "interrupted") -> None:
        """Cancel open pairs now; outcomes that are decided are still written."""
        self.drain(message)
        self._desk.cancel()

    def share_budget(
        self,
        note: Callable[[float], None],
        *,
        total_usd: float | None = None,
        before_usd: float = 0.0,
    ) -> None:
        """Count this run's spending together with that of earlier ones; call it before judging.

        Args:
            note: told the most that may have been spent, in US dollars, before it is; may raise
                `RunStopped`.
            total_usd: cap on what all runs spend, or None.
            before_usd: what the earlier ones have spent.
        """
        self._gateway.budget.share(total_usd, before_usd, note)

    @property
    def total_binds(self) -> bool:
        """Whether the total of all runs ends this one before its own budget does."""
        return self._gateway.budget.total_binds

    def charge(self, usd: float) -> None:
        """Count money that was spent beside this engine, in US dollars, against its budget."""
        self._gateway.budget.settle(0.0, usd)

    def snapshot(self) -> Snapshot:
        """The run so far."""
        return Snapshot(
            ledger=self._book.snapshot(self._gateway.budget.spent_usd),
            in_flight=self._gateway.in_flight,
            pacers=self._gateway.pacer_stats(),
        )

    def __repr__(self) -> str:
        return f"Engine({self.strategy_name}, spec {self.spec}, {self._gateway!r})"
