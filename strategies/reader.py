"""From a judge's words to a pick: the output readers that a template declares.

Comes right after the completion and right before the vote. A reader never guesses: no verdict,
or two different ones, is "unparsed"; an answer cut off by the token limit is "truncated"; only a
finish reason makes a refusal. "A" always means the answer shown first; which of the pair's
answers that was, the strategy knows and this module does not. Knows no prompt and no provider.
"""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from dikast.engine.errors import ConfigError
from dikast.engine.model import Completion, Pick, Record, UndecidedWhy
from dikast.strategies.find import (
    Find,
    bare_label,
    find_json,
    find_letter,
    find_marker,
    find_regex,
    mark_key,
)
from dikast.strategies.logprob import verdict_spread
from dikast.strategies.ratings import find_ratings
from dikast.strategies.text import blank_thoughts

Meaning = Literal["A", "B", "tie", "na"]
Take = Literal["only", "first", "last"]

_AB_TIE: dict[str, Meaning] = {"A": "A", "B": "B", "tie": "tie"}
_AB_C: dict[str, Meaning] = {"A": "A", "B": "B", "C": "tie"}
_MARKS: dict[str, Meaning] = {"[[A]]": "A", "[[B]]": "B", "[[C]]": "tie"}

# Finish reasons by which providers say that the model or a filter declined: OpenAI and Azure
# ("content_filter"), Anthropic ("refusal"), Gemini ("SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST",
# "RECITATION"), and the words of recorded sets.
_REFUSED = frozenset(
    {
        "content_filter",
        "content_management_policy",
        "refusal",
        "safety",
        "prohibited_content",
        "blocklist",
        "recitation",
    }
)
_CUT = frozenset({"length", "max_tokens"})


class Finish(NamedTuple):
    """Why an answer ended: `reason` as compared, and what it means."""

    reason: str
    refused: bool
    cut: bool


def finish_of(completion: Completion) -> Finish:
    """What the finish reason of a completion says, whatever the provider's spelling."""
    reason = (completion.finish_reason or "").strip().casefold().replace(" ", "_")
    return Finish(reason, reason in _REFUSED, reason in _CUT)


class Read(Record, frozen=True):
    """What a reader made of a completion.

    `pick` is in terms of the answers as shown ("A" = shown first), "none" when there is none;
    then `why` says which kind of none, and `detail` says it in words. `confidence` is 0 to 1
    and only there when the completion listed log probabilities; `probabilities` then holds all of
    the verdicts, A and B as shown.
    """

    pick: Pick
    why: UndecidedWhy | None = None
    detail: str | None = None
    confidence: float | None = None
    probabilities: dict[str, float] = {}


class _ReaderSpec(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"
):
    """What all readers declare. `take` says which of several verdicts counts: "only" (they must
    agree), "first" or "last"."""

    take: Take = "only"


class JsonReader(_ReaderSpec, frozen=True, kw_only=True, tag="json"):
    """The verdict is the value of `field` in a JSON object; `values` says what each one means."""

    field: str = "verdict"
    values: dict[str, Meaning] = msgspec.field(default_factory=lambda: dict(_AB_TIE))


class MarkerReader(_ReaderSpec, frozen=True, kw_only=True, tag="marker"):
    """The verdict is a mark such as [[A]]; `values` lists the marks with their meaning."""

    values: dict[str, Meaning] = msgspec.field(default_factory=lambda: dict(_MARKS))


class RegexReader(_ReaderSpec, frozen=True, kw_only=True, tag="regex"):
    """The verdict is what the first matching group of `pattern` holds; `values` explains it."""

    pattern: str
    values: dict[str, Meaning] = msgspec.field(default_factory=lambda: dict(_AB_TIE))
    ignore_case: bool = False


class LetterReader(_ReaderSpec, frozen=True, kw_only=True, tag="letter"):
    """The verdict is a line that holds nothing but a label (or "Verdict: " and a label)."""

    values: dict[str, Meaning] = msgspec.field(default_factory=lambda: dict(_AB_C))


class RatingsReader(_ReaderSpec, frozen=True, kw_only=True, tag="ratings"):
    """The verdict follows from two grades. `patterns` are regular expressions with two groups, for
    the answer shown first and the one shown second; the first that matches at all counts."""

    patterns: tuple[str, ...]
    values: dict[str, Meaning] = msgspec.field(default_factory=lambda: dict(_AB_TIE))


ReaderSpec = JsonReader | MarkerReader | RegexReader | LetterReader | RatingsReader


