"""The simulated judge with planted criteria: every prompt of SESSE answered by its character."""

import json
from statistics import mean
from typing import Any

import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError
from dikast.engine.model import Call, Completion, Judge, Message, Pair, Params
from dikast.providers import PlantedCriterion, SimulatedProvider, SimulatedSettings, TruthTable
from tests.unit.providers.calls import pair_of

COUNT = PlantedCriterion(
    name="count",
    condition="the request asks for a number",
    conclusion="gives the number that was asked for",
    applies=0.4,
    skill=0.9,
    blind=0.6,
)
TONE = PlantedCriterion(
    name="tone",
    condition="the request sets a tone of voice",
    conclusion="keeps to the tone that was set",
    applies=0.3,
    skill=0.7,
    na_rate=0.25,
    recall=0.8,
    false_alarm=0.1,
)
PAIRS = [pair_of(number, "A" if number % 2 else "B") for number in range(1500)]
FENCE = "0123456789"


def provider_of(*criteria: PlantedCriterion, **settings: Any) -> SimulatedProvider:
    return SimulatedProvider(
        SimulatedSettings(criteria=criteria, **settings),
        SystemClock(),
        TruthTable.from_pairs(PAIRS),
    )


def call_of(template: str, pair: Pair | None, question: str, *, flip: bool = False) -> Call:
    shown = pair.swapped() if pair is not None and flip else pair
    material = ""
    if shown is not None:
        material = "".join(
            f"<<<{name} {FENCE}>>>\n{text}\n<<<END {name} {FENCE}>>>\n"
            for name, text in (
                ("QUESTION", shown.question),
                ("ANSWER_A", shown.response_a),
                ("ANSWER_B", shown.response_b),
            )
        )
    return Call(
        judge=Judge(name="j", provider="p", model="m", params=Params()),
        messages=(Message(role="user", content=material + question),),
        prompt=f"{template}@1#00000000",
    )


async def said(
    provider: SimulatedProvider, template: str, pair: Pair | None, question: str, **more: Any
) -> str:
    return (await answered(provider, template, pair, question, **more)).text


async def answered(
    provider: SimulatedProvider, template: str, pair: Pair | None, question: str, **more: Any
) -> Completion:
    return (await provider.complete(call_of(template, pair, question, **more))).completion


def asks(criterion: PlantedCriterion, wording: str = "") -> str:
    return f"If {criterion.condition}{wording}, which is better: {criterion.conclusion}?"


async def test_votes_have_the_stated_share_of_na_and_the_stated_skill() -> None:
    provider = provider_of(COUNT, TONE)
    votes = [(pair, await said(provider, "sesse-tier2", pair, asks(TONE))) for pair in PAIRS]
    given = [(pair, vote) for pair, vote in votes if vote != "NA"]
    assert len(given) / len(votes) == pytest.approx(0.3 * 0.75, abs=0.03)
    assert mean(vote == pair.label for pair, vote in given) == pytest.approx(0.7, abs=0.06)


async def test_a_vote_follows_the_answer_and_not_its_place() -> None:
    provider = provider_of(COUNT)
    for pair in PAIRS[:60]:
        shown = await said(provider, "sesse-tier2", pair, asks(COUNT))
        turned = await said(provider, "sesse-tier2", pair, asks(COUNT), flip=True)
        assert turned == {"A": "B", "B": "A", "NA": "NA"}[shown]


async def test_wordings_are_voted_on_apart_unless_they_share_an_opinion() -> None:
    for shared, alike in ((0.0, 0.82), (1.0, 1.0)):
        told = PlantedCriterion(
            **{f: getattr(COUNT, f) for f in COUNT.__struct_fields__ if f != "shared"},
            shared=shared,
        )
        provider = provider_of(told)
        both = [
            [await said(provider, "sesse-tier2", pair, asks(told, word)) for word in ("", " too")]
            for pair in PAIRS
        ]
        held = [votes for votes in both if votes[0] != "NA"]
        assert all(votes[1] != "NA" for votes in held)
        assert mean(one == two for one, two in held) == pytest.approx(alike, abs=0.04)


