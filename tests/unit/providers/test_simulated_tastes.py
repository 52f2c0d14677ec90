"""The simulated judge that heeds preferences, and the simulated writer that finds them."""

import asyncio
import json

import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Call, Judge, Message
from dikast.providers import SimulatedTastesProvider, SimulatedTastesSettings, endpoint_of
from dikast.providers.simulated_tastes import TRAITS, sentence_for, weights_in, weights_of

JUDGE = Judge(name="t", provider="tastes", model="reader")
SHORT, LONG = "Yes, it is.", "Yes, " + "because of that and of this " * 20
LISTED = "Two things\n- one\n- two\n- three\n- four"


def provider_of(**settings: object) -> SimulatedTastesProvider:
    return SimulatedTastesProvider(
        SimulatedTastesSettings(**settings),  # type: ignore[arg-type]
        SystemClock(),
    )


def fenced(**pieces: str) -> Call:
    blocks = [f"<<<{n} 00ff00ff00>>>\n{t}\n<<<END {n} 00ff00ff00>>>" for n, t in pieces.items()]
    prompt = "\n".join(blocks)
    return Call(judge=JUDGE, messages=(Message(role="user", content=prompt),), prompt="p")


async def verdict(first: str, second: str, told: str = "", **settings: object) -> str:
    pieces = {"PREFERENCES": told} if told else {}
    call = fenced(**pieces, ANSWER_A=first, ANSWER_B=second)
    reply = await provider_of(**settings).complete(call)
    found: str = json.loads(reply.completion.text)["verdict"]
    return found


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ("Prefers brief, concise answers.", SHORT),
        ("Prefers detailed, thorough answers.", LONG),
        ("", LONG),
    ],
)
async def test_it_picks_what_the_preference_asks_for_in_both_orders(told: str, wanted: str) -> None:
    for first, second in ((SHORT, LONG), (LONG, SHORT)):
        expected = "A" if first == wanted else "B"
        assert await verdict(first, second, told, noise=0.0) == expected


async def test_another_preference_is_another_trait() -> None:
    told = "Prefers structured answers with lists and headings."
    assert await verdict(LISTED, LONG, told, noise=0.0) == "A"


async def test_every_sentence_that_the_writer_knows_is_understood_by_the_judge() -> None:
    for at in range(len(TRAITS)):
        for sign in (1.0, -1.0):
            weights = [0.0] * len(TRAITS)
            weights[at] = sign
            assert weights_in(sentence_for(weights)) == tuple(weights)


async def test_the_writer_names_what_tells_the_taken_answer_and_thinks_aloud_before() -> None:
    for chosen, rejected, word in ((SHORT, LONG, "brief"), (LONG, SHORT, "thorough")):
        call = fenced(REQUEST="Is it?", CHOSEN=chosen, REJECTED=rejected)
        text = (await provider_of().complete(call)).completion.text
        assert text.startswith("<think>")
        assert word in text.partition("</think>")[2]


async def test_choices_shown_as_examples_are_heeded_too() -> None:
    inner = fenced(CHOSEN_1=SHORT, REJECTED_1=LONG).messages[0].content
    call = fenced(EXAMPLES=inner.replace("00ff00ff00", "11ee11ee11"), ANSWER_A=SHORT, ANSWER_B=LONG)
    text = (await provider_of(noise=0.0).complete(call)).completion.text
    assert json.loads(text)["verdict"] == "A"


async def test_a_strong_position_bias_takes_the_first_whatever_it_is() -> None:
    for first, second in ((SHORT, LONG), (LONG, SHORT)):
        assert await verdict(first, second, position_bias=50.0) == "A"


async def test_answers_depend_on_the_call_alone_and_garbage_comes_as_often_as_set() -> None:
    calls = [fenced(ANSWER_A=f"{n} {SHORT}", ANSWER_B=LONG) for n in range(200)]
    provider = provider_of(noise=5.0, garbage_rate=0.3)
    once = [(await provider.complete(call)).completion.text for call in calls]
    again = await asyncio.gather(*(provider.complete(call) for call in reversed(calls)))
    assert [reply.completion.text for reply in reversed(again)] == once
    assert 0.2 < sum("verdict" not in text for text in once) / 200 < 0.4


async def test_a_prompt_without_answers_is_refused() -> None:
    with pytest.raises(ProviderError, match="no two answers"):
        await provider_of().complete(fenced(QUESTION="?"))


def test_settings_out_of_range_are_named_and_only_the_character_is_part_of_a_call() -> None:
    with pytest.raises(ConfigError, match="garbage_rate: must lie between 0 and 1"):
        provider_of(garbage_rate=2)
    with pytest.raises(ConfigError, match="noise: must be a number"):
        provider_of(noise=-1.0)
    first = endpoint_of(SimulatedTastesSettings())
    assert endpoint_of(SimulatedTastesSettings(latency_s=3.0)) == first
    assert endpoint_of(SimulatedTastesSettings(noise=0.1)) != first


def test_traits_of_several_choices_are_their_mean() -> None:
    both = weights_of([(SHORT, LONG), (LONG, SHORT)])
    assert both == pytest.approx((0.0,) * len(TRAITS))
