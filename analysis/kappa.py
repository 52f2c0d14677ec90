"""Agreement beyond chance: Cohen, Fleiss, Krippendorff, Gwet, and macro precision and recall.

Each coefficient is a function of sums over items. So one table of per-item rows gives the value
(sum all rows) and its interval (`cluster_bootstrap` sums resampled prompts), and a million items
cost two matrix products. Ratings are codes 0..k-1 in the order of the scale; an item's ratings are
counts of shape (items, k). Pure arrays; knows no outcomes.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from dikast.analysis.intervals import Floats, Interval, Ints, Statistic, cluster_bootstrap

Metric = Literal["nominal", "ordinal", "interval"]
_TINY: Final = 1e-12


class Estimate(NamedTuple):
    """A coefficient and its interval; `value` is None where it is undefined (nothing varies)."""

    value: float | None
    interval: Interval | None


class Coefficient(NamedTuple):
    """A name, the per-item sums it needs, and how sums of many items become the value."""

    name: str
    features: Callable[[Floats], Floats]
    statistic: Statistic

    def of(self, counts: Floats) -> float | None:
        """The value over all items of `counts` (items, k); None where it is undefined."""
        return value_of(self.features(counts), self.statistic)


def value_of(features: Floats, statistic: Statistic) -> float | None:
    """A statistic of the sum of all rows; None where it is undefined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(features.sum(axis=0)[None, :])[0])
    return value if np.isfinite(value) else None


def estimate_of(
    features: Floats, statistic: Statistic, clusters: Ints, *, seed: int, draws: int, level: float
) -> Estimate:
    """A statistic of summed rows with its interval, resampled by cluster.

    Args:
        features: (items, f) per-item sums.
        statistic: (m, f) sums to (m,) values.
        clusters: (items,) codes from 0.
    """
    value = value_of(features, statistic) if len(features) else None
    if value is None:
        return Estimate(None, None)
    sums = summed(features, clusters)
    interval = cluster_bootstrap(sums, statistic, seed=seed, draws=draws, level=level)
    return Estimate(value, interval)


def summed(features: Floats, clusters: Ints) -> Floats:
    """Rows of `features` summed by cluster code; clusters without rows are left out."""
    _, codes = np.unique(clusters, return_inverse=True)
    sums: Floats = np.zeros((int(codes.max()) + 1 if codes.size else 0, features.shape[1]))
    for j in range(features.shape[1]):
        sums[:, j] = np.bincount(codes, weights=features[:, j], minlength=len(sums))
    return sums


# -- two raters -------------------------------------------------------------------------------


def confusion_rows(first: Ints, second: Ints, k: int) -> Floats:
    """(items, k * k) one-hot rows of a confusion table, `first` down and `second` across."""
    rows: Floats = np.zeros((len(first), k * k))
    rows[np.arange(len(first)), first * k + second] = 1.0
    return rows


def agreement(sums: Floats) -> Floats:
    """Raw agreement of (m, k * k) confusion sums."""
    tables = _square(sums)
    result: Floats = np.trace(tables, axis1=1, axis2=2) / tables.sum(axis=(1, 2))
    return result


def cohen(sums: Floats) -> Floats:
    """Cohen's kappa of (m, k * k) confusion sums; NaN where both always say the same one thing.

    kappa = (p_o - p_e) / (1 - p_e), p_e from each rater's own shares.

    Source: Cohen 1960, Educational and Psychological Measurement 20, 37-46.
    """
    tables = _square(sums)
    total = tables.sum(axis=(1, 2))
    observed = np.trace(tables, axis1=1, axis2=2) / total
    expected = (tables.sum(axis=2) * tables.sum(axis=1)).sum(axis=1) / total**2
    return _beyond_chance(observed, expected)


def gwet_of_two(sums: Floats) -> Floats:
    """Gwet's AC1 of (m, k * k) confusion sums.

    p_e = sum pi (1 - pi) / (k - 1), pi the mean of both raters' shares, k the classes in use
    (at least 3: A, tie and B).

    Source: Gwet 2008, British Journal of Mathematical and Statistical Psychology 61, 29-48.
    """
    tables = _square(sums)
    total = tables.sum(axis=(1, 2))
    observed = np.trace(tables, axis1=1, axis2=2) / total
    shares = (tables.sum(axis=2) + tables.sum(axis=1)) / (2 * total[:, None])
    expected = (shares * (1 - shares)).sum(axis=1) / (shares.shape[1] - 1)
    return _beyond_chance(observed, expected)


def macro(part: Literal["precision", "recall", "f1"]) -> Statistic:
    """Macro precision, recall or F1 of (m, k * k) confusion sums, labels down, verdicts across.

    The unweighted mean over the classes A, tie and B that labels or verdicts contain; a class
    that one of the two never says counts as 0 there. F1 is the mean of the classes' F1. A fourth
    class, "no verdict", takes from the recall of the others and is none itself.
    """

    def statistic(sums: Floats) -> Floats:
        tables = _square(sums)
        hits = np.diagonal(tables, axis1=1, axis2=2)[:, :3]
        truth, said = tables.sum(axis=2)[:, :3], tables.sum(axis=1)[:, :3]
        below = {"precision": said, "recall": truth, "f1": (truth + said) / 2}[part]
        seen = (truth + said) > _TINY
        shares = np.where(below > _TINY, hits / np.where(below > _TINY, below, 1.0), 0.0)
        result: Floats = (shares * seen).sum(axis=1) / seen.sum(axis=1)
        return result

    return statistic


