"""Several rounds of calls through one open engine: store, pacing, budget and progress in common.

For commands that ask more than one thing before they are done, such as `dikast preferences fit`
and `dikast benchmark build`. What a killed command has paid for is found again by the next one.
"""

import contextlib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from dikast import status, wiring
from dikast.config import Settings
from dikast.engine.clock import SystemClock
from dikast.engine.errors import RunStopped
from dikast.engine.model import Outcome, Pair, Undecided
from dikast.engine.ports import Ask, Clock, Sink, Source, Strategy
from dikast.engine.run import Engine, RunReport
from dikast.progress import Progress, drawn, state_of
from dikast.signals import drain_then_cancel, on_signals


class _NoRound:
    """Stands where a strategy will be: before the first round nothing is asked."""

    name = "none@0"

    def spec(self) -> Mapping[str, Any]:
        """Nothing decides nothing."""
        return {"kind": "none"}

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """No verdict."""
        return Undecided(id=pair.id, why="abstained")


class _Current:
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

    def __init__(self, engine: Engine, current: _Current, progress: Progress) -> None:
        self._engine = engine
        self._current = current
        self._progress = progress
        self.reports: list[RunReport] = []

    @property
    def spent(self) -> dict[str, Any]:
        """What the rounds took: calls, those of them from the store, US dollars."""
        ledgers = [report.ledger for report in self.reports]
        return {
            "calls": sum(each.calls for each in ledgers),
            "stored_calls": sum(each.stored_calls for each in ledgers),
            "spent_usd": max((each.spent_usd for each in ledgers), default=0.0),
        }

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
        self._progress.total = (self._progress.total or 0) + total
        report = await self._engine.run(source, sink, ordered=True)
        self.reports.append(report)
        if report.stopped is not None and status.of_stop(report.stopped) != status.OK:
            raise RunStopped(
                report.stopped,
                f"{report.message or report.stopped}; the same command resumes",
            )
        return report


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
    current = _Current()
    progress = Progress(clock)
    run = settings.run
    where: str | Path | None = None
    if not run.no_store:
        where = store if run.store is None else settings.base_dir / run.store
    engine = wiring.build_engine(
        settings, store=where, observers=(progress,), clock=clock, strategy=current
    )

    async with engine:
        with on_signals(drain_then_cancel(engine)):
            async with drawn(progress, state_of(engine), quiet=quiet):
                yield Rounds(engine, current, progress)