class Reader:
    """A compiled reader; build it with `compile_reader`."""

    def __init__(self, spec: ReaderSpec, find: Find) -> None:
        self.spec = spec
        self._find = find
        self._take = spec.take
        self._labels: dict[str, Pick] = {
            bare_label(key): meaning for key, meaning in spec.values.items()
        }

    def read(self, completion: Completion) -> Read:
        """The one verdict in a completion, or why there is none. Never raises.

        When the answer was cut off by the token limit, a verdict counts only if nothing that
        the judge might still have written could change it: that is so for `take = "first"`.
        """
        reason, refused, cut = finish_of(completion)
        if refused:
            return Read(pick="none", why="refused", detail=f"finish reason {reason}")
        text, thinking = blank_thoughts(completion.text)
        if thinking:
            return _none(cut, "the reasoning block never ended")
        found = self._find(text, completion.logprobs is not None)
        if not found:
            return _none(cut, "no verdict found" if text.strip() else "the answer is empty")
        if cut and self._take != "first":
            return _none(cut, "cut off by the token limit")
        if self._take == "only" and len({each.pick for each in found}) > 1:
            return _none(cut, "more than one verdict, and they differ")
        chosen = found[0] if self._take == "first" else found[-1]
        if chosen.pick is None:
            return _none(cut, f"{chosen.label[:40]!r} is not one of the declared verdicts")
        if chosen.pick == "na":
            return Read(pick="na", why="abstained", detail="the judge abstained")
        spread = None
        if completion.logprobs is not None:
            spread = verdict_spread(completion, chosen.start, self._labels)
        if spread is None:
            return Read(pick=chosen.pick)
        return Read(
            pick=chosen.pick,
            confidence=spread.shares.get(chosen.pick),
            probabilities={str(pick): share for pick, share in spread.shares.items()},
        )

    def __repr__(self) -> str:
        return f"Reader({self.spec!r})"


def _none(cut: bool, detail: str) -> Read:
    return Read(pick="none", why="truncated" if cut else "unparsed", detail=detail)


def compile_reader(spec: ReaderSpec) -> Reader:
    """Make a reader ready for many completions.

    Raises:
        ConfigError: the declaration cannot work (no values, a broken pattern, no group).
    """
    if not spec.values:
        raise ConfigError('reader.values is empty; say what each verdict means, e.g. A = "A"')
    seen: dict[str, tuple[str, Meaning]] = {}
    for key, meaning in spec.values.items():
        label = mark_key(key) if isinstance(spec, MarkerReader) else bare_label(key)
        if not label:
            raise ConfigError(f"reader.values holds {key!r}, in which there is nothing to read")
        if label in seen and seen[label][1] != meaning:
            raise ConfigError(
                f"reader.values gives {seen[label][0]!r} and {key!r} different meanings, but they "
                "read the same: case, width and surrounding punctuation do not count"
            )
        seen[label] = (key, meaning)
    if isinstance(spec, JsonReader):
        return Reader(spec, find_json(spec.field, _by_label(spec.values)))
    if isinstance(spec, MarkerReader):
        return Reader(spec, find_marker(spec.values))
    if isinstance(spec, LetterReader):
        return Reader(spec, find_letter(_by_label(spec.values)))
    if isinstance(spec, RatingsReader):
        return Reader(spec, find_ratings(compile_ratings(spec)))
    flags = re.IGNORECASE if spec.ignore_case else 0
    try:
        pattern = re.compile(spec.pattern, flags)
    except re.error as error:
        raise ConfigError(f"reader.pattern is not a regular expression: {error}") from error
    if not pattern.groups:
        raise ConfigError("reader.pattern has no group; put ( ) around the verdict")
    return Reader(spec, find_regex(pattern, _by_label(spec.values)))


def compile_ratings(spec: RatingsReader) -> tuple[re.Pattern[str], ...]:
    """The patterns of a ratings reader.

    Raises:
        ConfigError: there is none, one is broken, or one has not two groups.
    """
    if not spec.patterns:
        raise ConfigError("reader.patterns is empty; give a pattern with two groups")
    out: list[re.Pattern[str]] = []
    for text in spec.patterns:
        try:
            out.append(re.compile(text))
        except re.error as error:
            raise ConfigError(f"reader.patterns: not a regular expression: {error}") from error
        if out[-1].groups != 2:
            raise ConfigError(f"reader.patterns: {text!r} must have two groups, one for each grade")
    return tuple(out)


def _by_label(values: Mapping[str, Meaning]) -> dict[str, Pick]:
    return {bare_label(key): meaning for key, meaning in values.items()}
