"""The calls of `dikast preferences`: several rounds through one engine, stored and resumable.

A fit asks a writer first and a judge then; both rounds use the same call store, pacing, budget
and progress as `dikast judge`. What a killed fit has paid for is found again by the next one.
"""

import argparse
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dikast import settling, wiring
from dikast.beside import loaders
from dikast.commands.rounds import Rounds, open_rounds
from dikast.config import Settings
from dikast.engine.errors import ConfigError
from dikast.engine.model import Judge, Outcome, Pair
from dikast.engine.ports import Clock, Strategy
from dikast.engine.sources import IterableSource
from dikast.sinks import MemorySink
from dikast.strategies import PromptTemplate, judges_of
from dikast.strategies.preferences import (
    TEMPLATES,
    CellPicks,
    Cells,
    Example,
    LabelBook,
    Written,
    cell_picks,
    read_labels,
    write_sentence,
)
from dikast.strategies.sesse.stages import Failure


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
        choices = settling.Choices(
            config=args.config,
            judges=tuple(dict.fromkeys(named)),
            strategy="committee" if several else None,
            seed=args.seed,
            budget_usd=args.budget_usd,
            workers=args.workers,
            store=args.store,
            no_store=True if args.no_store else None,
        )
        self.settings: Settings = settling.settle(choices)
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


class Calls:
    """The rounds of one person; use `open_calls`."""

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds

    @property
    def spent(self) -> dict[str, Any]:
        """What the rounds took: calls, those of them from the store, US dollars."""
        return self._rounds.spent

    async def write(
        self, writer: Judge, jobs: dict[str, Sequence[Example]], seed: int
    ) -> dict[str, Written]:
        """Have a sentence written for each job; what came of each by job.

        Raises:
            RunStopped: the run had to stop; the same command resumes.
        """
        work = {
            name: partial(write_sentence, writer, examples, name=name, seed=seed)
            for name, examples in jobs.items()
        }
        found = await self._rounds.ask(work)
        return {
            name: Written(None, f"failed ({each.kind})") if isinstance(each, Failure) else each
            for name, each in found.items()
        }

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
        sink = MemorySink()
        await self._rounds.run(strategy, IterableSource(pairs), sink, total=len(pairs))
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
    async with open_rounds(setup.settings, store, quiet=args.quiet, clock=clock) as rounds:
        yield Calls(rounds)
