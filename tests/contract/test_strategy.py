"""What every strategy promises: the Strategy port's contract, tried on each of them."""

import asyncio
import json
import re
from collections.abc import Callable

import pytest

from dikast.commands.anchors_lane import Corrected
from dikast.engine.errors import ProviderError, RunStopped
from dikast.engine.model import (
    Call,
    Completion,
    Judge,
    Outcome,
    Pair,
    Undecided,
    Verdict,
    flip_pick,
    flip_winner,
)
from dikast.engine.ports import Strategy
from dikast.strategies import Loaders, build, length_guard, parse_strategy, preset
from dikast.strategies.preferences import Entry, Preference, Profile, WrittenWith

JUDGES = {"j": Judge(name="j", provider="p", model="m")}


def _preset(name: str) -> Strategy:
    return build(preset(name, "j"), JUDGES, seed=9)


STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "single": lambda: _preset("single"),
    "swap": lambda: _preset("swap"),
    "score": lambda: _preset("score"),
    "length_guard": lambda: length_guard(_preset("swap"), strip=True),
    "corrected": lambda: Corrected(_preset("swap"), "affine", {"set": "s", "baseline": "b"}),
}
MODEL = WrittenWith(name="j", model="m", prompt="p")
PROFILE = Profile(
    person="ann",
    judge=MODEL,
    writer=MODEL,
    entries=(
        Entry(
            preferences=tuple(
                Preference(id=f"p{n}", text=f"Prefers number {n}.", weight=n) for n in (1.0, 2.0)
            )
        ),
    ),
)


def _preferences(early_stop: bool) -> Strategy:
    node = {"kind": "preferences", "judge": "j", "profile": "p.json", "early_stop": early_stop}
    load = Loaders(profile=lambda path: PROFILE)
    return build(parse_strategy(node), JUDGES, seed=9, loaders=load)


STRATEGIES["preferences"] = lambda: _preferences(False)
STRATEGIES["preferences, early stop"] = lambda: _preferences(True)
PAIRS = [
    Pair(
        id=f"id {n} 号",
        question="Which number is larger?",
        response_a=f"value {n}",
        response_b=f"value {19 - n}",
        label="A" if n > 9 else "B",
    )
    for n in range(20)
]

pytestmark = pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES.keys())


async def sound(call: Call) -> Completion:
    """A judge without bias: the larger number is better; slower for some pairs than others."""
    await asyncio.sleep(len(call.key().strip("0123456789")) / 10)
    shown = [int(each) for each in re.findall(r"value (\d+)", call.messages[-1].content)]
    if len(shown) == 1:  # an answer by itself: a point more in one of the dimensions for each
        whole, rest = divmod(shown[0], 4)
        names = ("accuracy", "completeness", "safety", "clarity")
        scores = {name: whole + (at < rest) for at, name in enumerate(names)}
        return Completion(text=json.dumps({"reasoning": "r", "scores": scores}))
    first, second = shown
    return Completion(text=json.dumps({"analysis": "", "verdict": "A" if first > second else "B"}))


async def test_name_has_a_version_and_spec_is_plain_data_that_does_not_change(
    make: Callable[[], Strategy],
) -> None:
    strategy = make()
    assert re.fullmatch(r"[a-z_]+@[\w.]+", strategy.name)
    assert json.loads(json.dumps(strategy.spec())) == strategy.spec()
    before = strategy.spec()
    await strategy.judge(PAIRS[0], sound)
    assert strategy.spec() == before == make().spec()


async def test_a_sound_judge_gives_the_truth_for_every_pair(make: Callable[[], Strategy]) -> None:
    for pair in PAIRS:
        outcome = await make().judge(pair, sound)
        assert isinstance(outcome, Verdict)
        assert (outcome.id, outcome.winner) == (pair.id, pair.label)
        assert all(vote.pick == pair.label for vote in outcome.votes)


async def test_the_outcome_does_not_depend_on_concurrency_or_arrival(
    make: Callable[[], Strategy],
) -> None:
    strategy = make()
    alone: list[Outcome] = [await make().judge(pair, sound) for pair in PAIRS]
    together = await asyncio.gather(*(strategy.judge(pair, sound) for pair in reversed(PAIRS)))
    assert list(reversed(together)) == alone


async def test_the_mirrored_pair_gives_the_mirrored_outcome(make: Callable[[], Strategy]) -> None:
    for pair in PAIRS:
        outcome, mirrored = (
            await make().judge(pair, sound),
            await make().judge(pair.swapped(), sound),
        )
        assert isinstance(outcome, Verdict)
        assert isinstance(mirrored, Verdict)
        assert mirrored.winner == flip_winner(outcome.winner)
        assert mirrored.basis == outcome.basis
        assert [vote.pick for vote in mirrored.votes] == [
            flip_pick(vote.pick) for vote in outcome.votes
        ]


async def test_every_call_names_its_pair_and_every_vote_its_call(
    make: Callable[[], Strategy],
) -> None:
    calls: list[Call] = []

    async def ask(call: Call) -> Completion:
        calls.append(call)
        return await sound(call)

    outcome = await make().judge(PAIRS[3], ask)
    assert {call.pair_id for call in calls} == {PAIRS[3].id}
    behind = [key for vote in outcome.votes for key in vote.keys or (vote.key,)]
    assert sorted(map(str, behind)) == sorted(call.key() for call in calls)
    orders = {call.key(): call.order for call in calls}
    assert all(orders[str(vote.key)] == vote.order for vote in outcome.votes)


async def test_the_label_never_reaches_a_judge(make: Callable[[], Strategy]) -> None:
    keys: list[set[str]] = []
    for label in ("A", "B", "tie", None):
        seen: set[str] = set()

        async def ask(call: Call, seen: set[str] = seen) -> Completion:
            seen.add(call.key())
            return await sound(call)

        await make().judge(
            Pair(id="x", response_a="value 1", response_b="value 2", label=label),
            ask,
        )
        keys.append(seen)
    assert keys[0] == keys[1] == keys[2] == keys[3]


async def test_unreadable_answers_are_undecided(make: Callable[[], Strategy]) -> None:
    async def ask(call: Call) -> Completion:
        return Completion(text="\ud800 {{{ no verdict [[A]] here")

    outcome = await make().judge(PAIRS[0], ask)
    assert isinstance(outcome, Undecided)
    assert outcome.why in ("unparsed", "no_quorum")
    assert all(vote.pick == "none" for vote in outcome.votes)


@pytest.mark.parametrize(
    "error", [ProviderError("refused", "no"), RunStopped("quota", "empty")], ids=["call", "run"]
)
async def test_errors_pass_through_as_they_are_and_leave_no_task(
    make: Callable[[], Strategy], error: Exception
) -> None:
    async def ask(call: Call) -> Completion:
        await asyncio.sleep(1)
        raise error

    with pytest.raises(type(error)) as caught:
        await make().judge(PAIRS[0], ask)
    # One of several members that fail says beside it what the others said.
    assert (type(caught.value), str(caught.value)) == (type(error), str(error))


async def test_cancellation_passes_through_and_leaves_no_task(
    make: Callable[[], Strategy],
) -> None:
    async def ask(call: Call) -> Completion:
        await asyncio.sleep(1000)
        raise AssertionError

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await make().judge(PAIRS[0], ask)
