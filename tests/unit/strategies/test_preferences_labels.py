"""Labels of people: what is used, what is left out and why, and a split that leaks no prompt."""

import random
from typing import Any

import pytest

from dikast.engine.errors import InputError
from dikast.engine.model import BadRow, Pair, Row
from dikast.strategies.preferences import PersonLabels, read_labels, split_labels
from dikast.strategies.preferences.labels import PAIRS_PER_PROMPT


def row(number: int, *, question: str = "", line: int = 1, **more: Any) -> Row:
    fields: dict[str, Any] = {"response_a": f"a {number}", "response_b": f"b {number}"} | more
    return Row(
        item=Pair(id=f"p{number}", question=question or f"q{number}", **fields),
        file="labels.jsonl",
        line=line,
    )


def votes(**said: str) -> dict[str, Any]:
    return {"votes": [{"annotator": who, "label": label} for who, label in said.items()]}


def only(*rows: Row) -> PersonLabels:
    people = read_labels(rows).people
    assert list(people) == ["me"]
    return people["me"]


def test_votes_of_several_people_are_told_apart() -> None:
    book = read_labels(
        [row(1, meta=votes(ann="A", bob="model_b")), row(2, meta=votes(bob="B")), row(3)]
    )
    said = {who: [(e.pair.id, e.winner) for e in own.labels] for who, own in book.people.items()}
    assert said == {"ann": [("p1", "A")], "bob": [("p1", "B"), ("p2", "B")]}
    assert book.unlabelled == 1


def test_a_label_belongs_to_the_annotator_of_its_row_or_to_the_person_named() -> None:
    rows = [row(1, label="A", meta={"annotator": "ann"}), row(2, label="B")]
    assert sorted(read_labels(rows).people) == ["ann", "me"]
    assert sorted(read_labels(rows, person="zoe").people) == ["ann", "zoe"]


def test_ties_repeats_and_identical_answers_are_counted_and_not_used() -> None:
    found = only(
        row(1, label="tie"),
        row(2, label="A"),
        row(2, label="A"),
        row(3, label="A", response_a="same", response_b="same"),
    )
    assert [each.pair.id for each in found.labels] == ["p2"]
    assert (found.ties, found.repeated, found.identical) == (1, 1, 1)


def test_contradictory_labels_are_named_and_neither_is_used_in_whatever_order_they_stand() -> None:
    mirrored = row(7, question="q1", label="A", response_a="b 1", response_b="a 1")
    found = only(row(1, label="A"), mirrored, row(2, label="B"))
    assert found.contradictory == ("p1",)
    assert [each.pair.id for each in found.labels] == ["p2"]
    agreeing = row(7, question="q1", label="B", response_a="b 1", response_b="a 1")
    assert only(row(1, label="A"), agreeing).contradictory == ()


def test_bad_rows_are_told_and_a_vote_that_is_none_names_its_line() -> None:
    bad = Row(item=BadRow(message="no answers"), file="labels.jsonl", line=4)
    assert read_labels([bad, row(1, label="A")]).bad_rows == ("labels.jsonl, line 4: no answers",)
    with pytest.raises(InputError, match=r"labels\.jsonl, line 9, field 'votes': a vote needs"):
        read_labels([row(1, line=9, meta=votes(ann="better"))])


def labelled(prompts: int, each: int, topics: int = 3) -> PersonLabels:
    rows = [
        row(
            100 * prompt + number,
            question=f"prompt {prompt}",
            category=f"topic {prompt % topics}",
            label="A",
        )
        for prompt in range(prompts)
        for number in range(each)
    ]
    return only(*rows)


def test_no_prompt_stands_on_two_sides_and_every_label_is_somewhere() -> None:
    labels = labelled(12, 5).labels
    split = split_labels(labels, pairs=10, seed=1)
    sides = [split.development, split.held_out, split.set_aside]
    assert sorted(e.pair.id for side in sides for e in side) == sorted(e.pair.id for e in labels)
    prompts = {each.group for each in split.development}
    assert prompts.isdisjoint(each.group for each in split.held_out)
    assert {each.group for each in split.set_aside} <= prompts
    assert len(split.development) == 10
    for prompt in prompts:
        assert sum(e.group == prompt for e in split.development) <= PAIRS_PER_PROMPT


def test_topics_take_turns() -> None:
    split = split_labels(labelled(12, 5).labels, pairs=12, seed=1)
    count = {t: sum(e.topic == t for e in split.development) for t in ("topic 0", "topic 1")}
    assert count == {"topic 0": 4, "topic 1": 4}


def test_the_split_depends_on_the_seed_and_not_on_the_order_of_the_rows() -> None:
    labels = list(labelled(12, 2).labels)
    first = split_labels(labels, pairs=8, seed=1)
    random.Random(0).shuffle(labels)
    assert split_labels(labels, pairs=8, seed=1) == first
    assert split_labels(labels, pairs=8, seed=2).development != first.development


def test_a_prompt_under_two_topics_is_not_split() -> None:
    rows = [
        row(number, question="shared", category=topic, label="A")
        for number, topic in enumerate(["x", "x", "y", "y"])
    ]
    split = split_labels(only(*rows).labels, pairs=1, seed=0)
    assert split.held_out == ()
    assert len(split.set_aside) == 3
