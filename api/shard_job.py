"""One shard of a plan, judged as a run of its own: `dikast judge --shard`.

Stands between the command line and the run. The outcomes grow under a working name; the final name
appears when every row of the shard has its outcome, so a shard that has it is never judged again,
except for pairs that failed.
"""

import argparse
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from dikast import cutting, settling, shards, status
from dikast import manifest as records
from dikast.config import Settings
from dikast.engine.errors import ConfigError, InputError
from dikast.settling import Choices
from dikast.shards import Job, Plan, ShardFiles
from dikast.sinks import scan_output

Judge = Callable[[argparse.Namespace, Settings, Job | None], Awaitable[int]]

# The ends after which every row of the shard has its outcome.
_COMPLETE = ("complete", "failures")


async def run(args: argparse.Namespace, judge: Judge) -> int:
    """Judge the shard that the command line names.

    Args:
        args: the command line of `judge`.
        judge: makes a run on one output; see `dikast.commands.judge.judge_into`.

    Raises:
        ConfigError: there is no such shard.
        InputError: the plan or the input cannot be read, or the input was changed.
        SpecMismatchError: the settings are not those of the plan.
    """
    folder, plan, index = await _find(args)
    shard = shards.shard_of(plan, index)
    files = ShardFiles(folder, index)
    if files.done.exists():
        scan = scan_output(files.done)
        found = scan.done + scan.retry if scan is not None else 0
        if found == shard.rows and scan is not None and not scan.retry:
            say(args, f"shard {index} is done already: {files.done}")
            return _told(files)
        if found > shard.rows:
            raise InputError(
                f"has {found:,} outcomes for {shard.rows:,} rows; move it away and judge the shard "
                "again",
                file=str(files.done),
            )
        if found < shard.rows:
            tell(f"{files.done}: has {found:,} outcomes for {shard.rows:,} rows; the rest follows")
        files.reopen()
    settings = settings_of(plan, folder, args)
    if args.with_parent:  # who handed the shard out has granted it a part of the total
        run = msgspec.structs.replace(settings.run, budget_total_usd=None)
        settings = msgspec.structs.replace(settings, run=run)
    args.output = str(files.part)
    args.pairs = [each.name for each in plan.inputs]
    job = Job(plan, shard, shards.source_of(plan, shard, folder))
    code = await judge(args, _with_run(settings, shard.rows, args, files), job)
    manifest = records.read_manifest(files.part)
    if manifest is not None and manifest.runs[-1].status in _COMPLETE:
        files.finish()
    return code


async def _find(args: argparse.Namespace) -> tuple[Path, Plan, int]:
    """The folder, the plan and the number that `--shard` and `--index` mean."""
    left, slash, right = args.shard.partition("/")
    if slash and left.isdecimal() and right.isdecimal():
        if args.output is None or not args.pairs:
            raise ConfigError("--shard I/N needs the pairs, and the shards' folder with -o DIR")
        folder = Path(args.output)
        return folder, await plan_for(args, folder, count=int(right)), int(left)
    if args.pairs or args.output is not None:
        raise ConfigError(
            "--shard PLAN: the plan names the pairs and the place of the outcomes; leave PAIRS and "
            "-o away (or write --shard I/N)"
        )
    if args.index is None:
        raise ConfigError("--shard PLAN needs --index I, the number of the shard from 0")
    path = Path(args.shard)
    return shards.folder_of(path), shards.read_plan(path), args.index


async def plan_for(args: argparse.Namespace, folder: Path, *, count: int) -> Plan:
    """The plan in `folder`, made when there is none; two workers at once make the same one.

    Raises:
        SpecMismatchError: the folder holds a plan of something else.
    """
    choices, settings = planned(args)
    plan = await cutting.make_plan(
        folder,
        args.pairs,
        form=args.format or settings.input.format,
        choices=choices,
        settings=settings,
        shards=count,
        limit=args.limit,
    )
    shards.write_plan(folder, plan)
    return plan


def planned(args: argparse.Namespace) -> tuple[Choices, Settings]:
    """Who judges, as a plan keeps it and as it is settled.

    Raises:
        ConfigError: columns or a split are named, which no plan keeps: the workers would read
            other rows than those meant.
    """
    choices = choices_of(args)
    settings = settling.settle(choices)
    said = getattr(args, "columns", None) or getattr(args, "split", None)
    if said or settings.input.columns or settings.input.split:
        raise ConfigError(
            "columns and split do not go with shards and several processes; write the rows as "
            "dikast's own first: dikast convert PAIRS --columns FIELD=COLUMN,... -o pairs.jsonl"
        )
    return choices, settings


def choices_of(args: argparse.Namespace, *, whole: bool = False) -> Choices:
    """What the command line says about who judges and how; `whole`: about the run, too."""
    choices = Choices(
        config=args.config,
        judges=tuple(args.judge),
        strategy=args.strategy,
        template=args.template,
        seed=args.seed,
    )
    if not whole:
        return choices
    return msgspec.structs.replace(
        choices,
        budget_usd=args.budget_usd,
        budget_total_usd=args.budget_total_usd,
        workers=args.workers,
        limit=args.limit,
        store=args.store,
        no_store=True if args.no_store else None,
        one_of=args.one_of,
    )


def settings_of(plan: Plan, folder: Path, args: argparse.Namespace) -> Settings:
    """The plan's settings, with what the command line says above them."""
    said, planned = choices_of(args), plan.choices
    config = said.config
    if config is None and planned.config is not None:
        config = os.path.normpath(folder.resolve() / planned.config)
    return settling.settle(
        Choices(
            config=config,
            judges=said.judges or planned.judges,
            strategy=said.strategy or planned.strategy,
            template=said.template or planned.template,
            seed=planned.seed if said.seed is None else said.seed,
            budget_usd=args.budget_usd,
            budget_total_usd=args.budget_total_usd,
            workers=args.workers,
            store=args.store,
            no_store=True if args.no_store else None,
            one_of=args.one_of,
        )
    )


def _with_run(
    settings: Settings, rows: int, args: argparse.Namespace, files: ShardFiles
) -> Settings:
    """A store of the shard's own unless one was named: no lock is shared between machines."""
    run = msgspec.structs.replace(settings.run, limit=rows)
    if args.store is None:
        run = msgspec.structs.replace(run, store=str(files.store.absolute()))
    return msgspec.structs.replace(settings, run=run)


def _told(files: ShardFiles) -> int:
    """The status that the shard's last run ended with."""
    manifest = records.read_manifest(files.done)
    failed = manifest is not None and manifest.runs[-1].status == "failures"
    return status.FAILURES if failed else status.OK


def say(args: argparse.Namespace, message: str) -> None:
    """One line for people, unless they wanted none."""
    if not args.quiet:
        tell(message)


def tell(message: str) -> None:
    """One line on standard error, also with --quiet: a complaint."""
    sys.stderr.write(f"dikast: {message}\n")
    sys.stderr.flush()
