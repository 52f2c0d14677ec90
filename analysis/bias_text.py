"""The biases that show only beside the answers' texts: length, lists, headings, code, bold type.

`TextTable` takes the texts of pairs as they stream by and keeps five numbers of each; `text_bias`
then sets verdicts against them. Where people have labelled the same pairs, their taste for length
is estimated in the same way, so that a judge is blamed only for what people do not share.
"""

import re
from array import array
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np

from dikast.analysis.counting import Counting, Mask, Number, wide
from dikast.analysis.intervals import Floats, Ints, normal
from dikast.analysis.kappa import summed
from dikast.analysis.ratings import NONE, VALUE, Codes

FEATURES: Final = ("length", "lists", "headings", "code", "bold")
_LIST: Final = re.compile(r"^[ \t]*(?:[-*+•]|\d+[.)])[ \t]+\S", re.MULTILINE)
_HEADING: Final = re.compile(r"^#{1,6}[ \t]+\S", re.MULTILINE)
_FENCE: Final = re.compile(r"^[ \t]*```", re.MULTILINE)
_BOLD: Final = re.compile(r"\*\*[^*\n]+\*\*")
_RATIO_EDGES: Final = (1.0, 1.1, 1.5, 2.0, 4.0, float("inf"))
_STEPS_MAX: Final = 50
_DIFFERING_MIN: Final = 10
_COEFFICIENT_MAX: Final = 15.0
_CONDITION_MAX: Final = 1e12
_STEP_MIN: Final = 1e-9


class Effect(msgspec.Struct, frozen=True):
    """The odds of winning for the answer that has more of a feature, all else in the model equal.

    `feature` "length" is per doubling of the length in characters. `differing` pairs have more of
    it on one side. `odds_ratio` above 1 favours more; it has no value where too few pairs differ.
    """

    feature: str
    differing: int
    odds_ratio: Number


class LengthBin(msgspec.Struct, frozen=True):
    """Mean result of the longer answer (win 1, tie 1/2) where it is `low` to `high` times as
    long; `people` is the same by the labels."""

    low: float
    high: float | None
    judge: Number
    people: Number


class TextBias(msgspec.Struct, frozen=True):
    """One judge against length and format. `longer_wins` is over pairs without a tie and of
    unequal length. `length` is the logistic effect of length alone, `length_given_label` with the
    people's label in the model, `people_length` that of the labels themselves. `joint` has all
    features in one model.
    """

    judge: str
    longer_wins: Number
    length: Number
    length_given_label: Number
    people_length: Number
    by_ratio: tuple[LengthBin, ...]
    joint: tuple[Effect, ...]


class TextTable:
    """Five numbers of each answer of each pair, by row."""

    def __init__(self) -> None:
        self._rows = array("l")
        self._numbers = array("l")

    def take(self, row: int, response_a: str, response_b: str) -> None:
        """Enter the texts of the pair at a row."""
        self._rows.append(row)
        self._numbers.extend(measures(response_a))
        self._numbers.extend(measures(response_b))

    def __len__(self) -> int:
        return len(self._rows)

    def arrays(self) -> tuple[Ints, Floats]:
        """Rows, and (rows, 2, 5) numbers of answers A and B."""
        numbers = np.array(self._numbers, dtype=np.float64)
        return np.array(self._rows, dtype=np.int64), numbers.reshape(-1, 2, len(FEATURES))


def measures(text: str) -> tuple[int, int, int, int, int]:
    """Characters, list items, headings, fenced code blocks and bold passages of one answer."""
    # Looking for the marks first halves the time for plain prose.
    return (
        len(text),
        len(_LIST.findall(text)),
        len(_HEADING.findall(text)) if "#" in text else 0,
        len(_FENCE.findall(text)) // 2 if "```" in text else 0,
        len(_BOLD.findall(text)) if "**" in text else 0,
    )


def text_bias(
    name: str, codes: Codes, labels: Codes, texts: TextTable, count: Counting
) -> TextBias | None:
    """Length and format bias of one judge; None where no judged pair has its texts.

    The effects are from a logistic regression of the result (win 1, tie 1/2, loss 0) with an
    intercept for the side, and standard errors robust to clusters (Liang and Zeger 1986,
    Biometrika 73, 13-22).

    Args:
        codes: (pairs,) the judge's verdicts.
        labels: (pairs,) people's labels, -1 where there is none.
    """
    rows, numbers = texts.arrays()
    judged = codes[rows] != NONE
    rows, numbers = rows[judged], numbers[judged]
    if not len(rows):
        return None
    clusters = count.clusters[rows]
    value, truth = VALUE[wide(codes[rows])], wide(labels[rows])
    known = truth != NONE
    people = np.where(known, VALUE[truth], 0.0)
    lengths = numbers[:, :, 0]
    doubling = np.log2((1 + lengths[:, 0]) / (1 + lengths[:, 1]))
    more = np.sign(numbers[:, 0, 1:] - numbers[:, 1, 1:])
    decided = (value != 0) & (doubling != 0)
    longer = (value[decided] * np.sign(doubling[decided]) > 0).astype(np.float64)
    level = count.options.level
    one = doubling[:, None]
    both = np.column_stack([doubling, people])
    joint = np.column_stack([doubling, more])
    none = Number(int(np.count_nonzero(known)), None)
    return TextBias(
        judge=name,
        longer_wins=count.share(longer, clusters[decided]),
        length=logistic(one, (1 + value) / 2, clusters, level)[0],
        length_given_label=logistic(both[known], (1 + value[known]) / 2, clusters[known], level)[0]
        if np.any(known)
        else none,
        people_length=logistic(one[known], (1 + people[known]) / 2, clusters[known], level)[0]
        if np.any(known)
        else none,
        by_ratio=_by_ratio(doubling, value, people, known, clusters, count),
        joint=_joint(joint, (1 + value) / 2, clusters, level),
    )