async def test_the_holistic_judgement_is_blind_where_it_was_planted() -> None:
    provider = provider_of(COUNT, accuracy=0.95)
    form = 'Answer with JSON: {"verdict": ...}'
    wrong: dict[bool, list[bool]] = {True: [], False: []}
    for pair in PAIRS:
        holds = await said(provider, "sesse-tier2", pair, asks(COUNT)) != "NA"
        verdict = json.loads(await said(provider, "sesse-holistic", pair, form))["verdict"]
        wrong[holds].append(verdict != pair.label)
    assert mean(wrong[True]) == pytest.approx(0.6, abs=0.05)
    assert mean(wrong[False]) == pytest.approx(0.05, abs=0.02)


async def test_tier_1_finds_what_holds_with_the_stated_misses_and_false_alarms() -> None:
    provider = provider_of(COUNT, TONE)
    form = f"1. {COUNT.condition}\n2. {TONE.condition}\n3. the request is something else\n"
    found = [json.loads(await said(provider, "sesse-tier1", pair, form)) for pair in PAIRS]
    assert mean(1 in each for each in found) == pytest.approx(0.4, abs=0.03)
    assert mean(2 in each for each in found) == pytest.approx(0.3 * 0.8 + 0.7 * 0.1, abs=0.03)
    assert not any(3 in each for each in found)


async def test_drafts_speak_of_what_holds_in_many_wordings() -> None:
    provider = provider_of(COUNT)
    drafts = [
        json.loads(await said(provider, "sesse-draft", pair, "Write at most 2 questions as JSON."))
        for pair in PAIRS[:200]
    ]
    written = [each for draft in drafts for each in draft]
    assert {len(draft) for draft in drafts} == {0, 2}
    assert all(COUNT.condition in each["condition"] for each in written)
    assert len({each["condition"] + each["conclusion"] for each in written}) > 40


async def test_clauses_are_summarised_and_told_apart() -> None:
    provider = provider_of(COUNT, TONE)
    listed = f"- {COUNT.condition} x\n- {TONE.condition} y\n- {COUNT.condition} z"
    assert await said(provider, "sesse-summarise", None, listed) == COUNT.condition
    same = await said(provider, "sesse-equivalence", None, f"{COUNT.condition} / {COUNT.condition}")
    other = await said(provider, "sesse-equivalence", None, f"{COUNT.condition} / {TONE.condition}")
    assert (same, other) == ("yes", "no")


async def test_a_batch_is_answered_question_by_question_and_the_material_is_cached() -> None:
    provider = provider_of(COUNT, TONE)
    batch = f"1. {asks(COUNT)}\n2. {asks(TONE)}"
    for pair in PAIRS[:20]:
        completion = await answered(provider, "sesse-tier2-batch", pair, batch)
        votes = json.loads(completion.text)
        assert votes["1"] == await said(provider, "sesse-tier2", pair, asks(COUNT))
        assert votes["2"] == await said(provider, "sesse-tier2", pair, asks(TONE))
        assert 0 < completion.usage.cached_input < completion.usage.input


async def test_other_prompts_and_judges_without_criteria_answer_as_before() -> None:
    form = "Analyse first, then end with [[A]], [[B]] or [[C]]."
    plain, planted = provider_of(), provider_of(COUNT)
    for pair in PAIRS[:10]:
        text = await said(plain, "pairwise-en", pair, form)
        assert await said(planted, "pairwise-en", pair, form) == text
        assert text.endswith("]]")


def test_bad_criteria_are_told_by_their_place() -> None:
    with pytest.raises(ConfigError, match=r"criteria\[0\]\.skill: must lie between 0 and 1"):
        provider_of(PlantedCriterion(name="x", condition="c", conclusion="d", skill=1.5))
    with pytest.raises(ConfigError, match="is there twice"):
        provider_of(COUNT, COUNT)
