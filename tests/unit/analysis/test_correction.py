"""Scores put on the baseline's scale: what the maps do, and what they never do."""

from statistics import fmean, stdev
from typing import get_args

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from dikast.analysis.correction import Correction, Method, affine, fit, isotonic

GRADES = st.lists(
    st.tuples(st.floats(1, 10, width=16), st.floats(1, 10, width=16)), min_size=2, max_size=40
)


def runs(count: int, slope: float, shift: float) -> tuple[list[dict[str, float]], ...]:
    """Anchors' scores then and now; now = shift + slope x then."""
    then = [{"A.x": float(n % 7), "B.x": float(n % 5) + 2, "A.other": 1.0} for n in range(count)]
    now = [
        {name: shift + slope * value for name, value in each.items() if name != "A.other"}
        for each in then
    ]
    return then, now


@pytest.mark.parametrize("method", get_args(Method))
def test_a_judge_that_became_stricter_is_set_right(method: Method) -> None:
    then, now = runs(30, slope=0.8, shift=-0.5)
    correction = fit(method, then, now)
    for before, after in zip(then, now, strict=True):
        corrected = correction(after)
        assert corrected == pytest.approx({name: before[name] for name in after}, abs=1e-5)


def test_an_affine_map_gives_mean_and_spread_of_the_baseline_however_noisy_the_judge() -> None:
    points = [(3.0, 5.0), (4.0, 4.0), (6.0, 7.0), (7.0, 9.0), (9.0, 8.0), (2.0, 6.0)]
    line = affine(points)
    corrected = [line(now) for now, _ in points]
    baseline = [then for _, then in points]
    assert fmean(corrected) == pytest.approx(fmean(baseline))
    assert stdev(corrected) == pytest.approx(stdev(baseline))


def test_where_all_got_one_grade_there_is_a_shift_and_no_stretch() -> None:
    line = affine([(5.0, 6.0), (5.0, 8.0)])
    assert (line.slope, line.intercept) == (1.0, 2.0)


@given(GRADES)
def test_an_isotonic_map_is_that_of_scipy(points: list[tuple[float, float]]) -> None:
    today, baseline = np.array(points, dtype=np.float64).T
    grades, counts = np.unique(today, return_counts=True)
    means = np.array([baseline[today == grade].mean() for grade in grades])
    fitted = isotonic_regression(means, weights=counts).x
    asked = np.array(sorted({*today, *(today + 0.3), 0.0, 11.0}))
    found = isotonic(points)
    expected = np.interp(asked, grades, fitted)
    assert [found(each) for each in asked.tolist()] == pytest.approx(expected.tolist(), abs=1e-6)


@given(GRADES, st.floats(0, 11), st.floats(0, 11))
def test_no_map_turns_an_order_around(
    points: list[tuple[float, float]], one: float, two: float
) -> None:
    low, high = min(one, two), max(one, two)
    for fitted in (affine(points), isotonic(points)):
        assert fitted(low) <= fitted(high) + 1e-9


def test_a_dimension_that_the_anchors_do_not_have_stays_as_it_is() -> None:
    then, now = runs(30, slope=0.5, shift=0.0)
    corrected = fit("affine", then, now)({"A.x": 2.0, "A.unknown": 3.0})
    assert corrected == {"A.x": 4.0, "A.unknown": 3.0}


@pytest.mark.parametrize(("method", "items"), [("affine", 4), ("isotonic", 14)])
def test_too_few_scores_give_no_map(method: Method, items: int) -> None:
    then, now = runs(items, slope=1.0, shift=1.0)
    with pytest.raises(ValueError, match=rf"{method} needs \d+ scores .* there are {2 * items}"):
        fit(method, then, now)


def test_the_id_is_that_of_the_parameters_and_they_can_be_written_and_read() -> None:
    one, two = (fit("isotonic", *runs(30, slope=1.0, shift=s)) for s in (0.0, 0.5))
    assert one.id != two.id
    assert one.id.startswith("isotonic@")
    read = msgspec.json.decode(msgspec.json.encode(one), type=Correction)
    assert read == one
    assert read.id == one.id
