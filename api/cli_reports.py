"""The words of the commands that read outcomes: agree, bias, compare and report.

Part of the command line; imports nothing heavy, so that `dikast --help` answers at once.
"""

import argparse
from typing import Any, Protocol


class Make(Protocol):
    """Adds a command to the command line."""

    def __call__(
        self, commands: Any, name: str, shared: Any, help_: str
    ) -> argparse.ArgumentParser: ...


def add_reports(commands: Any, shared: Any, make: Make) -> None:
    """Add `agree`, `bias`, `compare` and `report`."""
    _add_agree(make(commands, "agree", shared, "measure how far judges agree with people"))
    _add_bias(make(commands, "bias", shared, "measure the biases of judges"))
    _add_compare(make(commands, "compare", shared, "set two or more runs side by side"))
    _add_report(make(commands, "report", shared, "put everything about a run on one page"))


def _add_agree(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "outcomes", nargs="*", metavar="OUT", help="outcome files; none: people among themselves"
    )
    _add_labels(command)
    add_tie_rule(command)
    command.add_argument(
        "--missing",
        default="left-out",
        choices=("left-out", "wrong"),
        help="a labelled pair without a verdict: left out and counted (default), or wrong",
    )
    add_cluster_and_intervals(command)
    add_shape(command)


def _add_bias(command: argparse.ArgumentParser) -> None:
    command.add_argument("outcomes", nargs="+", metavar="OUT", help="outcome files")
    _add_material(command)
    _add_labels(command)
    add_cluster_and_intervals(command)
    add_shape(command)


def _add_compare(command: argparse.ArgumentParser) -> None:
    command.add_argument("outcomes", nargs="+", metavar="RUN", help="outcome files, oldest first")
    _add_labels(command)
    add_tie_rule(command)
    add_cluster_and_intervals(command)
    add_shape(command)


def _add_report(command: argparse.ArgumentParser) -> None:
    command.add_argument("outcomes", nargs="+", metavar="OUT", help="outcome files")
    command.add_argument(
        "-o", "--output", metavar="FILE", help="the page; with --json or --md stdout by default"
    )
    _add_material(command)
    command.add_argument(
        "--sample",
        type=int,
        default=60,
        metavar="N",
        help="pairs of each kind to show with their texts; default 60",
    )
    command.add_argument("--title", metavar="TEXT", help="of the page; by default the files' names")
    _add_labels(command)
    add_cluster_and_intervals(command)
    add_shape(command)


def _add_material(command: argparse.ArgumentParser) -> None:
    """What biases are measured with, beside the outcomes."""
    command.add_argument(
        "--pairs",
        action="append",
        default=[],
        metavar="FILE",
        help="the pairs that were judged; needed for texts, length, lists, headings and code",
    )
    add_reading_of_pairs(command)
    command.add_argument(
        "--family",
        action="append",
        default=[],
        metavar="JUDGE=FAMILY",
        help="the model family of a judge; by default its name says it",
    )
    command.add_argument("--injection", metavar="FILE", help="JSON of dikast check --injection")


def add_reading_of_pairs(command: argparse.ArgumentParser) -> None:
    """How the pairs that were judged are read."""
    command.add_argument("--format", metavar="F", help="format of the pairs")
    command.add_argument(
        "--columns",
        metavar="FIELD=COLUMN,...",
        help="which column of the pairs stands for which field",
    )


def _add_labels(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--labels",
        action="append",
        default=[],
        metavar="FILE",
        help="labels of people, JSONL or CSV; by default those that the outcomes carry",
    )
    command.add_argument(
        "--annotators",
        action="append",
        default=[],
        metavar="PATTERN",
        help="take only these annotators, such as 'expert_*'; may be repeated",
    )
    add_label_rule(command)


def add_label_rule(command: argparse.ArgumentParser) -> None:
    """How several votes become one label."""
    command.add_argument(
        "--label-rule",
        default="majority",
        choices=("majority", "plurality"),
        help="one label from several votes: more than half, or the most (level is a tie)",
    )


def add_tie_rule(command: argparse.ArgumentParser) -> None:
    """What a tie is worth."""
    command.add_argument(
        "--tie-rule",
        default="three-way",
        choices=("three-way", "decided", "no-ties"),
        help="what counts as right in comparisons of two; default three-way",
    )


def add_cluster_and_intervals(command: argparse.ArgumentParser) -> None:
    """What is resampled, how often, at which level."""
    command.add_argument(
        "--cluster", metavar="FIELD", help="field of meta that names the prompt of a pair"
    )
    command.add_argument(
        "--level", type=_level, default=0.95, metavar="X", help="confidence level; default 0.95"
    )
    command.add_argument(
        "--draws", type=_draws, default=2000, metavar="N", help="bootstrap draws; default 2000"
    )
    command.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the draws")


def add_shape(command: argparse.ArgumentParser) -> None:
    """Terminal, Markdown or JSON."""
    shape = command.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print the report as JSON")
    shape.add_argument("--md", action="store_true", help="print the report as Markdown")


def _level(text: str) -> float:
    value = float(text)
    if not 0.5 <= value < 1:
        raise argparse.ArgumentTypeError(f"a level lies between 0.5 and 1, not at {text}")
    return value


def _draws(text: str) -> int:
    value = int(text)
    if not 100 <= value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"draws lie between 100 and 1,000,000, not at {text}")
    return value
