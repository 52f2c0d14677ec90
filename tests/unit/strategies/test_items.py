"""Single answers: scored by themselves, by several members and samples, never compared."""

import json
from typing import Any

import msgspec
import pytest

from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Call, Completion, Item, Judge, Outcome, Pair, Scored, Undecided
from dikast.strategies import Member, Score, committee, load_rubric, parse_rubric, repeat, swap
from dikast.strategies.subjects import put, takes_items
from tests.unit.strategies.panels import Told

RUBRIC = parse_rubric("""
name = "two"
version = "1"
language = "en"
scale = { low = 0, high = 10 }
bands = [{ low = 0, high = 5, means = "bad" }, { low = 6, high = 10, means = "good" }]
[[dimensions]]
name = "right"
weight = 3
criteria = "Is it right?"
[[dimensions]]
name = "clear"
criteria = "Is it clear?"
""")
ITEM = Item(id="i", question="What?", response="answer one", model="gpt-4", grade=3.0)


def score(name: str = "j", **more: Any) -> Score:
    return Score(Judge(name=name, provider="p", model=name), RUBRIC, **more)


def said(right: object, clear: object = 5) -> str:
    return json.dumps({"reasoning": "r", "scores": {"right": right, "clear": clear}})


class ByJudge:
    """An Ask that answers by the judge's name, in turn where a list is given."""

    def __init__(self, **says: list[str | ProviderError]) -> None:
        self.says = says
        self.calls: list[Call] = []

    async def __call__(self, call: Call) -> Completion:
        self.calls.append(call)
        answer = self.says[call.judge.name].pop(0)
        if isinstance(answer, ProviderError):
            raise answer
        return Completion(text=answer)


def scored(outcome: Outcome) -> Scored:
    assert isinstance(outcome, Scored)
    return outcome


async def test_an_item_is_asked_as_an_answer_of_a_pair_would_be_and_has_no_winner() -> None:
    ask = ByJudge(j=[said(6, 8), said(6, 8), said(1, 1)])
    outcome = scored(await score().judge_item(ITEM, ask))
    assert outcome.scores == {"right": 6.0, "clear": 8.0, "total": 0.65}
    assert [(vote.pick, vote.key) for vote in outcome.votes] == [("na", ask.calls[0].key())]
    pair = Pair(id="i", question="What?", response_a="answer one", response_b="other")
    await score().judge(pair, ask)
    # The stored call of the one serves the other.
    assert ask.calls[0].key() == ask.calls[1].key()
    line = msgspec.json.decode(msgspec.json.encode(outcome))
    assert line["kind"] == "scored"
    assert "winner" not in line


async def test_an_item_is_repaired_once_and_then_undecided() -> None:
    ask = ByJudge(j=["no", said(7)])
    outcome = scored(await score().judge_item(ITEM, ask))
    assert outcome.votes[0].keys == tuple(call.key() for call in ask.calls)
    again = await score().judge_item(ITEM, ByJudge(j=["no", "no"]))
    assert isinstance(again, Undecided)
    assert again.why == "unparsed"
    assert again.votes[0].pick == "none"


async def test_key_points_of_an_item_take_part() -> None:
    item = msgspec.structs.replace(ITEM, key_points=("one", "two"))
    answer = {
        "reasoning": "r",
        "key_points": [{"point": 1, "covered": True}, {"point": 2, "covered": False}],
        "scores": {"right": 10, "clear": 10},
    }
    outcome = scored(await score().judge_item(item, ByJudge(j=[json.dumps(answer)])))
    assert outcome.scores["key_points"] == 0.5
    assert outcome.scores["total"] == pytest.approx((3 + 1 + 0.5) / 5)


async def test_members_scores_are_combined_dimension_by_dimension_and_each_is_shown() -> None:
    ask = ByJudge(a=[said(2, 4)], b=[said(8, 4)], c=[said(9, 10)])
    outcome = scored(await committee([score("a"), score("b"), score("c")]).judge_item(ITEM, ask))
    assert outcome.scores["right"] == 8.0
    assert outcome.scores["clear"] == 4.0
    assert outcome.marks is not None
    assert outcome.marks.votes == 3
    assert outcome.marks.score_spread["right"] == pytest.approx(3.091206)
    assert [(p.name, p.pick, p.scores["right"], p.calls) for p in outcome.parts] == [
        ("a", "na", 2.0, 1),
        ("b", "na", 8.0, 1),
        ("c", "na", 9.0, 1),
    ]


async def test_a_quorum_holds_for_items_and_failures_are_never_scores() -> None:
    error = ProviderError("timeout", "slow")
    members = [score("a", repair=False), score("b", repair=False), score("c", repair=False)]
    ask = ByJudge(a=[said(2)], b=[error], c=["no"])
    outcome = await committee(members).judge_item(ITEM, ask)
    assert isinstance(outcome, Undecided)
    assert outcome.detail == "1 of 3 gave scores, 2 are needed"
    assert [part.why for part in outcome.parts] == [None, "timeout", "unparsed"]
    lone = ByJudge(a=[said(2)], b=[error], c=["no"])
    assert scored(await committee(members, quorum=1).judge_item(ITEM, lone)).scores["right"] == 2.0
    with pytest.raises(ProviderError) as caught:
        await committee(members).judge_item(ITEM, ByJudge(a=[error], b=[error], c=[error]))
    assert [part.why for part in caught.value.parts] == ["timeout"] * 3


async def test_no_judge_scores_an_answer_of_its_own_family() -> None:
    members = [Member(strategy=score("a"), family="openai"), Member(strategy=score("b"))]
    outcome = await committee(members, quorum=1).judge_item(ITEM, ByJudge(b=[said(4)]))
    assert [part.name for part in scored(outcome).parts] == ["b"]
    assert outcome.marks is not None
    assert outcome.marks.excluded == 1


async def test_samples_of_an_item_tell_the_judges_own_noise() -> None:
    ask = ByJudge(j=[said(4), said(6), said(8)])
    outcome = scored(await repeat(score(), 3, "mean").judge_item(ITEM, ask))
    assert outcome.scores["right"] == 6.0
    assert [call.sample for call in ask.calls] == [0, 1, 2]
    assert outcome.marks is not None
    assert outcome.marks.score_spread["right"] == pytest.approx(1.632993)


async def test_what_compares_takes_no_items_and_neither_does_what_holds_it() -> None:
    assert takes_items(repeat(committee([score("a")]), 2))
    assert not takes_items(committee([score("a"), Told("A")]))
    assert not takes_items(swap(Told("A")))
    with pytest.raises(ConfigError, match="compares answers and takes no single one"):
        await put(Told("A"), ITEM, ByJudge())


async def test_every_shipped_rubric_scores_an_item() -> None:
    rubric = load_rubric("summary-en")
    strategy = Score(Judge(name="j", provider="p", model="m"), rubric)
    scores = {each.name: rubric.scale_of(each).high for each in rubric.dimensions}
    text = json.dumps({"reasoning": "r", "scores": scores})
    outcome = scored(await strategy.judge_item(ITEM, ByJudge(j=[text])))
    assert outcome.scores["total"] == 1.0
