"""What the reports share: files to columns, options, numbers to cells, a report to text."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dikast.config import InputSettings, with_input
from dikast.engine.errors import InputError
from dikast.tables import As, Measure, Share, Table, render, render_report

if TYPE_CHECKING:
    from dikast.analysis.counting import Number, Options
    from dikast.analysis.ratings import Ratings


def load(args: argparse.Namespace) -> "Ratings":
    """Read all outcome files and labels that the arguments name.

    Raises:
        InputError: one cannot be read, a name stands twice, or nothing is in any of them.
    """
    ratings = read(args)
    if not len(ratings):
        raise InputError(
            "there is nothing to report on: no outcome and no label is in "
            + ", ".join([*args.outcomes, *args.labels])
        )
    return ratings


def read(args: argparse.Namespace) -> "Ratings":
    """As `load`, but files without an outcome are taken as they are.

    Raises:
        InputError: a file cannot be read, or a name stands twice.
    """
    from dikast.analysis.ratings import Ratings

    ratings = Ratings(args.cluster)
    names = _names(args.outcomes)
    for path, name in zip(args.outcomes, names, strict=True):
        ratings.read_run(path, name)
    patterns: list[str] = args.annotators
    for path in args.labels:
        before = len(ratings.people)
        ratings.read_labels(
            path, lambda who: not patterns or any(fnmatchcase(who, each) for each in patterns)
        )
        if len(ratings.people) == before:
            raise InputError(
                "holds no label"
                + (f" of annotators {', '.join(patterns)}" if patterns else "")
                + "; a label row has pair_id and label, or votes",
                file=path,
            )
    return ratings


def pairs_input(args: argparse.Namespace) -> InputSettings:
    """How a report reads the judged pairs: what --format and --columns say.

    Raises:
        ConfigError: --columns is no list of FIELD=COLUMN.
    """
    return with_input(InputSettings(), args.format, None, args.columns)


def _names(paths: Sequence[str]) -> list[str]:
    """Short names of files; where two would be alike, the paths."""
    from dikast.analysis.ratings import stem

    short = [stem(path) for path in paths]
    names = [
        name if short.count(name) == 1 else path for name, path in zip(short, paths, strict=True)
    ]
    for path in paths:
        if names.count(path) > 1:
            raise InputError("is given twice", file=path)
    return names


def options_of(args: argparse.Namespace) -> "Options":
    """How numbers are computed."""
    from dikast.analysis.counting import Options

    return Options(
        level=args.level,
        draws=args.draws,
        seed=args.seed,
        tie_rule=getattr(args, "tie_rule", "three-way"),
        label_rule=args.label_rule,
        missing=getattr(args, "missing", "left-out"),
    )


def show(args: argparse.Namespace, report: Any, tables: Sequence[Table]) -> str:
    """The report in the shape that was asked for."""
    shape: As = "json" if args.json else "md" if args.md else "terminal"
    plain = msgspec.to_builtins(report) if args.json else {}
    return drawn(tables, shape, plain)


def drawn(
    tables: Table | Sequence[Table],
    as_: As = "terminal",
    report: Mapping[str, Any] | None = None,
) -> str:
    """Tables as text; on a terminal as wide as it is and in colour, unless NO_COLOR is set.

    Args:
        tables: what to draw.
        as_: "terminal", "md" or "json".
        report: what JSON holds instead of the tables.
    """
    if as_ == "json" and report is not None:
        return render_report(report)
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return render(tables, as_, colour=colour)


class _Basis(Protocol):
    """What every report says of the pairs that it was computed on."""

    @property
    def pairs(self) -> int: ...

    @property
    def labelled(self) -> int: ...

    @property
    def clusters(self) -> int: ...

    @property
    def clustered(self) -> bool: ...

    @property
    def level(self) -> float: ...

    @property
    def draws(self) -> int: ...

    @property
    def seed(self) -> int: ...

    @property
    def missing(self) -> Mapping[str, Mapping[str, int]]: ...


def intervals_row(report: _Basis) -> tuple[str, str]:
    """How the intervals of a report were made."""
    return (
        "intervals",
        f"{report.level:.0%}, bootstrap over prompts, {report.draws:,} draws, seed {report.seed}",
    )


def missing_notes(report: _Basis) -> list[str]:
    """What had no verdict, and why, by run."""
    return [
        f"{name}: no verdict: {reason}: {count:,}"
        for name, reasons in report.missing.items()
        for reason, count in reasons.items()
        if count
    ]


def cluster_notes(report: _Basis) -> list[str]:
    """A word where no prompt is named."""
    from dikast.analysis.counting import UNCLUSTERED

    return [] if report.clustered else [UNCLUSTERED]


def share(number: "Number | None", *, signed: bool = False) -> Share:
    """A share or a difference of shares, in per cent."""
    if number is None:
        return Share(None)
    return Share(number.value, number.interval, signed)


def measure(number: "Number | None", *, digits: int = 3, signed: bool = False) -> Measure:
    """A number with three digits."""
    if number is None:
        return Measure(None)
    return Measure(number.value, number.interval, digits, signed)


def counted(number: int) -> str:
    """A count as text."""
    return f"{number:,}"
