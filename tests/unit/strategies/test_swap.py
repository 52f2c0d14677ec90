"""Both orders: what is concluded, in whose terms, and what happens when a half goes wrong."""

import asyncio
import itertools

import pytest

from dikast.engine.errors import ProviderError, RunStopped
from dikast.engine.model import Call, Completion, Failed, Judge, Marks, Pair, Undecided, Verdict
from dikast.engine.ports import Ask
from dikast.strategies import OrderRule, Pairwise, load_template, swap

MARKER = load_template("pairwise-marker-en")
JUDGE = Judge(name="j", provider="p", model="m")
RECORDED = Judge(name="r", provider="replay", model="m", by_pair=True)
MARKS = {"A": "[[A]]", "B": "[[B]]", "tie": "[[C]]", "none": "hm"}
FLIP = {"A": "B", "B": "A"}


class ByOrder:
    """An Ask that answers by the order of the original pair, in terms of the answers as shown."""

    def __init__(self, ab: str, ba: str, finish: str = "stop") -> None:
        self._said = {"ab": ab, "ba": ba}
        self._finish = finish
        self.calls: list[Call] = []

    async def __call__(self, call: Call) -> Completion:
        self.calls.append(call)
        await asyncio.sleep(0.1 if call.order == "ab" else 0.2)
        return Completion(text=MARKS[self._said[call.order]], finish_reason=self._finish)


PAIR = Pair(id="p1", question="q", response_a="ALPHA", response_b="BETA", model_a="x", model_b="y")


@pytest.mark.parametrize("order", ["hash", "ab", "ba"])
@pytest.mark.parametrize(("ab", "ba"), list(itertools.product(["A", "B", "tie"], repeat=2)))
async def test_an_agreeing_conclusion_wins_and_all_else_is_a_tie_of_a_stated_kind(
    order: OrderRule, ab: str, ba: str
) -> None:
    # `ab` and `ba` are picks in terms of the pair; what the judge says is in terms of the showing.
    ask = ByOrder(ab, FLIP.get(ba, ba))
    outcome = await swap(Pairwise(JUDGE, MARKER, order=order)).judge(PAIR, ask)
    assert isinstance(outcome, Verdict)
    if ab != ba:
        assert (outcome.winner, outcome.basis) == ("tie", "disagree")
        assert outcome.marks is not None
        assert (outcome.marks.margin, outcome.marks.entropy_bits) == (0.0, 1.0)
        assert outcome.marks.level
    else:
        assert outcome.marks == Marks(votes=2)
        assert (outcome.winner, outcome.basis) == (ab, "both_tie" if ab == "tie" else "agree")
    assert [(vote.order, vote.pick) for vote in outcome.votes] == [("ab", ab), ("ba", ba)]
    assert outcome.confidence is None


@pytest.mark.parametrize("pair_id", [str(n) for n in range(8)])
@pytest.mark.parametrize("order", ["hash", "ab", "ba"])
async def test_the_order_of_a_call_says_which_answer_of_the_original_pair_came_first(
    order: OrderRule, pair_id: str
) -> None:
    ask = ByOrder("tie", "tie")
    pair = Pair(id=pair_id, question="q", response_a="ALPHA", response_b="BETA")
    outcome = await swap(Pairwise(RECORDED, MARKER, order=order)).judge(pair, ask)
    assert {call.order for call in ask.calls} == {"ab", "ba"}
    for call in ask.calls:
        text = call.messages[-1].content
        alpha_first = text.index("ALPHA") < text.index("BETA")
        assert call.order == ("ab" if alpha_first else "ba")
        assert call.pair_id == pair_id
    sent = {call.order: call.key() for call in ask.calls}
    assert {vote.order: vote.key for vote in outcome.votes} == sent
    assert len(set(sent.values())) == 2


async def test_a_call_has_the_same_key_alone_and_inside_a_swap() -> None:
    alone, inside = ByOrder("A", "A"), ByOrder("A", "A")
    for order in ("ab", "ba"):
        await Pairwise(RECORDED, MARKER, order=order).judge(PAIR, alone)
    await swap(Pairwise(RECORDED, MARKER)).judge(PAIR, inside)
    assert {call.key() for call in alone.calls} == {call.key() for call in inside.calls}


async def test_both_orders_are_asked_at_the_same_time() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await swap(Pairwise(JUDGE, MARKER)).judge(PAIR, ByOrder("A", "B"))
    assert loop.time() - began == pytest.approx(0.2)


