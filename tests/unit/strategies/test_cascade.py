"""Cascades: what sends a pair on, what is shown of each rung, what a failure does."""

import msgspec
import pytest

from dikast.engine.errors import ConfigError, ProviderError, RunStopped
from dikast.engine.model import Outcome, Undecided, Verdict
from dikast.strategies import Doubt, cascade, committee, repeat
from dikast.strategies.cascade import margin_of
from tests.unit.strategies.panels import PAIR, Desk, Told, panel


async def climb(cheap: Told, strong: Told, *when: Doubt, margin_below: float = 0.5) -> Outcome:
    return await cascade([cheap, strong], when, margin_below).judge(PAIR, Desk())


async def test_a_clear_verdict_asks_nobody_else() -> None:
    strong = Told("B")
    outcome = await cascade([Told("A"), strong]).judge(PAIR, Desk())
    assert isinstance(outcome, Verdict)
    assert (outcome.winner, strong.asked) == ("A", 0)
    assert [(part.pick, part.why, part.calls) for part in outcome.parts] == [("A", None, 1)]


async def test_every_rung_is_shown_with_its_bill_and_why_it_was_not_the_last() -> None:
    rungs = [Told("tie", "r0"), Told("none", "r1"), Told("B", "r2"), Told("A", "r3")]
    outcome = await cascade(rungs).judge(PAIR, Desk())
    assert isinstance(outcome, Verdict)
    assert outcome.winner == "B"
    assert [(p.name, p.pick, p.why, p.calls, p.cost_usd) for p in outcome.parts] == [
        ("r0", "tie", "tie", 1, 1.0),
        ("r1", "none", "unparsed", 1, 1.0),
        ("r2", "B", None, 1, 1.0),
    ]
    assert [vote.judge for vote in outcome.votes] == ["r0", "r1", "r2"]
    assert rungs[3].asked == 0


async def test_only_named_doubts_send_a_pair_on() -> None:
    tie = await climb(Told("tie"), Told("A"), "unparsed")
    assert isinstance(tie, Verdict)
    assert tie.winner == "tie"
    unread = await climb(Told("none"), Told("A"), "tie")
    assert isinstance(unread, Undecided)


async def test_the_last_rung_is_taken_as_it_is() -> None:
    outcome = await climb(Told("tie"), Told("tie"), "tie")
    assert isinstance(outcome, Verdict)
    assert outcome.winner == "tie"
    assert [part.why for part in outcome.parts] == ["tie", None]


async def test_votes_that_are_not_alike_are_a_disagreement() -> None:
    strong = Told("B")
    split = committee(panel("A", "A", "B"))
    outcome = await cascade([split, strong], ["disagreement"]).judge(PAIR, Desk())
    assert isinstance(outcome, Verdict)
    assert outcome.winner == "B"
    assert outcome.parts[0].why == "disagreement"
    assert [part.pick for part in outcome.parts[0].parts] == ["A", "A", "B"]
    one_mind = committee(panel("A", "A", "timeout"))
    await cascade([one_mind, strong], ["disagreement"]).judge(PAIR, Desk())
    assert strong.asked == 1


@pytest.mark.parametrize(
    ("confidence", "why"), [(0.8, None), (0.74, "low_margin"), (0.3, "low_margin")]
)
async def test_the_margin_of_one_vote_comes_from_its_confidence(
    confidence: float, why: str | None
) -> None:
    outcome = await climb(Told("A", confidence=confidence), Told("B"), "low_margin")
    assert outcome.parts[0].why == why


async def test_a_margin_that_is_not_known_is_a_doubt_of_its_own_name() -> None:
    outcome = await climb(Told("A"), Told("B"), "low_margin")
    assert outcome.parts[0].why == "margin_unknown"
    verdict = Verdict(id="p", winner="A")
    assert margin_of(verdict) is None
    assert margin_of(msgspec.structs.replace(verdict, confidence=0.9)) == pytest.approx(0.8)


async def test_the_margin_of_several_votes_is_their_lead() -> None:
    lead = repeat(Told("A"), 3)
    outcome = await cascade([lead, Told("B")], ["low_margin"], 1.0).judge(PAIR, Desk())
    assert outcome.parts[0].why is None
    split = committee(panel("A", "A", "B"))
    outcome = await cascade([split, Told("B")], ["low_margin"], 0.34).judge(PAIR, Desk())
    assert outcome.parts[0].why == "low_margin"
    outcome = await cascade([split, Told("B")], ["low_margin"], 0.33).judge(PAIR, Desk())
    assert outcome.parts[0].why is None


async def test_a_failed_rung_fails_the_pair_unless_failure_is_a_named_doubt() -> None:
    strong = Told("A")
    with pytest.raises(ProviderError, match="timeout"):
        await climb(Told("timeout"), strong, "tie", "unparsed")
    assert strong.asked == 0
    outcome = await climb(Told("timeout"), strong, "failed")
    assert isinstance(outcome, Verdict)
    assert [part.why for part in outcome.parts] == ["failed: timeout", None]
    with pytest.raises(ProviderError, match="timeout"):
        await climb(Told("tie"), Told("timeout"), "tie", "failed")
    with pytest.raises(RunStopped):
        await climb(Told(RunStopped("budget", "spent")), strong, "failed")


async def test_a_judge_that_declines_has_given_no_verdict() -> None:
    outcome = await climb(Told("refused"), Told("A"), "unparsed")
    assert isinstance(outcome, Verdict)
    assert outcome.parts[0].why == "unparsed: refused"


def test_a_cascade_that_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least two rungs"):
        cascade([Told("A")])
    with pytest.raises(ConfigError, match="escalate_when = "):
        cascade(panel("A", "B"), [])
    with pytest.raises(ConfigError, match="margin_below = 0"):
        cascade(panel("A", "B"), ["low_margin"], 0)
    spec = cascade(panel("A", "B")).spec()
    assert spec["escalate_when"] == ["disagreement", "tie", "unparsed"]
    assert [each["name"] for each in spec["rungs"]] == ["m0", "m1"]
