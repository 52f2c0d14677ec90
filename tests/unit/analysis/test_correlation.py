"""Correlations equal scipy's, their intervals cover, and what has none says why."""

import numpy as np
import pytest
from scipy import stats

from dikast.analysis.correlation import correlations


def noisy(n: int, seed: int, share: float = 0.6) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    y = share * x + (1 - share**2) ** 0.5 * rng.standard_normal(n)
    return list(np.round(x, 1)), list(np.round(y, 1))


@pytest.mark.parametrize("n", [3, 4, 25, 400])
def test_all_three_equal_scipys_with_ties(n: int) -> None:
    xs, ys = noisy(n, seed=n)
    found = correlations(xs, ys)
    assert found.n == n
    assert found.pearson == pytest.approx(stats.pearsonr(xs, ys).statistic)
    assert found.spearman == pytest.approx(stats.spearmanr(xs, ys).statistic)
    assert found.kendall == pytest.approx(stats.kendalltau(xs, ys).statistic)
    assert found.missing is None


def test_the_interval_of_pearson_is_scipys() -> None:
    xs, ys = noisy(60, seed=1)
    found = correlations(xs, ys).pearson_interval
    known = stats.pearsonr(xs, ys).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((known.low, known.high))


def test_the_intervals_of_spearman_and_kendall_are_those_of_the_paper() -> None:
    xs, ys = noisy(30, seed=4)
    found = correlations(xs, ys, level=0.9)
    assert found.spearman is not None
    assert found.kendall is not None
    # 1.644854 is the normal quantile of a 90 % interval.
    for estimate, variance, interval in (
        (found.spearman, (1 + found.spearman**2 / 2) / 27, found.spearman_interval),
        (found.kendall, 0.437 / 26, found.kendall_interval),
    ):
        assert interval is not None
        assert np.arctanh(interval.high) - np.arctanh(estimate) == pytest.approx(
            1.644854 * variance**0.5, rel=1e-5
        )
        assert np.arctanh(estimate) - np.arctanh(interval.low) == pytest.approx(
            1.644854 * variance**0.5, rel=1e-5
        )


def test_the_intervals_cover_about_as_often_as_they_say() -> None:
    # For a normal pair with r = 0.6: rho = 6/pi asin(r/2), tau = 2/pi asin(r).
    truth = (0.6, 6 / np.pi * np.arcsin(0.3), 2 / np.pi * np.arcsin(0.6))
    hits = np.zeros(3)
    for seed in range(400):
        xs, ys = noisy(50, seed=1000 + seed)
        found = correlations(xs, ys)
        for at, each in enumerate(
            (found.pearson_interval, found.spearman_interval, found.kendall_interval)
        ):
            assert each is not None
            hits[at] += each.low <= truth[at] <= each.high
    assert np.all(hits / 400 > 0.92)
    assert np.all(hits / 400 < 0.99)


def test_copies_of_an_item_narrow_no_interval_where_they_are_said_to_belong_together() -> None:
    xs, ys = noisy(40, seed=3)
    once = correlations(xs, ys, clusters=list(range(40)), seed=5, draws=300)
    ninefold = correlations(xs * 9, ys * 9, clusters=list(range(40)) * 9, seed=5, draws=300)
    blind = correlations(xs * 9, ys * 9)
    assert once.pearson_interval is not None
    assert ninefold.pearson_interval is not None
    assert blind.pearson_interval is not None
    width = once.pearson_interval.high - once.pearson_interval.low
    assert ninefold.pearson_interval.high - ninefold.pearson_interval.low == pytest.approx(width)
    assert blind.pearson_interval.high - blind.pearson_interval.low < width / 2


@pytest.mark.parametrize(
    ("xs", "ys", "why"),
    [
        ([1, 1, 1, 1], [1, 2, 3, 4], "all 4 numbers of the first list are 1"),
        ([1, 2, 3, 4], [0.5] * 4, "all 4 numbers of the second list are 0.5"),
        ([1, 2], [2, 1], "2 items are too few"),
        ([], [], "0 items are too few"),
    ],
)
def test_what_has_no_correlation_says_why_and_gives_no_number(
    xs: list[float], ys: list[float], why: str
) -> None:
    found = correlations(xs, ys)
    assert found.missing is not None
    assert why in found.missing
    assert (found.pearson, found.spearman, found.kendall) == (None, None, None)
    assert found.pearson_interval is None


def test_a_perfect_line_and_a_single_cluster_have_no_interval() -> None:
    line = correlations([1, 2, 3, 4, 5], [2, 4, 6, 8, 10])
    assert line.kendall == pytest.approx(1.0)
    assert line.kendall_interval is None
    xs, ys = noisy(20, seed=2)
    assert correlations(xs, ys, clusters=["one"] * 20).spearman_interval is None


@pytest.mark.parametrize(
    ("xs", "ys", "clusters", "words"),
    [
        ([1, float("nan"), 3], [1, 2, 3], None, r"xs\[1\] is not a finite number"),
        ([1, 2, 3], [1, 2, float("inf")], None, r"ys\[2\] is not a finite number"),
        ([1, 2, 3], [1, 2], None, "same length"),
        ([1, 2, 3], [1, 2, 3], ["a"], "same length"),
    ],
)
def test_lists_that_do_not_fit_are_refused(
    xs: list[float], ys: list[float], clusters: list[str] | None, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        correlations(xs, ys, clusters=clusters)
