"""Fitting confidence maps: against scikit-learn, by hand, and on what the map has not seen."""

import warnings

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from dikast.analysis.calibration import cross_validate, fit, measures

Floats = npt.NDArray[np.float64]


def drawn(seed: int, n: int = 400) -> tuple[Floats, Floats]:
    """Overconfident judges: where they say p, people agree with probability p squared."""
    rng = np.random.default_rng(seed)
    raw = rng.choice(np.array([0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]), n)
    return raw, (rng.random(n) < raw**2).astype(np.float64)


@pytest.mark.parametrize("seed", range(5))
def test_an_isotonic_map_is_that_of_scikit_learn(seed: int) -> None:
    raw, agreed = drawn(seed)
    raw = (raw + np.random.default_rng(seed + 100).normal(0, 0.05, len(raw))).round(2)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(raw, agreed)
    at = np.linspace(-0.5, 1.5, 201)
    assert fit("isotonic", raw, agreed).probabilities(at) == pytest.approx(theirs.predict(at))


@pytest.mark.parametrize("seed", range(5))
def test_platts_map_is_the_weighted_logistic_regression_on_his_targets(seed: int) -> None:
    raw, agreed = drawn(seed)
    hits, misses = agreed.sum(), (1 - agreed).sum()
    target = np.where(agreed == 1, (hits + 1) / (hits + 2), 1 / (misses + 2))
    x = np.concatenate([raw, raw])[:, None]
    y = np.concatenate([np.ones_like(raw), np.zeros_like(raw)])
    weight = np.concatenate([target, 1 - target])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how "no penalty" is written differs between versions
        theirs = LogisticRegression(C=1e12, tol=1e-12, max_iter=10_000).fit(x, y, weight)
    found = fit("platt", raw, agreed)
    assert found.slope == pytest.approx(theirs.coef_[0, 0], rel=1e-4)
    assert found.intercept == pytest.approx(theirs.intercept_[0], rel=1e-4)


def test_an_isotonic_map_by_hand() -> None:
    # 0.5: one of two; 0.6: none of one; 0.9: two of two. 0.5 and 0.6 are pooled: 1 of 3.
    found = fit("isotonic", [0.5, 0.5, 0.6, 0.9, 0.9], [1, 0, 0, 1, 1])
    assert [at for at, _ in found.knots] == [0.5, 0.6, 0.9]
    assert [value for _, value in found.knots] == pytest.approx([1 / 3, 1 / 3, 1.0])


def test_flat_stretches_keep_their_ends_only() -> None:
    raw = np.linspace(0, 1, 50)
    found = fit("isotonic", raw, np.array([1.0, 0.0] * 25))
    places = [at for at, _ in found.knots]
    assert len(places) < 10
    assert (min(places), max(places)) == (0.0, 1.0)


def test_the_measures_by_hand() -> None:
    # Bins of width 0.1: 0.95 and 0.99 share one: mean 0.97 against 1/2; 0.25 against 0.
    found = measures(np.array([0.95, 0.99, 0.25]), np.array([1.0, 0.0, 0.0]))
    assert found.ece == pytest.approx((2 * abs(0.97 - 0.5) + 0.25) / 3)
    assert found.brier == pytest.approx((0.05**2 + 0.99**2 + 0.25**2) / 3)
    assert measures(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == (0.0, 0.0)


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_a_map_of_overconfident_judges_is_better_on_what_it_has_not_seen(method: str) -> None:
    raw, agreed = drawn(3, 4000)
    tested = cross_validate(method, raw, agreed, seed=1)  # type: ignore[arg-type]
    assert tested.before.ece > 0.15
    assert tested.after.ece < 0.07
    assert tested.after.brier < tested.before.brier
    assert tested == cross_validate(method, raw, agreed, seed=1)  # type: ignore[arg-type]
    assert tested.after != cross_validate(method, raw, agreed, seed=2).after  # type: ignore[arg-type]


def test_validation_never_fits_on_what_it_measures() -> None:
    # Every raw number once, agreement a coin: a map that saw its own verdicts would look perfect.
    rng = np.random.default_rng(0)
    raw, agreed = rng.random(300), (rng.random(300) < 0.5).astype(np.float64)
    seen = measures(fit("isotonic", raw, agreed).probabilities(raw), agreed)
    assert cross_validate("isotonic", raw, agreed).after.brier > seen.brier


@pytest.mark.parametrize(
    ("raw", "agreed"), [([], []), ([0.5], [1.0, 0.0]), ([float("nan")], [1.0])]
)
def test_what_cannot_be_fitted_is_refused(raw: list[float], agreed: list[float]) -> None:
    with pytest.raises(ValueError, match="raw and agreed"):
        fit("isotonic", raw, agreed)


def test_more_folds_than_verdicts_are_refused() -> None:
    with pytest.raises(ValueError, match="folds"):
        cross_validate("platt", [0.1, 0.2], [0, 1], folds=3)
