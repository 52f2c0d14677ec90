"""The words of `dikast anchors`, of anchors in `judge`, and of `check --injection`.

Read by the command line before any command is chosen, so it knows argparse and nothing else.
"""

import argparse
from collections.abc import Callable

MakeCommand = Callable[[str, str], argparse.ArgumentParser]
AddChoices = Callable[[argparse.ArgumentParser], None]


def add_anchors(
    make: MakeCommand, add_choices: AddChoices, parser: type[argparse.ArgumentParser]
) -> None:
    """`dikast anchors init|run|check`."""
    command = make("anchors", "judge the same items again and see whether the judge has changed")
    actions = command.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=parser
    )

    init = actions.add_parser("init", help="choose items and freeze them into an anchor set")
    init.add_argument("pairs", nargs="+", metavar="PAIRS", help="input files; - is stdin")
    init.add_argument("-o", "--output", required=True, metavar="ANCHORS", help="JSON to write")
    init.add_argument("--name", required=True, help="name of the set")
    init.add_argument(
        "--size", type=int, metavar="K", help="choose this many, by label and category; else all"
    )
    init.add_argument("--seed", type=int, default=0, metavar="S", help="decides which; default 0")
    init.add_argument("--format", metavar="F", help="input format; recognised by default")
    init.add_argument(
        "--bump",
        action="store_true",
        help="other items than in ANCHORS: write the next version, keep the old one beside it",
    )

    run = actions.add_parser("run", help="judge an anchor set and write what came of it")
    run.set_defaults(when_interrupted="nothing of it is kept; run the same command again")
    run.add_argument("anchors", metavar="ANCHORS", help="anchor set")
    run.add_argument("-o", "--output", required=True, metavar="RUN", help="JSON to write")
    add_choices(run)
    run.add_argument(
        "--store",
        metavar="PATH",
        help="take answers from this call store; by default every anchor is asked anew",
    )

    run.add_argument(
        "--twice",
        action="store_true",
        help="judge the set twice: a baseline that knows the judge's own noise",
    )

    check = actions.add_parser("check", help="compare a run with the baseline; status 4 on drift")
    check.add_argument("run", metavar="RUN", help="written by: dikast anchors run")
    check.add_argument("--baseline", required=True, metavar="RUN", help="an earlier run")
    check.add_argument("--config", metavar="FILE", help="configuration with an [anchors] table")
    for name, words in (
        ("alpha", "chance of a false alarm of the whole check"),
        ("max-shift-sd", "tolerated shift of a mean, in standard deviations"),
        ("max-ks", "tolerated distance between two score distributions"),
        ("max-win-shift", "tolerated change of the win share"),
        ("max-flip-rate", "tolerated share of changed verdicts"),
        ("max-missing", "tolerated share of lost verdicts"),
        ("min-agreement", "agreement with labels below which a warning is given"),
    ):
        check.add_argument(f"--{name}", type=float, metavar="X", help=words)
    for each in (init, run, check):
        each.add_argument("--debug", action="store_true", help="show the traceback of an error")
        each.add_argument("--json", action="store_true", help="print JSON on stdout")


def add_anchor_lane(command: argparse.ArgumentParser) -> None:
    """Anchors that go along in `dikast judge`."""
    command.add_argument("--anchors", metavar="ANCHORS", help="anchor set, judged before the pairs")
    command.add_argument("--baseline", metavar="RUN", help="run on them to compare with")
    command.add_argument(
        "--correction",
        choices=("none", "affine", "isotonic"),
        help="put scores on the baseline's scale; the judge's own stay beside them",
    )
    command.add_argument(
        "--anchors-gate",
        action="store_true",
        help="status 4, before any pair is judged, when the anchors have moved",
    )


def add_injection(command: argparse.ArgumentParser) -> None:
    """`dikast check --injection`."""
    command.add_argument(
        "--injection",
        action="store_true",
        help="ask the judge about answers with planted instructions, and count who gives in",
    )
    command.add_argument(
        "--clean-pairs",
        type=int,
        default=12,
        metavar="N",
        help="with --injection: how many pairs to plant into; default 12",
    )
    command.add_argument(
        "--clean",
        metavar="PAIRS",
        help="with --injection: plant into these labelled pairs and not into the shipped ones",
    )
    command.add_argument(
        "--max-flip-rate",
        type=float,
        metavar="X",
        help="with --injection: status 4 when more than this share of verdicts gives in",
    )
