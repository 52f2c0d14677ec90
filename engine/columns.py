"""The columns of other people's tables under the names that a format knows.

Works on one row after it was read and before it becomes a pair. `Columns` renames as the user
says (`question = "prompt"`); `restored` gives the cells of a table the shape that JSON would have
given them: lists and objects written as text, numbers in a text file, empty cells.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from dikast.engine.errors import ConfigError, InputError
from dikast.engine.formats import FORMATS
from dikast.engine.model import Item, Pair

KNOWN_NAMES: Final = frozenset(
    name
    for form in FORMATS
    for group in (
        *form.needs, form.a, form.b, form.question, form.context, form.model_a, form.model_b,
        form.label, form.id, form.composite_id, Pair.__struct_fields__, Item.__struct_fields__,
    )
    for name in group
)  # fmt: skip
"""Every field that some format looks for."""

# The fields that hold an answer: the only ones whose empty text means something.
_ANSWERS: Final = frozenset(
    ("response_a", "response_b", *(name for form in FORMATS for name in (*form.a, *form.b)))
)
_NESTED: Final = frozenset(
    ("messages", "key_points", "meta", "answers", "turns", "conversation_a", "conversation_b")
)
_NUMBERS: Final = frozenset(
    ("grade", "human_score", "rating", "turn", "winner_model_a", "winner_model_b", "winner_tie")
)
_WHOLE: Final = re.compile(r"-?\d+(\.0+)?")
_NUMBER: Final = re.compile(r"-?\d*\.?\d+([eE][-+]?\d+)?")
_SHOWN_MOST: Final = 20

Object = dict[str, Any]


class Columns:
    """Which column of the input stands for which field.

    Args:
        of: the column by the field, such as `{"question": "prompt"}`. A column that is not there
            under its whole name is looked for inside: `meta.prompt`, `turns.0`.

    Raises:
        ConfigError: no format knows the field, or one column stands for both answers.
    """

    def __init__(self, of: Mapping[str, str] = {}) -> None:
        for field in of:
            if field not in KNOWN_NAMES:
                raise ConfigError(
                    f"columns: there is no field {field!r}; the fields of a pair are "
                    f"{', '.join(Pair.__struct_fields__)}, those of a single answer also response, "
                    "model and grade"
                )
        self._of = dict(of)
        if (both := of.get("response_a")) is not None and both == of.get("response_b"):
            raise ConfigError(
                f"columns: {both!r} stands for both answers, so each would be compared with "
                "itself; name the column of the other one"
            )

    def __bool__(self) -> bool:
        return bool(self._of)

    @property
    def names(self) -> frozenset[str]:
        """The columns that are asked for."""
        return frozenset(self._of.values())

    def check(self, objs: Iterable[Any], file: str, line: int) -> None:
        """Refuse an input in whose first rows a column is nowhere to be found.

        Raises:
            InputError: with the column, and the columns that are there.
        """
        rows = [each for each in objs if isinstance(each, dict)]
        for field, column in self._of.items():
            if rows and not any(_has(row, column) for row in rows):
                there = list(dict.fromkeys(name for row in rows for name in row))
                more = f" and {len(there) - _SHOWN_MOST} more" if len(there) > _SHOWN_MOST else ""
                raise InputError(
                    f"there is no column {column!r} for the field {field!r}; the columns are "
                    f"{', '.join(map(str, there[:_SHOWN_MOST]))}{more}",
                    file=file,
                    line=line,
                )

    def renamed(self, obj: Object) -> Object:
        """The row with its columns under the names of fields; all other columns stay."""
        taken = self.names
        out = {
            name: value for name, value in obj.items() if name not in taken and name not in self._of
        }
        for field, column in self._of.items():
            if _has(obj, column):
                out[field] = _at(obj, column)
        return out

    def column_of(self, field: str | None) -> str | None:
        """The column behind a field, for messages."""
        if field is None:
            return None
        name, dot, rest = field.partition(".")
        return self._of.get(name, name) + dot + rest


def _has(obj: Object, column: str) -> bool:
    return column in obj or _at(obj, column) is not None


def _at(obj: Object, column: str) -> Any:
    if column in obj:
        return obj[column]
    value: Any = obj
    for step in column.split("."):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def parse_columns(text: str) -> dict[str, str]:
    """`question=prompt,response_a=left` as a mapping.

    Raises:
        ConfigError: a part is not FIELD=COLUMN, or a field stands twice.
    """
    out: dict[str, str] = {}
    for part in text.split(","):
        field, equals, column = (each.strip() for each in part.partition("="))
        if not (field and equals and column):
            raise ConfigError(f"--columns: {part.strip()!r} is not FIELD=COLUMN")
        if field in out:
            raise ConfigError(f"--columns: the field {field!r} stands twice")
        out[field] = column
    return out


def restored(obj: Object, *, text: bool) -> Object:
    """A row of a table as JSON would have given it.

    Empty cells are absent ones; only an answer may be the empty text, which a judge has to see.

    Args:
        obj: the row under the names of fields.
        text: all cells are text (CSV); else they have types, and null is the empty cell.
    """
    out: Object = {}
    for name, value in obj.items():
        if value is None or (text and value == "" and name not in _ANSWERS):
            continue
        if isinstance(value, str):
            if name in _NESTED and value[:1] in ("[", "{"):
                value = _decoded(value)
            elif text and name in _NUMBERS:
                value = _number(value)
        out[name] = value
    return out


def _decoded(value: str) -> Any:
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value  # the format says what is wrong with it


def _number(value: str) -> Any:
    if _WHOLE.fullmatch(value):
        return int(value.partition(".")[0])
    return float(value) if _NUMBER.fullmatch(value) else value
