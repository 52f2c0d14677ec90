"""From one answer and a rubric to the messages a judge gets when it scores.

Comes right before a scoring call. One frame of words for each language; the rubric, the declared
answer format and the data are put into it. Every piece of data stands inside random fences, as in
a comparison. Knows no judge, no other answer and no score.
"""

import hashlib
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from dikast.engine.model import Message, Subject
from dikast.strategies.prompts import conversation, fence_code
from dikast.strategies.rubric import Dimension, Rubric
from dikast.strategies.structured import format_instruction

VERSION = "1"


class _Words(msgspec.Struct, frozen=True, kw_only=True):
    """A frame; the fields in braces are filled with `str.format` from texts of the package and of
    the rubric only, never with data."""

    system: str
    dimension: str
    band: str
    own_bands: str
    bands: str
    code: str
    reference: str
    key_points: str
    ask: str
    ask_points: str
    repair: str
    empty: str
    to: str
    reasoning: str
    point: str
    reason: str
    deductions: str
    suggestions: str


_FRAMES = Path(__file__).with_name("frames")


def _words_of(language: str) -> _Words:
    text = (_FRAMES / f"score-{language}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Words)


def score_record(rubric: Rubric, *, points: bool) -> type[msgspec.Struct]:
    """The type of a judge's answer on a rubric: reasons, then the scores, then suggestions.

    Args:
        rubric: gives the dimensions, their scales, and the language of the descriptions.
        points: whether key points are answered too, between the reasons and the scores.
    """
    words = _words_of(rubric.language)
    grades: list[tuple[str, Any]] = []
    for each in rubric.dimensions:
        scale = rubric.scale_of(each)
        kind: type[int] | type[float] = int if scale.whole else float
        # A step that does not start at 0 is no "multiple of" anything; the reader checks it.
        step = kind(scale.step) if scale.step != 1 and (scale.low / scale.step) % 1 == 0 else None
        meta = Meta(ge=kind(scale.low), le=kind(scale.high), multiple_of=step)
        grades.append((each.name, Annotated[kind, meta]))
    scores = msgspec.defstruct("Scores", grades, frozen=True, kw_only=True)
    fields: list[Any] = [("reasoning", _said(words.reasoning))]
    if points:
        fields.append(("key_points", list[_key_point(words)]))  # type: ignore[misc]
    fields += [
        ("deductions", _said(words.deductions), ""),
        ("scores", scores),
        ("suggestions", _said(words.suggestions), ""),
    ]
    return msgspec.defstruct("ScoreAnswer", fields, frozen=True, kw_only=True)


def _key_point(words: _Words) -> type[msgspec.Struct]:
    """A judge's answer on one key point: its number, why, and whether it is covered."""
    fields: list[Any] = [
        ("point", Annotated[int, Meta(description=words.point)]),
        ("reason", _said(words.reason), ""),
        ("covered", bool),
    ]
    return msgspec.defstruct("KeyPoint", fields, frozen=True, kw_only=True)


def _said(description: str) -> Any:
    return Annotated[str, Meta(description=description)]


class ScorePrompt:
    """The prompt for one rubric and one declared type of answer.

    Args:
        rubric: what to score on; its language chooses the frame.
        record: the declared answer.

    `id` names frame, rubric and their contents, and goes into every call's key.
    """

    def __init__(self, rubric: Rubric, record: type[msgspec.Struct]) -> None:
        self.rubric = rubric
        self._words = _words_of(rubric.language)
        self._format = format_instruction(record, to=self._words.to)
        self._system = self._words.system.format(
            name=rubric.name, rubric=_rubric_text(rubric, self._words), format=self._format
        )
        digest = hashlib.sha256("\n".join((self._system, *self._tail())).encode()).hexdigest()
        self.id = f"score-{rubric.language}@{VERSION}#{digest[:8]}:{rubric.id}"

    def _tail(self) -> tuple[str, ...]:
        words = self._words
        return (
            words.code,
            words.reference,
            words.key_points,
            words.ask,
            words.ask_points,
            words.repair,
        )

    def render(self, pair: Subject, answer: str, seed: int) -> tuple[Message, ...]:
        """The messages for one answer; of a pair, the other one is not in them.

        Args:
            pair: the pair or item; gives the question, the reference and the key points.
            answer: the text to score.
            seed: makes the fences unguessable to whoever wrote the answer.
        """
        words = self._words
        points = pair.key_points
        listed = "\n".join(f"{number}. {each}" for number, each in enumerate(points, start=1))
        question = pair.question
        if pair.messages:
            question = "\n\n".join(turn.content for turn in pair.messages)
        fence = fence_code(seed, (question, pair.reference or "", listed, answer))
        if len(pair.messages) > 1:
            question = conversation(pair, fence)
        parts = [words.code.format(fence=fence), _fenced("QUESTION", question, fence)]
        if pair.reference:
            parts += [words.reference + "\n" + _fenced("REFERENCE", pair.reference, fence)]
        if points:
            parts += [words.key_points + "\n" + _fenced("KEY_POINTS", listed, fence)]
        parts.append(_fenced("ANSWER", answer, fence))
        parts.append(words.ask_points.format(count=len(points)) if points else words.ask)
        return (
            Message(role="system", content=self._system),
            Message(role="user", content="\n\n".join(parts)),
        )

    def repair(self, asked: Sequence[Message], said: str, error: str) -> tuple[Message, ...]:
        """The same question once more, with the judge's own answer and what is wrong with it.

        Args:
            asked: the messages of the first call.
            said: what the judge answered.
            error: a clause without a full stop.
        """
        text = self._words.repair.format(error=error.rstrip(".\u3002"), format=self._format)
        own = said if said.strip() else self._words.empty
        return (
            *asked,
            Message(role="assistant", content=own),
            Message(role="user", content=text),
        )

    def __repr__(self) -> str:
        return f"ScorePrompt({self.id})"


def _fenced(label: str, text: str, fence: str) -> str:
    return f"<<<{label} {fence}>>>\n{text}\n<<<END {label} {fence}>>>"


def _rubric_text(rubric: Rubric, words: _Words) -> str:
    shared = rubric.bands
    lines: list[str] = []
    for each in rubric.dimensions:
        lines.append(_dimension_text(rubric, each, words))
        if each.bands != shared:
            lines.append(words.own_bands)
            lines += _band_lines(each, words)
    if any(each.bands == shared for each in rubric.dimensions):
        lines.append(words.bands)
        lines += _band_lines(
            next(each for each in rubric.dimensions if each.bands == shared), words
        )
    return "\n".join(lines)


def _dimension_text(rubric: Rubric, each: Dimension, words: _Words) -> str:
    scale = rubric.scale_of(each)
    return words.dimension.format(
        name=each.name,
        title=each.title,
        low=scale.low,
        high=scale.high,
        step=scale.step,
        criteria=each.criteria.strip(),
    )


def _band_lines(each: Dimension, words: _Words) -> list[str]:
    out: list[str] = []
    for band in sorted(each.bands, key=lambda band: -band.high):
        span = f"{band.low:g}" if band.low == band.high else f"{band.low:g}-{band.high:g}"
        out.append(words.band.format(range=span, means=band.means.strip()))
    return out
