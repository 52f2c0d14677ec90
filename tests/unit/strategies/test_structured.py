"""Declared answers: their schema, their sketch in the prompt, and their reader."""

import json
from contextlib import suppress
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from dikast.engine.model import Completion
from dikast.strategies import StructuredReader, format_instruction, json_schema
from dikast.strategies.loose import Damaged, Listing, Members, Node, Scalar, find_objects


class Grades(msgspec.Struct, kw_only=True):
    zeal: Annotated[int, Meta(ge=0, le=10)]
    art: Annotated[float, Meta(ge=0.0, le=5.0, multiple_of=0.5)]


class Point(msgspec.Struct, kw_only=True):
    point: int
    covered: bool


class Review(msgspec.Struct, kw_only=True):
    reasoning: Annotated[str, Meta(description="why")]
    points: list[Point] = []
    scores: Grades
    advice: Annotated[str, Meta(description="what next")] = ""


READER = StructuredReader(Review, anchor="scores")
GOOD = '{"reasoning": "r", "scores": {"zeal": 8, "art": 2.5}, "advice": "a"}'


def scores_in(text: str, finish: str | None = "stop") -> tuple[float, float] | None:
    value = READER.read(Completion(text=text, finish_reason=finish)).value
    return None if value is None else (value.scores.zeal, value.scores.art)


def why(text: str, finish: str | None = "stop") -> tuple[str | None, str]:
    read = READER.read(Completion(text=text, finish_reason=finish))
    assert read.value is None
    return read.why, read.detail or ""


def test_the_schema_keeps_the_declared_order_and_allows_nothing_else() -> None:
    schema = json_schema(Review)
    assert list(schema["properties"]) == ["reasoning", "points", "scores", "advice"]
    assert schema["required"] == ["reasoning", "points", "scores", "advice"]
    assert list(schema["properties"]["scores"]["properties"]) == ["zeal", "art"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["scores"]["properties"]["zeal"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 10,
    }
    assert schema["properties"]["scores"]["properties"]["art"]["multipleOf"] == 0.5


def test_the_sketch_shows_the_members_in_the_same_order() -> None:
    assert format_instruction(Review) == (
        '{"reasoning": "<why>", "points": [{"point": <number>, "covered": true|false}, ...], '
        '"scores": {"zeal": <0 to 10>, "art": <0 to 5>}, "advice": "<what next>"}'
    )


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Here is my review:\n{GOOD}\nI hope it helps {{a lot}}.",
        f"<think>{GOOD.replace('8', '3')}</think>{GOOD}",
        f"thoughts {GOOD.replace('8', '3')}</think>\n{GOOD}",
        f"{GOOD}\n\nOnce more: {GOOD}",
        GOOD.replace("}, ", ",},\n "),
        GOOD.replace('"', "'"),
        GOOD.replace('"', "“"),
        "{“reasoning”：“r”，“scores”：｛“zeal”：８，“art”：２．５｝，“advice”：“a”｝",
        "｛“reasoning”：“他说：“好”，很好”，“scores”：｛“zeal”：八，“art”：2.5｝｝",
        '{reasoning: "r", scores: {zeal: 8, art: 2.5}}',
        '{"Reasoning": "r", "SCORES": {"Zeal": "8/10", "Art": "2.5 out of 5"}}',
        '{"reasoning": "r", "scores": {"zeal": eight, "art": 2.5}}',
        '{"reasoning": "it says "yes" and "no" there", "scores": {"zeal": 8, "art": 2.5}}',
        '{"reasoning": "line one\nline two", "scores": {"zeal": 8, "art": 2.5}}',
        '{"reasoning": ["one", "two"], "scores": {"zeal": 8, "art": 2.5, "more": 3}, "x": null}',
        r'{"reasoning": "a \"quoted\" {\"scores\": 1} é \\", "scores": {"zeal": 8, "art": 2.5}}',
    ],
)
def test_slips_that_leave_no_doubt_are_read(text: str) -> None:
    assert scores_in(text) == (8, 2.5)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the answer is empty"),
        ("I give it 8.", 'there is no JSON object with "scores"'),
        ('{"reasoning": "r"}', 'there is no JSON object with "scores"'),
        ('{"reasoning": "r", "scores": {"zeal": 8}}', "scores.art is missing"),
        ('{"scores": {"zeal": 8, "art": 1}}', "reasoning is missing"),
        (
            '{"scores": {"zeal": 8, "art": 1}, "reasoning": "r"}',
            "reasoning must come before scores",
        ),
        (GOOD.replace("8", "11"), "scores.zeal: 11 is not between 0 and 10"),
        (GOOD.replace("8", "-1"), "scores.zeal: -1 is not between 0 and 10"),
        (GOOD.replace("8", "8.5"), "scores.zeal: 8.5 is not a whole number"),
        (GOOD.replace("2.5", "2.3"), "scores.art: 2.3 is not a multiple of 0.5"),
        (GOOD.replace("8", '"high"'), "scores.zeal: 'high' is not a number"),
        (GOOD.replace("8", '"7 or 8"'), "is not a number"),
        (GOOD.replace("8", "null"), "is not a number"),
        (GOOD.replace("8", "true"), "is not a number"),
        (GOOD.replace("8", "[8]"), "must be a single value"),
        (GOOD.replace('"zeal": 8', '"zeal": 8, "Zeal": 3'), "stands there 2 times"),
        (GOOD + GOOD.replace("8", "3"), "more than one answer, and they differ"),
        (GOOD + GOOD.replace("8", "30"), "30 is not between"),
        (GOOD[:-1], "never ends"),
        (GOOD[:-6], "never ends"),
        (GOOD[:30], "never ends"),
        ('{"reasoning": "r" "scores": {"zeal": 8, "art": 1}}', "a string never ends"),
        ('{"reasoning": "r", "scores": 8}', "must be an object"),
        ("<think>" + GOOD, "the reasoning block never ended"),
    ],
)
def test_what_leaves_a_doubt_is_unparsed_and_named(text: str, says: str) -> None:
    reason, detail = why(text)
    assert reason == "unparsed"
    assert says in detail


