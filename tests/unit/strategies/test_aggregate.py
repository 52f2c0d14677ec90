"""Counting votes: results worked out by hand, and laws that hold for any votes."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dikast.engine.errors import ConfigError
from dikast.engine.model import Pick
from dikast.strategies.aggregate import (
    RULES,
    Decision,
    Rule,
    Rules,
    combine_numbers,
    decide,
    exact,
    settled,
    tally,
)

PICKS: tuple[Pick, ...] = ("A", "B", "tie", "none")
WORDS: dict[str, Pick] = {"A": "A", "B": "B", "t": "tie", "-": "none"}


def result(votes: str, rules: Rules, quorum: int = 1) -> Decision:
    return decide(tally((WORDS[each], Fraction(1)) for each in votes), rules, quorum)


@pytest.mark.parametrize(
    ("votes", "rule", "winner", "level"),
    [
        # odd and clear
        *(("AAB", rule, "A", False) for rule in RULES),
        *(("BBA", rule, "B", False) for rule in RULES),
        # even and level: always a tie, and it says so
        *(("AB", rule, "tie", True) for rule in RULES),
        *(("AABB", rule, "tie", True) for rule in RULES),
        # even and clear; even with half of the votes tied
        *(("AAAB", rule, "A", False) for rule in RULES),
        *(("ABtt", rule, "tie", True) for rule in RULES),
        # all tied: a tie that was voted
        *(("tttt", rule, "tie", False) for rule in RULES),
        *(("t", rule, "tie", False) for rule in RULES),
        # one lone survivor
        *(("---B", rule, "B", False) for rule in RULES),
        *(("---t", rule, "tie", False) for rule in RULES),
        # even, one tie: half of the votes is no majority; the middle two average +1/2
        ("At", "majority", "tie", True),
        ("At", "plurality", "A", False),
        ("At", "median", "A", False),
        ("At", "mean", "A", False),
        # two ties against one
        ("Att", "majority", "tie", False),
        ("Att", "plurality", "A", False),
        ("Att", "median", "tie", False),
        ("Att", "mean", "A", False),
        # 2 of 5 is most, but not more than half
        ("AABtt", "majority", "tie", True),
        ("AABtt", "plurality", "A", False),
        ("AABtt", "median", "tie", True),
        # trimmed at 0.2 of 5: one off each end, what is left is A, t, t
        ("AABtt", "trimmed_mean", "A", False),
        # of 4 nothing is trimmed
        ("ABtt", "trimmed_mean", "tie", True),
        # -1 -1 0 1 1 1 -> -1 0 1 1 after one off each end
        ("BBtAAA", "trimmed_mean", "A", False),
    ],
)
def test_hand_computed_votes(votes: str, rule: Rule, winner: str, level: bool) -> None:
    assert result(votes, Rules(rule=rule)) == Decision(winner, level)  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", RULES)
def test_all_failed_is_no_result_and_a_quorum_is_held(rule: Rule) -> None:
    assert result("---", Rules(rule=rule)) == Decision(None)
    assert result("AA-", Rules(rule=rule), 3) == Decision(None)
    assert result("AA-", Rules(rule=rule), 2) == Decision("A")


def test_the_default_quorum_is_more_than_half() -> None:
    assert [Rules().needed(n) for n in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]
    assert Rules(quorum=4).needed(9) == 4


def test_weights_are_the_decimals_that_were_written() -> None:
    rules = Rules(rule="weighted")
    level = tally([("A", exact(0.1)), ("A", exact(0.2)), ("B", exact(0.3))])
    assert decide(level, rules, 1) == Decision("tie", True)
    heavy = tally([("A", exact(0.1)), ("A", exact(0.2)), ("B", exact(0.31))])
    assert decide(heavy, rules, 1) == Decision("B")


def test_the_band_makes_a_small_lead_a_tie() -> None:
    # 3 A, 2 B: mean 1/5
    assert result("AAABB", Rules(rule="mean", band=0.2)).winner == "tie"
    assert result("AAABB", Rules(rule="mean", band=0.19)).winner == "A"
    assert result("At", Rules(rule="median", band=0.5)).winner == "tie"


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (Rules(rule="most"), "rule = 'most'; known are majority"),  # type: ignore[arg-type]
        (Rules(quorum=4), "quorum = 4 must be at least 1 and at most the number of members, 3"),
        (Rules(quorum=0), "quorum = 0"),
        (Rules(trim=0.5), "trim = 0.5"),
        (Rules(band=1.0), "band = 1.0"),
        (Rules(band=float("nan")), "band = nan"),
    ],
)
def test_rules_that_cannot_work_are_refused(rules: Rules, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        rules.check("here", 3)
    assert str(caught.value).startswith(f"here: {says}")


def test_numbers_are_combined_by_hand_computed_rules() -> None:
    values = [9.0, 1.0, 5.0, 6.0]
    assert combine_numbers(values, Rules(rule="median")) == 5.5
    assert combine_numbers(values, Rules(rule="majority")) == 5.5
    assert combine_numbers(values, Rules(rule="mean")) == 5.25
    assert combine_numbers(values, Rules(rule="trimmed_mean", trim=0.25)) == 5.5
    assert combine_numbers(values, Rules(rule="weighted"), [1, 1, 2, 4]) == 5.5
    with pytest.raises(ValueError, match="no value"):
        combine_numbers([], Rules())
    with pytest.raises(ValueError, match="one weight"):
        combine_numbers(values, Rules(rule="weighted"), [1])


weights = st.sampled_from([0.1, 0.2, 0.3, 0.5, 1.0, 1.5, 3.0])
ballots = st.lists(st.tuples(st.sampled_from(PICKS), weights), max_size=7)
rules_of = st.builds(
    Rules,
    rule=st.sampled_from(RULES),
    quorum=st.none() | st.integers(1, 4),
    trim=st.sampled_from([0.0, 0.1, 0.2, 0.34, 0.49]),
    band=st.sampled_from([0.0, 0.1, 0.25, 0.5]),
)


def fair(votes: list[tuple[Pick, float]], rules: Rules) -> list[tuple[Pick, Fraction]]:
    """Votes as a committee casts them: weights count under "weighted" only."""
    return [(pick, exact(w) if rules.rule == "weighted" else Fraction(1)) for pick, w in votes]


@given(ballots, rules_of, st.randoms(use_true_random=False))
def test_the_order_of_the_votes_never_matters(
    votes: list[tuple[Pick, float]], rules: Rules, random: object
) -> None:
    cast = fair(votes, rules)
    shuffled = list(cast)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    quorum = rules.needed(len(cast))
    assert decide(tally(cast), rules, quorum) == decide(tally(shuffled), rules, quorum)


FLIP: dict[Pick, Pick] = {"A": "B", "B": "A", "tie": "tie", "none": "none"}


@given(ballots, rules_of)
def test_exchanging_the_answers_exchanges_the_result(
    votes: list[tuple[Pick, float]], rules: Rules
) -> None:
    cast = fair(votes, rules)
    plain = decide(tally(cast), rules, 1)
    turned = decide(tally((FLIP[pick], w) for pick, w in cast), rules, 1)
    assert turned.level == plain.level
    assert turned.winner == (None if plain.winner is None else FLIP[plain.winner])


@given(
    st.lists(st.tuples(st.sampled_from(PICKS), weights), max_size=4),
    st.lists(weights, max_size=3),
    rules_of,
)
def test_a_vote_is_settled_exactly_when_no_further_votes_can_change_its_winner(
    votes: list[tuple[Pick, float]], left: list[float], rules: Rules
) -> None:
    cast = fair(votes, rules)
    rest = [w for _, w in fair([("A", w) for w in left], rules)]
    quorum = rules.needed(len(cast) + len(rest))
    endings = {
        decide(tally([*cast, *zip(said, rest, strict=True)]), rules, quorum).winner
        for said in itertools.product(PICKS, repeat=len(rest))
    }
    assert settled(tally(cast), rest, rules, quorum) == (len(endings) == 1)
