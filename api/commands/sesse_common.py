"""What the sub-commands of `dikast sesse` share: who judges, and the rows."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dikast import settling, wiring
from dikast.config import Settings, load_settings
from dikast.engine.errors import ConfigError
from dikast.engine.model import Judge, Pair
from dikast.engine.sources import FileSource
from dikast.strategies.sesse.split import Rows, usable


def settings_of(args: argparse.Namespace, *more_judges: str | None) -> tuple[Settings, list[str]]:
    """The settings of a sub-command and the names of its judges, in the order asked for.

    Raises:
        InputError, ConfigError: as `settling.settle`; or it is not clear who judges.
    """
    first = args.judge
    if first is None:
        configured = load_settings(Path(args.config)).judges if args.config else {}
        if len(configured) != 1:
            raise ConfigError(
                "name the judge with --judge: "
                + (f"configured are {', '.join(configured)}" if configured else "none was named")
            )
        first = next(iter(configured))
    wanted = list(dict.fromkeys([first, *(name for name in more_judges if name)]))
    settings = settling.settle(
        settling.Choices(
            config=args.config,
            judges=tuple(wanted),
            strategy="committee" if len(wanted) > 1 else "single",
            seed=args.seed,
            budget_usd=args.budget_usd,
            workers=args.workers,
            limit=args.limit,
            store=args.store,
        )
    )
    return settings, list(wiring.judges_in(settings))


async def labelled_rows(paths: Sequence[str], form: str | None, limit: int | None) -> Rows:
    """The rows with a label A or B; bad rows and the others are counted.

    Raises:
        InputError: a file cannot be read.
        ConfigError: no row is left.
    """
    pairs, bad = await rows_of(paths, form, limit)
    rows = usable(pairs)
    left_out = {**({"bad row": bad} if bad else {}), **rows.left_out}
    if not rows.pairs:
        why = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        raise ConfigError(
            f"{', '.join(paths)}: no row with a label A or B ({why or 'no row at all'}); a library "
            "is mined from labelled pairs"
        )
    return Rows(pairs=rows.pairs, left_out=left_out)


async def rows_of(
    paths: Sequence[str], form: str | None, limit: int | None
) -> tuple[list[Pair], int]:
    """All pairs of the files, and the number of rows that are none.

    Raises:
        InputError: a file cannot be read.
    """
    source = FileSource(paths, format=form or "auto")
    pairs: list[Pair] = []
    bad = read = 0
    try:
        async for batch in source.batches():
            for row in batch:
                if limit is not None and read >= limit:
                    return pairs, bad
                read += 1
                if isinstance(row.item, Pair):
                    pairs.append(row.item)
                else:
                    bad += 1
    finally:
        await source.aclose()
    return pairs, bad


def judge_named(settings: Settings, name: str) -> Judge:
    """A judge of the settings, ready to be asked."""
    return wiring.judges_in(settings)[name]


def say(args: argparse.Namespace, message: str) -> None:
    """One line on stderr, unless told to be quiet."""
    if not args.quiet:
        print(f"dikast: {message}", file=sys.stderr, flush=True)
