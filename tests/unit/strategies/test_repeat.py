"""Repeats: samples are asked, stored and seeded apart, and counted like any vote."""

from typing import Any

import pytest

from dikast.engine.errors import ConfigError
from dikast.engine.model import Call, Completion, Judge, Outcome, Pair, Params, Verdict
from dikast.strategies import Pairwise, load_template, repeat, swap
from tests.unit.strategies.panels import PAIR, Desk, Told

MARKER = load_template("pairwise-marker-en")


class BySample:
    """An Ask that answers by the number of the sample."""

    def __init__(self, *says: str) -> None:
        self._says = says
        self.calls: list[Call] = []

    async def __call__(self, call: Call) -> Completion:
        self.calls.append(call)
        return Completion(text=f"[[{self._says[call.sample % len(self._says)]}]]")


def judge(seed: int | None = None) -> Judge:
    return Judge(name="j", provider="p", model="m", params=Params(seed=seed))


async def test_samples_differ_in_number_and_seed_and_their_spread_is_reported() -> None:
    ask = BySample("A", "A", "B")
    outcome = await repeat(Pairwise(judge(seed=40), MARKER, order="ab"), 3).judge(PAIR, ask)
    assert isinstance(outcome, Verdict)
    assert outcome.winner == "A"
    assert [call.sample for call in ask.calls] == [0, 1, 2]
    assert [call.judge.params.seed for call in ask.calls] == [40, 41, 42]
    assert [vote.key for vote in outcome.votes] == [call.key() for call in ask.calls]
    assert len({vote.key for vote in outcome.votes}) == 3
    assert [part.name for part in outcome.parts] == ["sample 0", "sample 1", "sample 2"]
    assert outcome.marks is not None
    assert outcome.marks.stability == pytest.approx(2 / 3, abs=1e-6)
    assert outcome.marks.spread == pytest.approx(0.942809, abs=1e-6)


async def test_no_seed_is_invented() -> None:
    ask = BySample("A")
    await repeat(Pairwise(judge(), MARKER), 2).judge(PAIR, ask)
    assert [call.judge.params.seed for call in ask.calls] == [None, None]


async def test_the_first_sample_is_the_call_that_is_made_without_repeating() -> None:
    alone, inside = BySample("A"), BySample("A")
    await Pairwise(judge(seed=1), MARKER).judge(PAIR, alone)
    await repeat(Pairwise(judge(seed=1), MARKER), 3).judge(PAIR, inside)
    assert alone.calls[0].key() == inside.calls[0].key()


async def test_more_samples_reuse_the_calls_of_fewer() -> None:
    few, many = BySample("A"), BySample("A")
    await repeat(Pairwise(judge(), MARKER), 2).judge(PAIR, few)
    await repeat(Pairwise(judge(), MARKER), 5).judge(PAIR, many)
    assert {call.key() for call in few.calls} < {call.key() for call in many.calls}


async def test_repeats_inside_repeats_and_both_orders_never_share_a_call() -> None:
    ask = BySample("A")
    await repeat(swap(repeat(Pairwise(judge(seed=0), MARKER), 2)), 3).judge(PAIR, ask)
    assert len({call.key() for call in ask.calls}) == len(ask.calls) == 12
    assert {call.sample for call in ask.calls} == set(range(6))


class Failing:
    """A strategy that fails for some samples, told apart by the number its call is given."""

    @property
    def name(self) -> str:
        return "failing@1"

    def spec(self) -> dict[str, Any]:
        return {}

    async def judge(self, pair: Pair, ask: Any) -> Outcome:
        completion = await ask(Call(judge=judge(), messages=(), prompt="p"))
        return await Told("timeout" if completion.text == "[[B]]" else "A").judge(pair, Desk())


async def test_a_failed_sample_counts_against_the_quorum() -> None:
    outcome = await repeat(Failing(), 3).judge(PAIR, BySample("A", "B", "A"))
    assert isinstance(outcome, Verdict)
    assert [part.why for part in outcome.parts] == [None, "timeout", None]
    few = await repeat(Failing(), 3).judge(PAIR, BySample("A", "B", "B"))
    assert few.parts[0].pick == "A"
    assert not isinstance(few, Verdict)


def test_what_decides_a_repeat_is_in_its_spec_and_nonsense_is_refused() -> None:
    inner = Pairwise(judge(), MARKER)
    assert repeat(inner, 3).spec()["n"] == 3
    assert repeat(inner, 3).spec() != repeat(inner, 3, "median").spec()
    with pytest.raises(ConfigError, match="n = 0"):
        repeat(inner, 0)
    with pytest.raises(ConfigError, match="samples have no weights"):
        repeat(inner, 3, "weighted")
    with pytest.raises(ConfigError, match="quorum = 4"):
        repeat(inner, 3, quorum=4)
