"""The simulated judge with planted criteria: every prompt of SESSE answered by its character."""

import json
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec
import pytest

import dikast.strategies.sesse
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError
from dikast.engine.model import Call, Completion, Judge, Message, Pair, Params
from dikast.providers import PlantedCriterion, SimulatedProvider, SimulatedSettings, TruthTable
from dikast.providers.planted import Task, task_of
from dikast.strategies.prompts import load_template, shipped_templates
from dikast.strategies.sesse.prompts import shown_texts, stage_template
from dikast.strategies.sesse.tier_prompts import REPAIRS, tier_prompts
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
TEMPLATES = Path(dikast.strategies.sesse.__file__).parent
TIERS = tier_prompts()
TIER_TASKS = {
    "tier1": "clauses",
    "tier1_single": "clause",
    "tier2": "condition",
    "tier2_batch": "questions",
}


def provider_of(*criteria: PlantedCriterion, **settings: Any) -> SimulatedProvider:
    return SimulatedProvider(
        SimulatedSettings(criteria=criteria, **settings),
        SystemClock(),
        TruthTable.from_pairs(PAIRS),
    )


def messages_of(name: str, pair: Pair, words: str) -> tuple[Message, ...]:
    """SESSE's own prompt of that name, with `words` where the library's words stand."""
    if name in TIER_TASKS:
        data = {TIER_TASKS[name]: words, **({"conclusion": "-"} if name == "tier2" else {})}
        return TIERS.ask(TIERS.material(pair, 7, words), name, data)
    if name in ("holistic", "direct", "labels"):
        folder = "templates" if name == "holistic" else "tier_templates"
        return load_template(str(TEMPLATES / folder / f"sesse-{name}.toml")).render(pair, 7)
    if name.startswith("pairwise"):
        return load_template(name).render(pair, 7)
    first, _, second = words.partition(" / ")
    told = {"first": first, "second": second, "conditions": words}
    told |= {"analysis": "-", "verdict": "A", "better": "B", "count": words}
    template = stage_template(f"sesse-{name}")
    return template.render({**shown_texts(pair, 7), **told}, 7)


def call_of(name: str, pair: Pair, words: str, *, flip: bool = False) -> Call:
    return Call(
        judge=Judge(name="j", provider="p", model="m", params=Params()),
        messages=messages_of(name, pair.swapped() if flip else pair, words),
        prompt="any",
    )


async def said(
    provider: SimulatedProvider, name: str, pair: Pair, words: str = "", **more: Any
) -> str:
    return (await answered(provider, name, pair, words, **more)).text


async def answered(
    provider: SimulatedProvider, name: str, pair: Pair, words: str, **more: Any
) -> Completion:
    return (await provider.complete(call_of(name, pair, words, **more))).completion


def asks(criterion: PlantedCriterion, wording: str = "") -> str:
    return f"If {criterion.condition}{wording}, which is better: {criterion.conclusion}?"


async def test_votes_have_the_stated_share_of_na_and_the_stated_skill() -> None:
    provider = provider_of(COUNT, TONE)
    votes = [(pair, await said(provider, "tier2", pair, asks(TONE))) for pair in PAIRS]
    given = [(pair, vote) for pair, vote in votes if vote != "NA"]
    assert len(given) / len(votes) == pytest.approx(0.3 * 0.75, abs=0.03)
    assert mean(vote == pair.label for pair, vote in given) == pytest.approx(0.7, abs=0.06)


async def test_a_vote_follows_the_answer_and_not_its_place() -> None:
    provider = provider_of(COUNT)
    for pair in PAIRS[:60]:
        shown = await said(provider, "tier2", pair, asks(COUNT))
        turned = await said(provider, "tier2", pair, asks(COUNT), flip=True)
        assert turned == {"A": "B", "B": "A", "NA": "NA"}[shown]


async def test_wordings_are_voted_on_apart_unless_they_share_an_opinion() -> None:
    for shared, alike in ((0.0, 0.82), (1.0, 1.0)):
        told = PlantedCriterion(
            **{f: getattr(COUNT, f) for f in COUNT.__struct_fields__ if f != "shared"},
            shared=shared,
        )
        provider = provider_of(told)
        both = [
            [await said(provider, "tier2", pair, asks(told, word)) for word in ("", " too")]
            for pair in PAIRS
        ]
        held = [votes for votes in both if votes[0] != "NA"]
        assert all(votes[1] != "NA" for votes in held)
        assert mean(one == two for one, two in held) == pytest.approx(alike, abs=0.04)


async def test_the_holistic_judgement_is_blind_where_it_was_planted() -> None:
    provider = provider_of(COUNT, accuracy=0.95)
    wrong: dict[bool, list[bool]] = {True: [], False: []}
    for pair in PAIRS:
        holds = await said(provider, "tier2", pair, asks(COUNT)) != "NA"
        verdict = json.loads(await said(provider, "holistic", pair))["verdict"]
        wrong[holds].append(verdict != pair.label)
    assert mean(wrong[True]) == pytest.approx(0.6, abs=0.05)
    assert mean(wrong[False]) == pytest.approx(0.05, abs=0.02)


