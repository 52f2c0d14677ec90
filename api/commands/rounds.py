"""Several rounds of calls through one open engine: store, pacing, budget and progress in common.

For commands that ask more than one thing before they are done, such as `dikast preferences fit`
and `dikast benchmark build`. What a killed command has paid for is found again by the next one.
"""

import asyncio
import contextlib
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from dikast import status, wiring
from dikast.config import Settings
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ProviderError, RunStopped, StopReason
from dikast.engine.model import Outcome, Pair, Undecided
from dikast.engine.ports import Ask, Clock, Sink, Source, Strategy
from dikast.engine.run import Engine, RunReport
from dikast.progress import Progress, drawn, state_of
from dikast.signals import drain_then_cancel, on_signals
from dikast.strategies.sesse.stages import Failure, StageStop, in_order

T = TypeVar("T")


class _NoRound:
    """Stands where a strategy will be: before the first round nothing is asked."""

    name = "none@0"

    def spec(self) -> Mapping[str, Any]:
        """Nothing decides nothing."""
        return {"kind": "none"}

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """No verdict."""
        return Undecided(id=pair.id, why="abstained")


class Current:
    """A strategy that is another one in each round."""

    def __init__(self) -> None:
        self.now: Strategy = _NoRound()

    @property
    def name(self) -> str:
        """That of the round."""
        return self.now.name

    def spec(self) -> Mapping[str, Any]:
        """That of the round."""
        return self.now.spec()

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """As the round does. Source: `Strategy.judge`."""
        return await self.now.judge(pair, ask)


class Rounds:
    """An open engine; use `open_rounds`."""

    def __init__(
        self, engine: Engine, current: Current, progress: Progress, *, workers: int
    ) -> None:
        self._engine = engine
        self._current = current
        self.progress = progress
        self._workers = workers
        self._stop = StageStop()
        self._asking: asyncio.Future[None] | None = None
        self._calls = self._stored_calls = 0

    @property
    def spent(self) -> dict[str, Any]:
        """What the rounds took: calls, those of them from the store, US dollars."""
        return {
            "calls": self._calls,
            "stored_calls": self._stored_calls,
            "spent_usd": self._engine.snapshot().ledger.spent_usd,
        }

    def on_signal(self, count: int, which: signal.Signals) -> None:
        """The first signal begins nothing more, the second cancels what is in flight."""
        drain_then_cancel(self._engine)(count, which)
        self._stop.drain(f"interrupted by {which.name}")
        if count > 1 and self._asking is not None:
            self._asking.cancel()

    async def ask(
        self, work: Mapping[str, Callable[[Ask], Awaitable[T]]]
    ) -> dict[str, T | Failure]:
        """One round that judges nothing: each piece of work asks, and gives what it gives.

        Args:
            work: by name; as many at a time as there are workers.

        Returns:
            What came of each by its name; a `Failure` where a call failed for good.

        Raises:
            RunStopped: the run had to stop; the same command resumes.
        """
        found: dict[str, T | Failure] = {}
        self.progress.total = (self.progress.total or 0) + len(work)

        async def one(name: str) -> T | Failure:
            ask = self._engine.asker()
            try:
                return await work[name](ask)
            except ProviderError as error:
                self.progress.failed += 1
                return Failure(id=name, kind=error.kind, message=error.message)
            finally:
                self.progress.done += 1
                self._calls += ask.calls
                self._stored_calls += ask.stored_calls

        async def everything() -> None:
            names = iter(work)
            results = in_order(list(work), one, workers=self._workers, stop=self._stop)
            async with contextlib.aclosing(results):
                async for result in results:
                    found[next(names)] = result

        self._asking = asyncio.ensure_future(everything())
        try:
            await self._asking
        except RunStopped as stop:
            raise _resumable(stop.reason, stop.message) from stop
        except asyncio.CancelledError:
            if self._stop.message is None:
                raise
            raise _resumable("interrupted", self._stop.message) from None
        finally:
            self._asking = None
        return found

    async def run(self, strategy: Strategy, source: Source, sink: Sink, *, total: int) -> RunReport:
        """One round; outcomes reach the sink in the order of the source.

        Args:
            strategy: of this round.
            source: what to judge.
            sink: where the outcomes go; not closed.
            total: rows of the source, for progress.

        Raises:
            RunStopped: the run had to stop; the same command resumes.
        """
        self._current.now = strategy
        self.progress.total = (self.progress.total or 0) + total
        report = await self._engine.run(source, sink, ordered=True)
        self._calls += report.ledger.calls
        self._stored_calls += report.ledger.stored_calls
        if report.stopped is not None and status.of_stop(report.stopped) != status.OK:
            raise _resumable(report.stopped, report.message or report.stopped)
        return report


def _resumable(reason: StopReason, message: str) -> RunStopped:
    return RunStopped(reason, f"{message}; the same command resumes")


@contextlib.asynccontextmanager
async def open_rounds(
    settings: Settings, store: Path | None, *, quiet: bool, clock: Clock | None = None
) -> AsyncGenerator[Rounds, None]:
    """An engine for several rounds, with progress on stderr and signals caught.

    Args:
        settings: who is asked, and how.
        store: the call store, unless the settings name one or none.
        quiet: draw no progress.
        clock: time.

    Raises:
        ConfigError: a key is missing, or the settings cannot work.
    """
    clock = clock or SystemClock()
    current = Current()
    progress = Progress(clock)
    run = settings.run
    where: str | Path | None = None
    if not run.no_store:
        where = store if run.store is None else settings.base_dir / run.store
    engine = wiring.build_engine(
        settings, store=where, observers=(progress,), clock=clock, strategy=current
    )

    async with engine:
        rounds = Rounds(engine, current, progress, workers=run.workers)
        with on_signals(rounds.on_signal):
            async with drawn(progress, state_of(engine), quiet=quiet):
                yield rounds
