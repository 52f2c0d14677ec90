"""The length guard: the clause in every prompt or in none, stripped answers, and the record."""

import json

import pytest

from dikast.engine.errors import ProviderError
from dikast.engine.model import (
    Call,
    Completion,
    Item,
    Judge,
    LengthGuard,
    Message,
    Pair,
    Scored,
    Verdict,
)
from dikast.strategies import (
    Pairwise,
    Score,
    build,
    committee,
    length_guard,
    load_rubric,
    load_template,
    parse_strategy,
    parse_template,
    repeat,
    shipped_rubrics,
    shipped_templates,
    swap,
)
from dikast.strategies.length_guard import ADDED_EN, ADDED_ZH, DECLARED, with_clause, without
from tests.unit.strategies.panels import Desk, Told

JUDGE = Judge(name="j", provider="p", model="m")
PAIR = Pair(
    id="p",
    question="What is 2 + 2?",
    response_a="Hello! It is 4.",
    response_b="It is 5. I hope this helps!",
)
OWN = parse_template("""
name = "own"
version = "1"
language = "en"
[reader]
kind = "marker"
[[messages]]
role = "user"
content = "Which is better? {{question}} {{answer_a}} {{answer_b}}"
""")


class Asked:
    """An Ask that prefers the first answer shown, and remembers the calls."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    async def __call__(self, call: Call) -> Completion:
        self.calls.append(call)
        return Completion(
            text='{"analysis": "", "verdict": "A"}' if len(call.messages) > 1 else "[[A]]"
        )


def systems(calls: list[Call]) -> list[str]:
    return [m.content for call in calls for m in call.messages if m.role == "system"]


# A person may like short answers or long ones, so the templates that ask for it declare nothing.
@pytest.mark.parametrize(
    "name", [name for name in shipped_templates() if not name.startswith("preference-")]
)
async def test_every_shipped_template_declares_the_clause_and_can_be_asked_without_it(
    name: str,
) -> None:
    template, plain, off = load_template(name), Asked(), Asked()
    await Pairwise(JUDGE, template).judge(PAIR, plain)
    declared = await length_guard(Pairwise(JUDGE, template)).judge(PAIR, ask := Asked())
    assert ask.calls == plain.calls
    assert declared.length_guard == LengthGuard(clause="declared")
    outcome = await length_guard(Pairwise(JUDGE, template), clause=False).judge(PAIR, off)
    assert outcome.length_guard == LengthGuard(clause="removed")
    assert not any(said in text for text in systems(off.calls) for said, _ in DECLARED)
    assert "Length" not in "".join(systems(off.calls))
    assert "长短" not in "".join(systems(off.calls))
    assert off.calls[0].prompt == f"{plain.calls[0].prompt}-length"
    assert off.calls[0].key() != plain.calls[0].key()
    # What says how to read the material is still there.
    assert len("".join(systems(off.calls))) > 0.8 * len("".join(systems(plain.calls)))


@pytest.mark.parametrize("name", shipped_rubrics())
async def test_every_scoring_prompt_declares_it_too(name: str) -> None:
    ask, off = Asked(), Asked()
    item = Item(id="i", question="q", response="r")
    strategy = Score(JUDGE, load_rubric(name), repair=False)
    declared = await length_guard(strategy).judge_item(item, ask)
    removed = await length_guard(strategy, clause=False).judge_item(item, off)
    assert declared.length_guard == LengthGuard(clause="declared")
    assert removed.length_guard == LengthGuard(clause="removed")
    assert len(systems(off.calls)[0]) < len(systems(ask.calls)[0])


async def test_a_prompt_of_ones_own_gets_the_clause_and_says_so_in_its_key() -> None:
    ask = Asked()
    outcome = await length_guard(Pairwise(JUDGE, OWN)).judge(PAIR, ask)
    assert outcome.length_guard == LengthGuard(clause="added")
    (call,) = ask.calls
    assert call.messages[0] == Message(role="system", content=ADDED_EN)
    assert call.prompt.endswith("+length")
    assert outcome.votes[0].key == call.key()
    none = await length_guard(Pairwise(JUDGE, OWN), clause=False).judge(PAIR, Asked())
    assert none.length_guard == LengthGuard(clause="absent")


def test_the_clause_is_added_in_the_language_and_to_the_system_message_that_is_there() -> None:
    system = Message(role="system", content="请比较两个回答。")
    messages, did = with_clause((system, Message(role="user", content="...")))
    assert did == "added"
    assert [m.content for m in messages] == [f"请比较两个回答。\n\n{ADDED_ZH}", "..."]
    planted = Message(role="user", content=DECLARED[0][0])
    assert with_clause((planted,))[1] == "added"
    assert without((planted,)) == ((planted,), "absent")


async def test_answers_are_shown_without_boilerplate_and_the_outcome_says_what_was_taken() -> None:
    ask = Asked()
    outcome = await length_guard(swap(Pairwise(JUDGE, OWN)), strip=True).judge(PAIR, ask)
    shown = [call.messages[-1].content for call in ask.calls]
    assert all("It is 4." in text and "It is 5." in text for text in shown)
    assert not any("Hello" in text or "hope" in text for text in shown)
    assert outcome.length_guard == LengthGuard(
        clause="added", removed_a={"greeting": 7}, removed_b={"closing_offer": 19}
    )
    assert PAIR.response_a == "Hello! It is 4."
    untouched = await length_guard(swap(Pairwise(JUDGE, OWN))).judge(PAIR, Asked())
    assert untouched.length_guard == LengthGuard(clause="added")


async def test_what_was_taken_keeps_its_side_inside_a_swap_and_in_members_and_samples() -> None:
    guarded = length_guard(Pairwise(JUDGE, OWN), strip=True)
    wanted = LengthGuard(clause="added", removed_a={"greeting": 7}, removed_b={"closing_offer": 19})
    for strategy in (swap(guarded), committee([guarded, guarded]), repeat(guarded, 2)):
        outcome = await strategy.judge(PAIR, Asked())
        assert outcome.length_guard == wanted, strategy
    told = await length_guard(Told("A"), strip=True).judge(PAIR.swapped(), Desk())
    assert isinstance(told, Verdict)
    assert told.unswapped().length_guard is not None
    assert told.unswapped().length_guard.removed_a == {"greeting": 7}  # type: ignore[union-attr]


async def test_an_item_is_stripped_and_scored() -> None:
    strategy = length_guard(Score(JUDGE, load_rubric("general-en")), strip=True)
    asked: list[Call] = []

    async def ask(call: Call) -> Completion:
        asked.append(call)
        names = ("accuracy", "completeness", "safety", "clarity")
        return Completion(text=json.dumps({"reasoning": "r", "scores": dict.fromkeys(names, 5)}))

    item = Item(id="i", question="q", response="你好！答案是4。")
    assert strategy.takes_items()
    outcome = await strategy.judge_item(item, ask)
    assert isinstance(outcome, Scored)
    assert outcome.length_guard == LengthGuard(clause="declared", removed_a={"greeting": 3})
    assert "你好" not in asked[0].messages[-1].content
    assert not length_guard(Told("A")).takes_items()


async def test_errors_pass_and_the_settings_are_part_of_the_spec() -> None:
    with pytest.raises(ProviderError):
        await length_guard(Told("timeout")).judge(PAIR, Desk())
    specs = [
        length_guard(Told("A"), clause=clause, strip=strip).spec()
        for clause in (True, False)
        for strip in (True, False)
    ]
    assert len({json.dumps(spec) for spec in specs}) == 4
    tree = {"kind": "length_guard", "strip": True, "inner": {"kind": "pairwise", "judge": "j"}}
    built = build(parse_strategy(tree), {"j": JUDGE}, seed=0)
    assert built.spec()["strip"] == "1"
    assert built.name == "length_guard@1"
