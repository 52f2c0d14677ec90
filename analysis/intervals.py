"""How sure a number is: confidence intervals for shares, means and statistics of clustered data.

Used by every report after the last pair has been judged. Verdicts on one prompt are not
independent, so what is resampled is the cluster (the prompt) and never the single verdict. Pure:
arrays and a seed in, an interval out; knows no files and no outcomes.
"""

from collections.abc import Callable, Iterator
from statistics import NormalDist
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from dikast.analysis.shares import Interval as Interval
from dikast.analysis.shares import wilson as wilson
from dikast.analysis.shares import z_of as z_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Statistic = Callable[[Floats], Floats]

_NORMAL: Final = NormalDist()
_BATCH_CELLS: Final = 1 << 22  # resampled counts held at once: 32 MiB
_NORMAL_LIMIT_CLUSTERS: Final = 5_000
_DEFINED_SHARE_MIN: Final = 0.9


def normal(estimate: float, standard_error: float, level: float = 0.95) -> Interval:
    """Estimate plus and minus z standard errors.

    Raises:
        ValueError: the standard error is negative or not finite.
    """
    if not 0 <= standard_error < float("inf"):
        raise ValueError(f"a standard error is finite and not negative, not {standard_error}")
    half = z_of(level) * standard_error
    return Interval(estimate - half, estimate + half, level, "normal")


# -- clusters ---------------------------------------------------------------------------------


def sums_by_cluster(clusters: npt.ArrayLike, values: npt.ArrayLike) -> Floats:
    """Column sums of `values` in each cluster: what `cluster_bootstrap` resamples.

    Args:
        clusters: (n,) cluster of every row, any integers or strings.
        values: (n,) or (n, k) numbers.

    Returns:
        (clusters, k) sums, clusters in order of their names.
    """
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim == 1:
        rows = rows[:, None]
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    count = int(codes.max()) + 1 if codes.size else 0
    sums: Floats = np.zeros((count, rows.shape[1]))
    for j in range(rows.shape[1]):
        sums[:, j] = np.bincount(codes, weights=rows[:, j], minlength=count)
    return sums