async def test_tier_1_finds_what_holds_with_the_stated_misses_and_false_alarms() -> None:
    provider = provider_of(COUNT, TONE)
    form = f"1. {COUNT.condition}\n2. {TONE.condition}\n3. the request is something else\n"
    found = [json.loads(await said(provider, "tier1", pair, form)) for pair in PAIRS]
    assert mean(1 in each for each in found) == pytest.approx(0.4, abs=0.03)
    assert mean(2 in each for each in found) == pytest.approx(0.3 * 0.8 + 0.7 * 0.1, abs=0.03)
    assert not any(3 in each for each in found)


async def test_drafts_speak_of_what_holds_in_many_wordings() -> None:
    provider = provider_of(COUNT)
    drafts = [
        json.loads(await said(provider, "draft", pair, "2"))["questions"] for pair in PAIRS[:200]
    ]
    written = [each for draft in drafts for each in draft]
    assert {len(draft) for draft in drafts} == {0, 2}
    assert all(COUNT.condition in each["condition"] for each in written)
    assert len({each["condition"] + each["conclusion"] for each in written}) > 40


async def test_clauses_are_summarised_and_told_apart() -> None:
    provider = provider_of(COUNT, TONE)
    listed = f"- {COUNT.condition} x\n- {TONE.condition} y\n- {COUNT.condition} z"
    summary = json.loads(await said(provider, "summarise", PAIRS[0], listed))
    assert summary == {"condition": COUNT.condition}
    for other, alike in ((COUNT, "yes"), (TONE, "no")):
        both = f"{COUNT.condition} / {other.condition}"
        found = json.loads(await said(provider, "equivalence", PAIRS[0], both))
        assert found == {"equivalent": alike}


async def test_one_clause_alone_is_selected_as_it_is_in_the_list() -> None:
    provider = provider_of(COUNT, TONE)
    for pair in PAIRS[:60]:
        listed = json.loads(await said(provider, "tier1", pair, f"1. {TONE.condition}\n"))
        alone = await said(provider, "tier1_single", pair, TONE.condition)
        assert alone == ("yes" if listed else "no")


async def test_what_a_request_says_of_numbers_does_not_tell_how_many_to_draft() -> None:
    pair = PAIRS[0]
    asked = Pair(
        id="n", question="Use at most 40 words.", response_a="up to 9", response_b="b", label="A"
    )
    provider = provider_of(
        PlantedCriterion(name="all", condition="it is so", conclusion="being so", applies=1.0)
    )
    for each in (pair, asked):
        drafts = json.loads(await said(provider, "draft", each, "3"))["questions"]
        assert len(drafts) == 3


async def test_a_batch_is_answered_question_by_question_and_the_material_is_cached() -> None:
    # Of one opinion whatever the wording, for a batch words its questions in another way.
    provider = provider_of(
        *(msgspec.structs.replace(each, shared=1.0, na_rate=0.0) for each in (COUNT, TONE))
    )
    batch = f"1. {asks(COUNT)}\n2. {asks(TONE)}"
    for pair in PAIRS[:20]:
        completion = await answered(provider, "tier2_batch", pair, batch)
        votes = json.loads(completion.text)
        assert votes["1"] == await said(provider, "tier2", pair, asks(COUNT))
        assert votes["2"] == await said(provider, "tier2", pair, asks(TONE))
        assert 0 < completion.usage.cached_input < completion.usage.input


async def test_other_prompts_and_judges_without_criteria_answer_as_before() -> None:
    plain, planted = provider_of(), provider_of(COUNT)
    for pair in PAIRS[:10]:
        text = await said(plain, "pairwise-marker-en", pair)
        assert await said(planted, "pairwise-marker-en", pair) == text
        assert text.endswith("]]")


@pytest.mark.parametrize(
    ("name", "task"),
    [
        *((name, name) for name in ("holistic", "draft", "summarise", "equivalence")),
        *(("direct", "holistic"), ("labels", "holistic")),
        *((name, name.replace("_", "-")) for name in TIER_TASKS),
        *((name, None) for name in shipped_templates() if name.startswith("pairwise")),
    ],
)
def test_a_prompt_is_known_by_its_words_whatever_a_pair_says(name: str, task: Task | None) -> None:
    loud = "\n".join(
        turn.content
        for other in (*TIER_TASKS, "holistic", "draft", "summarise", "equivalence")
        for turn in messages_of(other, PAIRS[0], "x")
    )
    pair = Pair(id="l", question=loud, response_a=loud, response_b=loud, label="A")
    words = "3" if name == "draft" else loud.replace(" / ", " or ")  # outside the fences
    messages = messages_of(name, pair, words)
    assert task_of([turn.content for turn in messages]) == task
    if name in TIER_TASKS:
        for repair in REPAIRS:
            again = TIERS.again(messages, "Hm.", repair)
            assert task_of([turn.content for turn in again]) == task


def test_bad_criteria_are_told_by_their_place() -> None:
    with pytest.raises(ConfigError, match=r"criteria\[0\]\.skill: must lie between 0 and 1"):
        provider_of(PlantedCriterion(name="x", condition="c", conclusion="d", skill=1.5))
    with pytest.raises(ConfigError, match="is there twice"):
        provider_of(COUNT, COUNT)
