"""The words of `dikast sesse tune`, `evaluate` and `baselines`. Imports nothing but argparse."""

import argparse
from collections.abc import Callable
from typing import Any

Command = Callable[[Any, str, Any, str], argparse.ArgumentParser]
Choices = Callable[[argparse.ArgumentParser], None]
BASELINES = (
    "sesse",
    "hybrid",
    "holistic",
    "direct",
    "self-consistency",
    "rubric",
    "random",
    "labels",
)


def add(parts: Any, command: Command, shared: Any, judge_choices: Choices) -> None:
    """Register the three sub-commands.

    Args:
        parts: sub-parsers of `sesse`.
        command: makes one command's parser.
        shared: options that every command has.
        judge_choices: adds who judges and how.
    """
    _add_tune(parts, command, shared, judge_choices)
    _add_evaluate(parts, command, shared)
    _add_baselines(parts, command, shared, judge_choices)


def _add_tune(parts: Any, command: Command, shared: Any, judge_choices: Choices) -> None:
    tune = command(
        parts, "tune", shared, "verify, weigh and mute a library's questions, choose its depth"
    )
    tune.set_defaults(when_interrupted="the same command resumes")
    tune.add_argument("library", metavar="LIB", help="library to tune")
    tune.add_argument("pairs", nargs="*", metavar="PAIRS", help="labelled rows to tune on")
    tune.add_argument("-o", "--output", required=True, metavar="LIB2", help="library to write")
    judge_choices(tune)
    tune.add_argument(
        "--votes", metavar="OUT", help="outcomes of a run at full depth: no judge is asked"
    )
    tune.add_argument("--holistic", metavar="OUT", help="with --votes: holistic verdicts")
    tune.add_argument("--self-fix", metavar="OUT", help="with --votes: votes on the source rows")
    tune.add_argument("--keep-all", action="store_true", help="drop no question")
    tune.add_argument(
        "--keep-unfixed", action="store_true", help="keep those that fail on their own source row"
    )
    tune.add_argument("--no-self-fix", action="store_true", help="do not ask the source rows")
    tune.add_argument(
        "--asked-min", type=int, default=10, metavar="N", help="rows before votes count; 10"
    )
    tune.add_argument(
        "--non-na-min", type=float, default=0.05, metavar="X", help="least share of A and B; 0.05"
    )
    tune.add_argument(
        "--accuracy-above", type=float, default=0.5, metavar="X", help="smoothed accuracy; 0.5"
    )
    tune.add_argument("--weights", action="store_true", help="tune for weighted votes")
    tune.add_argument("--no-mute", action="store_true", help="mute no cluster")
    tune.add_argument("--work-dir", metavar="DIR", help="outcomes of the runs; default LIB2.work")


def _add_evaluate(parts: Any, command: Command, shared: Any) -> None:
    evaluate = command(
        parts, "evaluate", shared, "report on a run of sesse from its votes, without any call"
    )
    evaluate.add_argument("outcomes", metavar="OUT", help="outcomes of a run of sesse")
    evaluate.add_argument("--holistic", metavar="OUT", help="outcomes of the holistic verdict")
    evaluate.add_argument(
        "--library", metavar="LIB", help="replay depths with this library's ranks and weights"
    )
    evaluate.add_argument("--weights", action="store_true", help="replay with its weights")
    evaluate.add_argument(
        "--reference", metavar="OUT", help="the same pairs one question a call: agreement of OUT"
    )
    evaluate.add_argument(
        "--transfer",
        action="append",
        default=[],
        metavar="OUT",
        help="a further run of another library or judge; may be repeated",
    )
    evaluate.add_argument(
        "--pairs", action="append", default=[], metavar="PAIRS", help="the pairs: measure cosines"
    )
    evaluate.add_argument("--format", metavar="F", help="format of the pairs")
    evaluate.add_argument(
        "--embedder", default="usem3", metavar="NAME", help="for the cosines: usem3, hash, ..."
    )
    evaluate.add_argument("--config", metavar="FILE", help="configuration that names an embedder")
    evaluate.add_argument(
        "--thresholds", metavar="JSON", help="report of development rows: its C1 to C3 limits"
    )
    evaluate.add_argument("--html", metavar="FILE", help="also write one self-contained page")
    evaluate.add_argument("--md", action="store_true", help="print as Markdown")
    evaluate.add_argument("--json", action="store_true", help="print the report as JSON")


def _add_baselines(parts: Any, command: Command, shared: Any, judge_choices: Choices) -> None:
    baselines = command(
        parts, "baselines", shared, "hold a library against simpler ways to spend the same calls"
    )
    baselines.set_defaults(when_interrupted="the same command resumes")
    baselines.add_argument("library", metavar="LIB", help="library to hold against them")
    baselines.add_argument("pairs", nargs="+", metavar="PAIRS", help="labelled input files")
    baselines.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="folder for the outcomes of each"
    )
    judge_choices(baselines)
    baselines.add_argument(
        "--only",
        action="append",
        default=[],
        choices=BASELINES,
        metavar="NAME",
        help=f"one of {', '.join(BASELINES)}; may be repeated; default all",
    )
    baselines.add_argument("--depth", type=int, metavar="N", help="questions of a cluster")
    baselines.add_argument(
        "--temperature",
        type=float,
        default=0.7,
        metavar="X",
        help="of the samples of self-consistency; 0.7",
    )
