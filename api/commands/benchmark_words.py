"""The words of `dikast benchmark`: its actions and their options, and nothing that is heavy."""

import argparse
from collections.abc import Callable
from typing import Any

ADD_ACTION = Callable[[Any, str, Any, str], argparse.ArgumentParser]


def add_benchmark(commands: Any, shared: Any, add: ADD_ACTION) -> None:
    """Add the command to the command line.

    Args:
        commands: the sub-parsers of `dikast`.
        shared: options of every command.
        add: makes one sub-parser: parent, name, shared options, help.
    """
    command = add(commands, "benchmark", shared, "make a benchmark of chat logs, or check one")
    actions = command.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=type(command)
    )
    _add_build(add(actions, "build", shared, "make a benchmark of chat logs, stage by stage"))
    _add_lint(add(actions, "lint", shared, "check a benchmark file in SenseBench's format"))


def _add_build(command: argparse.ArgumentParser) -> None:
    command.set_defaults(when_interrupted="the same command resumes")
    command.add_argument("logs", nargs="+", metavar="LOGS", help="chat logs, JSONL or JSON")
    command.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="folder for every stage's result"
    )
    command.add_argument("--config", metavar="FILE", help="configuration in TOML")
    for option, help_ in (
        ("--judge", "compares the answers; PROVIDER:MODEL or a configured name"),
        ("--screener", "finds fault and topic of a prompt; default: the judge"),
    ):
        command.add_argument(option, metavar="JUDGE", help=help_)
    for option in ("strong", "weak"):
        command.add_argument(
            f"--{option}",
            action="append",
            default=[],
            metavar="MODEL",
            help=f"a {option} model that answers; several share the prompts out",
        )
    command.add_argument(
        "--personal",
        default="drop",
        choices=("drop", "mask"),
        help="dialogues with personal data or keys: turned away (default), or masked",
    )
    _add_checks(command)
    command.add_argument("--limit", type=int, metavar="N", help="read at most this many rows")
    command.add_argument(
        "--review-kept", type=int, metavar="N", help="kept prompts of a topic to review; all"
    )
    command.add_argument(
        "--review-rejected",
        type=int,
        default=20,
        metavar="N",
        help="prompts to review of each reason of the comparison; default 20",
    )
    command.add_argument("--labels", metavar="FILE", help="what people said of the review queue")
    command.add_argument("--budget-usd", type=float, metavar="X", help="never spend more than this")
    command.add_argument("--workers", type=int, metavar="N", help="dialogues worked on at a time")
    command.add_argument("--store", metavar="PATH", help="call store; default: in DIR")
    command.add_argument("--no-store", action="store_true", help="keep no completions")
    command.add_argument(
        "--dry-run", action="store_true", help="print the calls of each stage and stop"
    )
    command.add_argument("--quiet", action="store_true", help="no progress on stderr")
    _add_shape(command)


def _add_lint(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE", help="a list of dialogues, or one a line")
    command.add_argument(
        "--fix", action="store_true", help="write a copy with all put right that can be"
    )
    command.add_argument("-o", "--output", metavar="OUT", help="the copy of --fix")
    _add_checks(command)
    _add_shape(command)


def _add_checks(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--similarity",
        type=float,
        default=0.8,
        metavar="X",
        help="from which a dialogue is a duplicate of an earlier one, 0 to 1; default 0.8",
    )
    command.add_argument(
        "--max-chars", type=int, default=20_000, metavar="N", help="of a dialogue; default 20000"
    )
    command.add_argument("--seed", type=int, metavar="N", help="of draws and fences; default 0")


def _add_shape(command: argparse.ArgumentParser) -> None:
    shape = command.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print the report as JSON")
    shape.add_argument("--md", action="store_true", help="print the report as Markdown")
