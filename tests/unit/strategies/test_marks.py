"""Marks of a vote, against values worked out by hand."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dikast.engine.model import Marks
from dikast.strategies.aggregate import Decision, Rules, decide, exact, plain_tally, tally
from dikast.strategies.marks import confidence_of, entropy_bits, marks_of


def of(a: int, b: int, tie: int, unread: int = 0) -> Marks:
    votes = plain_tally(a, b, tie)
    return marks_of(votes, decide(votes, Rules(), 1), unread=unread)


def test_one_mind_has_no_entropy_and_the_full_margin() -> None:
    assert of(3, 0, 0) == Marks(votes=3)
    assert of(0, 0, 3) == Marks(votes=3)


def test_two_against_one() -> None:
    marks = of(2, 1, 0)
    assert marks.entropy_bits == pytest.approx(math.log2(3) - 2 / 3, abs=1e-6)
    assert marks.majority_share == pytest.approx(2 / 3, abs=1e-6)
    assert marks.margin == pytest.approx(1 / 3, abs=1e-6)
    # values 1, 1, -1: mean 1/3, variance 1 - 1/9
    assert marks.spread == pytest.approx(math.sqrt(8 / 9), abs=1e-6)
    assert not marks.level


def test_level_votes_have_no_margin_and_say_so() -> None:
    marks = of(2, 2, 0)
    assert (marks.entropy_bits, marks.majority_share, marks.margin) == (1.0, 0.5, 0.0)
    assert marks.spread == 1.0
    assert marks.level


def test_three_ways_have_the_most_entropy() -> None:
    assert of(1, 1, 1).entropy_bits == pytest.approx(math.log2(3), abs=1e-6)


def test_what_gave_no_verdict_lowers_the_stability_only() -> None:
    marks = of(2, 0, 0, unread=2)
    assert (marks.majority_share, marks.margin, marks.stability) == (1.0, 1.0, 0.5)
    assert of(1, 0, 0, unread=2).stability == pytest.approx(2 / 3, abs=1e-6)
    nobody = of(0, 0, 0, unread=3)
    assert (nobody.votes, nobody.majority_share, nobody.margin) == (0, 0.0, 0.0)
    assert nobody.stability == 1.0


def test_confidence_is_the_share_of_the_weight_behind_the_result() -> None:
    votes = tally([("A", exact(3.0)), ("B", exact(1.0)), ("tie", exact(1.0))])
    assert confidence_of(votes, decide(votes, Rules(rule="weighted"), 1)) == 0.6
    assert confidence_of(plain_tally(1, 1, 0), Decision("tie", True)) == 0.0
    assert confidence_of(plain_tally(0, 0, 0), Decision(None)) is None


def test_the_spread_of_scores_is_given_for_each_dimension() -> None:
    votes = plain_tally(2, 0, 0)
    marks = marks_of(votes, Decision("A"), scores={"clarity": [4.0, 8.0], "safety": [5.0, 5.0]})
    assert marks.score_spread == {"clarity": 2.0, "safety": 0.0}


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_marks_stay_in_their_ranges(a: int, b: int, tie: int, unread: int) -> None:
    marks = of(a, b, tie, unread)
    assert 0 <= marks.entropy_bits <= 1.584963
    assert 0 <= marks.spread <= 1
    assert 0 <= marks.margin <= marks.majority_share <= 1
    assert 0 < marks.stability <= 1
    assert entropy_bits([Fraction(1)]) == 0
