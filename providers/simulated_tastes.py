"""A made-up judge that heeds preferences, and a made-up writer that finds them: to try a fit free.

Stands where a model API would. The judge weighs measurable traits of the two answers (length,
lists, figures, warmth); which ones, follows from the words of the preferences, or the choices, in
the prompt, and without any from a taste of its own. Asked for a sentence about a person's
choices, it names the trait that tells the taken answers from those turned down. Says nothing of
real people: what it finds in their labels is what these four measures can see.
"""

import math
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from statistics import NormalDist
from typing import NamedTuple

import orjson

from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Call, Record
from dikast.engine.ports import Clock
from dikast.providers.simulated_words import SimulatedWords
from dikast.providers.simulation import FENCE, piece

_NORMAL = NormalDist()


class SimulatedTastesSettings(
    Record, frozen=True, tag_field="kind", tag="simulated_tastes", forbid_unknown_fields=True
):
    """Configuration of a simulated judge that heeds preferences."""

    seed: int = 0
    """Another seed is another judge of the same character."""
    noise: float = 0.3
    """Standard deviation of the chance in a decision, where twice as much of a trait counts 1."""
    consistency: float = 0.8
    """Share of the chance's variance that belongs to the pair and is alike in both orders."""
    position_bias: float = 0.0
    """Added to the answer shown first, on the same scale as `noise`."""
    own_taste: float = 0.3
    """Weight of its own liking for long answers, where no preference says otherwise."""
    garbage_rate: float = 0.0
    """Share of answers without a readable verdict, 0 to 1."""
    latency_s: float = 0.0
    """Seconds until an answer."""


class Trait(NamedTuple):
    """Something that answers differ in: how it is measured, and what its two ends are called."""

    name: str
    more: str
    less: str
    more_words: re.Pattern[str]
    less_words: re.Pattern[str]


def _words(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{text})\b", re.IGNORECASE)


TRAITS = (
    Trait(
        "length",
        "detailed, thorough answers that explain at length instead of short ones",
        "brief, concise answers that come to the point instead of long ones",
        _words("detailed|thorough|at length|in depth|comprehensive"),
        _words("brief|concise|short and|to the point|succinct"),
    ),
    Trait(
        "lists",
        "structured answers with lists and headings instead of running text",
        "flowing prose in connected sentences instead of bullet points",
        _words("structured|lists and|headings|step by step"),
        _words("flowing|prose|connected sentences"),
    ),
    Trait(
        "figures",
        "concrete figures, dates and names instead of general statements",
        "plain general statements instead of figures and technical matter",
        _words("concrete|dates and names|specific numbers"),
        _words("plain general|non-technical|simple words"),
    ),
    Trait(
        "warmth",
        "a warm, personal tone that speaks to the reader instead of a dry one",
        "a sober, matter-of-fact tone instead of a chatty one",
        _words("warm|personal tone|friendly"),
        _words("sober|matter-of-fact|neutral tone"),
    ),
)
_LIST_LINE = re.compile(r"^\s*(?:[-*•#]|\d+[.)])\s*", re.MULTILINE)
_FIGURE = re.compile(r"\d+")
_WARM = re.compile(r"\b(?:you|your|please|thank|happy|glad|hope|love|we|I)\b|!")


def measures(text: str) -> tuple[float, ...]:
    """Each trait of an answer on a scale of doublings, so that differences compare."""
    words = max(1, len(text.split()))
    lines = len(_LIST_LINE.findall(text))
    figures = len(_FIGURE.findall(text))
    warm = len(_WARM.findall(text))
    per_100 = 100 / words
    return (
        math.log2(1 + words),
        math.log2(1 + lines),
        math.log2(1 + figures * per_100),
        math.log2(1 + warm * per_100),
    )


def weights_in(text: str) -> tuple[float, ...]:
    """Which traits a text about a person names, as weights from -1 to 1."""
    found: list[float] = []
    for trait in TRAITS:
        more, less = len(trait.more_words.findall(text)), len(trait.less_words.findall(text))
        found.append((more - less) / (more + less) if more + less else 0.0)
    return tuple(found)


def weights_of(chosen: Sequence[tuple[str, str]]) -> tuple[float, ...]:
    """How the taken answers differ from those turned down, trait by trait: the mean difference."""
    if not chosen:
        return (0.0,) * len(TRAITS)
    table = [
        [good - bad for good, bad in zip(measures(taken), measures(left), strict=True)]
        for taken, left in chosen
    ]
    return tuple(
        max(-1.0, min(1.0, math.fsum(column) / len(table))) for column in zip(*table, strict=True)
    )


def sentence_for(weights: Sequence[float]) -> str:
    """A sentence that names the strongest of some weights."""
    at = max(range(len(weights)), key=lambda number: (abs(weights[number]), -number))
    trait = TRAITS[at]
    return f"Prefers {trait.more if weights[at] >= 0 else trait.less}."


