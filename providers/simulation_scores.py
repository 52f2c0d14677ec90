"""How a simulated judge scores one answer: the dimensions it finds in the prompt, and its grades.

Used by `simulation` for prompts that ask for scores and not for a verdict. Grades follow what the
judge believes of the answer's worth, spread out by its seed. Pure: no clock, no network, no state.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import orjson

from dikast.engine.model import TokenLogprob, TopToken

_SCORES = re.compile(r'"scores": \{([^{}]*)\}')
_GRADE = re.compile(r'"([^"]+)": <(-?[\d.]+)\s*\S+\s*(-?[\d.]+)>')
_POINTS = re.compile(r"^(\d+)\. ", re.MULTILINE)
_SPREAD = (0.55, 0.25, 0.12, 0.05, 0.03)


class Sheet(NamedTuple):
    """What a scoring prompt asks for: each dimension with the ends of its scale; key points."""

    dimensions: tuple[tuple[str, int, int], ...]
    points: int


def sheet_of(frame: str, key_points: str | None) -> Sheet | None:
    """The dimensions that a prompt's frame asks for; None when it asks for no scores."""
    asked = _SCORES.search(frame)
    if asked is None:
        return None
    found = _GRADE.findall(asked[1])
    grades = ((name, math.ceil(float(low)), math.floor(float(high))) for name, low, high in found)
    points = len(_POINTS.findall(key_points)) if key_points is not None else 0
    return Sheet(tuple(grades), points)


def grades_of(sheet: Sheet, worth: float, noise: Sequence[float]) -> list[int]:
    """A grade for each dimension.

    Args:
        sheet: what is asked for.
        worth: what the judge thinks of the answer, 0 to 1.
        noise: uniform numbers, used in turn; they move a grade by a tenth of the scale at most.
    """
    out: list[int] = []
    for number, (_, low, high) in enumerate(sheet.dimensions):
        moved = worth + 0.2 * (noise[number % len(noise)] - 0.5)
        out.append(round(low + min(1.0, max(0.0, moved)) * (high - low)))
    return out


def scored_text(
    sheet: Sheet, analysis: str, grades: Sequence[int], worth: float
) -> tuple[str, list[str]]:
    """The answer, whole and in pieces; every second piece is a grade."""
    said = orjson.dumps(analysis).decode()
    start = f'{{"reasoning": {said}, '
    if sheet.points:
        covered = round(worth * sheet.points)
        answers = ", ".join(
            f'{{"point": {number}, "reason": "", "covered": {str(number <= covered).lower()}}}'
            for number in range(1, sheet.points + 1)
        )
        start += f'"key_points": [{answers}], '
    pieces = [f'{start}"deductions": "", "scores": {{']
    for number, ((name, _, _), grade) in enumerate(zip(sheet.dimensions, grades, strict=True)):
        pieces[-1] += f'{", " if number else ""}"{name}": '
        pieces += [str(grade), ""]
    pieces[-1] += '}, "suggestions": ""}'
    return "".join(pieces), pieces


def score_tokens(sheet: Sheet, pieces: Sequence[str]) -> tuple[TokenLogprob, ...]:
    """Tokens that join to the text; at every grade stand the grades around it."""
    out: list[TokenLogprob] = []
    for number, piece in enumerate(pieces):
        if number % 2 == 0:
            out.append(TokenLogprob(token=piece, logprob=-0.01))
            continue
        _, low, high = sheet.dimensions[number // 2]
        near = sorted(range(low, high + 1), key=lambda each: (abs(each - int(piece)), each))
        top = tuple(
            TopToken(token=str(grade), logprob=math.log(share))
            for grade, share in zip(near, _SPREAD, strict=False)
        )
        out.append(TokenLogprob(token=piece, logprob=top[0].logprob, top=top))
    return tuple(out)
