"""One run by several workers: `dikast judge --processes N` and `--on ray`.

Stands above the shards: cuts the input, hands each worker one shard after the other, counts what
they write, passes Ctrl-C on, gives the shard of a worker that died to another one, and merges at
the end. A worker is `dikast judge --shard` in a process of its own; where that process runs is the
crew's affair (`Crew`). Judges nothing and holds no outcome in memory.
"""

import argparse
import asyncio
import contextlib
import signal
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from dikast import crews, cutting, pacing, settling, shard_job, shards, status, streams, wiring
from dikast import manifest as records
from dikast.config import Settings
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, SinkError, SpecMismatchError
from dikast.engine.ports import PacerStats
from dikast.merge import Merged, account, merge, merge_into, status_of, summary
from dikast.outputs import Output
from dikast.preflight import see_extras, see_merged_name
from dikast.progress import Progress, drawn
from dikast.shards import Plan, Shard, ShardFiles
from dikast.signals import on_signals
from dikast.sinks import open_output, refuse_if_written

# A shard is at most so large: what a dead worker leaves is soon done, and its memory stays small.
SHARD_ROWS = 50_000
# A shard whose worker died is given out again so often.
TRIES = 3
PROCESSES_MAX = 1024
# In the folder of shards, locked by the run that hands them out.
LOCK_NAME = ".lock"


class Crew(Protocol):
    """Workers, each judging one shard at a time."""

    async def judge(self, place: int, words: list[str]) -> int:
        """Judge one shard as worker number `place`.

        Args:
            place: from 0; one shard at a time in each.
            words: the command line after `dikast`.

        Returns:
            The exit status; negative when the worker died.
        """
        ...

    def interrupt(self) -> None:
        """Pass a Ctrl-C on to every worker."""
        ...

    async def aclose(self) -> None:
        """End what is left; may be called twice."""
        ...


async def run(args: argparse.Namespace) -> int:
    """Judge with several workers, merge, give account; the exit status says how it went.

    Raises:
        ConfigError: an option does not go with several workers.
        SpecMismatchError: the shards that are there belong to another input or configuration.
        SinkError: another run is at work on the same output.
    """
    target, folder, workers = _check(args)
    settings = settling.settle(shard_job.choices_of(args, whole=True))
    await wiring.look_at(args.pairs, settings.input)
    if args.fresh:
        _set_aside(args, target, folder)
    _refuse_foreign(target, folder)
    await pacing.check_shared(settings.pacing)
    wiring.build_providers(settings, clock=SystemClock())  # a missing key is told once, here
    with _alone_in(folder):
        return await _run(args, settings, target, folder, workers)


async def _run(
    args: argparse.Namespace, settings: Settings, target: Path, folder: Path, workers: int
) -> int:
    """Plan, judge and merge, with the folder locked."""
    plan = await _plan(args, folder, workers)
    store = None
    if args.on is None:  # workers on several machines must not lock one file
        store = wiring.store_path(settings, Output(str(target), clock=SystemClock()).kept_beside)
    crew = await crews.open_crew(args.on, workers, say=shard_job.tell)
    fleet = Fleet(args, settings, plan, folder, crew, workers, store)
    try:
        async with _drawn(args, fleet):
            with on_signals(fleet.on_signal):
                await fleet.run()
    finally:
        await crew.aclose()
    return _end(args, fleet, target, folder)


def _check(args: argparse.Namespace) -> tuple[Path, Path, int]:
    """The output, the folder of its shards and the number of workers."""
    if not args.pairs or args.output is None:
        raise ConfigError("name the pairs to judge, and the output with -o OUT.jsonl")
    if args.output == "-" or streams.is_kafka(args.output):
        raise ConfigError("several workers need a file as output: -o OUT.jsonl")
    for option, given in (("--sink", args.sink), ("--shard", args.shard)):
        if given:
            raise ConfigError(f"{option} does not go with --processes or --on")
    wiring.check_output_name(args.output)
    see_merged_name(args.output)
    see_extras(args.pairs)
    workers = 2 if args.processes is None else args.processes
    if not 1 <= workers <= PROCESSES_MAX:
        raise ConfigError(f"--processes: must be from 1 to {PROCESSES_MAX}, not {workers}")
    target = Path(args.output)
    return target, target.with_name(target.name + ".shards"), workers


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold the lock of the folder of shards; it goes with the process, however it dies.

    Raises:
        SinkError: another run holds it, or the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SinkError(f"{folder}: cannot be made: {error.strerror}") from error
    lock = open_output(folder / LOCK_NAME)
    try:
        yield
    finally:
        lock.close()


def _set_aside(args: argparse.Namespace, target: Path, folder: Path) -> None:
    # Whatever is refused is refused before anything is moved: a run that is at work keeps all.
    for each in (folder / LOCK_NAME, *sorted(folder.glob("shard-*.jsonl"))):
        refuse_if_written(each)
    kept = Output(str(target), clock=SystemClock()).set_aside()
    if kept is not None:
        shard_job.say(args, f"kept the old output as {kept}")
    if not folder.exists():
        return
    number = 1
    while (old := folder.with_name(f"{folder.name}.old{number}")).exists():
        number += 1
    folder.rename(old)
    shard_job.say(args, f"kept the old shards as {old}")


