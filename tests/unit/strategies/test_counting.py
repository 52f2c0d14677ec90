"""Calls to expect: worked out by hand, and never outside the fewest and the most."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dikast.strategies import Calls, Rates, calls_of, parse_strategy, rows_of
from dikast.strategies.counting import reach

ONE = {"kind": "pairwise", "judge": "j"}
RATES = Rates(unparsed=0.1, tie=0.2, disagreement=0.5, low_margin=0.25, votes=(0.8, 0.1, 0.0, 0.1))


def calls(data: dict[str, Any], rates: Rates = RATES) -> Calls:
    return calls_of(parse_strategy(data), {}, rates)


def early(n: int, **more: Any) -> dict[str, Any]:
    inner: dict[str, Any] = {"kind": "repeat", "n": n, "inner": ONE}
    return {"kind": "early_stop", "inner": inner, **more}


def test_what_asks_everybody_expects_what_it_makes() -> None:
    assert calls({"kind": "swap", "inner": ONE}) == Calls(2, 2.0, 2)
    assert calls({"kind": "repeat", "n": 3, "inner": ONE}) == Calls(3, 3.0, 3)
    guarded = {"kind": "length_guard", "inner": {"kind": "swap", "inner": ONE}}
    assert calls(guarded) == Calls(2, 2.0, 2)


def test_repairs_are_expected_as_often_as_answers_cannot_be_read() -> None:
    assert calls({"kind": "score", "judge": "j"}) == pytest.approx(Calls(2, 2.2, 4))
    assert calls({"kind": "score", "judge": "j", "repair": False}) == Calls(2, 2.0, 2)


def test_a_cascade_reaches_its_rungs_by_the_doubts_that_were_named() -> None:
    data = {"kind": "cascade", "rungs": [ONE, ONE, ONE], "escalate_when": ["tie", "unparsed"]}
    on = 1 - 0.8 * 0.9
    assert calls(data) == pytest.approx(Calls(1, 1 + on + on * on, 3))
    measured = Rates(rungs=(0.5, 0.25))
    assert calls(data, measured) == Calls(1, 1 + 0.5 + 0.125, 3)
    assert reach(parse_strategy(data), measured) == [1.0, 0.5, 0.125]
    rows = rows_of(parse_strategy(data), {}, measured)
    assert [(row.depth, row.asked) for row in rows] == [(0, 1), (1, 1), (1, 0.5), (1, 0.125)]


def test_a_stopped_vote_expects_the_chance_that_each_member_is_asked() -> None:
    # Of three, the third is asked unless the first two are alike (A A, B B or none none).
    third = 1 - (0.8**2 + 0.1**2 + 0.1**2)
    assert calls(early(3)) == pytest.approx(Calls(2, 2 + third, 3))
    assert calls(early(3, wave=3)) == Calls(3, 3.0, 3)


def test_a_risk_makes_a_vote_expect_fewer_calls() -> None:
    exact, risky = calls(early(15)), calls(early(15, risk=0.05))
    assert (exact.fewest, risky.fewest) == (8, 4)
    assert risky.expected < exact.expected - 2
    assert exact.most == risky.most == 15


def test_a_drawn_order_counts_the_cheapest_members_first_for_the_fewest() -> None:
    members = [{"strategy": {"kind": "swap", "inner": ONE}}, *[{"strategy": ONE}] * 8]
    inner = {"kind": "committee", "members": members}
    written = calls({"kind": "early_stop", "inner": inner})
    drawn = calls({"kind": "early_stop", "inner": inner, "risk": 0.1})
    assert (written.fewest, written.most) == (6, 10)
    assert drawn.fewest == 3
    assert drawn.fewest < drawn.expected < written.expected


shares = st.floats(0, 1)
kinds: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.just(ONE) | st.just({"kind": "score", "judge": "j"}),
    lambda inner: st.one_of(
        st.builds(
            lambda each, n: {"kind": "repeat", "n": n, "inner": each}, inner, st.integers(1, 5)
        ),
        st.builds(lambda *each: {"kind": "cascade", "rungs": list(each)}, inner, inner),
        st.builds(
            lambda each, n, risk: {
                "kind": "early_stop",
                "inner": {"kind": "repeat", "n": n, "inner": each},
                **({} if risk is None else {"risk": risk}),
            },
            inner,
            st.integers(1, 5),
            st.none() | st.sampled_from([0.05, 0.3]),
        ),
    ),
    max_leaves=4,
)


@given(kinds, shares, shares, shares, st.lists(st.floats(0.01, 1), min_size=4, max_size=4))
def test_the_expected_number_lies_between_the_fewest_and_the_most(
    data: dict[str, Any], unparsed: float, tie: float, apart: float, votes: list[float]
) -> None:
    like, against, level, none = (each / sum(votes) for each in votes)
    rates = Rates(
        unparsed=unparsed, tie=tie, disagreement=apart, votes=(like, against, level, none)
    )
    found = calls(data, rates)
    assert found.fewest - 1e-9 <= found.expected <= found.most + 1e-9
