"""Answers of a declared type: a record becomes the instruction, the schema and the reader.

The type of a judge's answer is declared once, as a msgspec record. From it come the format
instruction in the prompt, the JSON schema for providers that enforce one, and the reader with its
checks; all three keep the order of the fields, so that reasons are written before the scores.
Knows no rubric, no pair and no provider.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import inspect as kinds

from dikast.engine.model import Completion, Record, UndecidedWhy
from dikast.strategies.loose import Damaged, Listing, Members, Node, Scalar, find_objects
from dikast.strategies.numbers import read_number
from dikast.strategies.reader import finish_of
from dikast.strategies.text import blank_thoughts, narrow

T = TypeVar("T", bound=msgspec.Struct)

_YES = {"true": True, "yes": True, "\u662f": True, "false": False, "no": False, "\u5426": False}


class Answered(Record, Generic[T], frozen=True):
    """What was read: `value`, or `why` there is none, with `detail` in words for judge and user.

    `places` says where in the text each number stands, by its path ("scores.accuracy").
    """

    value: T | None = None
    why: UndecidedWhy | None = None
    detail: str | None = None
    places: dict[str, int] = {}


# --- from a record to a schema and to words -----------------------------------------------------


def json_schema(record: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a record: members in the record's order, all required, none besides."""
    return _schema(kinds.type_info(record))


def _extra(info: kinds.Metadata) -> dict[str, Any]:
    """What `Meta` says besides bounds, such as a description."""
    return cast(dict[str, Any], info.extra_json_schema or {})  # pyright: ignore[reportUnknownMemberType]


def _schema(info: kinds.Type) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if isinstance(info, kinds.Metadata):
        return {**_schema(info.type), **_extra(info)}
    if isinstance(info, kinds.StructType):
        return {
            "type": "object",
            "properties": {each.encode_name: _schema(each.type) for each in info.fields},
            "required": [each.encode_name for each in info.fields],
            "additionalProperties": False,
        }
    if isinstance(info, kinds.ListType):
        return {"type": "array", "items": _schema(info.item_type)}
    if isinstance(info, kinds.LiteralType):
        return {"type": "string", "enum": list(info.values)}
    if isinstance(info, kinds.FloatType | kinds.IntType):
        whole = isinstance(info, kinds.IntType)
        out = {"type": "integer" if whole else "number"}
        bounds = (("minimum", info.ge), ("maximum", info.le), ("multipleOf", info.multiple_of))
        out |= {name: bound for name, bound in bounds if bound is not None}
        return out
    if isinstance(info, kinds.BoolType):
        return {"type": "boolean"}
    assert isinstance(info, kinds.StrType), info
    return {"type": "string"}


def format_instruction(record: type[msgspec.Struct], *, to: str = "to", part: str = "...") -> str:
    """What the object must look like, as a sketch: member names in order, values described.

    Args:
        record: the declared type; `Meta(description=...)` on a field is put into its place.
        to: the word between the ends of a scale, in the prompt's language.
        part: what stands for further items of a list.
    """
    return _sketch(kinds.type_info(record), to, part)


def _sketch(info: kinds.Type, to: str, part: str, said: str = "") -> str:
    if isinstance(info, kinds.Metadata):
        said = _extra(info).get("description", said)
        return _sketch(info.type, to, part, said)
    if isinstance(info, kinds.StructType):
        members = (f'"{each.encode_name}": {_sketch(each.type, to, part)}' for each in info.fields)
        return "{" + ", ".join(members) + "}"
    if isinstance(info, kinds.ListType):
        return f"[{_sketch(info.item_type, to, part)}, {part}]"
    if isinstance(info, kinds.LiteralType):
        return "|".join(f'"{each}"' for each in info.values)
    if isinstance(info, kinds.FloatType | kinds.IntType):
        if info.ge is None or info.le is None:
            return f"<{said or 'number'}>"
        return f"<{info.ge:g} {to} {info.le:g}>"
    if isinstance(info, kinds.BoolType):
        return "true|false"
    return f'"<{said}>"'


# --- from text to a record ----------------------------------------------------------------------


