"""A benchmark in SenseBench's file format: read with the line of every turn, and written.

The form in which a finished benchmark leaves, and in which `dikast benchmark lint` takes one. The
file is a list of dialogues; a dialogue is a list of turns; a turn has `from` (Human, Assistant or
System), `content` (a list with one text part) and, on the first turn only, `topic`. Source of the
format: the released file of SenseJudge (arXiv 2606.03189). Knows what a sound turn looks like and
nothing of judges.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import msgspec

from dikast.analysis.benchmark_format import TOPICS, Finding
from dikast.analysis.benchmark_logs import list_in, turns_of
from dikast.engine.errors import InputError
from dikast.engine.model import Message

PREFIX: Final = "sense_bmk:"
_SPEAKERS: Final = {"Human": "user", "Assistant": "assistant", "System": "system"}
_NAMES: Final = {role: name for name, role in _SPEAKERS.items()}
_KNOWN: Final = frozenset({"from", "content", "topic", "name"})
_BREAK = re.compile("\n")
_TOPIC_OF = {topic.casefold(): topic for topic in TOPICS}


class Placed(NamedTuple):
    """One dialogue of a file: its number (from 1), its line, its turns, and where they stand.

    `spans` are the first and the last character of every turn in the file's text.
    """

    number: int
    line: int
    turns: Any
    spans: tuple[tuple[int, int], ...]


class BenchmarkFile:
    """A benchmark file in memory (they are small: thousands of dialogues at most).

    Args:
        path: a JSON list of dialogues, or one dialogue a line.

    Raises:
        InputError: it cannot be read, or is no such file.
    """

    def __init__(self, path: str | Path) -> None:
        self.name = str(path)
        try:
            self._text = Path(path).read_bytes().decode("utf-8-sig")
        except FileNotFoundError as error:
            raise InputError("there is no such file", file=self.name) from error
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=self.name) from error
        except UnicodeDecodeError as error:
            raise InputError("is not UTF-8 text", file=self.name) from error
        self._breaks = [each.start() for each in _BREAK.finditer(self._text)]
        self._decoder = json.JSONDecoder()

    def dialogues(self) -> Iterator[Placed]:
        """Every dialogue with its place.

        Raises:
            InputError: the JSON is malformed.
        """
        start = self._skip(0)
        second = self._skip(start + 1)
        signs = self._text[start : start + 1] + self._text[second : second + 1]
        listed = signs in ("[[", "[]") or (signs == "[{" and self._holds_objects(start))
        at = start + 1 if listed else start
        number = 0
        while True:
            at = self._skip(at, "," if listed and number else "")
            if at >= len(self._text) or (listed and self._text[at] == "]"):
                return
            number += 1
            placed, at = self._dialogue(number, at)
            yield placed

    def _holds_objects(self, start: int) -> bool:
        """Whether a list of objects is a list of dialogues; it may be one dialogue of turns."""
        value, end = self._value(start)
        return (
            "from" not in value[0] and "role" not in value[0] and self._skip(end) >= len(self._text)
        )

    def _dialogue(self, number: int, at: int) -> tuple[Placed, int]:
        value, end = self._value(at)
        turns, _ = turns_of(value)
        spans: list[tuple[int, int]] = []
        listed = list_in(turns)
        if listed is not None:
            # A dialogue that is an object keeps its turns behind the first bracket.
            place = self._text.index("[", at) + 1
            for _ in listed:
                place = self._skip(place, ",")
                _, stop = self._value(place)
                spans.append((place, stop))
                place = stop
        return Placed(number, self.line_of(at), turns, tuple(spans)), end

    def _value(self, at: int) -> tuple[Any, int]:
        try:
            return self._decoder.raw_decode(self._text, at)
        except (json.JSONDecodeError, RecursionError) as error:
            place = error.pos if isinstance(error, json.JSONDecodeError) else at
            raise InputError(
                f"is not JSON: {error}", file=self.name, line=self.line_of(place)
            ) from error

    def _skip(self, at: int, more: str = "") -> int:
        while at < len(self._text) and (self._text[at].isspace() or self._text[at] in more):
            at += 1
        return at

    def line_of(self, place: int) -> int:
        """The line, from 1, of a character of the file."""
        return bisect_right(self._breaks, place - 1) + 1

    def line_of_field(self, dialogue: Placed, turn: int | None, field: str) -> int:
        """The line where a field of a turn stands; that of the turn, or the dialogue, if it does
        not stand there."""
        if turn is None or turn >= len(dialogue.spans):
            return dialogue.line
        start, end = dialogue.spans[turn]
        key = re.compile(rf'(?<!\\)"{re.escape(field)}"\s*:').search(self._text, start, end)
        return self.line_of(key.start() if field and key else start)


def shape_findings(turns: Any) -> list[Finding]:
    """What is wrong with the form of a dialogue, whatever its texts say.

    Keys, speakers, the one text part of `content`, and a known topic on the first turn only.
    """
    listed = list_in(turns)
    if not listed:
        return [Finding("no_turns", "is not a list of turns", fixable=False)]
    found: list[Finding] = []
    for at, turn in enumerate(listed):
        if not isinstance(turn, dict):
            found.append(Finding("no_turns", "is not an object", at, fixable=False))
            continue
        found += _turn_findings(at, cast(dict[str, Any], turn))
    return found


def _turn_findings(at: int, turn: dict[str, Any]) -> Iterator[Finding]:
    unknown = sorted(set(turn) - _KNOWN)
    if unknown:
        yield Finding("unknown_key", f"has unknown keys: {', '.join(unknown)}", at)
    if turn.get("from") not in _SPEAKERS:
        message = f"{turn.get('from')!r} is none of Human, Assistant, System"
        yield Finding("unknown_speaker", message, at, "from")
    content = turn.get("content")
    if not _one_text(content):
        yield Finding("content_shape", "is not a list with one text part", at, "content")
    topic = turn.get("topic")
    if at == 0 and topic is None:
        yield Finding("missing_topic", "the first turn has no topic", at, "topic", fixable=False)
    elif at == 0 and topic_of(topic) is None:
        message = f"{topic!r} is none of the eight topics"
        yield Finding("unknown_topic", message, at, "topic", fixable=False)
    elif at == 0 and topic != PREFIX + str(topic_of(topic)):
        yield Finding("topic_spelling", f"write {PREFIX}{topic_of(topic)}", at, "topic")
    elif at > 0 and topic is not None:
        yield Finding("misplaced_topic", "stands on a later turn", at, "topic")


def topic_of(value: Any) -> str | None:
    """The topic that a `topic` field names, without the prefix and in its own spelling."""
    if not isinstance(value, str):
        return None
    return _TOPIC_OF.get(value.casefold().removeprefix(PREFIX).strip())


def _one_text(content: Any) -> bool:
    parts = list_in(content) or []
    if len(parts) != 1 or not isinstance(parts[0], dict):
        return False
    plain = cast(dict[str, Any], parts[0])
    return plain.get("type") == "text" and isinstance(plain.get("value"), str)


def benchmark_json(dialogues: Iterable[tuple[Sequence[Message], str]]) -> Iterator[bytes]:
    """A benchmark file in pieces: dialogues with their topics, in SenseBench's format.

    Args:
        dialogues: messages and topic, sorted as they are to stand.
    """
    opening = b"[\n"
    for messages, topic in dialogues:
        turns: list[dict[str, Any]] = [
            {"from": _NAMES[turn.role], "content": [{"type": "text", "value": turn.content}]}
            for turn in messages
        ]
        turns[0]["topic"] = PREFIX + topic
        yield opening + msgspec.json.format(msgspec.json.encode(turns), indent=2)
        opening = b",\n"
    yield b"\n]\n" if opening == b",\n" else b"[]\n"