class SimulatedTastesProvider(SimulatedWords):
    """A `Provider` without a network whose judge heeds preferences.

    Args:
        settings: the judge's character.
        clock: waits out the latency.
    """

    def __init__(self, settings: SimulatedTastesSettings, clock: Clock) -> None:
        check_tastes("simulated_tastes", settings)
        super().__init__(settings.latency_s, clock)
        self._settings = settings

    def _say(self, prompt: str, call: Call) -> str:
        text = _written(prompt)
        return self._judged(prompt, call) if text is None else text

    def _judged(self, prompt: str, call: Call) -> str:
        fence = _fence_of(prompt)
        first, second = (piece(prompt, f"ANSWER_{side}", fence) for side in "AB")
        if first is None or second is None:
            raise ProviderError("bad_request", "simulated: no two answers in the prompt")
        told = piece(prompt, "PREFERENCES", fence) or ""
        shown = piece(prompt, "EXAMPLES", fence)
        weights = weights_in(told)
        if shown is not None:
            weights = weights_of(_choices(shown))
        if not any(weights):
            weights = (self._settings.own_taste, *(0.0 for _ in TRAITS[1:]))
        draw = (call.judge.model, (call.judge.params.seed or 0) + call.sample, told, shown)
        lead = math.fsum(
            weight * (a - b)
            for weight, a, b in zip(weights, measures(first), measures(second), strict=True)
        )
        lead += self._settings.position_bias + self._chance(first, second, draw)
        pick = "A" if lead > 0 else "B"
        if _uniform(self._settings.seed, "odd", first, second, draw) < self._settings.garbage_rate:
            return "Both answers have something to be said for them."
        better = "first" if pick == "A" else "second"
        analysis = f"The {better} answer fits better what is known of this person."
        return orjson.dumps({"analysis": analysis, "verdict": pick}).decode()

    def _chance(self, first: str, second: str, draw: tuple[object, ...]) -> float:
        """Chance of which a part turns with the answers, so that it picks the same one."""
        settings = self._settings
        low, high = sorted((first, second))
        of_pair = _normal(_uniform(settings.seed, "pair", low, high, draw))
        of_call = _normal(_uniform(settings.seed, "call", first, second, draw))
        sign = 1 if first <= second else -1
        shared = math.sqrt(settings.consistency)
        return settings.noise * (
            shared * sign * of_pair + math.sqrt(1 - settings.consistency) * of_call
        )

    def __repr__(self) -> str:
        return f"SimulatedTastesProvider(seed {self._settings.seed})"


def check_tastes(where: str, settings: SimulatedTastesSettings) -> None:
    """See that the settings can work.

    Args:
        where: the settings' place in the configuration, for messages.
        settings: to be checked.

    Raises:
        ConfigError: a value is out of range; the message names the field.
    """
    for field in ("consistency", "garbage_rate"):
        if not 0 <= getattr(settings, field) <= 1:
            raise ConfigError(f"{where}.{field}: must lie between 0 and 1")
    for field in ("noise", "latency_s"):
        if not 0 <= getattr(settings, field) < math.inf:
            raise ConfigError(f"{where}.{field}: must be a number, 0 or more")


def character_of(settings: SimulatedTastesSettings) -> Mapping[str, object]:
    """What of the settings decides the words; the latency does not."""
    return {
        name: getattr(settings, name) for name in settings.__struct_fields__ if name != "latency_s"
    }


def _written(prompt: str) -> str | None:
    """The sentence, where the prompt asks for one; None where it asks for a verdict."""
    fence = _fence_of(prompt)
    if piece(prompt, "ANSWER_A", fence) is not None:
        return None
    choices = _choices(prompt)
    if not choices:
        return None
    thought = "<think>They differ in several ways; the strongest one counts.</think>\n"
    return thought + sentence_for(weights_of(choices))


def _choices(text: str) -> list[tuple[str, str]]:
    """The choices in a text: every taken answer with the one turned down."""
    fence = _fence_of(text)
    out: list[tuple[str, str]] = []
    number = 0
    while True:
        tail = "" if number == 0 else f"_{number}"
        taken, left = (piece(text, f"{name}{tail}", fence) for name in ("CHOSEN", "REJECTED"))
        if taken is not None and left is not None:
            out.append((taken, left))
        elif number > 0:
            return out
        number += 1


def _fence_of(text: str) -> str:
    opening = FENCE.search(text)
    return "" if opening is None else opening.group(1)


def _uniform(*parts: object) -> float:
    data = "\x1f".join(map(str, parts)).encode("utf-8", "replace")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") / 2**64


def _normal(uniform: float) -> float:
    return _NORMAL.inv_cdf(min(max(uniform, 1e-12), 1 - 1e-12))
