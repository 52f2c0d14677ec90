"""How closely two lists of numbers go together: a judge's scores and people's, or two judges'.

Used by reports once scores and human grades stand beside each other. Where a correlation does not
exist (a list that never varies, too few items) there is a sentence and no number. Pure: lists in,
a record out; randomness only from a seed argument.
"""

from collections.abc import Callable, Sequence
from math import atanh, sqrt, tanh
from typing import Any, Final, cast

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import stats

from dikast.analysis.intervals import Floats, Interval, Ints, z_of

_N_MIN: Final = 3
_DEFINED_SHARE_MIN: Final = 0.9
_ROUNDING: Final = 1e-12


class Correlations(msgspec.Struct, frozen=True, kw_only=True):
    """Three correlations of `n` items, each from -1 to 1 with its interval, or None.

    `missing` says why there is none. An interval alone is None where n is too small for it, and
    at a correlation of exactly 1 or -1, where the closed form knows no doubt.
    """

    n: int
    pearson: float | None = None
    spearman: float | None = None
    kendall: float | None = None
    pearson_interval: Interval | None = None
    spearman_interval: Interval | None = None
    kendall_interval: Interval | None = None
    missing: str | None = None


def correlations(
    xs: Sequence[float],
    ys: Sequence[float],
    *,
    level: float = 0.95,
    clusters: Sequence[Any] | None = None,
    seed: int = 0,
    draws: int = 1000,
) -> Correlations:
    """Pearson's r, Spearman's rho and Kendall's tau-b (both with ties) of paired numbers.

    The intervals are closed forms on Fisher's z scale, with the variances (n - 3)^-1 for r,
    (1 + rho^2 / 2) / (n - 3) for rho and 0.437 / (n - 4) for tau. They take the items as
    independent. Where several items belong together (answers to one prompt, summaries of one
    text) give `clusters`: then whole clusters are resampled and the interval is the percentiles.

    Args:
        xs, ys: (n,) numbers; item i is (xs[i], ys[i]).
        level: confidence level of the intervals.
        clusters: (n,) what each item belongs to, or None for independent items.
        seed: of the resampling.
        draws: number of resamples.

    Raises:
        ValueError: lists of different lengths, or a number that is not finite.

    Source: Bonett and Wright 2000, Psychometrika 65, 23-28; tau-b: Kendall 1945, Biometrika 33.
    """
    x, y = np.asarray(xs, dtype=np.float64), np.asarray(ys, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1 or (clusters is not None and len(clusters) != len(x)):
        raise ValueError("correlations need two lists of numbers of the same length")
    for name, values in (("xs", x), ("ys", y)):
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            raise ValueError(f"{name}[{wrong[0]}] is not a finite number; leave such items out")
    n = len(x)
    missing = _missing(x, y)
    if missing is not None:
        return Correlations(n=n, missing=missing)
    pearson, spearman, kendall = (each(x, y) for each in _KINDS)
    if clusters is not None:
        found = _resampled(x, y, np.asarray(clusters), level=level, seed=seed, draws=draws)
    else:
        found = [
            _fisher(pearson, 1.0, n - 3, level),
            _fisher(spearman, 1 + spearman**2 / 2, n - 3, level),
            _fisher(kendall, 0.437, n - 4, level),
        ]
    return Correlations(
        n=n,
        pearson=pearson,
        spearman=spearman,
        kendall=kendall,
        pearson_interval=found[0],
        spearman_interval=found[1],
        kendall_interval=found[2],
    )


def _missing(x: Floats, y: Floats) -> str | None:
    if len(x) < _N_MIN:
        return f"{len(x)} items are too few for a correlation; {_N_MIN} are needed"
    for name, values in (("first", x), ("second", y)):
        if values.min() == values.max():
            return (
                f"all {len(values)} numbers of the {name} list are {values[0]:g}; what never "
                "varies goes together with nothing"
            )
    return None


def _pearson(x: Floats, y: Floats) -> float:
    # Numbers that differ in the last bits only have a spread of 0 in floating point.
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.corrcoef(x, y)[0, 1])


def _spearman(x: Floats, y: Floats) -> float:
    return _pearson(
        np.asarray(stats.rankdata(x), dtype=np.float64),
        np.asarray(stats.rankdata(y), dtype=np.float64),
    )


def _kendall(x: Floats, y: Floats) -> float:
    return float(cast(Any, stats.kendalltau(x, y)).statistic)


_KINDS: tuple[Callable[[Floats, Floats], float], ...] = (_pearson, _spearman, _kendall)


def _fisher(estimate: float, factor: float, freedom: int, level: float) -> Interval | None:
    if freedom <= 0 or abs(estimate) > 1 - _ROUNDING:
        return None
    middle, half = atanh(estimate), z_of(level) * sqrt(factor / freedom)
    return Interval(tanh(middle - half), tanh(middle + half), level, "fisher z")


def _resampled(
    x: Floats, y: Floats, clusters: npt.NDArray[Any], *, level: float, seed: int, draws: int
) -> list[Interval | None]:
    _, codes = np.unique(clusters, return_inverse=True)
    count = int(codes.max()) + 1
    if count < 2:
        return [None] * len(_KINDS)
    members: list[Ints] = [np.flatnonzero(codes == code) for code in range(count)]
    rng = np.random.default_rng(seed)
    drawn: list[list[float]] = [[] for _ in _KINDS]
    for _ in range(draws):
        picked: list[int] = rng.integers(0, count, count).tolist()
        rows = np.concatenate([members[code] for code in picked])
        if _missing(x[rows], y[rows]) is None:
            for values, kind in zip(drawn, _KINDS, strict=True):
                values.append(kind(x[rows], y[rows]))
    if len(drawn[0]) < _DEFINED_SHARE_MIN * draws:
        return [None] * len(_KINDS)
    tail = (1 - level) / 2
    method = f"cluster bootstrap, percentile, {draws} draws"
    return [
        Interval(float(np.quantile(each, tail)), float(np.quantile(each, 1 - tail)), level, method)
        for each in drawn
    ]