def test_an_object_quoted_inside_a_damaged_one_is_not_the_answer() -> None:
    inner = GOOD.replace("8", "10")
    for text in (
        f'{{"reasoning": "the answer says {inner}, hm", nothing more',
        f'{{"reasoning": "the answer says {inner}", "scores": {{"zeal": 1, "art": 1}}}}',
        f'{{"reasoning": "the answer says {inner[1:-1]}", "scores": {{"zeal": 1, "art": 1}}}}',
        f'{{"reasoning": "the answer says "{inner[1:-1]}}}',
    ):
        assert why(text)[0] == "unparsed"


def test_an_object_quoted_in_the_reasoning_is_not_the_answer() -> None:
    text = json.dumps({"reasoning": f"it claims {GOOD}", "scores": {"zeal": 2, "art": 0.5}})
    assert scores_in(text) == (2, 0.5)


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS"])
@pytest.mark.parametrize("text", [GOOD, GOOD[:20], ""])
def test_an_answer_cut_off_is_truncated(finish: str, text: str) -> None:
    assert why(text, finish)[0] == "truncated"


def test_a_refusal_is_a_refusal_whatever_was_written() -> None:
    assert why(GOOD, "content_filter")[0] == "refused"


def test_every_number_has_its_place_in_the_text() -> None:
    text = f"<think>8</think> well: {GOOD}"
    read = READER.read(Completion(text=text))
    assert text[read.places["scores.zeal"] :].startswith("8, ")
    assert text[read.places["scores.art"] :].startswith("2.5")


# --- properties ---------------------------------------------------------------------------------

KEYS = st.text(min_size=1, max_size=8).filter(lambda key: "\n" not in key)
VALUES = st.recursive(
    st.text(max_size=20) | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def plain(node: Node) -> Any:
    if isinstance(node, Listing):
        return [plain(each) for each in node.items]
    if isinstance(node, Members):
        return {name: plain(value) for name, value in node.items}
    return node.text if node.quoted else json.loads(node.text)


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.booleans(), st.sampled_from([None, 1]))
def test_strict_json_is_read_as_json(value: dict[str, Any], ascii_only: bool, indent: Any) -> None:
    text = json.dumps({"scores": 1, **value}, ensure_ascii=ascii_only, indent=indent)
    (found,) = find_objects(f"Well: {text} so", frozenset({"scores"}))
    assert plain(found) == json.loads(text)


@given(st.text(), st.sampled_from([None, "stop", "length"]))
def test_no_text_makes_the_reader_raise(text: str, finish: str | None) -> None:
    for each in (text, GOOD[: len(text)] + text, GOOD + text):
        read = READER.read(Completion(text=each, finish_reason=finish))
        assert (read.value is None) == (read.why is not None)


@given(st.text(alphabet="{}[]\"':,“”：， \nab1\\"), st.frozensets(st.sampled_from(["a", "b"])))
def test_structure_alone_never_makes_the_parser_raise_anything_else(
    text: str, keys: frozenset[str]
) -> None:
    with suppress(Damaged):
        assert all(text[each.start] == "{" for each in find_objects(text, keys))


@given(
    st.text(max_size=60),
    st.integers(0, 10),
    st.integers(0, 10).map(lambda half: half / 2),
    st.sampled_from(["{}", "```json\n{}\n```", "So:\n{}\nDone.", "<think>{{</think>{}"]),
)
def test_what_was_written_is_what_is_read(
    reasoning: str, zeal: int, art: float, around: str
) -> None:
    said = json.dumps({"reasoning": reasoning, "scores": {"zeal": zeal, "art": art}})
    assert scores_in(around.replace("{{", "(").replace("{}", said)) == (zeal, art)


def test_scalars_know_whether_they_were_quoted() -> None:
    (found,) = find_objects('{"a": "1", "b": 1}', frozenset())
    assert [(node.text, node.quoted) for _, node in found.items if isinstance(node, Scalar)] == [
        ("1", True),
        ("1", False),
    ]


def test_nesting_without_end_is_damage_and_not_a_crash() -> None:
    with pytest.raises(Damaged, match="nested too deep"):
        find_objects('{"a":' * 5000, frozenset())
