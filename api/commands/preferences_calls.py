"""The calls of `dikast preferences`: several rounds through one engine, stored and resumable.

A fit asks a writer first and a judge then; both rounds use the same call store, pacing, budget
and progress as `dikast judge`. What a killed fit has paid for is found again by the next one.
"""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dikast import status, wiring
from dikast.beside import loaders
from dikast.config import Settings
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, RunStopped
from dikast.engine.model import Judge, Outcome, Pair
from dikast.engine.ports import Ask, Clock, Strategy
from dikast.engine.run import Engine, RunReport
from dikast.engine.sources import IterableSource
from dikast.progress import Progress, ProgressWriter
from dikast.signals import drain_then_cancel, on_signals
from dikast.sinks import MemorySink
from dikast.strategies import PromptTemplate, judges_of
from dikast.strategies.preferences import (
    TEMPLATES,
    CellPicks,
    Cells,
    Example,
    LabelBook,
    Writer,
    cell_picks,
    read_labels,
)


class Setup:
    """Who judges, who writes, with which words.

    Args:
        args: of the command line.
        writer: PROVIDER:MODEL or name of the writer; None: the judge writes.

    Raises:
        InputError: the configuration cannot be read.
        ConfigError: it is wrong, or names no judge or several.
    """

    def __init__(self, args: argparse.Namespace, writer: str | None = None) -> None:
        named = [each for each in (args.judge, writer) if each]
        several = len(set(named)) > 1
        choices = wiring.Choices(
            config=args.config,
            judges=tuple(dict.fromkeys(named)),
            strategy="committee" if several else None,
            seed=args.seed,
            budget_usd=args.budget_usd,
            workers=args.workers,
            store=args.store,
            no_store=True if args.no_store else None,
        )
        self.settings: Settings = wiring.settle(choices)
        assert self.settings.strategy is not None
        names = judges_of(self.settings.strategy)
        if args.judge is None and len(names) > 1:
            raise ConfigError(
                f"the configuration has several judges ({', '.join(names)}); choose one with "
                "--judge NAME"
            )
        judges = wiring.judges_in(self.settings)
        self.judge: Judge = judges[names[0]]
        self.writer: Judge = judges[names[-1]] if writer else self.judge
        if self.judge.by_pair or self.writer.by_pair:
            raise ConfigError("recorded answers (replay) know of no preferences; name a judge")
        load = loaders(self.settings).template
        wanted = (args.template,) if args.template else TEMPLATES
        self.templates: list[PromptTemplate] = [load(name) for name in wanted]
        self.seed = self.settings.run.seed


async def read_book(args: argparse.Namespace) -> LabelBook:
    """The labels of the named files; people that were not asked for are left away.

    Raises:
        InputError: a file cannot be read, or a label in it is none.
        ConfigError: a person who was asked for has no label.
    """
    source = wiring.open_source(args.pairs, args.format)
    rows = [row async for batch in source.batches() for row in batch]
    book = read_labels(rows, person=args.person)
    missing = [name for name in args.only if name not in book.people]
    if missing:
        raise ConfigError(f"--only {missing[0]}: nobody of that name has labelled a pair")
    people = {name: book.people[name] for name in args.only} if args.only else book.people
    return LabelBook(people=people, bad_rows=book.bad_rows, unlabelled=book.unlabelled)


class _Rounds:
    """A strategy that is another one in each round."""

    def __init__(self) -> None:
        self.now: Strategy = Cells({})

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


class Calls:
    """An open engine for the rounds of one person; use `open_calls`."""

    def __init__(self, engine: Engine, rounds: _Rounds, progress: Progress) -> None:
        self._engine = engine
        self._rounds = rounds
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

    async def write(
        self, writer: Judge, jobs: dict[str, Sequence[Example]], seed: int
    ) -> dict[str, Outcome]:
        """Have a sentence written for each job; outcomes by job.

        Raises:
            RunStopped: the run had to stop; the same command resumes.
        """
        outcomes = await self._round(Writer(writer, jobs, seed=seed), list(jobs))
        return {each.id: each for each in outcomes}

    async def cells(
        self, cells: Mapping[str, tuple[Pair, Strategy]], columns: Mapping[str, tuple[str, str]]
    ) -> dict[str, CellPicks]:
        """Judge cells; picks by cell.

        Args:
            cells: pair and wording by the name of the cell.
            columns: pair id and column by the same name.

        Raises:
            RunStopped: the run had to stop; the same command resumes.
        """
        named = Cells({name: (pair, strategy) for name, (pair, strategy) in cells.items()})
        outcomes = await self._round(named, list(cells))
        found: dict[str, CellPicks] = {}
        for name, outcome in zip(cells, outcomes, strict=True):
            pair, column = columns[name]
            found[name] = cell_picks(pair, column, outcome)
        return found

    async def _round(self, strategy: Strategy, names: list[str]) -> list[Outcome]:
        pairs = [Pair(id=name, response_a="", response_b="") for name in names]
        return await self.judge(strategy, pairs)

    async def judge(self, strategy: Strategy, pairs: Sequence[Pair]) -> list[Outcome]:
        """One round over `pairs`; outcomes in their order.

        Raises:
            RunStopped: the run had to stop; the same command resumes.
        """
        self._rounds.now = strategy
        self._progress.total = (self._progress.total or 0) + len(pairs)
        sink = MemorySink()
        report = await self._engine.run(IterableSource(pairs), sink, ordered=True)
        self.reports.append(report)
        if report.stopped is not None and status.of_stop(report.stopped) != status.OK:
            raise RunStopped(
                report.stopped,
                f"{report.message or report.stopped}; the same command resumes",
            )
        return sink.outcomes


@contextlib.asynccontextmanager
async def open_calls(
    setup: Setup, args: argparse.Namespace, store: Path | None, clock: Clock | None = None
) -> AsyncGenerator[Calls, None]:
    """The engine of one person's rounds, with progress on stderr and signals caught.

    Args:
        setup: who is asked.
        args: of the command line.
        store: the call store, unless the settings name one or none.
        clock: time.

    Raises:
        ConfigError: a key is missing, or the settings cannot work.
    """
    clock = clock or SystemClock()
    rounds = _Rounds()
    progress = Progress(clock)
    run = setup.settings.run
    where: str | Path | None = None
    if not run.no_store:
        where = store if run.store is None else setup.settings.base_dir / run.store
    engine = wiring.build_engine(
        setup.settings, store=where, observers=(progress,), clock=clock, strategy=rounds
    )

    async with engine:
        progress.start()
        with on_signals(drain_then_cancel(engine)):
            drawing = None if args.quiet else asyncio.create_task(_draw(engine, progress))
            try:
                yield Calls(engine, rounds, progress)
            finally:
                if drawing is not None:
                    drawing.cancel()
                    await asyncio.gather(drawing, return_exceptions=True)


async def _draw(engine: Engine, progress: Progress) -> None:
    def state() -> tuple[list[Any], int]:
        snapshot = engine.snapshot()
        return snapshot.pacers, snapshot.in_flight

    await ProgressWriter(progress, progress.clock, sys.stderr, state).run()
