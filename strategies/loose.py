"""JSON as judges write it: objects with slips that leave no doubt; the place of every value.

Called by `structured` with the reasoning already blanked out. Reads all of strict JSON as it is,
and besides: trailing commas, single and typographic quotes, full-width punctuation, bare keys,
bare words as values, line breaks and unescaped quotes inside strings, and prose or code fences
around. What is damaged otherwise is an error and never a guess. Knows no field names but those it
is given, no scores and no prompt.
"""

import re
from typing import NamedTuple

from dikast.strategies.text import narrow

_DEPTH_MAX = 40
_WORD = re.compile(r"[^\s,:{}\[\]\"']+(?:[ \t]+[^\s,:{}\[\]\"']+)*")
_SPACE = re.compile(r"\s*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CLOSERS = {
    '"': '"',
    "'": "'",
    "\u201c": "\u201d\u201c",
    "\u2018": "\u2019\u2018",
    "\uff02": "\uff02",
    "\u300c": "\u300d",
}
_QUOTES = "".join(_CLOSERS)
_MARKS = _QUOTES + "\u201d\u2019\u300d"
# What follows the mark that ends a string, by where the string stands. A mark that anything else
# follows is part of the text: in strict JSON there is none, so that nothing strict is read anew.
_AFTER_KEY = re.compile(r"\s*:")
_AFTER_ITEM = re.compile(r"\s*[,\]]")
_AFTER_MEMBER = re.compile(rf"\s*(?:\}}|,\s*(?:[{_QUOTES}\}}]|[\w-]+\s*:))")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Scalar(NamedTuple):
    """A string or a bare word; `quoted` tells "1" from 1. `start` is where its text begins."""

    text: str
    quoted: bool
    start: int


class Listing(NamedTuple):
    """An array."""

    items: list["Node"]
    start: int


class Members(NamedTuple):
    """An object; its members in order, duplicates kept."""

    items: list[tuple[str, "Node"]]
    start: int

    def named(self, key: str) -> list["Node"]:
        """The values of every member with this key."""
        return [value for name, value in self.items if name == key]


Node = Scalar | Listing | Members


class Damaged(Exception):  # noqa: N818 - a signal inside two modules, never seen outside
    """Something begins like an object and cannot be read; the text says what and where."""


def find_objects(text: str, keys: frozenset[str]) -> list[Members]:
    """The outermost objects of a text.

    Args:
        text: the judge's words.
        keys: names that make a brace followed by a bare word and a colon an object.

    Raises:
        Damaged: something begins like an object, and is not one. What stands after it is not
            looked at: it may be a quotation inside the damaged one.
    """
    flat = narrow(text)
    bare = "|".join(map(re.escape, sorted(keys)))
    opens = re.compile(
        rf"\{{\s*(?:[{_QUOTES}][^\n{{}}]{{1,80}}?[{_QUOTES}\u201d\u2019]\s*:"
        rf"|(?:{bare})\s*:)"
    )
    found: list[Members] = []
    position = 0
    while opening := opens.search(flat, position):
        parser = _Parser(text, flat, opening.start())
        node = parser.value(0)
        assert isinstance(node, Members)
        if parser.slipped:
            _check_slip(flat, opening.start(), parser.at, node)
        found.append(node)
        position = parser.at
    return found


def _check_slip(flat: str, start: int, end: int, node: Members) -> None:
    """Refuse an object with unescaped quotation marks where they could hide a quoted object.

    A judge that quotes an answer without escaping may quote members too. Then a name stands twice
    in the text, or the object seems to end before the text does.
    """
    twice = [
        name
        for name, _ in node.items
        if len(re.findall(rf"{re.escape(narrow(name))}[{_MARKS}]?\s*:", flat[start:])) > 1
    ]
    if twice or flat[end:].strip(" \t\r\n`"):
        raise Damaged(
            "quotation marks inside a string are not escaped, and more than one reading fits"
        )


def _whole(text: str) -> str:
    """A text in which characters written as two escapes are one again."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


class _Parser:
    def __init__(self, text: str, flat: str, at: int) -> None:
        self._text = text
        self._flat = flat
        self.at = at
        self.slipped = False

    def value(self, depth: int, after: re.Pattern[str] = _AFTER_MEMBER) -> Node:
        self._skip()
        sign = self._flat[self.at : self.at + 1]
        if depth > _DEPTH_MAX:
            raise self._damage("nested too deep")
        if sign == "{":
            return self._object(depth)
        if sign == "[":
            return self._list(depth)
        return self._scalar(after)

    def _skip(self) -> None:
        space = _SPACE.match(self._flat, self.at)
        assert space is not None
        self.at = space.end()

    def _object(self, depth: int) -> Members:
        members = Members([], self.at)
        self.at += 1
        while not self._closes("}"):
            key = self._scalar(_AFTER_KEY)
            self._skip()
            if self._flat[self.at : self.at + 1] != ":":
                raise self._damage("a colon is missing")
            self.at += 1
            members.items.append((key.text, self.value(depth + 1, _AFTER_MEMBER)))
            self._separator("}")
        return members

    def _list(self, depth: int) -> Listing:
        listing = Listing([], self.at)
        self.at += 1
        while not self._closes("]"):
            listing.items.append(self.value(depth + 1, _AFTER_ITEM))
            self._separator("]")
        return listing

    def _closes(self, sign: str) -> bool:
        self._skip()
        if self.at >= len(self._flat):
            raise self._damage("the object never ends")
        if self._flat[self.at] == sign:
            self.at += 1
            return True
        return False

    def _separator(self, closing: str) -> None:
        self._skip()
        sign = self._flat[self.at : self.at + 1]
        if sign in (",", "\u3001"):
            self.at += 1
        elif sign != closing:
            raise self._damage("a comma is missing" if sign else "the object never ends")

    def _scalar(self, after: re.Pattern[str]) -> Scalar:
        self._skip()
        opening = self._text[self.at : self.at + 1]
        if opening and opening in _CLOSERS:
            return self._string(opening, after)
        word = _WORD.match(self._flat, self.at)
        if word is None:
            raise self._damage("a value is missing" if opening else "the object never ends")
        self.at = word.end()
        return Scalar(self._text[word.start() : word.end()], False, word.start())

    def _string(self, opening: str, after: re.Pattern[str]) -> Scalar:
        closing = _CLOSERS[opening]
        start = self.at + 1
        position = start
        parts: list[str] = []
        plain = re.compile(f"[^\\\\{closing}]*")
        while True:
            run = plain.match(self._text, position)
            assert run is not None
            parts.append(run[0])
            position = run.end()
            sign = self._text[position : position + 1]
            if not sign:
                self.at = position
                raise self._damage("a string never ends")
            if sign == "\\":
                piece, position = self._escape(position + 1)
                parts.append(piece)
            elif after.match(self._flat, position + 1):
                self.at = position + 1
                return Scalar(_whole("".join(parts)), True, start)
            else:  # a quotation mark that should have been escaped
                self.slipped = True
                parts.append(sign)
                position += 1

    def _escape(self, at: int) -> tuple[str, int]:
        sign = self._text[at : at + 1]
        if sign == "u":
            code = self._text[at + 1 : at + 5]
            if re.fullmatch("[0-9a-fA-F]{4}", code):
                return chr(int(code, 16)), at + 5
        return _ESCAPES.get(sign, sign), at + 1

    def _damage(self, what: str) -> Damaged:
        near = self._text[max(0, self.at - 20) : self.at + 10]
        return Damaged(f"{what} (near {near!r})")
