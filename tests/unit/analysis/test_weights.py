"""Members are counted by their picks against the label, and weighed by their log odds."""

from math import log
from typing import Any

import msgspec
import pytest

from dikast.analysis.weights import BallotRow, MemberFit, WeightFitter, majority_labels


def row(number: int, strategy: str = "committee@1", **more: Any) -> BallotRow:
    fields = {"kind": "verdict", "id": f"p{number}", "winner": "A", "strategy": strategy}
    return msgspec.convert(fields | more, BallotRow)


def parts(**picks: str) -> list[dict[str, str]]:
    return [{"name": name, "pick": pick} for name, pick in picks.items()]


def test_a_committee_is_counted_member_by_member() -> None:
    fitter = WeightFitter()
    assert fitter.add(row(1, parts=parts(one="A", two="B")), "A") is None
    assert fitter.add(row(2, parts=parts(one="A", two="tie")), "B") is None
    assert fitter.add(row(3, parts=parts(one="A", two="none")), "A") is None
    fit = fitter.fit()
    assert fit.pairs == 3
    assert fit.members == (MemberFit("one", 2, 1, 0), MemberFit("two", 0, 1, 2))
    assert fit.left_out == {}


def test_outputs_of_single_judges_are_put_together_by_the_judges_name() -> None:
    fitter = WeightFitter()
    for judge, winner in (("one", "A"), ("two", "B")):
        votes = [{"judge": judge, "order": order, "pick": winner} for order in ("ab", "ba")]
        assert fitter.add(row(1, "swap@1", winner=winner, votes=votes), "A") is None
    undecided = {"kind": "undecided", "winner": None, "why": "unparsed"}
    votes = [{"judge": "one", "order": "ab", "pick": "none"}]
    assert fitter.add(row(2, "pairwise@1", votes=votes, **undecided), "A") is None
    fit = fitter.fit()
    assert fit.members == (MemberFit("one", 1, 0, 1), MemberFit("two", 0, 1, 0))
    assert fit.pairs == 2


def test_what_cannot_be_measured_is_left_out_by_reason() -> None:
    fitter = WeightFitter()
    said = parts(one="A")
    assert fitter.add(row(1, parts=said), None) is None
    assert fitter.add(row(2, parts=said), "tie") is None
    assert fitter.add(row(3, kind="failed", winner=None, reason="timeout"), "A") is None
    assert fitter.add(row(4, "early_stop@1", parts=said, marks={"spared": 2}), "A") is None
    assert fitter.add(row(5, "early_stop@1", parts=said, marks={"spared": 0}), "A") is None
    fit = fitter.fit()
    assert fit.pairs == 1
    assert fit.left_out == {
        "early_stop asked only some members": 1,
        "failed": 1,
        "label is a tie": 1,
        "no label": 1,
    }


def test_a_pair_judged_twice_by_one_member_and_a_cascade_are_refused() -> None:
    fitter = WeightFitter()
    assert fitter.add(row(1, parts=parts(one="A")), "A") is None
    twice = fitter.add(row(1, parts=parts(one="B")), "A")
    votes = [{"judge": "one", "order": "ab", "pick": "A"}]
    climbed = fitter.add(row(2, "cascade@1", parts=parts(one="A"), votes=votes), "A")
    assert twice is not None
    assert "'one' has judged pair 'p1' before" in twice
    assert climbed is not None
    assert "cascade@1" in climbed
    assert fitter.fit().members == (MemberFit("one", 1, 0, 0),)


@pytest.mark.parametrize(
    ("right", "wrong", "weight"),
    [(9, 0, log(10)), (29, 9, log(3)), (5, 5, 0.0), (1, 4, 0.0), (0, 0, 0.0)],
)
def test_a_weight_is_the_smoothed_log_odds_and_never_negative(
    right: int, wrong: int, weight: float
) -> None:
    member = MemberFit("one", right, wrong, 3)
    assert member.weight == pytest.approx(weight, abs=5e-7)
    assert member.log_odds == pytest.approx(log((right + 1) / (wrong + 1)))
    assert member.interval().low <= (member.accuracy or 0.0) <= member.interval().high


def test_the_weighted_vote_is_the_likelier_answer_of_independent_members() -> None:
    # Three members of known accuracy: the sign of the summed log odds is Bayes' answer.
    accuracies = {"one": 0.9, "two": 0.7, "three": 0.6}
    fits = {
        name: MemberFit(name, round(share * 10**6), round((1 - share) * 10**6), 0)
        for name, share in accuracies.items()
    }
    for pattern in range(8):
        says_a = {name: bool(pattern >> at & 1) for at, name in enumerate(accuracies)}
        a = b = 1.0
        for name, share in accuracies.items():
            a *= share if says_a[name] else 1 - share
            b *= 1 - share if says_a[name] else share
        lead = sum(fits[name].weight * (1 if says else -1) for name, says in says_a.items())
        assert (lead > 0) == (a > b)


def test_a_pairs_label_is_what_most_people_said_and_none_where_none_leads() -> None:
    votes = [("p1", "A"), ("p1", "A"), ("p1", "B"), ("p2", "A"), ("p2", "B"), ("p3", "tie")]
    assert majority_labels(votes) == {"p1": "A", "p2": None, "p3": "tie"}  # type: ignore[arg-type]