def resampled_counts(clusters: int, draws: int, seed: int) -> Iterator[Floats]:
    """How often each cluster is drawn, in batches of (draws in the batch, clusters).

    For statistics that are no function of sums: weight the rows of cluster g by its count.
    """
    rng = np.random.default_rng(seed)
    batch = max(1, min(draws, _BATCH_CELLS // max(1, clusters)))
    shares = np.full(clusters, 1.0 / clusters)
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        yield rng.multinomial(clusters, shares, size=size).astype(np.float64)


def cluster_bootstrap(
    sums: npt.ArrayLike,
    statistic: Statistic,
    *,
    seed: int,
    draws: int = 2000,
    level: float = 0.95,
    method: Literal["percentile", "bca"] = "percentile",
) -> Interval | None:
    """An interval by resampling whole clusters, for any statistic that is a function of sums.

    The percentile interval is widened for few clusters (Hesterberg 2015, The American
    Statistician 69, 371-386: the expanded percentile interval). BCa corrects bias and skewness
    (Efron 1987, JASA 82, 171-185), its acceleration from the jackknife over clusters. With more
    than 5,000 clusters the resampled sums are drawn from their normal limit instead.

    Args:
        sums: (clusters, k) sums of each cluster; (clusters,) is taken as k = 1.
        statistic: (m, k) sums of whole samples to (m,) values; NaN where it is undefined.
        seed: seed of the draws; the same seed gives the same interval.
        draws: number of resamples.
        level: confidence level.
        method: "percentile" or "bca".

    Returns:
        None where no interval can be said: fewer than two clusters, or the statistic is
        undefined on the sample or on more than a tenth of the resamples.
    """
    table = np.asarray(sums, dtype=np.float64)
    if table.ndim == 1:
        table = table[:, None]
    tail = (1 - level) / 2
    if table.shape[0] < 2 or z_of(level) <= 0:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = float(statistic(table.sum(axis=0)[None, :])[0])
        drawn, name = _drawn(table, statistic, draws, seed)
        drawn = drawn[np.isfinite(drawn)]
        if not np.isfinite(estimate) or drawn.size < _DEFINED_SHARE_MIN * draws:
            return None
        if method == "bca":
            tails = _bca_tails(table, statistic, drawn, estimate, tail)
        else:
            outer = expanded_tail(level, table.shape[0])
            tails = [outer, 1 - outer]
    low, high = (float(np.quantile(drawn, share)) for share in tails)
    return Interval(low, high, level, f"{name}, {method}, {draws} draws")


def _drawn(table: Floats, statistic: Statistic, draws: int, seed: int) -> tuple[Floats, str]:
    clusters = table.shape[0]
    if clusters > _NORMAL_LIMIT_CLUSTERS:
        spread = np.atleast_2d(np.cov(table, rowvar=False, ddof=0)) * clusters
        values, vectors = np.linalg.eigh(spread)
        root = vectors * np.sqrt(np.clip(values, 0.0, None))
        noise = np.random.default_rng(seed).standard_normal((draws, table.shape[1]))
        return statistic(table.sum(axis=0) + noise @ root.T), "cluster bootstrap (normal limit)"
    parts = [statistic(counts @ table) for counts in resampled_counts(clusters, draws, seed)]
    return np.concatenate(parts), "cluster bootstrap"


def student_quantile(level: float, df: int) -> float:
    """How many standard errors a two-sided interval of `level` reaches, with `df` degrees of
    freedom of Student's t."""
    return -float(special.stdtrit(float(df), (1 - level) / 2))


def expanded_tail(level: float, clusters: int) -> float:
    """The share to cut off at each end of a bootstrap's draws, smaller than (1 - level) / 2.

    Resamples of few clusters spread too little; this is the expanded percentile interval of
    Hesterberg 2015 (The American Statistician 69, 371-386).

    Args:
        level: confidence level.
        clusters: 2 or more.
    """
    reach = student_quantile(level, clusters - 1) * float(clusters / (clusters - 1)) ** 0.5
    return _NORMAL.cdf(-reach)


def _bca_tails(
    table: Floats, statistic: Statistic, drawn: Floats, estimate: float, tail: float
) -> list[float]:
    less, same = (int(np.count_nonzero(each)) for each in (drawn < estimate, drawn == estimate))
    below = (less + same / 2) / drawn.size
    edge = 0.5 / drawn.size
    bias = _NORMAL.inv_cdf(min(max(below, edge), 1 - edge))
    left = statistic(table.sum(axis=0)[None, :] - table)
    left = left[np.isfinite(left)]
    gaps = left.mean() - left if left.size else np.zeros(1)
    scale = float((gaps**2).sum()) ** 1.5
    acceleration = float((gaps**3).sum()) / (6 * scale) if scale > 0 else 0.0
    tails: list[float] = []
    for z in (_NORMAL.inv_cdf(tail), _NORMAL.inv_cdf(1 - tail)):
        shifted = (bias + z) / (1 - acceleration * (bias + z))
        tails.append(_NORMAL.cdf(bias + float(shifted)))
    return tails


def share_interval(
    hits: npt.ArrayLike,
    weights: npt.ArrayLike,
    *,
    seed: int,
    draws: int = 2000,
    level: float = 0.95,
) -> Interval | None:
    """The interval of a share in clustered data: sum of hits over sum of weights.

    Where every cluster says the same (all right, all wrong), resampling knows no doubt; then it
    is Wilson's interval with the clusters as the sample.

    Args:
        hits: (clusters,) hits in each cluster.
        weights: (clusters,) rows in each cluster.

    Returns:
        None with fewer than two clusters: how much clusters differ cannot be known from one.
    """
    table = np.stack([np.asarray(hits, np.float64), np.asarray(weights, np.float64)], axis=1)
    table = table[table[:, 1] > 0]
    if table.shape[0] < 2:
        return None
    total_hits, total = table.sum(axis=0)
    if total_hits in (0.0, total):
        clusters = table.shape[0]
        whole = wilson(clusters if total_hits else 0, clusters, level)
        return Interval(whole.low, whole.high, level, "wilson over clusters")
    return cluster_bootstrap(table, ratio, seed=seed, draws=draws, level=level)


def ratio(sums: Floats) -> Floats:
    """First column over second: a share or a mean, for `cluster_bootstrap`."""
    result: Floats = sums[:, 0] / sums[:, 1]
    return result


def finite(value: Any) -> float | None:
    """The value as a float, or None where it is not a number or not finite."""
    number = float(value)
    return number if np.isfinite(number) else None