def _square(sums: Floats) -> Floats:
    k = round(sums.shape[1] ** 0.5)
    return sums.reshape(-1, k, k)


def _beyond_chance(observed: Floats, expected: Floats) -> Floats:
    room = 1 - expected
    safe = np.where(room > _TINY, room, 1.0)
    result: Floats = np.where(room > _TINY, (observed - expected) / safe, np.nan)
    return result


# -- any number of raters ---------------------------------------------------------------------


def _paired(counts: Floats) -> tuple[Floats, Floats, Floats]:
    """Of every item: its ratings, those that have a partner (else 0), and agreeing pairs."""
    ratings = counts.sum(axis=1)
    usable = np.where(ratings > 1, 1.0, 0.0)
    agreeing = (counts * (counts - 1)).sum(axis=1)
    return ratings, usable, agreeing


def _fleiss_features(counts: Floats) -> Floats:
    ratings, usable, agreeing = _paired(counts)
    share = np.where(usable > 0, agreeing / np.where(usable > 0, ratings * (ratings - 1), 1.0), 0.0)
    result: Floats = np.column_stack([share, usable, counts * usable[:, None]])
    return result


def _fleiss(sums: Floats) -> Floats:
    observed = sums[:, 0] / sums[:, 1]
    shares = sums[:, 2:] / sums[:, 2:].sum(axis=1, keepdims=True)
    return _beyond_chance(observed, (shares**2).sum(axis=1))


FLEISS: Final = Coefficient("fleiss", _fleiss_features, _fleiss)
"""Fleiss' kappa; items with fewer than two ratings are left out, and with unequal numbers of
ratings an item's agreement is the share of its agreeing pairs of ratings.

Source: Fleiss 1971, Psychological Bulletin 76, 378-382."""


def _gwet_features(counts: Floats) -> Floats:
    ratings, usable, agreeing = _paired(counts)
    share = np.where(usable > 0, agreeing / np.where(usable > 0, ratings * (ratings - 1), 1.0), 0.0)
    rated = np.where(ratings > 0, 1.0, 0.0)
    shares = counts / np.where(ratings > 0, ratings, 1.0)[:, None]
    result: Floats = np.column_stack([share, usable, rated, shares])
    return result


def _gwet(sums: Floats) -> Floats:
    observed = sums[:, 0] / sums[:, 1]
    shares = sums[:, 3:] / sums[:, 2:3]
    expected = (shares * (1 - shares)).sum(axis=1) / (shares.shape[1] - 1)
    return _beyond_chance(observed, expected)


GWET: Final = Coefficient("gwet_ac1", _gwet_features, _gwet)
"""Gwet's AC1 for any number of raters, with missing ratings.

Source: Gwet 2008, British Journal of Mathematical and Statistical Psychology 61, 29-48."""


def _coincidences(counts: Floats) -> Floats:
    """(items, k * k) of every item: ordered pairs of its ratings over (ratings - 1)."""
    ratings, usable, _ = _paired(counts)
    k = counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, range(k), range(k)] -= counts
    scale = usable / np.where(usable > 0, ratings - 1, 1.0)
    return (pairs * scale[:, None, None]).reshape(len(counts), k * k)


def krippendorff(metric: Metric, values: Sequence[float] | None = None) -> Coefficient:
    """Krippendorff's alpha: 1 - observed over expected disagreement, any missing ratings.

    Args:
        metric: "nominal" (any two differ alike), "ordinal" (by the ratings between the two) or
            "interval" (by the squared difference of the values).
        values: values of the k codes for "interval"; 0, 1, 2, ... by default.

    Source: Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, University of
    Pennsylvania.
    """

    def statistic(sums: Floats) -> Floats:
        tables = _square(sums)
        margins = tables.sum(axis=2)
        total = margins.sum(axis=1)
        distance = _distances(margins, metric, values)
        observed = (tables * distance).sum(axis=(1, 2)) / total
        expected = np.einsum("mi,mj,mij->m", margins, margins, distance) / (total * (total - 1))
        result: Floats = np.where(
            expected > _TINY, 1 - observed / np.where(expected > _TINY, expected, 1.0), np.nan
        )
        return result

    return Coefficient(f"krippendorff_{metric}", _coincidences, statistic)


def _distances(margins: Floats, metric: Metric, values: Sequence[float] | None) -> Floats:
    """(m, k, k) squared distances between codes."""
    m, k = margins.shape
    if metric == "nominal":
        return np.broadcast_to(1.0 - np.eye(k), (m, k, k))
    if metric == "interval":
        places = np.asarray(range(k) if values is None else values, dtype=np.float64)
        return np.broadcast_to((places[:, None] - places[None, :]) ** 2, (m, k, k))
    middle = np.cumsum(margins, axis=1) - margins / 2
    result: Floats = (middle[:, :, None] - middle[:, None, :]) ** 2
    return result
