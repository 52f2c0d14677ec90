"""The words of `dikast preferences`: its actions and their options, and nothing that is heavy."""

import argparse
from collections.abc import Callable
from typing import Any

ADD_ACTION = Callable[[Any, str, Any, str], argparse.ArgumentParser]


def add_preferences(commands: Any, shared: Any, add: ADD_ACTION) -> None:
    """Add the command to the command line.

    Args:
        commands: the sub-parsers of `dikast`.
        shared: options of every command.
        add: makes one sub-parser: parent, name, shared options, help.
    """
    command = add(
        commands, "preferences", shared, "judge as one person would: fit, evaluate, edit profiles"
    )
    actions = command.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=type(command)
    )
    _add_fit(actions, shared, add)
    _add_evaluate(actions, shared, add)
    _add_leaderboard(actions, shared, add)
    _add_edit(actions, shared, add)
    for name, help_ in (
        ("show", "print a profile, and what its fit measured"),
        ("export", "print everything that is kept about the person of a profile, as JSON"),
        ("delete", "delete a profile, its votes, and the calls it was made of"),
    ):
        action = add(actions, name, shared, help_)
        action.add_argument("profile", metavar="PROFILE", help="profile file")
    paper = add(actions, "paper", shared, "the SenseJudge authors' selection on the votes of a fit")
    paper.add_argument("votes", metavar="VOTES", help="the .votes.jsonl file beside a profile")
    paper.add_argument("--topic", default="", help="the entry's topic; default: the one for all")
    paper.add_argument(
        "--gap-penalty", action="store_true", help="take the gap between the orders off the score"
    )
    paper.add_argument(
        "--with-plain", action="store_true", help="let the judge without a preference be chosen too"
    )
    paper.add_argument("--json", action="store_true", help="print JSON")


def _add_engine(command: argparse.ArgumentParser) -> None:
    """Who judges, and how a run is carried out: as for `dikast judge`."""
    command.set_defaults(when_interrupted="the same command resumes")
    command.add_argument("--config", metavar="FILE", help="configuration in TOML")
    command.add_argument(
        "--judge", metavar="PROVIDER:MODEL", help="the judge, or the name of a configured one"
    )
    command.add_argument("--template", metavar="FILE", help="template with {{preferences}}")
    command.add_argument("--format", metavar="F", help="input format; recognised by default")
    command.add_argument("--person", metavar="NAME", help="whose labels those without a name are")
    command.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="this person only; repeatable"
    )
    command.add_argument("--seed", type=int, metavar="N", help="of splits and draws; default 0")
    command.add_argument("--budget-usd", type=float, metavar="X", help="never spend more than this")
    command.add_argument("--workers", type=int, metavar="N", help="pairs judged at the same time")
    command.add_argument("--store", metavar="PATH", help="call store; default: one a person")
    command.add_argument("--no-store", action="store_true", help="keep no completions")
    command.add_argument(
        "--dry-run", action="store_true", help="print the number of calls and stop"
    )
    command.add_argument("--quiet", action="store_true", help="no progress on stderr")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the report as JSON")
    form.add_argument("--md", action="store_true", help="print the report as Markdown")


def _add_fit(actions: Any, shared: Any, add: ADD_ACTION) -> None:
    command = add(actions, "fit", shared, "make profiles of the people who labelled pairs")
    command.add_argument("pairs", nargs="+", metavar="PAIRS", help="labelled pairs; - is stdin")
    command.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="folder for the profiles"
    )
    _add_engine(command)
    command.add_argument("--writer", metavar="PROVIDER:MODEL", help="writes; default: the judge")
    command.add_argument(
        "--development",
        type=int,
        default=12,
        metavar="N",
        help="labelled pairs to fit on, of each person (and topic); default 12",
    )
    command.add_argument(
        "--min-labels",
        type=int,
        default=10,
        metavar="N",
        help="people (and topics) with fewer usable labels get no profile; default 10",
    )
    command.add_argument("--by-topic", action="store_true", help="an entry for every topic")
    command.add_argument(
        "--weighted",
        action="store_true",
        help="let all preferences vote, each with the share of the best sets that contain it",
    )
    command.add_argument(
        "--shuffles", type=int, default=99, metavar="N", help="of the permutation test"
    )


def _add_evaluate(actions: Any, shared: Any, add: ADD_ACTION) -> None:
    command = add(actions, "evaluate", shared, "measure profiles on labels they were not fitted on")
    command.add_argument("pairs", nargs="+", metavar="PAIRS", help="labelled pairs; - is stdin")
    command.add_argument(
        "--profile", action="append", required=True, metavar="FILE", help="profile; repeatable"
    )
    _add_engine(command)
    command.add_argument("--limit", type=int, metavar="N", help="pairs of each person at most")
    command.add_argument(
        "--ablations",
        action="store_true",
        help="also other numbers of labels and selection rules, from the votes of the fit",
    )
    command.add_argument(
        "--transfer", action="store_true", help="also every entry on every other topic's pairs"
    )


def _add_leaderboard(actions: Any, shared: Any, add: ADD_ACTION) -> None:
    command = add(
        actions, "leaderboard", shared, "rank the models of the same pairs under each profile"
    )
    command.add_argument("pairs", nargs="+", metavar="PAIRS", help="pairs of models; - is stdin")
    command.add_argument(
        "--profile", action="append", required=True, metavar="FILE", help="profile; repeatable"
    )
    _add_engine(command)
    command.add_argument("--limit", type=int, metavar="N", help="read at most this many rows")


def _add_edit(actions: Any, shared: Any, add: ADD_ACTION) -> None:
    command = add(actions, "edit", shared, "pin, delete, write or weigh preferences of a profile")
    command.add_argument("profile", metavar="PROFILE", help="profile file")
    command.add_argument("--topic", default="", help="the entry's topic; default: the one for all")
    for option, help_ in (
        ("--pin", "let it always vote, and keep it in a new fit"),
        ("--unpin", "leave it to the next fit again"),
        ("--delete", "let it never vote, and have no new fit write it again"),
    ):
        command.add_argument(option, action="append", default=[], metavar="ID", help=help_)
    command.add_argument(
        "--write", action="append", default=[], metavar="TEXT", help="add a sentence, pinned"
    )
    command.add_argument(
        "--use", choices=("preferences", "plain"), help="what judges pairs of this topic"
    )
