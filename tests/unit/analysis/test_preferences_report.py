"""What a fit and an evaluation report: the golden judges, missing verdicts, the fall-back."""

import numpy as np
import pytest

from dikast.analysis.preferences_evaluation import Items, ceilings, measure
from dikast.analysis.preferences_report import Arm, Measured, arm_of, fit_report
from dikast.analysis.preferences_selection import chooser, select
from dikast.analysis.preferences_votes import Matrix, Signs
from dikast.engine.errors import InputError
from tests.unit.analysis.test_preferences_selection import world

LABELS: Signs = np.where(np.arange(24) % 3 == 0, 1, -1).astype(np.int8)
GROUPS = np.arange(24) // 2


def arm(picks: Signs) -> Arm:
    return arm_of("judge", picks, LABELS, GROUPS, seed=0)


def test_a_judge_that_always_says_first_is_half_right_never_consistent_and_biased_by_half() -> None:
    found = arm(np.tile(np.array([1, -1], np.int8), (24, 1)))
    assert found.accuracy.value == 0.5
    assert found.both_right.value == 0
    assert found.positions.consistency_strict.value == 0
    assert found.positions.position_bias.value == 0.5
    where = found.positions
    assert (where.consistent, where.always_first, where.always_second) == (0, 24, 0)


def test_a_perfect_judge_is_right_consistent_and_without_bias() -> None:
    found = arm(np.stack([LABELS, LABELS], axis=1))
    assert found.accuracy.value == 1
    assert found.both_right.value == 1
    assert found.positions.consistency_lenient.value == 1
    assert found.positions.position_bias.value == 0
    assert found.accuracy.interval is not None
    assert found.accuracy.interval.low < 1  # twelve prompts are not all prompts


def test_a_missing_verdict_is_left_out_of_accuracy_and_counts_against_strict_consistency() -> None:
    picks = np.stack([LABELS, LABELS], axis=1)
    picks[0] = 0
    picks[1, 1] = 0
    found = arm(picks)
    assert found.accuracy.value == 1
    assert (found.accuracy.pairs, found.accuracy.left_out) == (23, 1)
    assert found.positions.consistency_strict.value == pytest.approx(22 / 24)
    assert found.positions.consistency_lenient.value == 1
    assert found.positions.level_or_missing == 2


def measured(matrix: Matrix, plain: Signs) -> Measured:
    return Measured(matrix, plain, None, None)


def test_a_silent_judge_is_an_error() -> None:
    matrix = world(1, 12, preferences=4)
    silent = np.zeros((12, 2), np.int8)
    search = chooser(matrix)
    with pytest.raises(InputError, match="the plain judge: 100%"):
        fit_report(measured(matrix, silent), search, select(search), seed=0)
    speaking = np.ones((12, 2), np.int8)
    mute = matrix._replace(picks=np.zeros_like(matrix.picks))
    with pytest.raises(InputError, match="the judge with preferences: 100%"):
        fit_report(measured(mute, speaking), chooser(mute), select(chooser(mute)), seed=0)


def test_preferences_judge_only_where_the_interval_of_their_gain_lies_above_zero() -> None:
    rng = np.random.default_rng(0)
    coin = rng.choice([-1, 1], (24, 2)).astype(np.int8)
    good, useless = world(1, 24, preferences=6, skill=2.5), world(2, 24, preferences=6)
    for matrix, use in ((good, "preferences"), (useless, "plain")):
        search = chooser(matrix)
        report = fit_report(measured(matrix, coin), search, select(search), seed=0, shuffles=19)
        assert report.use == use
        chosen = next(each for each in report.arms if each.name == "chosen set")
        assert chosen.gain is not None
        assert chosen.gain.interval is not None
        assert (chosen.gain.interval.low > 0) == (use == "preferences")


def test_the_score_that_chose_is_no_figure_of_the_report() -> None:
    matrix = world(3, 12, preferences=8)
    search = chooser(matrix)
    selection = select(search)
    assert selection is not None
    report = fit_report(
        measured(matrix, np.ones((12, 2), np.int8)), search, selection, seed=0, shuffles=9
    )
    chosen = next(each for each in report.arms if each.name == "chosen set")
    assert chosen.accuracy.value is not None
    assert selection.score > chosen.accuracy.value
    assert not any(each.accuracy.value == selection.score for each in report.arms)


def test_a_profile_that_falls_back_has_the_figures_of_the_plain_judge() -> None:
    plain = np.tile(np.array([1, -1], np.int8), (24, 1))
    perfect = np.stack([LABELS, LABELS], axis=1)
    everywhere, nowhere = np.ones((24, 2), np.bool_), np.zeros(24, np.bool_)
    items = Items(LABELS, GROUPS, plain, perfect, everywhere, nowhere)
    arms = {each.name: each for each in measure("ann", "all", items, seed=0).arms}
    assert arms["profile as it stands"].accuracy == arms["plain judge"].accuracy
    assert arms["its preferences"].accuracy.value == 1
    gain = arms["its preferences"].gain
    assert gain is not None
    assert gain.value == 0.5


def test_agreement_with_others_is_counted_on_shared_pairs_only() -> None:
    labels = {
        "ann": {"p1": 1, "p2": 1, "p3": -1},
        "bob": {"p1": 1, "p2": -1},
        "eve": {"p1": -1},
    }
    found = {
        each.person: each.agreement
        for each in ceilings(labels, {"p1": 0, "p2": 1, "p3": 2}, labels)
    }
    assert found["ann"].value == pytest.approx((0.5 + 0) / 2)
    assert (found["ann"].pairs, found["ann"].left_out) == (2, 1)
    assert found["eve"].value == 0
