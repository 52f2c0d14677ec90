"""Where in a judge's text the verdicts stand: one finder for each kind of reader.

Called by the reader with the reasoning already blanked out. A finder lists everything that looks
like a verdict, in the order of the text, each with its place; which one counts is the reader's
decision. Never raises on any text. Knows no prompt and no pair.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from dikast.engine.model import Pick
from dikast.strategies.text import narrow


class Found(NamedTuple):
    """A verdict in the text. `pick` is None when the label is not a declared one.

    `start` is the position of the label's first letter; -1 when it is not known.
    """

    pick: Pick | None
    start: int
    label: str


Find = Callable[[str, bool], list[Found]]
"""Text to verdicts; the flag says whether places are wanted (they cost a second look in JSON)."""

_PUNCTUATION = " \t\r\n\"'`*_[](){}<>:;.,!#|=\u201c\u201d\u2018\u2019\u3010\u3011\u3002\uff0c\uff1a"
_LETTERS = re.compile(r"\w+", re.UNICODE)


def bare_label(text: str) -> str:
    """A verdict's label as compared: width and case folded, dressing taken off."""
    return narrow(text).strip(_PUNCTUATION).casefold()


# --- JSON ---------------------------------------------------------------------------------------

# An opening brace followed by a key: prose and formulas use braces too.
_OBJECT_OPENS = re.compile(r'\{\s*"(?:[^"\\]|\\.){0,200}"\s*:', re.DOTALL)


class _Members(list[tuple[str, Any]]):
    """The members of one JSON object in order, duplicates kept."""


_FAST_DECODER = msgspec.json.Decoder(dict[str, Any])
_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_Members)


def find_json(field: str, meanings: Mapping[str, Pick]) -> Find:
    """Finds `field` in the JSON objects of a text, with prose or code fences around them.

    Where every object in the text is sound, only their own members count: what stands inside a
    string or a nested object is a quotation. Where one is damaged (a trailing comma, a quote
    that was not escaped), every `"field": "value"` of the text counts, so that a damaged object
    with a second verdict anywhere gives two.
    """
    quote = "[\"'\u201c\u201d]"
    member = re.compile(
        rf"{quote}{re.escape(field)}{quote}\s*:\s*"
        rf"(?:{quote}(?P<text>[^\"'\u201c\u201d\n]{{0,60}}){quote}|(?P<bare>[\w.+-]{{1,20}}))"
    )

    def scan(text: str) -> list[Found]:
        found: list[Found] = []
        for match in member.finditer(narrow(text)):
            group = "text" if match["text"] is not None else "bare"
            label = match[group]
            first = _LETTERS.search(label)
            start = match.start(group) + (first.start() if first else 0)
            found.append(Found(meanings.get(bare_label(label)), start, label))
        return found

    def find(text: str, want_places: bool) -> list[Found]:
        if not want_places and (label := _only_member(text, field)) is not None:
            return [Found(meanings.get(bare_label(label)), -1, label)]
        objects = _sound_objects(text)
        if objects is None:
            return scan(text)
        found: list[Found] = []
        places = scan(text) if want_places else []
        for members in objects:
            for key, value in members:
                if key != field:
                    continue
                if isinstance(value, list):  # an array, or an object (its members)
                    found.append(Found(None, -1, "a list or an object"))
                    continue
                label = value if isinstance(value, str) else json.dumps(value)
                pick = meanings.get(bare_label(label))
                at = [place.start for place in places if place.pick == pick]
                found.append(Found(pick, at[-1] if at else -1, label))
        return found

    return find


def _only_member(text: str, field: str) -> str | None:
    """The text member of an answer that is one JSON object and names `field` once: nearly all are.

    None says nothing: then the careful way has to look. An escape could spell the name again.
    """
    if not (text.startswith("{") and text.count(f'"{field}"') == 1) or "\\u" in text:
        return None
    try:
        value = _FAST_DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    label = value.get(field)
    return label if isinstance(label, str) else None


def _sound_objects(text: str) -> list[_Members] | None:
    """The outermost JSON objects of a text, or None when something that begins like one is not.

    A text without any object gives None too: then there is nothing sound to rely on.
    """
    objects: list[_Members] = []
    position = 0
    while opening := _OBJECT_OPENS.search(text, position):
        try:
            value, position = _DECODER.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            return None
        if isinstance(value, _Members):
            objects.append(value)
    return objects or None


