"""Pooling of votes, and the readers that make votes of a judge's words."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dikast.engine.model import Completion, Pick
from dikast.strategies.sesse.pool import Cast, capped, pool, prefix, settled
from dikast.strategies.sesse.tier_prompts import (
    read_numbers,
    read_vote,
    read_votes,
    read_yes_no,
)

PICKS = st.sampled_from(["A", "B", "na", "none"])


def casts(*picks: Pick, cid: str = "c") -> list[Cast]:
    return [Cast(f"q{at}", cid, at, pick) for at, pick in enumerate(picks)]


def test_na_and_invalid_votes_move_nothing_and_are_counted_apart() -> None:
    found = pool(casts("A", "na", "none", "B", "A", "na"))
    assert (found.a, found.b, found.na, found.invalid) == (2, 1, 2, 1)
    assert (found.winner, found.reason) == ("A", None)
    assert found.margin == pytest.approx(1 / 3)
    assert found.entropy_bits == pytest.approx(
        -(2 / 3) * math.log2(2 / 3) - (1 / 3) * math.log2(1 / 3)
    )


def test_ties_say_why() -> None:
    assert pool(casts("A", "B")).reason == "equal"
    assert pool(casts("na", "na")).reason == "all_na"
    assert pool([], selected=0).reason == "no_cluster"
    assert pool(casts("na", "none")).reason == "all_na"
    assert pool(casts("none")).winner is None


def test_the_majority_is_pooled_and_not_one_of_clusters() -> None:
    votes = [*casts("A", "A", "A", "A", cid="x"), *casts("B", cid="y"), *casts("B", cid="z")]
    assert pool(votes).winner == "A"


def test_weights_are_capped_cluster_by_cluster_and_negative_ones_turn_the_vote() -> None:
    votes = [Cast("1", "x", 0, "A", 2.0), Cast("2", "x", 1, "A", 2.0), Cast("3", "y", 0, "B", 0.9)]
    factors = capped((each.cid, each.weight) for each in votes)
    assert factors == {"x": 0.25, "y": 1.0}
    found = pool(votes, factors=factors)
    assert found.a == pytest.approx(1.0)
    assert found.b == 0.9
    turned = pool([Cast("1", "y", 0, "A", -0.5)], factors={"y": 1.0})
    assert (turned.winner, turned.heads_a, turned.b) == ("B", 1, 0.5)


@given(st.lists(PICKS, max_size=12))
def test_exchanging_a_and_b_exchanges_the_winner(picks: list[Pick]) -> None:
    flip: dict[Pick, Pick] = {"A": "B", "B": "A"}
    flipped: list[Pick] = [flip.get(pick, pick) for pick in picks]
    one, other = pool(casts(*picks)), pool(casts(*flipped))
    assert other.winner == {"A": "B", "B": "A"}.get(str(one.winner), one.winner)
    assert other.margin == one.margin


@given(st.lists(PICKS, max_size=12), st.integers(0, 12))
def test_a_settled_count_is_never_turned_by_what_is_left(picks: list[Pick], asked: int) -> None:
    so_far, left = casts(*picks)[:asked], casts(*picks)[asked:]
    if settled(pool(so_far), len(left)):
        assert pool([*so_far, *left]).winner == pool(so_far).winner


def test_a_lead_is_settled_when_it_exceeds_what_is_left_and_not_before() -> None:
    lead = pool(casts("A", "A", "A", "B", "na"))
    assert settled(lead, 1)
    assert not settled(lead, 2)  # two votes for B would make it level
    assert not settled(lead, 3)


def test_a_prefix_is_what_a_smaller_depth_would_have_asked() -> None:
    votes = casts("A", "B", "A")
    assert prefix(votes, 2) == votes[:2]


@pytest.mark.parametrize(
    ("text", "pick"),
    [
        ("A", "A"),
        (" b.\n", "none"),
        ("B", "B"),
        ("NA", "na"),
        ("n/a", "na"),
        ("**A**", "A"),
        ("[[B]]", "B"),
        ("ANSWER_A", "A"),
        ("Answer: B", "B"),
        ("Verdict: ANSWER_B", "B"),
        ("<think>A or B? B.</think>\nA", "A"),
        ("It holds.\n\nB", "B"),
        ("A\nB", "none"),
        ("A is better", "none"),
        ("a", "none"),
        ("N", "none"),
        ("", "none"),
        ("Ａ", "A"),
    ],
)
def test_a_vote_is_read_or_it_is_invalid(text: str, pick: Pick) -> None:
    assert read_vote(Completion(text=text)) == pick


def test_a_cut_answer_is_no_vote() -> None:
    assert read_vote(Completion(text="A", finish_reason="length")) == "none"
    assert read_numbers(Completion(text="[1]", finish_reason="length"), 3) is None


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("[2, 1, 2]", (1, 2)),
        ("[]", ()),
        ("Those that hold: [3]", (3,)),
        ("[0]", None),
        ("[4]", None),
        ("none", None),
        ("[1] or [2]", None),
        ("1, 2", None),
    ],
)
def test_a_list_is_read_or_it_is_none(text: str, numbers: tuple[int, ...] | None) -> None:
    assert read_numbers(Completion(text=text), 3) == numbers


def test_votes_of_a_batch_are_read_by_number_and_contradictions_left_out() -> None:
    text = 'Here: {"1": "A", "2": "NA", "3": "b", "9": "A", "4": "A", "4": "B"}'
    assert read_votes(Completion(text=text), 4) == {1: "A", 2: "na", 3: "B"}


@pytest.mark.parametrize(
    ("text", "said"), [("yes", True), ("No.", False), ("yes\nno", None), ("maybe", None)]
)
def test_yes_or_no(text: str, said: bool | None) -> None:
    assert read_yes_no(Completion(text=text)) is said
