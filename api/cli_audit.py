"""The words of `dikast audit`: sample, serve, report.

Part of the command line; imports nothing heavy, so that `dikast --help` answers at once.
"""

import argparse
from typing import Any

from dikast.cli_reports import (
    add_cluster_and_intervals,
    add_label_rule,
    add_reading_of_pairs,
    add_shape,
    add_tie_rule,
)

_GATE = """\
exit status of report:
  0    the report was made, and agreement is not below --min-agreement
  2    the input is wrong, or no labelled pair has a verdict
  4    agreement is below --min-agreement
"""


def add_audit(command: argparse.ArgumentParser, shared: Any) -> None:
    """Add the three steps of an audit."""
    steps = command.add_subparsers(dest="step", metavar="STEP", required=True)

    def step(name: str, help_: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = steps.add_parser(
            name,
            parents=[shared],
            help=help_,
            description=help_[0].upper() + help_[1:] + ".",
            epilog=_GATE if name == "report" else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        return made

    _add_sample(step("sample", "draw outcomes for people to look at, with known probabilities"))
    _add_serve(step("serve", "serve a local page for blind labelling until Ctrl-C"))
    _add_report(step("report", "set labels against verdicts and correct the totals"))


def _add_sample(command: argparse.ArgumentParser) -> None:
    command.add_argument("outcomes", metavar="OUT", help="outcome file of dikast judge")
    command.add_argument(
        "-o", "--output", required=True, metavar="SAMPLE", help="the sample, JSONL; never replaced"
    )
    command.add_argument("-n", type=_count, default=200, metavar="N", help="pairs; default 200")
    command.add_argument(
        "--how",
        default="stratified",
        choices=("uniform", "stratified", "uncertainty"),
        help="all alike, some of every kind (default), or more where the judge was in doubt",
    )
    command.add_argument(
        "--by",
        action="append",
        default=[],
        choices=("winner", "category", "confidence"),
        help="what makes a stratum of --how stratified; may be repeated; default all three",
    )
    command.add_argument(
        "--pairs",
        action="append",
        default=[],
        metavar="PAIRS",
        help="the pairs that were judged; by default those that the manifest names",
    )
    add_reading_of_pairs(command)
    command.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the draw")
    command.add_argument("--json", action="store_true", help="print the design as JSON")


def _add_serve(command: argparse.ArgumentParser) -> None:
    command.add_argument("sample", metavar="SAMPLE", help="sample or review queue, JSONL")
    command.add_argument(
        "-o", "--output", required=True, metavar="LABELS", help="labels, JSONL; appended to"
    )
    command.add_argument("--host", default="127.0.0.1", help="address to listen on")
    command.add_argument("--port", type=int, default=0, help="port; 0 picks a free one")
    command.add_argument(
        "--no-token", action="store_true", help="let every process of this machine label"
    )
    command.add_argument(
        "--repeat",
        type=_share,
        default=0.1,
        metavar="X",
        help="share of items shown twice for self-agreement; default 0.1",
    )
    command.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all orders")


def _add_report(command: argparse.ArgumentParser) -> None:
    command.add_argument("outcomes", metavar="OUT", help="outcome file of dikast judge")
    command.add_argument("labels", nargs="+", metavar="LABELS", help="labels of dikast audit serve")
    command.add_argument(
        "--min-agreement",
        type=_share,
        metavar="X",
        help="exit status 4 if agreement by the tie rule is below X (0 to 1)",
    )
    command.add_argument(
        "--ranking", metavar="FILE", help="JSON of dikast rank, to see who outranks the judge"
    )
    command.add_argument(
        "--judge-model",
        action="append",
        default=[],
        metavar="NAME",
        help="name of the judge's model in the ranking; by default the judge's name",
    )
    add_label_rule(command)
    # Two annotators who differ are news here: the pair must not drop out.
    command.set_defaults(label_rule="plurality")
    add_tie_rule(command)
    add_cluster_and_intervals(command)
    add_shape(command)


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"a sample has at least one pair, not {text}")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"a share lies between 0 and 1, not at {text}")
    return value