class StructuredReader(Generic[T]):
    """Reads one record out of a judge's answer.

    Args:
        record: the declared type. Fields with a default may be missing; the others must stand in
            the order of the declaration.
        anchor: the member by which an object is known to be the answer, such as "scores".
        check: what the type cannot say; gives a sentence when something is wrong.
    """

    def __init__(
        self,
        record: type[T],
        *,
        anchor: str,
        check: Callable[[T], str | None] | None = None,
    ) -> None:
        self._record = record
        info = kinds.type_info(record)
        assert isinstance(info, kinds.StructType)
        self._info = info
        self._anchor = _key(anchor)
        self._check = check
        self._keys = frozenset(each.encode_name for each in info.fields)

    def read(self, completion: Completion) -> Answered[T]:
        """The one answer in a completion, or why there is none. Never raises.

        Two objects that could both be the answer must say the same. An answer that was cut off by
        the token limit counts only if it is complete and is the only thing that was written.
        """
        finish = finish_of(completion)
        if finish.refused:
            return Answered(why="refused", detail=f"finish reason {finish.reason}")
        why: UndecidedWhy = "truncated" if finish.cut else "unparsed"
        text, thinking = blank_thoughts(completion.text)
        if thinking:
            return Answered(why=why, detail="the reasoning block never ended")
        if not text.strip():
            return Answered(why=why, detail="the answer is empty")
        try:
            found = find_objects(text, self._keys)
        except Damaged as damage:
            return Answered(why=why, detail=f"the JSON object cannot be read: {damage}")
        answers = [
            each for each in found if any(_key(name) == self._anchor for name, _ in each.items)
        ]
        if not answers:
            return Answered(why=why, detail=f'there is no JSON object with "{self._anchor}"')
        if finish.cut:
            return Answered(why=why, detail="cut off by the token limit")
        return self._agreed([self._convert(each) for each in answers])

    def _agreed(self, read: list[Answered[T]]) -> Answered[T]:
        for each in read:
            if each.value is None:
                return each
        last = read[-1]
        said = [getattr(each.value, self._anchor) for each in read]
        if any(each != said[-1] for each in said):
            detail = "there is more than one answer, and they differ"
            return Answered(why="unparsed", detail=detail)
        return last

    def _convert(self, members: Members) -> Answered[T]:
        work = _Conversion()
        plain = work.struct(members, self._info, "", ordered=True)
        if work.wrong:
            return Answered(why="unparsed", detail="; ".join(work.wrong[:5]))
        try:
            value = msgspec.convert(plain, self._record)
        except msgspec.ValidationError as error:
            return Answered(why="unparsed", detail=str(error))
        wrong = self._check(value) if self._check else None
        if wrong:
            return Answered(why="unparsed", detail=wrong)
        return Answered(value=value, places=work.places)

    def __repr__(self) -> str:
        return f"StructuredReader({self._record.__name__})"


def _key(name: str) -> str:
    """A member's name as compared: width and case folded, spaces and hyphens as underscores."""
    return re.sub(r"[\s-]+", "_", narrow(name).strip(" *_`")).casefold()


class _Conversion:
    """One object on its way to a record; collects all that is wrong."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.places: dict[str, int] = {}

    def struct(
        self, node: Members, info: kinds.StructType, path: str, *, ordered: bool = False
    ) -> dict[str, Any]:
        given: dict[str, list[Node]] = {}
        for name, value in node.items:
            given.setdefault(_key(name), []).append(value)
        out: dict[str, Any] = {}
        for field in info.fields:
            place = f"{path}{field.encode_name}"
            values = given.get(_key(field.encode_name), [])
            if len(values) > 1:
                self.wrong.append(f"{place} stands there {len(values)} times")
            elif values:
                out[field.encode_name] = self.any(values[0], field.type, place)
            elif field.required:
                self.wrong.append(f"{place} is missing")
        if ordered and not self.wrong:
            self._order(given, info)
        return out

    def _order(self, given: Mapping[str, list[Node]], info: kinds.StructType) -> None:
        needed = [_key(field.encode_name) for field in info.fields if field.required]
        came = [name for name in given if name in needed]
        for number, name in enumerate(needed):
            if came[number] != name:
                self.wrong.append(f"{name} must come before {came[number]}")
                return

    def any(self, node: Node, info: kinds.Type, place: str) -> Any:
        if isinstance(info, kinds.Metadata):
            return self.any(node, info.type, place)
        if isinstance(info, kinds.StructType):
            if isinstance(node, Members):
                return self.struct(node, info, f"{place}.")
            return self._no(place, "must be an object")
        if isinstance(info, kinds.ListType):
            if isinstance(node, Listing):
                return [
                    self.any(each, info.item_type, f"{place}[{number}]")
                    for number, each in enumerate(node.items)
                ]
            return self._no(place, "must be a list")
        if isinstance(info, kinds.StrType):
            return _text(node)
        if not isinstance(node, Scalar):
            return self._no(place, "must be a single value")
        if isinstance(info, kinds.LiteralType):
            said = _key(node.text)
            fitting = [each for each in info.values if _key(str(each)) == said]
            options = ", ".join(map(str, info.values))
            return fitting[0] if fitting else self._no(place, f"must be one of {options}")
        if isinstance(info, kinds.BoolType):
            said = _key(node.text)
            return _YES[said] if said in _YES else self._no(place, "must be true or false")
        assert isinstance(info, kinds.FloatType | kinds.IntType), info
        return self._number(node, info, place)

    def _number(self, node: Scalar, info: kinds.FloatType | kinds.IntType, place: str) -> Any:
        value = read_number(node.text, info.le)
        if value is None:
            return self._no(place, f"{node.text[:30]!r} is not a number")
        low, high, step = info.ge, info.le, info.multiple_of
        if (low is not None and value < low) or (high is not None and value > high):
            return self._no(place, f"{value:g} is not between {low} and {high}")
        steps = value / step if step else 0.0
        if abs(steps - round(steps)) > 1e-6:
            return self._no(place, f"{value:g} is not a multiple of {step:g}")
        first = re.search(r"\S", node.text)
        self.places[place] = node.start + (first.start() if first else 0)
        if isinstance(info, kinds.IntType):
            if not math.isclose(value, round(value)):
                return self._no(place, f"{value:g} is not a whole number")
            return round(value)
        return round(steps) * step if step else value

    def _no(self, place: str, what: str) -> None:
        self.wrong.append(f"{place}: {what}")


def _text(node: Node) -> str:
    """A text; judges like to make lists of deductions, which are texts as well."""
    if isinstance(node, Scalar):
        return "" if not node.quoted and node.text in ("null", "None") else node.text
    if isinstance(node, Listing):
        return "\n".join(_text(each) for each in node.items)
    return "\n".join(f"{name}: {_text(value)}" for name, value in node.items)
