"""What the token probabilities say: of the verdicts a judge could have given, or of the grades.

Called by readers that know where in the text the verdict or the score stands. The token is found
by that place, never by looking for a letter or a digit: a "B" or a 7 in the reasoning is neither.
Where the provider listed nothing for the place, the answer is None with a reason, and what then
happens is the caller's decision. Knows no markers, no JSON and no prompts.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dikast.engine.model import Completion, Pick, TokenLogprob

_DRESS = " \t\r\n\"'`*_[](){}<>:.,#\u201c\u201d\u2018\u2019\u2581\u0120"
_AMBIGUOUS_MASS = 0.01


class Spread(NamedTuple):
    """Probabilities of the verdicts; `listed` is the mass they had before they were made to add
    up to one."""

    shares: dict[Pick, float]
    listed: float


class Expected(NamedTuple):
    """An expected grade, or None with the reason; `listed` is the mass on grades of the scale."""

    value: float | None
    listed: float = 0.0
    missing: str | None = None


def verdict_spread(completion: Completion, start: int, labels: Mapping[str, Pick]) -> Spread | None:
    """The probability of each verdict that the judge could have written at `start`.

    Every alternative that the provider listed at that token is mapped to a verdict where it
    begins exactly one label; alternatives for the same verdict ("A", " A", "a") add up; the rest
    is left out, and the shares are made to add up to one.

    Args:
        completion: the judge's answer with `logprobs`.
        start: character position of the verdict's first letter in `completion.text`.
        labels: the bare words of the verdicts, folded to lower case, with what they mean.

    Returns:
        None when the tokens do not spell the text, or say nothing of this place.
    """
    found = _token_at(completion, start)
    if found is None:
        return None
    mass: dict[Pick, float] = {}
    for text, chance in _listed(completion.logprobs or (), found).items():
        meant = _meaning(text, labels)
        if meant is not None:
            mass[meant] = mass.get(meant, 0.0) + chance
    listed = math.fsum(mass.values())
    if listed <= 0.0:
        return None
    return Spread({pick: chance / listed for pick, chance in mass.items()}, listed)


def expected_grade(completion: Completion, start: int, grades: Sequence[float]) -> Expected:
    """The mean of the grades, each weighted with the probability that the judge writes it.

    A scale of whole numbers only. A number of two digits may be one token or two, by the model;
    where that leaves a doubt what a listed "1" would have become, there is no expected grade.

    Args:
        completion: the judge's answer.
        start: character position of the score's first digit in `completion.text`.
        grades: all grades of the scale.
    """
    if completion.logprobs is None:
        return Expected(None, missing="the provider sent no log probabilities")
    if any(grade < 0 or not float(grade).is_integer() for grade in grades):
        return Expected(None, missing="only scales of whole numbers from 0 up have expected grades")
    found = _token_at(completion, start)
    if found is None:
        return Expected(None, missing="the listed tokens do not spell the answer")
    number = re.match(r"\d+", completion.text[start:], re.ASCII)
    if number is None:
        return Expected(None, missing="the score is not written in digits")
    known = {f"{grade:.0f}" for grade in grades}
    mass = _grade_mass(completion.logprobs, found, known)
    if isinstance(mass, str):
        return Expected(None, missing=mass)
    listed = math.fsum(mass.values())
    if listed <= 0.0:
        return Expected(None, missing="no listed token is a grade")
    value = math.fsum(int(text) * chance for text, chance in mass.items()) / listed
    return Expected(value, min(1.0, listed))


def _grade_mass(tokens: Sequence[TokenLogprob], at: int, known: set[str]) -> dict[str, float] | str:
    """Probability by grade at one token; a sentence where a listed token leaves a doubt."""
    mass: dict[str, float] = {}
    for text, chance in _listed(tokens, at).items():
        bare = text.strip(_DRESS)
        if bare.isascii() and bare.isdigit():
            mass[bare] = mass.get(bare, 0.0) + chance
    whole = {text for text in mass if len(text) > 1}
    written = tokens[at].token.strip(_DRESS)
    out: dict[str, float] = {}
    for text, chance in mass.items():
        longer = {each for each in known if each.startswith(text) and each != text}
        if not longer or longer & whole:
            endings = {"": 1.0}
        elif text == written:  # digit by digit: the next token says how it went on
            endings = _endings(tokens, at + 1)
        elif chance > _AMBIGUOUS_MASS:
            return f"whether a listed {text!r} would have become {min(longer)!r} is not known"
        else:
            continue
        for ending, share in endings.items():
            grade = text + ending
            if grade in known:
                out[grade] = out.get(grade, 0.0) + chance * share
    return out


def _endings(tokens: Sequence[TokenLogprob], at: int) -> dict[str, float]:
    """What may follow a digit: further digits, or none (""), with shares that add up to one."""
    if at >= len(tokens):
        return {"": 1.0}
    mass: dict[str, float] = {}
    for text, chance in _listed(tokens, at).items():
        digits = re.match(r"\d*", text, re.ASCII)
        ending = digits[0] if digits else ""
        mass[ending] = mass.get(ending, 0.0) + chance
    listed = math.fsum(mass.values())
    return {text: chance / listed for text, chance in mass.items()} if listed else {"": 1.0}


def _listed(tokens: Sequence[TokenLogprob], at: int) -> dict[str, float]:
    """Probability by token, as listed at one place; the token that was written is among them."""
    token = tokens[at]
    logprobs = {top.token: top.logprob for top in token.top}
    logprobs.setdefault(token.token, token.logprob)
    return {text: math.exp(min(0.0, logprob)) for text, logprob in logprobs.items()}


def _token_at(completion: Completion, start: int) -> int | None:
    """Which token covers character `start`, if the tokens up to there spell the text."""
    if completion.logprobs is None or start < 0:
        return None
    position = 0
    for number, token in enumerate(completion.logprobs):
        if not completion.text.startswith(token.token, position):
            return None
        position += len(token.token)
        if position > start:
            return number
    return None


def _meaning(token: str, labels: Mapping[str, Pick]) -> Pick | None:
    bare = token.strip(_DRESS).casefold()
    if not bare:
        return None
    if bare in labels:  # "A" is A, though "ANSWER_B" begins with it too
        return labels[bare]
    meant: set[Pick] = {pick for label, pick in labels.items() if label.startswith(bare)}
    return meant.pop() if len(meant) == 1 else None