# --- markers ------------------------------------------------------------------------------------

_MARK_PARTS = re.compile(r"\w+|\W+", re.UNICODE)
_SPACING = re.compile(r"[\s*_]+")


def find_marker(values: Mapping[str, Pick]) -> Find:
    """Finds marks such as [[A]], whatever their case and width, also [[ A ]] and [[**A**]]."""
    picks: dict[str, Pick] = {mark_key(mark): pick for mark, pick in values.items()}
    # The longest first, so that "[[A>>B]]" is not read as a shorter mark inside it.
    pattern = re.compile(
        "|".join(_mark_pattern(mark) for mark in sorted(values, key=len, reverse=True)),
        re.IGNORECASE,
    )

    def find(text: str, want_places: bool) -> list[Found]:
        found: list[Found] = []
        for match in pattern.finditer(narrow(text)):
            mark = match[0]
            letters = _LETTERS.search(mark)
            start = match.start() + (letters.start() if letters else 0)
            found.append(Found(picks.get(mark_key(mark)), start, mark))
        return found

    return find


def _mark_pattern(mark: str) -> str:
    parts = [re.escape(part) for part in _MARK_PARTS.findall(narrow(mark.strip()))]
    body = r"[ \t*_]*".join(parts)
    before = r"(?<!\w)" if re.match(r"\w", narrow(mark)) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", narrow(mark)) else ""
    return f"{before}{body}{after}"


def mark_key(mark: str) -> str:
    """A mark as compared: width and case folded, spaces and emphasis left out."""
    return _SPACING.sub("", narrow(mark)).casefold()


# --- regular expressions ------------------------------------------------------------------------


def find_regex(pattern: re.Pattern[str], meanings: Mapping[str, Pick]) -> Find:
    """Finds what the pattern says, in the judge's own characters; the first group that took part
    in a match holds the label."""

    def find(text: str, want_places: bool) -> list[Found]:
        found: list[Found] = []
        for match in pattern.finditer(text):
            for number, label in enumerate(match.groups(), start=1):
                if label is not None:
                    found.append(Found(meanings.get(bare_label(label)), match.start(number), label))
                    break
        return found

    return find


# --- letters and other short answers ------------------------------------------------------------

# "Verdict: A", "the better answer is B". Nouns that also serve as headings ("Answer A") count
# only where they are the whole text.
_SAYS = re.compile(
    r"^(?:(?:so|the|my|final|overall|correct|better|best)\s+)*"
    r"(?:answer|verdict|choice|winner|decision|"
    "\u7b54\u6848|\u7ed3\u8bba|\u88c1\u51b3|\u5224\u5b9a|\u9009\u62e9|\u80dc\u8005)"
    "\\s*(?:is|:|=|\u662f|\u4e3a)\\s*(?P<label>.+)$",
    re.IGNORECASE,
)
_NAMES = re.compile(
    "^(?:answer|response|output|option|assistant|\u56de\u7b54|\u9009\u9879)\\s*(?P<label>.+)$",
    re.IGNORECASE,
)
_SHORT_LINE_CHARS = 80


def find_letter(meanings: Mapping[str, Pick]) -> Find:
    """Finds lines that hold nothing but a label."""

    def find(text: str, want_places: bool) -> list[Found]:
        lines = [match for match in re.finditer(r"[^\n\r]+", narrow(text)) if match[0].strip()]
        found: list[Found] = []
        for match in lines:
            line = match[0]
            if len(line) > _SHORT_LINE_CHARS:
                continue
            label = _line_label(line, meanings, alone=len(lines) == 1)
            if label is not None:
                folded = line.casefold()
                # Folding may lengthen a text (a dotted capital I); then the place is not known.
                known = len(folded) == len(line)
                start = match.start() + folded.rfind(label) if known else -1
                found.append(Found(meanings[label], start, label))
        return found

    return find


def _line_label(line: str, meanings: Mapping[str, Pick], *, alone: bool) -> str | None:
    whole = bare_label(line)
    if whole in meanings:
        return whole
    undressed = line.strip(_PUNCTUATION)
    for pattern in (_SAYS, _NAMES) if alone else (_SAYS,):
        says = pattern.match(undressed)
        if says:
            label = bare_label(says["label"])
            if label in meanings:
                return label
    return None
