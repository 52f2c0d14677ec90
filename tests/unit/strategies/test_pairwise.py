"""One judge, one order: the call that goes out and the vote that comes back."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Call, Completion, Judge, Pair, Params, Prices, Undecided, Verdict
from dikast.strategies import Pairwise, load_template, order_of

MARKER = load_template("pairwise-marker-en")
JUDGE = Judge(name="j", provider="p", model="m")
PAIR = Pair(id="p1", question="Which is even?", response_a="GOOD 2", response_b="BAD 3", label="A")


class Recorder:
    """An Ask that keeps the calls and answers by a function of the call."""

    def __init__(self, answer: Callable[[Call], str], finish: str | None = "stop") -> None:
        self.calls: list[Call] = []
        self._answer = answer
        self._finish = finish

    async def __call__(self, call: Call) -> Completion:
        self.calls.append(call)
        await asyncio.sleep(0)
        return Completion(text=self._answer(call), finish_reason=self._finish)


def prefers_good(call: Call) -> str:
    text = call.messages[-1].content
    return "[[A]]" if text.index("GOOD") < text.index("BAD") else "[[B]]"


@pytest.mark.parametrize("order", ["ab", "ba"])
async def test_the_pick_is_in_terms_of_the_pair_whatever_was_shown_first(order: str) -> None:
    ask = Recorder(prefers_good)
    outcome = await Pairwise(JUDGE, MARKER, order=order).judge(PAIR, ask)  # type: ignore[arg-type]
    assert isinstance(outcome, Verdict)
    assert (outcome.id, outcome.winner, outcome.basis) == ("p1", "A", "single")
    (vote,), (call,) = outcome.votes, ask.calls
    assert (vote.judge, vote.order, vote.pick, vote.key) == ("j", order, "A", call.key())
    assert (vote.finish_reason, vote.text) == ("stop", None)
    assert (call.pair_id, call.order, call.prompt) == ("p1", order, MARKER.id)
    first_is_good = prefers_good(call) == "[[A]]"
    assert first_is_good == (order == "ab")


def test_the_order_is_a_fair_coin_fixed_by_seed_and_id() -> None:
    orders = Counter(order_of(0, f"pair-{n}") for n in range(2000))
    assert 900 < orders["ab"] < 1100
    again = [order_of(0, f"pair-{n}") for n in range(2000)]
    other = [order_of(1, f"pair-{n}") for n in range(2000)]
    assert again == [order_of(0, f"pair-{n}") for n in range(2000)]
    assert 800 < sum(a != b for a, b in zip(again, other, strict=True)) < 1200
    order_of(-5, "lone \ud800 surrogate")


async def test_the_order_does_not_depend_on_what_is_judged_before_or_beside() -> None:
    pairs = [Pair(id=str(n), response_a="GOOD", response_b="BAD") for n in range(40)]
    forward, backward = Recorder(prefers_good), Recorder(prefers_good)
    strategy = Pairwise(JUDGE, MARKER, seed=4)
    await asyncio.gather(*(strategy.judge(pair, forward) for pair in pairs))
    for pair in reversed(pairs):
        await strategy.judge(pair, backward)
    assert {c.pair_id: c.key() for c in forward.calls} == {
        c.pair_id: c.key() for c in backward.calls
    }


@pytest.mark.parametrize(
    ("text", "finish", "why"),
    [
        ("no idea", "stop", "unparsed"),
        ("[[A]] or [[B]]", "stop", "unparsed"),
        ("[[A]]", "length", "truncated"),
        ("[[A]]", "content_filter", "refused"),
    ],
)
async def test_words_without_a_verdict_are_undecided_and_never_a_tie(
    text: str, finish: str, why: str
) -> None:
    outcome = await Pairwise(JUDGE, MARKER).judge(PAIR, Recorder(lambda _: text, finish))
    assert isinstance(outcome, Undecided)
    assert (outcome.why, outcome.votes[0].why, outcome.votes[0].pick) == (why, why, "none")
    assert outcome.detail
    assert outcome.votes[0].finish_reason == finish


async def test_a_tie_is_a_verdict() -> None:
    outcome = await Pairwise(JUDGE, MARKER).judge(PAIR, Recorder(lambda _: "[[C]]"))
    assert isinstance(outcome, Verdict)
    assert outcome.winner == "tie"


async def test_the_judges_words_are_kept_only_when_asked_for() -> None:
    outcome = await Pairwise(JUDGE, MARKER, keep_text=True).judge(PAIR, Recorder(prefers_good))
    assert outcome.votes[0].text in ("[[A]]", "[[B]]")


async def test_a_failed_call_passes_through_as_it_is() -> None:
    async def fails(call: Call) -> Completion:
        raise ProviderError("timeout", "too slow")

    with pytest.raises(ProviderError, match="timeout: too slow"):
        await Pairwise(JUDGE, MARKER).judge(PAIR, fails)


async def test_the_template_is_chosen_by_the_language_of_the_question() -> None:
    both = (load_template("pairwise-en"), load_template("pairwise-zh"))
    ask = Recorder(lambda _: '{"verdict": "tie"}')
    strategy = Pairwise(JUDGE, both)
    await strategy.judge(Pair(id="1", question="哪个更好？", response_a="x", response_b="y"), ask)
    await strategy.judge(
        Pair(id="2", question="Which?", response_a="好的好的", response_b="y"), ask
    )
    assert [call.prompt for call in ask.calls] == [both[1].id, both[0].id]


async def test_the_schema_goes_along_only_in_json_mode() -> None:
    template = load_template("pairwise-en")
    strict = Judge(name="j", provider="p", model="m", params=Params(json_mode=True))
    ask = Recorder(lambda _: '{"verdict": "tie"}')
    await Pairwise(JUDGE, template).judge(PAIR, ask)
    await Pairwise(strict, template).judge(PAIR, ask)
    assert [call.schema for call in ask.calls] == [None, template.schema]


def test_the_spec_names_all_that_decides_and_leaves_prices_out() -> None:
    strategy = Pairwise(JUDGE, MARKER, seed=3, order="ba", sample=2)
    spec = strategy.spec()
    assert spec == {
        "kind": "pairwise",
        "version": "1",
        "judge": spec["judge"],
        "templates": [{"name": MARKER.name, "version": "1", "hash": MARKER.hash}],
        "order": "ba",
        "seed": 3,
        "sample": 2,
    }
    assert spec["judge"]["model"] == "m"
    assert spec["judge"]["params"]["temperature"] == 0.0
    priced = Judge(name="j", provider="p", model="m", prices=Prices(input=1.0))
    assert Pairwise(priced, MARKER, seed=3, order="ba", sample=2).spec() == spec
    warmer = Judge(name="j", provider="p", model="m", params=Params(temperature=1.0))
    assert Pairwise(warmer, MARKER, seed=3, order="ba", sample=2).spec() != spec


def test_a_strategy_that_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one template"):
        Pairwise(JUDGE, ())
    with pytest.raises(ConfigError, match="order = 'aa'"):
        Pairwise(JUDGE, MARKER, order="aa")  # type: ignore[arg-type]
