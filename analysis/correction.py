"""Putting today's scores on the baseline's scale, by what the anchors scored then and now.

Fitted once before a run, applied to every score after it, only when asked for. A map is
increasing, the same for both answers of a pair, so it moves scores and never a winner. Pure and
without numpy: a run that corrects loads nothing more.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Literal

import msgspec

from dikast.engine.model import Record

Method = Literal["affine", "isotonic"]
LEAST_SCORES: Mapping[Method, int] = {"affine": 10, "isotonic": 30}
"""Fewer scores of a dimension than this give no map."""


class Affine(Record, frozen=True, tag_field="method", tag="affine"):
    """corrected = intercept + slope x score, from `scores` pairs of scores."""

    slope: float
    intercept: float
    scores: int

    def __call__(self, score: float) -> float:
        """The score on the baseline's scale."""
        return self.intercept + self.slope * score


class Isotonic(Record, frozen=True, tag_field="method", tag="isotonic"):
    """Straight lines through the points (`today`, `baseline`); constant beyond the ends."""

    today: tuple[float, ...]
    baseline: tuple[float, ...]
    scores: int

    def __call__(self, score: float) -> float:
        """The score on the baseline's scale."""
        if score <= self.today[0]:
            return self.baseline[0]
        if score >= self.today[-1]:
            return self.baseline[-1]
        right = bisect_right(self.today, score)
        low, high = self.today[right - 1], self.today[right]
        share = (score - low) / (high - low)
        return self.baseline[right - 1] + share * (self.baseline[right] - self.baseline[right - 1])


Map = Affine | Isotonic


class Correction(Record, frozen=True):
    """One map for each dimension; a dimension without one is left as it is."""

    method: Method
    maps: dict[str, Map]

    @property
    def id(self) -> str:
        """`method@hash` of the parameters, as written into outcomes."""
        plain = msgspec.json.encode(self.maps, order="deterministic")
        return f"{self.method}@{hashlib.sha256(plain).hexdigest()[:8]}"

    def __call__(self, scores: Mapping[str, float]) -> dict[str, float]:
        """Scores named "A.accuracy", "B.total" on the baseline's scale, to six decimals."""
        out: dict[str, float] = {}
        for name, score in scores.items():
            fitted = self.maps.get(name.partition(".")[2])
            out[name] = score if fitted is None else round(fitted(score), 6)
        return out


def fit(
    method: Method,
    baseline: Sequence[Mapping[str, float]],
    today: Sequence[Mapping[str, float]],
) -> Correction:
    """The correction that the anchors' scores call for.

    Args:
        method: "affine" or "isotonic".
        baseline: the scores of each anchor then ("A.accuracy", ...).
        today: those of the same anchors now, in the same order.

    Raises:
        ValueError: no dimension has enough scores in both runs; the message says how many.
    """
    points: dict[str, list[tuple[float, float]]] = {}
    for then, now in zip(baseline, today, strict=True):
        for name in then.keys() & now.keys():
            dimension = name.partition(".")[2]
            if dimension:
                points.setdefault(dimension, []).append((now[name], then[name]))
    least = LEAST_SCORES[method]
    maps: dict[str, Map] = {}
    for dimension in sorted(points):
        found = points[dimension]
        if len(found) >= least:
            maps[dimension] = affine(found) if method == "affine" else isotonic(found)
    if not maps:
        most = max((len(found) for found in points.values()), default=0)
        raise ValueError(
            f"{method} needs {least} scores of a dimension in both runs, and there are {most}"
        )
    return Correction(method=method, maps=maps)


def affine(points: Sequence[tuple[float, float]]) -> Affine:
    """The line that gives today's scores the baseline's mean and standard deviation.

    Not least squares: a regression line pulls every score towards the mean where the judge is
    noisy, and so makes scores of its own that are less spread out than either run's.

    Args:
        points: (today, baseline) of the same answer.

    Source: linear equating, Kolen and Brennan 2014, Test Equating, Scaling, and Linking, ch. 2.
    """
    today = [now for now, _ in points]
    baseline = [then for _, then in points]
    spread_now = stdev(today) if len(points) > 1 else 0.0
    spread_then = stdev(baseline) if len(points) > 1 else 0.0
    # Where one run gave a single grade to all, there is a shift to be seen but no stretch.
    slope = spread_then / spread_now if spread_now > 0 and spread_then > 0 else 1.0
    slope, middle = round(slope, 9), fmean(today)
    intercept = round(fmean(baseline) - slope * middle, 9)
    return Affine(slope=slope, intercept=intercept, scores=len(points))


def isotonic(points: Sequence[tuple[float, float]]) -> Isotonic:
    """The increasing map nearest to the points in the sense of least squares.

    Args:
        points: (today, baseline) of the same answer.

    Source: pool adjacent violators, Barlow et al. 1972, Statistical Inference under Order
    Restrictions.
    """
    by_score: dict[float, list[float]] = {}
    for now, then in points:
        by_score.setdefault(now, []).append(then)
    # Blocks of (first score, last score, mean, weight), each with a greater mean than the last.
    blocks: list[tuple[float, float, float, int]] = []
    for score in sorted(by_score):
        block = (score, score, fmean(by_score[score]), len(by_score[score]))
        while blocks and blocks[-1][2] >= block[2]:
            first, _, mean, weight = blocks.pop()
            total = weight + block[3]
            pooled = (mean * weight + block[2] * block[3]) / total
            block = (first, block[1], pooled, total)
        blocks.append(block)
    today: list[float] = []
    baseline: list[float] = []
    for first, last, mean, _ in blocks:
        for place in dict.fromkeys((first, last)):
            today.append(place)
            baseline.append(round(mean, 9))
    return Isotonic(today=tuple(today), baseline=tuple(baseline), scores=len(points))
