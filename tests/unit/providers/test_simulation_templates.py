"""The simulated judge reads what the shipped prompt templates write."""

import json

import pytest

from dikast.engine.model import Message, Pair
from dikast.providers.simulation import SimulatedSettings, answer
from dikast.providers.truth import TruthTable
from dikast.strategies.prompts import load_template, shipped_templates

MARKS = {"A": "[[A]]", "B": "[[B]]", "tie": "[[C]]"}


@pytest.mark.parametrize("name", shipped_templates())
def test_every_shipped_template_is_understood_and_answered_in_its_form(name: str) -> None:
    template = load_template(name)
    judge = SimulatedSettings(accuracy=1)
    turns = tuple(
        Message(role=role, content=text)
        for role, text in (("user", "Hello"), ("assistant", "Hi"), ("user", "Is it?"))
    )
    single = Pair(id="1", question="Is it?", response_a="Yes", response_b="No", label="B")
    other = Pair(id="2", question="Else?", response_a="Yes", response_b="No", label="A")
    several = Pair(id="3", messages=turns, response_a="Yes", response_b="No", label="A")
    truth = TruthTable.from_pairs([single, other, several])
    for pair in (single, other, several):
        for shown in (pair, pair.swapped()):
            contents = [turn.content for turn in template.render(shown, 7)]
            said = answer(judge, truth, "m", contents)
            if template.schema is not None:
                assert json.loads(said.text)["verdict"] == shown.label
            else:
                assert shown.label
                assert said.text.endswith(MARKS[shown.label])