def _refuse_foreign(target: Path, folder: Path) -> None:
    """An output that one process wrote is not known to the shards; it must not be judged again."""
    if target.exists() and not (folder / shards.PLAN_NAME).exists():
        raise ConfigError(
            f"{target}: was not written by several workers; finish it as it was begun, name "
            "another output, or start anew with --fresh"
        )


async def _plan(args: argparse.Namespace, folder: Path, workers: int) -> Plan:
    """The plan that is there, if it is of this input and these settings; else a new one."""
    shard_job.say(args, "reading the input to cut it into shards")
    there = folder / shards.PLAN_NAME
    wanted = shards.read_plan(there).wanted if there.exists() else None
    choices, settings = shard_job.planned(args)
    plan = await cutting.make_plan(
        folder,
        args.pairs,
        form=args.format or settings.input.format,
        choices=choices,
        settings=settings,
        shards=wanted or workers,
        rows=None if wanted else SHARD_ROWS,
        limit=settling.settle(shard_job.choices_of(args, whole=True)).run.limit,
    )
    try:
        shards.write_plan(folder, plan)
    except SpecMismatchError as error:
        raise SpecMismatchError(f"{error}, or start anew with --fresh") from None
    return plan


class Fleet:
    """Shards on the way to workers and back.

    Args:
        args: the command line.
        settings: of the run.
        plan: what there is to do.
        folder: where the shards are.
        crew: who does it.
        workers: how many.
        store: one call store for all workers, or None for one for each shard.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        settings: Settings,
        plan: Plan,
        folder: Path,
        crew: Crew,
        workers: int,
        store: str | Path | None,
    ) -> None:
        self.plan = plan
        self.folder = folder
        self.workers = workers
        self.busy = 0
        self.stop: int | None = None
        self._args = args
        self._settings = settings
        self._crew = crew
        self._store = store
        self._todo = deque(shard for shard in plan.shards if not _is_done(folder, shard))
        self._tries = dict.fromkeys((shard.index for shard in self._todo), 0)
        self._granted_usd: dict[int, float] = {}
        self._spent_before_usd: dict[int, float | None] = {}
        self._spent_usd = 0.0
        self._cap_usd = settings.run.budget_usd
        self._total_usd = settings.run.budget_total_usd
        self._before_usd = 0.0
        if self._total_usd is not None:
            self._before_usd = sum(_counted_usd(folder, shard) for shard in plan.shards)
            left_usd = max(0.0, self._total_usd - self._before_usd)
            self._cap_usd = left_usd if self._cap_usd is None else min(left_usd, self._cap_usd)

    async def run(self) -> None:
        """Return when no worker has anything left to do."""
        await asyncio.gather(*(self._work(place) for place in range(self.workers)))

    async def _work(self, place: int) -> None:
        while self._todo and self.stop is None:
            shard = self._todo.popleft()
            self.busy += 1
            code = await self._crew.judge(place, self._words(shard))
            self.busy -= 1
            self._back(shard, code)

    def _back(self, shard: Shard, code: int) -> None:
        """A shard came back: done, to be tried again, or the end of the run."""
        granted = self._granted_usd.pop(shard.index, 0.0)
        before = self._spent_before_usd.pop(shard.index, None)
        after = _all_spent_usd(self.folder, shard)
        # Where the manifest does not say what it spent, all that it was granted may be gone.
        if before is None or after is None or after < before:
            self._spent_usd += granted
        else:
            self._spent_usd += after - before
        if code in (status.OK, status.FAILURES):
            return
        if code in (status.BAD_INPUT, status.STOPPED, status.INTERRUPTED):
            if self.stop is None:
                self.stop = code
                self._crew.interrupt()
            return
        self._tries[shard.index] += 1
        if self._tries[shard.index] < TRIES:
            shard_job.say(
                self._args, f"the worker of shard {shard.index} died; giving the shard out again"
            )
            self._todo.append(shard)
        else:
            shard_job.say(
                self._args, f"shard {shard.index}: its worker died {TRIES} times; left as it is"
            )

    def total_line(self) -> str | None:
        """What a run that was stopped says of the budget of all runs, if there is one."""
        if self._total_usd is None or self.stop != status.STOPPED:
            return None
        return (
            f"the total budget is ${self._total_usd:,.4f}: ${self._before_usd:,.4f} spent by "
            f"earlier runs on these shards, ${self._spent_usd:,.4f} by this one; a larger "
            "--budget-total-usd goes on"
        )

    def on_signal(self, count: int, which: signal.Signals) -> None:
        """Pass it on: the workers drain at the first and cancel at the second."""
        done = "finishing what is in flight (again to cancel it)" if count == 1 else "cancelling"
        shard_job.say(self._args, f"{which.name}: {done}")
        self.stop = status.INTERRUPTED
        self._crew.interrupt()

    def _words(self, shard: Shard) -> list[str]:
        args = self._args
        words = ["judge", "--shard", str((self.folder / shards.PLAN_NAME).resolve())]
        words += ["--index", str(shard.index), "--quiet", "--with-parent"]
        words += ["--one-of", str(self.workers), "--log-level", args.log_level]
        words += ["--log-format", args.log_format]
        if args.no_store:
            words.append("--no-store")
        elif args.store is not None or self._store is not None:
            words += ["--store", str(self._store if args.store is None else args.store)]
        if args.workers is not None:
            words += ["--workers", str(args.workers)]
        if args.ordered:
            words.append("--ordered")
        if self._cap_usd is not None:
            words += ["--budget-usd", repr(self._grant_usd(shard))]
        return words

    def _grant_usd(self, shard: Shard) -> float:
        """The shard's part of the money that is left, by its rows: the parts never exceed it."""
        assert self._cap_usd is not None
        free = self._cap_usd - self._spent_usd - sum(self._granted_usd.values())
        rows = shard.rows + sum(each.rows for each in self._todo)
        granted = max(0.0, free) * shard.rows / rows
        self._granted_usd[shard.index] = granted
        self._spent_before_usd[shard.index] = _all_spent_usd(self.folder, shard)
        return granted


