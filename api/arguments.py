"""Files and numbers that a command names, looked at before it reads or pays for anything.

A report that replaces its own input, or that has no place to be written once its calls are paid,
is a mistake that nobody can undo; it costs a few system calls to see it beforehand.
"""

import argparse
import datetime
import os
from collections.abc import Iterator

from dikast.engine.errors import InputError
from dikast.engine.files import check_output

_SEED_MAX = 2**63 - 1  # what JSON readers and the generators of random numbers all take
_WRITTEN = {"output": "-o", "record": "--record", "html": "--html", "sink": "--sink"}
_NOT_WRITTEN_BY_RUNS = (".csv", ".tsv", ".tab", ".arrow", ".feather", ".zst")
# Options of what is written as a whole when all is over, and whether its folder is made then.
_AT_THE_END = {
    "anchors": ("output", False),
    "calibrate": ("output", False),
    "weights": ("output", False),
    "sesse build": ("output", True),
    "sesse tune": ("output", True),
    "sesse check": ("record", True),
    "sesse evaluate": ("html", False),
}
_READ = (
    "pairs", "outcomes", "battles", "library", "anchors", "baseline", "labels", "config",
    "template", "votes", "holistic", "self_fix", "reference", "transfer", "thresholds",
)  # fmt: skip


def check_arguments(args: argparse.Namespace) -> None:
    """Refuse outputs that are also read, named twice, promise what is not written there or cannot
    be written, and unusable seeds.

    Args:
        args: the parsed command line.

    Raises:
        InputError: one of them; the message names the option and the remedy.
    """
    seed = getattr(args, "seed", None)
    if seed is not None and not 0 <= seed <= _SEED_MAX:
        raise InputError(f"--seed: is a whole number from 0 to {_SEED_MAX}, not {seed}")
    date = getattr(args, "date", None)
    if date is not None and not _is_date(date):
        raise InputError(f"--date {date}: is not a date such as 2026-01-31")
    read = [path for name in _READ for path in _paths(args, name)]
    written: list[str] = []
    for name, option in _WRITTEN.items():
        for path in _paths(args, name):
            if not path.strip():
                raise InputError(f"{option}: has no name; name a file to write")
            if any(_same(path, other) for other in read):
                raise InputError(
                    f"{option} {path}: is read by the same command and would be overwritten; name "
                    "another file to write"
                )
            if any(_same(path, other) for other in written):
                raise InputError(f"{option} {path}: is written twice; name another file")
            written.append(path)
    if args.command in ("judge", "merge"):
        for path in written:
            if path.lower().endswith(_NOT_WRITTEN_BY_RUNS):
                raise InputError(
                    f"{path}: a run writes JSON lines or Parquet; name OUT.jsonl, and make "
                    f"the table of it with dikast convert OUT.jsonl -o {path}"
                )
    _check_places(args)


def _check_places(args: argparse.Namespace) -> None:
    """What is written at the end can be written, when nothing has been paid for yet."""
    command = " ".join((args.command, getattr(args, "sesse_command", None) or "")).strip()
    name, makes_folder = _AT_THE_END.get(command, ("", False))
    for path in _paths(args, name):
        check_output(path, makes_folder=makes_folder)


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _paths(args: argparse.Namespace, name: str) -> Iterator[str]:
    """What an option says, without standard streams and addresses."""
    said = getattr(args, name, None)
    for each in said if isinstance(said, list) else [said]:
        if isinstance(each, str):
            path = each.removeprefix("optional:") if name == "sink" else each
            if path != "-" and "://" not in path:
                yield path


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # not there yet, or no path at all
        return os.path.abspath(one) == os.path.abspath(other)