def _joint(x: Floats, y: Floats, clusters: Ints, level: float) -> tuple[Effect, ...]:
    """All features in one model. One in which almost no pair differs can make the fit fail, so
    the rarest leave the model, one by one, until it holds; they are told without a value."""
    differing = (x != 0).sum(axis=0)
    kept = [j for j in range(x.shape[1]) if differing[j] >= _DIFFERING_MIN]
    kept.sort(key=lambda j: (j > 0, -differing[j]))
    effects: list[Number] = []
    while kept:
        effects = logistic(x[:, kept], y, clusters, level)
        if effects[0].value is not None:
            break
        kept.pop()
    found = dict(zip(kept, effects, strict=True)) if kept else {}
    return tuple(
        Effect(name, int(differing[j]), found.get(j, Number(len(x), None)))
        for j, name in enumerate(FEATURES)
        if differing[j]
    )


def _by_ratio(
    doubling: Floats, value: Floats, people: Floats, known: Mask, clusters: Ints, count: Counting
) -> tuple[LengthBin, ...]:
    ratio = np.exp2(np.abs(doubling))
    side = np.sign(doubling)
    bins: list[LengthBin] = []
    for low, high in pairwise(_RATIO_EDGES):
        mine = (ratio >= low) & (ratio < high) & (side != 0)
        both = mine & known
        bins.append(
            LengthBin(
                low,
                None if high == float("inf") else high,
                count.mean((1 + value[mine] * side[mine]) / 2, clusters[mine]),
                count.mean((1 + people[both] * side[both]) / 2, clusters[both]),
            )
        )
    return tuple(bins)


def logistic(x: Floats, y: Floats, clusters: Ints, level: float) -> list[Number]:
    """Odds ratios of the columns of `x` (an intercept is added), with cluster-robust intervals.

    Args:
        x: (n, k) columns, none of them constant.
        y: (n,) results from 0 to 1; 1/2 for a tie.
        clusters: (n,) cluster of each row.
        level: confidence level.

    Returns:
        One `Number` for each column; without value where the fit does not converge (too few rows,
        or a column that decides every result), without interval where there are too few clusters.
    """
    n, k = x.shape
    design: Floats = np.column_stack([np.ones(n), x])
    fitted = _fit(design, y)
    if fitted is None:
        return [Number(n, None) for _ in range(k)]
    beta, p, information = fitted
    scores = summed(design * (y - p)[:, None], clusters)
    groups = len(scores)
    if groups <= k + 1:
        return [Number(n, float(np.exp(b))) for b in beta[1:]]
    inverse = np.linalg.inv(information)
    variance = inverse @ (scores.T @ scores) @ inverse * groups / (groups - 1)
    found: list[Number] = []
    for j in range(1, k + 1):
        around = normal(float(beta[j]), float(max(variance[j, j], 0.0)) ** 0.5, level)
        interval = msgspec.structs.replace(
            around,
            low=float(np.exp(around.low)),
            high=float(np.exp(around.high)),
            method="logistic, cluster-robust",
        )
        found.append(Number(n, float(np.exp(beta[j])), interval))
    return found


def _fit(design: Floats, y: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Coefficients, fitted results and information matrix by Newton's method; None if it fails."""
    n, columns = design.shape
    if n <= columns or int(np.linalg.matrix_rank(design)) < columns:
        return None
    place: list[Floats] = [np.zeros(columns)]
    for _ in range(_STEPS_MAX):
        beta = place[-1]
        p: Floats = 1 / (1 + np.exp(-np.clip(design @ beta, -30, 30)))
        information: Floats = (design * (p * (1 - p))[:, None]).T @ design
        if float(np.linalg.cond(information)) > _CONDITION_MAX:
            return None
        step = np.asarray(np.linalg.solve(information, design.T @ (y - p)), dtype=np.float64)
        if float(np.abs(step).max()) < _STEP_MIN:
            return beta, p, information
        place.append(beta + step)
        if float(np.abs(place[-1]).max()) > _COEFFICIENT_MAX:
            return None
    return None