@pytest.mark.parametrize(("ab", "ba"), [("none", "A"), ("A", "none"), ("none", "none")])
async def test_a_half_without_a_verdict_makes_the_pair_undecided_with_both_votes(
    ab: str, ba: str
) -> None:
    outcome = await swap(Pairwise(JUDGE, MARKER)).judge(PAIR, ByOrder(ab, FLIP.get(ba, ba)))
    assert isinstance(outcome, Undecided)
    assert outcome.why == "unparsed"
    assert [(vote.order, vote.pick) for vote in outcome.votes] == [("ab", ab), ("ba", ba)]


async def test_truncation_in_both_halves_stays_truncation() -> None:
    outcome = await swap(Pairwise(JUDGE, MARKER)).judge(PAIR, ByOrder("A", "A", "length"))
    assert isinstance(outcome, Undecided)
    assert outcome.why == "truncated"


class Faulty:
    """An Ask whose orders fail or answer after a time; counts the answers that were paid for."""

    def __init__(self, plan: dict[str, tuple[float, BaseException | str]]) -> None:
        self._plan = plan
        self.answered: list[str] = []
        self.cancelled: list[str] = []

    async def __call__(self, call: Call) -> Completion:
        delay_s, result = self._plan[call.order]
        try:
            await asyncio.sleep(delay_s)
        except asyncio.CancelledError:
            self.cancelled.append(call.order)
            raise
        if isinstance(result, BaseException):
            raise result
        self.answered.append(call.order)
        return Completion(text=result)


@pytest.mark.parametrize(("bad", "good"), [("ab", "ba"), ("ba", "ab")])
async def test_a_failed_half_surfaces_as_itself_after_the_other_was_paid_and_kept(
    bad: str, good: str
) -> None:
    error = ProviderError("timeout", "too slow")
    ask = Faulty({bad: (1, error), good: (5, "[[A]]")})
    with pytest.raises(ProviderError) as caught:
        await swap(Pairwise(JUDGE, MARKER)).judge(PAIR, ask)
    assert (caught.value.kind, caught.value.message) == ("timeout", "too slow")
    assert [(vote.order, vote.pick) for vote in caught.value.votes] == [
        (good, "A" if good == "ab" else "B")
    ]
    assert error.votes == ()
    assert ask.answered == [good]
    assert ask.cancelled == []


async def test_a_stopped_run_goes_before_a_failed_call() -> None:
    plan: dict[str, tuple[float, BaseException | str]] = {
        "ab": (1, ProviderError("timeout", "too slow")),
        "ba": (2, RunStopped("budget", "no money left")),
    }
    for first, second in (("ab", "ba"), ("ba", "ab")):
        ask = Faulty({first: plan["ab"], second: plan["ba"]})
        with pytest.raises(RunStopped, match="no money left"):
            await swap(Pairwise(JUDGE, MARKER)).judge(PAIR, ask)


async def test_cancellation_reaches_both_halves_and_passes_through() -> None:
    ask = Faulty({"ab": (5, "[[A]]"), "ba": (5, "[[A]]")})
    task = asyncio.create_task(swap(Pairwise(JUDGE, MARKER)).judge(PAIR, ask))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ask.cancelled) == ["ab", "ba"]


class Custom:
    """A user's own strategy: knows nothing of orders, prefers the longer answer."""

    name = "custom@1"

    def __init__(self, fails: bool = False) -> None:
        self._fails = fails

    def spec(self) -> dict[str, str]:
        return {"kind": "custom"}

    async def judge(self, pair: Pair, ask: Ask) -> Verdict | Failed:
        if self._fails:
            return Failed(id=pair.id, reason="bug", message="it broke")
        return Verdict(
            id=pair.id, winner="A" if len(pair.response_a) > len(pair.response_b) else "B"
        )


async def test_any_strategy_can_be_swapped_without_knowing_it() -> None:
    strategy = swap(Custom())
    outcome = await strategy.judge(PAIR, ByOrder("A", "A"))
    assert isinstance(outcome, Verdict)
    assert (outcome.winner, outcome.basis) == ("A", "agree")
    assert strategy.spec() == {"kind": "swap", "version": "1", "inner": {"kind": "custom"}}
    assert strategy.name == "swap@1"


async def test_a_failed_outcome_of_the_inner_strategy_stays_failed() -> None:
    outcome = await swap(Custom(fails=True)).judge(PAIR, ByOrder("A", "A"))
    assert isinstance(outcome, Failed)
    assert outcome.reason == "bug"


async def test_the_first_answer_wins_nothing_from_a_judge_that_only_looks_at_the_place() -> None:
    for said in ("A", "B"):
        outcome = await swap(Pairwise(JUDGE, MARKER)).judge(PAIR, ByOrder(said, said))
        assert isinstance(outcome, Verdict)
        assert (outcome.winner, outcome.basis) == ("tie", "disagree")
