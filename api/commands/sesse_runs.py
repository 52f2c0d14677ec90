"""Runs inside `dikast sesse tune` and `baselines`: pairs through one strategy into one file.

Each run is a run like any other (store, budget, pacing, drain on the first signal); what it was
told before comes from the call store, so a second try pays only for what is missing. Outcomes are
read back a line at a time.
"""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from dikast import wiring
from dikast.commands.sesse_common import say
from dikast.config import Settings
from dikast.engine.clock import SystemClock
from dikast.engine.errors import InputError, RunStopped
from dikast.engine.events import Event, PairDone
from dikast.engine.files import decoded_rows
from dikast.engine.model import Outcome, Pair, Verdict, Winner
from dikast.engine.ports import Strategy
from dikast.engine.run import RunReport
from dikast.engine.sources import IterableSource
from dikast.progress import StageProgress
from dikast.providers import TruthTable
from dikast.signals import drain_then_cancel, on_signals
from dikast.sinks import JsonlSink


class Runs:
    """Several runs of one command.

    Args:
        args: with `quiet`.
        settings: who can be asked, and how.
        store: where completions are kept.
        truth: what simulated judges may know.
        folder: where the outcomes go, one file a run.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        settings: Settings,
        *,
        store: str | Path | None,
        truth: TruthTable,
        folder: Path,
    ) -> None:
        self._args = args
        self._settings = settings
        self._store = store
        self._truth = truth
        self._folder = folder
        self._clock = SystemClock()
        self._progress = StageProgress(self._clock, quiet=args.quiet)
        self.failed = 0

    async def judge(self, name: str, strategy: Strategy, pairs: Sequence[Pair]) -> Path:
        """Judge all pairs and return the file of their outcomes.

        Raises:
            RunStopped: budget, quota, key or a signal ended it; the same command resumes.
            InputError: the folder cannot be written.
        """
        path = self.path(name)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot be made: {error.strerror}", file=str(self._folder)) from error
        done = 0

        def watch(event: Event) -> None:
            nonlocal done
            self._progress.counts(event)
            if isinstance(event, PairDone):
                done += 1
                self._progress(name, done, len(pairs))

        self._progress.counts.begin(name, len(pairs))
        engine = wiring.build_engine(
            self._settings,
            store=self._store,
            clock=self._clock,
            truth=self._truth,
            observers=(watch,),
            strategy=strategy,
        )
        sink = JsonlSink(path, fresh=True, sync="close")
        try:
            async with engine, self._progress.drawn(engine):
                with on_signals(drain_then_cancel(engine, partial(say, self._args))):
                    report = await engine.run(IterableSource(list(pairs)), sink)
        finally:
            await sink.aclose()
        self._check(report)
        return path

    def path(self, name: str) -> Path:
        """The file of a run's outcomes."""
        return self._folder / f"{name}.jsonl"

    def _check(self, report: RunReport) -> None:
        if report.stopped is not None:
            raise RunStopped(
                report.stopped,
                f"{report.message or report.stopped}; the same command resumes",
            )
        self.failed += report.ledger.failed_total


def outcomes_in(path: str | Path) -> Iterator[Outcome]:
    """The outcomes of a file, a line at a time; plain, gzip or zstd.

    Raises:
        InputError: it cannot be read, or a line is not an outcome.
    """
    decoder: msgspec.json.Decoder[Outcome] = msgspec.json.Decoder(Outcome)
    rows = decoded_rows(path, decoder.decode, "is not an outcome written by dikast judge")
    return (outcome for _, outcome in rows)


def verdicts_in(path: str | Path | None) -> dict[str, Winner]:
    """The winner of every decided pair by id; empty without a file."""
    if path is None:
        return {}
    return {each.id: each.winner for each in outcomes_in(path) if isinstance(each, Verdict)}
