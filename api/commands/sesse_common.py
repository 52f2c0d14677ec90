"""What the sub-commands of `dikast sesse` share: who judges, the rows, the engine, the progress."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dikast import settling, wiring
from dikast.config import Settings, load_settings
from dikast.engine.errors import ConfigError
from dikast.engine.model import Judge, Pair
from dikast.engine.ports import Clock
from dikast.engine.sources import FileSource
from dikast.strategies.sesse.bills import BilledAsk
from dikast.strategies.sesse.split import Rows, usable

_EVERY_S = 5.0
_LIVE_EVERY_S = 0.1


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


class StageProgress:
    """Tells on stderr how far each stage is; a terminal sees one live line.

    Args:
        clock: for the pauses between two lines.
        quiet: say nothing.
    """

    def __init__(self, clock: Clock, *, quiet: bool) -> None:
        self._clock = clock
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._next_s = 0.0
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int, bill: BilledAsk | None) -> None:
        """See `OnProgress`."""
        if self._quiet:
            return
        now_s = self._clock.now()
        if stage != self._stage:
            self._stage, self._next_s = stage, now_s + (0.0 if self._live else _EVERY_S)
        if done < total and now_s < self._next_s:
            return
        self._next_s = now_s + (_LIVE_EVERY_S if self._live else _EVERY_S)
        text = f"dikast: {stage} {done:,}/{total:,}"
        if bill is not None and bill.calls:
            text += f" | {bill.calls:,} calls ({bill.stored_calls:,} from the store)"
            if bill.cost_usd:
                text += f" | ${bill.cost_usd:,.4f}"
        if self._live:
            text = f"\r\x1b[2K{text}" + ("\n" if done >= total else "")
        else:
            text += "\n"
        sys.stderr.write(text)
        sys.stderr.flush()


def judge_named(settings: Settings, name: str) -> Judge:
    """A judge of the settings, ready to be asked."""
    return wiring.judges_in(settings)[name]


def say(args: argparse.Namespace, message: str) -> None:
    """One line on stderr, unless told to be quiet."""
    if not args.quiet:
        print(f"dikast: {message}", file=sys.stderr, flush=True)
