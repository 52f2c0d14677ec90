"""The gates before a library: each turns away what it is for, and lets the rest pass."""

import pytest

from dikast.engine.model import Pair
from dikast.strategies.sesse.hygiene import GATES, Draft, Gatekeeper

SOURCE = Pair(
    id="s1",
    question="Write three short lines about the old lighthouse keeper of Brunsby harbour",
    response_a="He keeps the lamp burning through the night for ships far away.",
    response_b="灯塔守望者在暴风雨中整夜点亮灯火。",
    label="A",
    category="poems",
)


def why(condition: str, conclusion: str) -> str:
    """The gate that turns this draft away; empty when it passes."""
    gate = Gatekeeper(q=3, overlap_words=6)
    passed, rejected = gate.admit(SOURCE, [Draft(condition=condition, conclusion=conclusion)])
    assert len(passed) + len(rejected) == 1
    return rejected[0].why if rejected else ""


@pytest.mark.parametrize(
    ("condition", "conclusion", "expected"),
    [
        ("", "keeping the limit", "empty_condition"),
        (" . ", "keeping the limit", "empty_condition"),
        ("the request sets a limit", " ", "empty_conclusion"),
        ("Response A is longer", "brevity", "names_a_side"),
        ("the request sets a limit", "what answer B does", "names_a_side"),
        ("the request sets a limit", "the tone of answer_a", "names_a_side"),
        ("the first response is longer", "brevity", "names_a_side"),
        ("assistant 2 refuses", "helpfulness", "names_a_side"),
        ("answer a is longer", "brevity", "names_a_side"),
        ("the request is a calculation", "the correct answer is A", "names_a_side"),
        ("the verdict should be 'B', as it is shorter", "brevity", "names_a_side"),
        ("the request sets a limit", "being like the chosen answer", "names_the_label"),
        ("the evaluator overlooked a limit", "keeping it", "names_the_label"),
        ("always", "keeping the limit", "tautology"),
        ("If a response is given", "keeping the limit", "tautology"),
        ("in all cases", "keeping the limit", "tautology"),
        ("the request sets a limit", "being better overall", "overall"),
        ("the request sets a limit", "Overall quality", "overall"),
        ("the request is about the old lighthouse keeper of Brunsby", "style", "copies_source"),
        ("the request is set in a place", "在暴风雨中整夜点亮", "copies_source"),
        ("the request sets a limit", "keeping the limit", ""),
        ("the request asks for an answer a child can follow", "plain words", ""),
        ("the answers differ in length", "saying no more than is needed", ""),
        ("the request concerns the old lighthouse", "accuracy of facts", ""),
        ("the best answer is a story", "an answer that is A-rated by readers", ""),
    ],
)
def test_a_draft_passes_or_is_turned_away_by_its_gate(
    condition: str, conclusion: str, expected: str
) -> None:
    assert why(condition, conclusion) == expected


def test_a_repeated_question_enters_once_and_extra_ones_are_counted() -> None:
    gate = Gatekeeper(q=2, overlap_words=6)
    limit = Draft(condition="the request sets a limit", conclusion="keeping it")
    again = Draft(condition="If The request sets a limit.", conclusion="keeping  it")
    more = Draft(condition="a list is wanted", conclusion="order")
    first, _ = gate.admit(SOURCE, [limit, again, more])
    assert [question.condition for question in first] == ["the request sets a limit"]
    assert gate.rejected == {"duplicate": 1, "too_many": 1}
    assert first[0].source_id == "s1"
    assert first[0].source_subset == "poems"
    second, _ = gate.admit(SOURCE, [again])
    assert second == []
    assert gate.rejected["duplicate"] == 2


def test_what_cannot_be_read_is_one_rejection() -> None:
    gate = Gatekeeper(q=2, overlap_words=6)
    passed, rejected = gate.admit(SOURCE, None)
    assert passed == []
    assert [each.why for each in rejected] == ["not_json"]
    assert gate.rejected == {"not_json": 1}


def test_every_reason_is_a_listed_gate() -> None:
    gate = Gatekeeper(q=1, overlap_words=6)
    drafts = [Draft(condition="always", conclusion="x"), Draft(condition="y", conclusion="z")]
    gate.admit(SOURCE, drafts)
    assert set(gate.rejected) <= set(GATES)
