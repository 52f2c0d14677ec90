"""The format table: what each format's fields become, and how formats are recognised."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dikast.engine.errors import InputError
from dikast.engine.formats import FORMATS, detect, map_rows
from dikast.engine.model import BadRow, Item, Message, Pair
from dikast.engine.sources import FileSource


def only(name: str, obj: Any) -> Pair:
    (item,) = map_rows(name, obj)
    assert isinstance(item, Pair), item
    return item


def bad(name: str, obj: Any) -> BadRow:
    (item,) = map_rows(name, obj)
    assert isinstance(item, BadRow), item
    return item


def turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


U, V, X, Y = turn("user", "q"), turn("user", "q2"), turn("assistant", "x"), turn("assistant", "y")
OWN = {"id": "1", "question": "q", "response_a": "x", "response_b": "y"}

ROWS: dict[str, dict[str, Any]] = {
    "dikast": {**OWN, "label": "A"},
    "arena": {
        "id": 30192, "model_a": "m", "model_b": "n", "prompt": '["q"]', "response_a": '["x"]',
        "response_b": '["y"]', "winner_model_a": 1, "winner_model_b": 0, "winner_tie": 0,
    },
    "mtbench": {
        "question_id": 81, "model_a": "m", "model_b": "n", "winner": "model_a", "judge": "e",
        "turn": 1, "conversation_a": [U, X, V, X], "conversation_b": [U, Y, V, Y],
    },
    "judgebench": {
        "pair_id": "p", "source": "mmlu", "question": "q", "response_model": "m",
        "response_A": "x", "response_B": "y", "label": "A>B",
    },
    "pandalm": {
        "idx": 4, "instruction": "q", "input": "", "response1": "x", "response2": "y",
        "annotator1": 1, "annotator2": 1, "annotator3": 2,
    },
    "alpacaeval": {
        "instruction": "q", "output_1": "x", "output_2": "y", "generator_1": "m",
        "generator_2": "n", "preference": 1.2, "dataset": "helpful_base",
    },
    "llmbar": {"input": "q", "output_1": "x", "output_2": "y", "label": 1},
    "chosen": {"id": 7, "prompt": "q", "chosen": "x", "rejected": "y", "subset": "s"},
    "answers": {"prompt": "q", "answer_a": "x", "answer_b": "y", "winner": "a"},
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_each_format_is_recognised_and_gives_the_same_pair(name: str) -> None:
    assert detect([ROWS[name]]) == name
    pair = only(name, ROWS[name])
    if name == "chosen" and pair.label == "B":
        pair = pair.swapped()
    assert (pair.question, pair.response_a, pair.response_b) == ("q", "x", "y")
    assert pair.messages == ()
    assert pair.label == "A"
    assert pair.id


def test_every_format_in_the_table_has_a_row_here_and_a_description() -> None:
    names = {form.name for form in FORMATS}
    assert names == {*ROWS, "rmbench", "models", "item"}
    assert all(form.about for form in FORMATS)


def test_nothing_known_is_refused_with_the_fields_found_and_the_formats() -> None:
    with pytest.raises(InputError, match=r"in\.jsonl: no known format has these fields: a, b; .*"):
        detect([{"b": 1, "a": 2}, 5], "in.jsonl")
    with pytest.raises(InputError, match="no objects"):
        detect([])
    with pytest.raises(InputError, match="unknown format 'csv'; known are: arena, dikast"):
        map_rows("csv", OWN)


def test_most_rows_decide_the_format() -> None:
    assert detect([ROWS["chosen"], OWN, "junk", OWN]) == "dikast"


# -- single answers ---------------------------------------------------------------------------


def test_a_row_with_one_answer_is_an_item_and_keeps_all_that_belongs_to_it() -> None:
    row = {
        "id": 3, "prompt": "q", "response": "x", "reference": "r", "key_points": ["one", "two"],
        "model": "m", "rating": 4, "subset": "s", "seen": True,
    }  # fmt: skip
    assert detect([row]) == "item"
    assert map_rows("item", row) == [
        Item(
            id="3",
            question="q",
            response="x",
            reference="r",
            key_points=("one", "two"),
            model="m",
            grade=4.0,
            category="s",
            meta={"seen": True, "subset": "s"},
        )
    ]
    talk = {"messages": [U, X, V], "answer": "y"}
    (item,) = map_rows(detect([talk]), talk)
    assert isinstance(item, Item)
    assert [each.content for each in item.messages] == ["q", "x", "q2"]
    assert item.response == "y"


def test_an_item_as_it_is_written_is_read_back_as_it_was() -> None:
    item = Item(id="i", question="q", response="x", key_points=("one",), grade=0.5, meta={"n": 1})
    written = msgspec.json.decode(msgspec.json.encode(item))
    assert detect([written]) == "item"
    assert map_rows("item", written) == [item]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"question": "q", "response": 5}, "response"),
        ({"question": "", "response": "x"}, "question"),
        ({"question": "q", "response": "x", "key_points": "one"}, "key_points"),
        ({"question": "q", "response": "x", "grade": "good"}, "grade"),
    ],
)
def test_a_misfit_in_an_item_is_named(row: dict[str, Any], field: str) -> None:
    assert bad("item", row).field == field


def test_half_a_pair_is_no_item() -> None:
    with pytest.raises(InputError, match="no known format"):
        detect([{"question": "q", "answer": "gold", "response_a": "x"}])


# -- dikast's own -----------------------------------------------------------------------------


def test_unknown_fields_go_into_meta_beside_what_is_there() -> None:
    pair = only("dikast", {**OWN, "votes": [1], "x": 1, "meta": {"x": 2}, "reference": None})
    assert pair.meta == {"votes": [1], "x": 2}
    assert pair.reference is None


def test_a_whole_number_is_an_id_and_a_missing_one_is_made_of_the_content() -> None:
    assert only("dikast", {**OWN, "id": 12}).id == "12"
    content = {name: value for name, value in OWN.items() if name != "id"}
    turned = dict(reversed(content.items()))
    made = only("dikast", content).id
    assert made.startswith("h:")
    assert only("dikast", turned).id == made
    assert only("dikast", {**content, "id": ""}).id != made  # another row, though without an id
    assert only("dikast", {**content, "note": 1}).id != made


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"response_a": 5}, "response_a", "expected str, got int"),
        ({"response_b": None}, "response_b", "is missing"),
        ({"messages": [{"role": "user"}]}, "messages", "object missing required field content"),
        ({"meta": 3}, "meta", "expected object, got int"),
        ({"label": "left"}, "label", "a label is A, B or tie, not 'left'"),
        ({"label": 1}, "label", "a label is A, B or tie, not 1"),
        ({"question": ""}, "question", "is missing: give a question or messages"),
        ({"id": 1.5}, "id", "an id must be text or a whole number"),
        ({"id": True}, "id", "an id must be text or a whole number"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], field: str, message: str) -> None:
    row = bad("dikast", {**OWN, **change})
    assert row.field == field
    assert row.id == (None if field == "id" else "1")
    assert row.message == message


def test_what_is_no_object_is_a_bad_row() -> None:
    assert bad("dikast", [1]).message == "expected an object with named fields, got list"


# -- the others -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "field", "value", "label"),
    [
        ("llmbar", "label", 2, "B"),
        ("llmbar", "label", "1", "A"),
        ("alpacaeval", "preference", 2, "B"),
        ("alpacaeval", "preference", 1.5, "tie"),
        ("alpacaeval", "preference", 0, "tie"),
        ("alpacaeval", "preference", None, None),
        ("judgebench", "label", "B>A", "B"),
        ("judgebench", "label", "A=B", "tie"),
        ("mtbench", "winner", "tie (bothbad)", "tie"),
        ("mtbench", "winner", "model_b", "B"),
        ("pandalm", "annotator1", 2, "B"),
        ("pandalm", "annotator1", 0, None),
        ("arena", "winner_model_a", 0, None),
    ],
)
def test_labels_in_every_spelling(name: str, field: str, value: Any, label: str | None) -> None:
    assert only(name, {**ROWS[name], field: value}).label == label


@pytest.mark.parametrize(("name", "field"), [("llmbar", "label"), ("mtbench", "winner")])
def test_an_unknown_label_is_an_error_and_never_guessed(name: str, field: str) -> None:
    assert bad(name, {**ROWS[name], field: 3}).field == field


def test_the_better_answer_stands_on_a_side_that_only_the_id_decides() -> None:
    pairs = [only("chosen", {**ROWS["chosen"], "id": n}) for n in range(400)]
    first = sum(pair.label == "A" for pair in pairs)
    assert 150 < first < 250
    for pair in pairs:
        assert (pair.response_a if pair.label == "A" else pair.response_b) == "x"
    again = [only("chosen", {**ROWS["chosen"], "id": n, "prompt": "other"}) for n in range(400)]
    assert [pair.label for pair in again] == [pair.label for pair in pairs]


def _good(pair: Pair) -> Pair:
    return pair if pair.label == "A" else pair.swapped()


def test_ultrafeedback_and_hh_and_sensejudge_rows_are_chosen_rows() -> None:
    ultra = {"prompt": "q", "chosen": [U, X], "rejected": [U, Y], "score_chosen": 8.0}
    hh = {
        "chosen": "\n\nHuman: q\n\nAssistant: x",
        "rejected": "\n\nHuman: q\n\nAssistant: y",
    }
    sense = {
        "prompt": [
            {"from": "System", "content": [{"type": "text", "value": "s"}]},
            {"from": "Human", "content": [{"type": "text", "value": "q"}]},
        ],
        "chosen": {"value": [{"value": "x"}]},
        "rejected": {"value": [{"value": "y"}]},
        "dataset": "sense_bmk:Math",
    }
    for row in (ultra, hh, sense):
        assert detect([row]) == "chosen"
        pair = _good(only("chosen", row))
        assert (pair.question, pair.response_a, pair.response_b) == ("q", "x", "y")
    assert _good(only("chosen", sense)).messages == (
        Message(role="system", content="s"),
        Message(role="user", content="q"),
    )
    assert only("chosen", sense).category == "sense_bmk:Math"
    assert only("chosen", ultra).meta == {"score_chosen": 8.0}


def test_models_of_chosen_rows_go_with_their_answers() -> None:
    row = {**ROWS["chosen"], "chosen_model": "good", "rejected_model": "bad"}
    pair = _good(only("chosen", row))
    assert (pair.model_a, pair.model_b) == ("good", "bad")


def test_a_shared_history_becomes_messages_and_the_last_answers_are_compared() -> None:
    row = {"conversation_a": [U, X, V, X], "conversation_b": [U, X, V, Y]}
    pair = only("mtbench", row)
    assert [each.role for each in pair.messages] == ["user", "assistant", "user"]
    assert (pair.question, pair.response_a, pair.response_b) == ("q2", "x", "y")


def test_histories_that_differ_are_compared_turn_by_turn() -> None:
    pair = only("mtbench", {**ROWS["mtbench"], "turn": 2})
    assert pair.id == "81:m:n:2:e"
    assert pair.question == "[Turn 1]\nq\n\n[Turn 2]\nq2"
    assert pair.response_a == "[Turn 1]\nx\n\n[Turn 2]\nx"
    assert pair.response_b == "[Turn 1]\ny\n\n[Turn 2]\ny"


@pytest.mark.parametrize(
    ("a", "field"),
    [
        ([U], "conversation_a"),
        ([V, X], "conversation_b"),
        ("text", "conversation_a"),
        ([turn("alien", "x")], "conversation_a"),
    ],
)
def test_conversations_that_cannot_be_compared_are_bad_rows(a: Any, field: str) -> None:
    row = {"conversation_a": a, "conversation_b": [U, Y], "question_id": 1}
    assert bad("mtbench", row).field == field


def test_an_input_beside_the_instruction_belongs_to_the_question() -> None:
    assert only("pandalm", {**ROWS["pandalm"], "input": "data"}).question == "q\n\ndata"


def test_rmbench_gives_every_style_against_every_style() -> None:
    row = {"id": "r", "prompt": "q", "chosen": ["c0", "c1"], "rejected": ["r0", "r1"]}
    assert detect([row]) == "rmbench"
    pairs = map_rows("rmbench", row)
    assert [pair.id for pair in pairs] == ["r:0-0", "r:0-1", "r:1-0", "r:1-1"]
    met = [_good(pair) for pair in pairs if isinstance(pair, Pair)]
    assert [(pair.response_a, pair.response_b) for pair in met] == [
        ("c0", "r0"), ("c0", "r1"), ("c1", "r0"), ("c1", "r1"),
    ]  # fmt: skip
    assert [pair.meta["difficulty"] for pair in met] == ["normal", "hard", "easy", "normal"]
    assert bad("rmbench", ROWS["chosen"]).field == "chosen"


def test_an_answer_set_gives_every_two_models_and_a_lost_answer_costs_only_its_own() -> None:
    row = {"id": "q1", "question": "q", "answers": {"c": "z", "a": "x", "b": "y", "d": None}}
    assert detect([row]) == "models"
    items = map_rows("models", row)
    assert items[0] == BadRow(message="is missing", id="q1:d", field="answers.d")
    pairs = [item for item in items if isinstance(item, Pair)]
    assert [pair.id for pair in pairs] == ["q1:a:b", "q1:a:c", "q1:b:c"]
    assert (pairs[1].model_a, pairs[1].response_a, pairs[1].response_b) == ("a", "x", "z")
    turns = {"id": "q1", "turns": ["q", "q2"], "answers": {"a": ["x", "x"], "b": ["y", "y"]}}
    pair = only("models", turns)
    assert pair.id == "q1:mt:a:b"
    assert pair.question == "[Turn 1]\nq\n\n[Turn 2]\nq2"


WITHOUT_TEXTS = {"mtbench_human.jsonl.gz"}
ROWS_OF = {"devbench_answers": 3080, "rmbench": 185 * 9, "mtbench_answers": 17641}


async def test_all_shared_pair_files_with_texts_load_without_a_bad_row(data: Path) -> None:
    for path in sorted((data / "pairs").glob("*.jsonl.gz")):
        if path.name in WITHOUT_TEXTS:
            continue
        name = path.name.removesuffix(".jsonl.gz")
        rows = [row async for batch in FileSource(path).batches() for row in batch]
        wrong = [row for row in rows if isinstance(row.item, BadRow)]
        expected = 1 if name == "mtbench_answers" else 0  # one model left one question out
        assert len(wrong) == expected, wrong[:1]
        assert rows
        assert len(rows) == ROWS_OF.get(name, len(rows))
        ids = [row.item.id for row in rows]
        assert len(set(ids)) == len(ids), name