def _is_done(folder: Path, shard: Shard) -> bool:
    """True when the shard is whole and nothing in it failed; the worker looks more closely."""
    done = ShardFiles(folder, shard.index).done
    manifest = records.read_manifest(done) if done.exists() else None
    if manifest is None or manifest.runs[-1].status != "complete":
        return False
    with done.open("rb") as file:
        return sum(1 for _ in file) == shard.rows


def _all_spent_usd(folder: Path, shard: Shard) -> float | None:
    """What all runs on a shard have spent, at most; None where the manifest does not say."""
    files = ShardFiles(folder, shard.index)
    for path in (files.done, files.part):
        if (manifest := records.read_manifest(path)) is not None:
            spent = records.spent_by(manifest)
            return None if spent is None else spent.usd
    written = any(path.exists() and path.stat().st_size for path in (files.done, files.part))
    return None if written else 0.0


def _counted_usd(folder: Path, shard: Shard) -> float:
    """The same, for a budget of all runs.

    Raises:
        ConfigError: it is not known.
    """
    spent_usd = _all_spent_usd(folder, shard)
    if spent_usd is None:
        where = records.manifest_path(ShardFiles(folder, shard.index).part)
        raise ConfigError(
            f"--budget-total-usd counts from {where}, and it does not say what was spent; use "
            "--budget-usd, or start anew with --fresh"
        )
    return spent_usd


class ShardCount:
    """Outcomes written so far, over all shards: only what was added since the last look is read."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._files = [ShardFiles(folder, shard.index) for shard in plan.shards]
        self._seen = [(0, 0, 0)] * len(self._files)

    def look(self) -> tuple[int, int]:
        """Outcomes and failed ones among them."""
        for number, files in enumerate(self._files):
            self._seen[number] = _count_on(files, *self._seen[number])
        return sum(each[1] for each in self._seen), sum(each[2] for each in self._seen)


def _count_on(files: ShardFiles, offset: int, done: int, failed: int) -> tuple[int, int, int]:
    for path in (files.done, files.part):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            if path.stat().st_size < offset:  # a resume has dropped lines
                offset = done = failed = 0
            file.seek(offset)
            new = file.read()
            whole = new[: new.rfind(b"\n") + 1]
            failed += (b"\n" + whole).count(b'\n{"kind":"failed"')
            return offset + len(whole), done + whole.count(b"\n"), failed
    return offset, done, failed


def _drawn(args: argparse.Namespace, fleet: Fleet) -> contextlib.AbstractAsyncContextManager[None]:
    """Progress over all workers is drawn, if wanted, while the run goes on."""
    count = ShardCount(fleet.plan, fleet.folder)
    already = 0 if args.quiet else count.look()[0]
    progress = Progress(SystemClock(), total=fleet.plan.rows, already=already)
    progress.in_flight_name = "workers busy"

    def state() -> tuple[list[PacerStats], int]:
        done, progress.failed = count.look()
        progress.done = done - already
        return [], fleet.busy

    return drawn(progress, state, quiet=args.quiet)


def _end(args: argparse.Namespace, fleet: Fleet, target: Path, folder: Path) -> int:
    """Merge when every shard is there; tell the ledger in any case."""
    plan = fleet.plan
    merged: Merged = merge(plan, folder, None)
    if merged.complete:
        merged = merge_into(plan, folder, target, argv=args.argv, partial=False, fresh=False)
    code = status_of(merged) if fleet.stop is None else fleet.stop
    if not args.quiet:
        for line in account(merged, plan, str(target), partial=False):
            sys.stderr.write(f"{line}\n")
    if (said := fleet.total_line()) is not None:
        shard_job.tell(said)
    if not merged.complete:
        shard_job.say(args, f"the same command goes on; what is done is kept in {folder}")
    if args.json:
        told = summary(merged, plan, str(target), code)
        sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
    return code
