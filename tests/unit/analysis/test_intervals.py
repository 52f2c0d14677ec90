"""Intervals: equal to other libraries, and they cover what they promise in clustered data."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from dikast.analysis.intervals import (
    Floats,
    Interval,
    cluster_bootstrap,
    normal,
    ratio,
    resampled_counts,
    share_interval,
    sums_by_cluster,
    wilson,
)


def clustered(rng: np.random.Generator, clusters: int, share: float, spread: float) -> Floats:
    """Hits and rows of prompts of 1 to 9 pairs whose own share scatters (beta-binomial)."""
    rows = rng.integers(1, 10, size=clusters)
    own = rng.beta(share * spread, (1 - share) * spread, size=clusters)
    return np.stack([rng.binomial(rows, own), rows], axis=1).astype(np.float64)


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (7, 7), (3, 10), (250, 1000)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_wilson_equals_statsmodels(hits: int, n: int, level: float) -> None:
    low, high = proportion_confint(hits, n, alpha=1 - level, method="wilson")
    found = wilson(hits, n, level)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)


def test_wilson_without_data_says_nothing() -> None:
    assert wilson(0, 0) == Interval(0.0, 1.0, 0.95, "wilson")


@pytest.mark.parametrize(("hits", "n", "level"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)])
def test_impossible_counts_and_levels_are_refused(hits: int, n: int, level: float) -> None:
    with pytest.raises(ValueError, match=r"lie"):
        wilson(hits, n, level)


def test_normal_is_the_textbook_interval() -> None:
    low, high = stats.norm.interval(0.9, loc=2.0, scale=0.5)
    found = normal(2.0, 0.5, 0.9)
    assert (found.low, found.high) == pytest.approx((low, high))
    with pytest.raises(ValueError, match="standard error"):
        normal(0.0, float("nan"))


def test_sums_by_cluster_add_up() -> None:
    sums = sums_by_cluster(["b", "a", "b"], [[1, 2], [3, 4], [5, 6]])
    assert sums.tolist() == [[3, 4], [6, 8]]


def test_every_resample_has_as_many_clusters() -> None:
    counts = np.concatenate(list(resampled_counts(50, 300, seed=1)))
    assert counts.shape == (300, 50)
    assert set(counts.sum(axis=1)) == {50.0}


def test_percentile_and_bca_agree_with_scipy() -> None:
    sums = clustered(np.random.default_rng(3), 60, 0.7, 6.0)

    def statistic(hits: Floats, rows: Floats, axis: int) -> Floats:
        result: Floats = hits.sum(axis=axis) / rows.sum(axis=axis)
        return result

    theirs = stats.bootstrap(
        (sums[:, 0], sums[:, 1]),
        statistic,
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        method="BCa",
        rng=np.random.default_rng(0),
    ).confidence_interval
    ours = cluster_bootstrap(sums, ratio, seed=0, draws=20_000, method="bca")
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.003)


def test_the_normal_limit_of_many_clusters_is_the_bootstrap() -> None:
    sums = clustered(np.random.default_rng(5), 20_500, 0.6, 4.0)
    few = cluster_bootstrap(sums[:20_000], ratio, seed=0, draws=600)
    many = cluster_bootstrap(sums, ratio, seed=0, draws=600)
    assert few is not None
    assert many is not None
    assert "normal limit" in many.method
    assert "normal limit" not in few.method
    assert many.high - many.low == pytest.approx(few.high - few.low, rel=0.12)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    sums = clustered(np.random.default_rng(7), 40, 0.5, 3.0)
    one, again, other = (cluster_bootstrap(sums, ratio, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other


@given(order=st.permutations(range(12)))
def test_the_order_of_rows_inside_clusters_does_not_matter(order: list[int]) -> None:
    names = np.array([0, 0, 1, 1, 1, 2, 2, 3, 4, 4, 5, 5])
    values = np.column_stack([np.arange(12) % 2, np.ones(12)])
    whole = sums_by_cluster(names, values)
    turned = sums_by_cluster(names[order], values[order])
    assert whole.tolist() == turned.tolist()


def test_pairs_of_one_prompt_do_not_count_as_independent() -> None:
    rng = np.random.default_rng(9)
    hits = rng.integers(0, 2, size=40).astype(float)
    ones = np.ones(40)
    single = share_interval(hits, ones, seed=0)
    tenfold = share_interval(hits * 10, ones * 10, seed=0)
    assert single is not None
    assert tenfold is not None
    assert (tenfold.low, tenfold.high) == pytest.approx((single.low, single.high))


def test_all_right_still_leaves_doubt() -> None:
    found = share_interval([3, 3, 3, 3], [3, 3, 3, 3], seed=0)
    expected = wilson(4, 4)
    assert found is not None
    assert (found.low, found.high) == (expected.low, 1.0)
    assert found.low < 0.6


def test_one_cluster_or_an_undefined_statistic_gives_no_interval() -> None:
    assert share_interval([2], [4], seed=0) is None
    assert cluster_bootstrap(np.ones((1, 2)), ratio, seed=0) is None
    assert cluster_bootstrap(np.zeros((9, 2)), ratio, seed=0) is None


COVERAGE_RUNS = 2000


@pytest.mark.slow
@pytest.mark.parametrize(("clusters", "spread"), [(15, 4.0), (40, 2.0)])
def test_95_percent_intervals_cover_93_to_97_percent_in_clustered_data(
    clusters: int, spread: float
) -> None:
    rng = np.random.default_rng(clusters)
    covered = 0
    for run in range(COVERAGE_RUNS):
        sums = clustered(rng, clusters, 0.65, spread)
        found = share_interval(sums[:, 0], sums[:, 1], seed=run, draws=400)
        assert found is not None
        covered += found.low <= 0.65 <= found.high
    assert 0.93 <= covered / COVERAGE_RUNS <= 0.97


def test_wilson_over_rows_would_not_cover_clustered_data() -> None:
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(600):
        sums = clustered(rng, 40, 0.65, 2.0)
        found = wilson(float(sums[:, 0].sum()), float(sums[:, 1].sum()))
        covered += found.low <= 0.65 <= found.high
    assert covered / 600 < 0.9


def test_wider_levels_give_wider_intervals() -> None:
    sums = clustered(np.random.default_rng(13), 30, 0.5, 3.0)
    found = [cluster_bootstrap(sums, ratio, seed=0, level=level) for level in (0.5, 0.8, 0.95)]
    widths = [each.high - each.low for each in found if each is not None]
    assert len(widths) == 3
    assert all(narrow < wide for narrow, wide in pairwise(widths))
