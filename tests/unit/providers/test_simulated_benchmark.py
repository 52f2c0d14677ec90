"""Simulated models for building benchmarks: they screen, answer, and compare what they count."""

import json
from typing import Any

import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Call, Judge, Message, Pair
from dikast.providers import (
    SimulatedBenchmarkProvider,
    SimulatedBenchmarkSettings,
    build,
    endpoint_of,
    is_free,
)
from dikast.strategies.benchmark_screen import screen_messages
from dikast.strategies.prompts import load_template

SKILL = {"big": 0.9, "small": 0.2}


async def said(model: str, messages: tuple[Message, ...], **settings: Any) -> str:
    provider = SimulatedBenchmarkProvider(
        SimulatedBenchmarkSettings(skill=SKILL, **settings), SystemClock()
    )
    judge = Judge(name=model, provider="p", model=model)
    reply = await provider.complete(Call(judge=judge, messages=messages, prompt="t"))
    assert provider.simulated
    return reply.completion.text


def asks(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=text),)


async def screened(text: str, **settings: Any) -> tuple[str, str]:
    pair = Pair(id="d", response_a="", response_b="", question=text)
    found = json.loads(await said("chooser", screen_messages(pair, 1), **settings))
    return found["topic"], found["fault"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("anything {topic=Math fault=unclear}", ("Math", "unclear")),
        ("请把这句话翻译成英文：天气很好", ("Translation", "none")),
        ("Why is the sky blue at noon?", ("QA", "none")),
        ("mmm", ("Other", "too_easy")),
        ("set {topic=Code fault=nonsense}", ("Code", "none")),
    ],
)
async def test_markers_decide_and_plain_words_where_there_are_none(
    text: str, wanted: tuple[str, str]
) -> None:
    assert await screened(text) == wanted


async def test_a_screener_that_errs_errs_as_often_as_it_was_told() -> None:
    wrong = 0
    for number in range(300):
        _, fault = await screened(f"case {number} {{topic=QA}}", screen_error_rate=0.2)
        wrong += fault == "unclear"
    assert 35 < wrong < 85


async def compared(request: str, **settings: Any) -> tuple[str, str]:
    """The verdicts in both orders, the big model's answer being A in the first."""
    big, small = [await said(model, asks(request)) for model in ("big", "small")]
    template = load_template("pairwise-en")
    pair = Pair(id="d", response_a=big, response_b=small, question=request)
    plain, turned = [
        json.loads(await said("chooser", template.render(each, 1), **settings))["verdict"]
        for each in (pair, pair.swapped())
    ]
    return plain, turned


@pytest.mark.parametrize(
    ("mark", "wanted"),
    [("{topic=QA}", ("A", "B")), ("{gap=reversed}", ("B", "A")), ("{gap=level}", ("tie", "tie"))],
)
async def test_the_better_answer_is_the_one_of_the_better_model_unless_marked(
    mark: str, wanted: tuple[str, str]
) -> None:
    assert await compared(f"Explain tides. {mark}") == wanted


async def test_a_bias_towards_the_first_answer_shows_in_one_order() -> None:
    assert await compared("Explain tides.", position_bias=50.0) == ("A", "A")


async def test_a_fenced_prompt_it_does_not_know_is_refused_and_garbage_is_no_verdict() -> None:
    prompt = asks("<<<OTHER 00ff00ff00>>>\nx\n<<<END OTHER 00ff00ff00>>>")
    with pytest.raises(ProviderError) as caught:
        await said("chooser", prompt)
    assert caught.value.kind == "bad_request"
    assert "{" not in await said("chooser", prompt, garbage_rate=1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"screen_error_rate": 1.5}, "p.screen_error_rate: must lie between 0 and 1"),
        ({"skill": {"big": 2.0}}, "p.skill.big: must lie between 0 and 1"),
        ({"latency_s": -1.0}, "p.latency_s"),
        ({"position_bias": float("nan")}, "p.position_bias"),
    ],
)
def test_settings_out_of_range_are_named(settings: dict[str, Any], message: str) -> None:
    given = SimulatedBenchmarkSettings(**settings)
    with pytest.raises(ConfigError, match=message):
        build("p", given, clock=SystemClock(), env={})


def test_what_decides_the_words_is_part_of_the_endpoint_and_it_costs_nothing() -> None:
    plain = SimulatedBenchmarkSettings(skill=SKILL)
    assert endpoint_of(plain) == endpoint_of(SimulatedBenchmarkSettings(skill=SKILL, latency_s=1))
    assert endpoint_of(plain) != endpoint_of(SimulatedBenchmarkSettings(skill=SKILL, seed=1))
    assert endpoint_of(plain) != endpoint_of(SimulatedBenchmarkSettings())
    assert is_free(plain)
