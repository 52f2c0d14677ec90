"""Chat logs and benchmark files, read a dialogue at a time: turns in any of the usual dialects.

Where a benchmark begins. A dialogue is a list of turns, or an object that holds one under
`messages`, `conversations`, `conversation`, `turns` or `dialogue`; a turn has `role` and `content`
or `from` and `value`. What cannot be read as one becomes a `Misfit` in its place with the reason,
so that every row of a log is accounted for. Judges nothing.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import msgspec

from dikast.engine.chat import MisfitError, messages_of
from dikast.engine.errors import InputError
from dikast.engine.lines import Flaw, read_items
from dikast.engine.model import Message

ROW_BYTES_MAX: Final = 16 << 20
_TURNS: Final = ("messages", "conversations", "conversation", "turns", "dialogue")
_NAMES: Final = ("id", "conversation_id", "log_id", "uuid")


class Misfit(NamedTuple):
    """Why a row is no dialogue: a reason to count by, words for people, and the turn (from 0)."""

    reason: str
    message: str
    turn: int | None = None


class Logged(NamedTuple):
    """One row of a log: its place, its own name, and its turns or why there are none."""

    file: str
    line: int
    log_id: str | None
    item: tuple[Message, ...] | Misfit


def read_logs(paths: Sequence[str | Path]) -> Iterator[Logged]:
    """The rows of JSONL files or JSON arrays (plain, gzip or zstd), in their order.

    Raises:
        InputError: a file cannot be read.
    """
    for path in paths:
        name = str(path)
        try:
            with open(path, "rb") as file:
                for items in read_items(file.read, row_bytes_max=ROW_BYTES_MAX, file=name):
                    for item in items:
                        yield _logged(name, item.number, item.raw)
        except FileNotFoundError as error:
            raise InputError("there is no such file", file=name) from error
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=name) from error


def _logged(file: str, line: int, raw: bytes | Flaw) -> Logged:
    if isinstance(raw, Flaw):
        return Logged(file, line, None, Misfit("not_json", raw.message))
    try:
        row: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        what = str(error).removeprefix("JSON is malformed: ")
        return Logged(file, line, None, Misfit("not_json", f"is not JSON: {what}"))
    turns, log_id = turns_of(row)
    return Logged(file, line, log_id, read_turns(turns))


def turns_of(row: Any) -> tuple[Any, str | None]:
    """The list of turns in a row, and the row's own name, where it has one."""
    if not isinstance(row, dict):
        return row, None
    plain = cast(dict[str, Any], row)
    name = next((plain[each] for each in _NAMES if each in plain), None)
    turns = next((plain[each] for each in _TURNS if each in plain), None)
    return turns, str(name) if isinstance(name, str | int) else None


def list_in(value: Any) -> list[Any] | None:
    """A decoded value, where it is a list."""
    return msgspec.convert(value, list[Any]) if isinstance(value, list) else None


def read_turns(turns: Any) -> tuple[Message, ...] | Misfit:
    """Turns as messages, or what is wrong with the first that is none."""
    listed = list_in(turns)
    if listed is None:
        return Misfit("no_turns", "there is no list of turns")
    out: list[Message] = []
    for at, turn in enumerate(listed):
        try:
            read = messages_of([turn], "turn")
        except MisfitError as error:
            reason = "unknown_role" if "role" in error.message else "not_text"
            return Misfit(reason, error.message, at)
        if read is None:
            return Misfit("no_turns", "is no turn: an object with from (or role) and content", at)
        out += read
    return tuple(out)
