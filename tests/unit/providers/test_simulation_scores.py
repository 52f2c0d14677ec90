"""A simulated judge asked for scores: readable, seeded, and in favour of the better answer."""

import json

import pytest

from dikast.engine.model import Call, Completion, Judge, Pair, Verdict
from dikast.providers.simulation import SimulatedSettings, answer
from dikast.providers.truth import TruthTable
from dikast.strategies import Score, load_rubric, shipped_rubrics

JUDGE = Judge(name="j", provider="p", model="m")
PAIRS = [
    Pair(
        id=str(n),
        question=f"question {n}",
        response_a=f"left {n}",
        response_b=f"right {n}",
        label="A" if n % 2 else "B",
        key_points=("x", "y", "z") if n % 3 else (),
    )
    for n in range(60)
]


class Simulated:
    def __init__(self, settings: SimulatedSettings) -> None:
        self._settings = settings
        self._truth = TruthTable.from_pairs(PAIRS)

    async def __call__(self, call: Call) -> Completion:
        said = answer(
            self._settings,
            self._truth,
            "m",
            [turn.content for turn in call.messages],
            draw=call.sample,
            logprobs=True,
        )
        return Completion(text=said.text, finish_reason=said.finish, logprobs=said.logprobs)


@pytest.mark.parametrize("rubric", shipped_rubrics())
async def test_every_shipped_rubric_is_answered_readably_and_for_the_better_answer(
    rubric: str,
) -> None:
    strategy = Score(JUDGE, load_rubric(rubric), repair=False)
    ask = Simulated(SimulatedSettings(accuracy=1.0))
    for pair in PAIRS:
        outcome = await strategy.judge(pair, ask)
        assert isinstance(outcome, Verdict)
        assert outcome.winner == pair.label


async def test_a_coin_is_right_half_the_time_and_the_same_seed_says_the_same() -> None:
    strategy = Score(JUDGE, load_rubric("general-en"))
    ask = Simulated(SimulatedSettings(accuracy=0.5))
    outcomes = [await strategy.judge(pair, ask) for pair in PAIRS]
    again = [await strategy.judge(pair, ask) for pair in PAIRS]
    assert outcomes == again
    right = sum(
        isinstance(each, Verdict) and each.winner == pair.label
        for each, pair in zip(outcomes, PAIRS, strict=True)
    )
    assert 12 < right < 40


async def test_an_unreadable_answer_is_mended_when_asked_again() -> None:
    ask = Simulated(SimulatedSettings(accuracy=1.0, garbage_rate=0.3))
    strict = Score(JUDGE, load_rubric("general-en"), repair=False)
    lenient = Score(JUDGE, load_rubric("general-en"))
    unread = [not isinstance(await strict.judge(pair, ask), Verdict) for pair in PAIRS]
    left = [not isinstance(await lenient.judge(pair, ask), Verdict) for pair in PAIRS]
    assert sum(unread) > 2 * sum(left) > 0


async def test_tokens_spell_the_text_and_carry_the_grades() -> None:
    calls: list[Call] = []

    async def ask(call: Call) -> Completion:
        calls.append(call)
        return await Simulated(SimulatedSettings())(call)

    await Score(JUDGE, load_rubric("general-en")).judge(PAIRS[0], ask)
    said = await Simulated(SimulatedSettings())(calls[0])
    assert said.logprobs is not None
    assert "".join(token.token for token in said.logprobs) == said.text
    scores = list(json.loads(said.text)["scores"].values())
    assert [int(token.token) for token in said.logprobs if token.top] == scores
