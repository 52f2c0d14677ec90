"""Paired tests and planning: equal to scipy and statsmodels, and right in simulation."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import proportion_effectsize

from dikast.analysis.intervals import Floats
from dikast.analysis.significance import (
    holm,
    mcnemar,
    paired_effect,
    paired_n,
    permutation_p,
    single_effect,
    single_n,
)

counts = st.integers(min_value=0, max_value=400)


def theirs(table: list[list[int]], **how: Any) -> float:
    result: Any = statsmodels_mcnemar(table, **how)
    return float(result.pvalue)


@given(b=counts, c=counts)
def test_mcnemar_equals_statsmodels_and_scipy(b: int, c: int) -> None:
    found = mcnemar(b, c)
    table = [[10, b], [c, 10]]
    exact = 1.0 if b + c == 0 else theirs(table, exact=True)
    assert found.exact_p == pytest.approx(min(1.0, exact), abs=1e-12)
    if b + c == 0:
        assert found.chi2_p is None
        return
    plain = theirs(table, exact=False, correction=False)
    assert found.chi2_p == pytest.approx(plain, abs=1e-12)
    if b != c:  # statsmodels corrects a difference of 0 to 1
        corrected = theirs(table, exact=False, correction=True)
        assert found.chi2_cc_p == pytest.approx(corrected, abs=1e-12)
    tail = stats.binom.cdf(min(b, c), b + c, 0.5)
    point = stats.binom.pmf(min(b, c), b + c, 0.5)
    assert found.mid_p == pytest.approx(min(1.0, 2 * tail - point), abs=1e-12)


@given(b=counts, c=counts)
def test_mcnemar_does_not_care_which_judge_is_first(b: int, c: int) -> None:
    one, two = mcnemar(b, c), mcnemar(c, b)
    assert (one.exact_p, one.mid_p, one.chi2_p) == (two.exact_p, two.mid_p, two.chi2_p)


def test_no_difference_is_no_evidence() -> None:
    assert mcnemar(0, 0).mid_p == 1.0
    assert mcnemar(8, 8).mid_p == pytest.approx(1.0)
    with pytest.raises(ValueError, match="not negative"):
        mcnemar(-1, 2)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_holm_equals_statsmodels(n: int) -> None:
    ps = np.random.default_rng(n).random(n).round(2) ** 3  # some small, some alike
    adjusted: Any = multipletests(ps, method="holm")[1]
    assert holm(ps.tolist()) == pytest.approx(adjusted.tolist(), abs=1e-12)


def total_gap(one: Floats, two: Floats) -> float:
    return float(np.sum(one - two))


def test_few_clusters_give_the_exact_permutation_p() -> None:
    values = [1.0, 2.0, -0.5, 3.0, 0.25, 1.5]
    theirs = stats.permutation_test(
        (np.array(values), np.zeros(6)), total_gap, permutation_type="samples", n_resamples=1 << 20
    )
    assert permutation_p(values, seed=0) == pytest.approx(float(theirs.pvalue), abs=1e-12)


def test_many_clusters_give_nearly_the_normal_p_and_never_zero() -> None:
    values = np.random.default_rng(2).normal(0.1, 1.0, size=400)
    z = values.sum() / np.sqrt((values**2).sum())
    assert permutation_p(values, seed=0) == pytest.approx(2 * stats.norm.sf(abs(z)), abs=0.015)
    assert permutation_p(np.ones(500), seed=0) == pytest.approx(1 / 10_000)
    assert permutation_p(np.zeros(5), seed=0) == 1.0


def test_paired_sample_size_gives_the_power_that_was_asked_for() -> None:
    difference, discordant = 0.06, 0.2
    n = paired_n(difference, discordant, power=0.8)
    rng = np.random.default_rng(4)
    up = (discordant + difference) / 2
    found = rng.multinomial(n, [up, discordant - up, 1 - discordant], size=4000)
    z = (found[:, 0] - found[:, 1]) / np.sqrt(found[:, 0] + found[:, 1])
    assert np.mean(np.abs(z) > stats.norm.ppf(0.975)) == pytest.approx(0.8, abs=0.025)


def test_the_detectable_difference_is_the_one_that_needs_just_so_many_pairs() -> None:
    effect = paired_effect(500, 0.2)
    assert paired_n(effect, 0.2) <= 500 < paired_n(effect * 0.98, 0.2)
    assert paired_effect(3, 0.2) == pytest.approx(0.2)
    assert paired_effect(0, 0.0) == 1.0


def test_single_sample_size_equals_statsmodels() -> None:
    effect = proportion_effectsize(0.75, 0.7)
    theirs = NormalIndPower(ddof=0).solve_power(effect, power=0.8, alpha=0.05, ratio=0)
    assert single_n(0.7, 0.75) == pytest.approx(np.ceil(theirs), abs=1)
    rise = single_effect(1000, 0.7)
    assert single_n(0.7, 0.7 + rise) <= 1000
    assert single_effect(10, 1.0) == 0.0


@pytest.mark.parametrize(("difference", "discordant"), [(0.0, 0.2), (0.3, 0.2), (0.1, 1.5)])
def test_an_impossible_difference_is_refused(difference: float, discordant: float) -> None:
    with pytest.raises(ValueError, match="difference"):
        paired_n(difference, discordant)
