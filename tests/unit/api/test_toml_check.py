"""What a wrong table is told."""

from typing import Literal

import msgspec
import pytest

from dikast.engine.errors import ConfigError
from dikast.toml_check import read_table, refuse_secrets


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    timeout_s: float = 1.0
    mode: Literal["fast", "slow"] = "fast"


class Left(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="left"):
    size: int = 0


class Right(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="right"):
    inner: Inner = Inner()
    child: "Left | Right | None" = None
    many: tuple["Left | Right", ...] = ()


class Top(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    inner: Inner = Inner()
    table: dict[str, Inner] = {}
    side: Left | Right | None = None


def _message(raw: object, kind: type = Top, path: str = "top") -> str:
    with pytest.raises(ConfigError) as caught:
        read_table(raw, kind, path)
    return str(caught.value)


def test_an_unknown_field_is_named_with_its_path_and_the_nearest_known_one() -> None:
    message = _message({"name": "x", "table": {"a": {"timeout_secs": 3}}})

    assert message == "top.table.a.timeout_secs: unknown field; did you mean timeout_s?"


def test_an_unknown_field_near_nothing_lists_what_is_known() -> None:
    assert _message({"name": "x", "inner": {"zzz": 3}}) == (
        "top.inner.zzz: unknown field; known are mode, timeout_s"
    )


def test_a_wrong_type_is_named_with_its_path() -> None:
    message = _message({"name": "x", "inner": {"timeout_s": "soon"}})

    assert message == "top.inner.timeout_s: must be a number, not text"


def test_a_wrong_word_is_named_with_its_path() -> None:
    assert _message({"name": "x", "inner": {"mode": "quick"}}).startswith("top.inner.mode: ")


def test_a_missing_field_is_named() -> None:
    assert _message({}) == "top.name: is missing, and it has no default"


def test_a_table_is_wanted_where_a_value_stands() -> None:
    assert _message({"name": "x", "inner": 3}) == "top.inner: must be a table, not a number"


def test_an_unknown_tag_suggests_the_nearest() -> None:
    assert _message({"name": "x", "side": {"kind": "rihgt"}}) == (
        "top.side.kind: 'rihgt' is not known; did you mean right?"
    )


def test_a_missing_tag_lists_the_known_ones() -> None:
    assert _message({"name": "x", "side": {"size": 1}}) == (
        "top.side.kind: is missing; one of left, right"
    )


def test_a_tree_of_tagged_tables_is_walked_to_its_leaves() -> None:
    raw = {"name": "x", "side": {"kind": "right", "many": [{"kind": "left", "sizes": 1}]}}

    assert _message(raw) == "top.side.many[0].sizes: unknown field; did you mean size?"


def test_a_right_tree_is_read() -> None:
    raw = {"name": "x", "side": {"kind": "right", "child": {"kind": "left", "size": 4}}}

    assert read_table(raw, Top) == Top(name="x", side=Right(child=Left(size=4)))


@pytest.mark.parametrize(
    "raw",
    [
        {"a": {"note": "sk-abcdefghijklmnopqrstuv"}},
        {"a": {"headers": {"Authorization": "Bearer abcdefghijkl"}}},
        {"a": {"api_key": "anything"}},
        {"a": {"list": ["gsk_abcdefghijklmnop"]}},
    ],
)
def test_a_key_in_clear_is_refused_without_being_repeated(raw: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="api_key_env") as caught:
        refuse_secrets(raw)

    assert str(caught.value).startswith("a.")
    for secret in ("abcdefgh", "anything"):
        assert secret not in str(caught.value)


def test_ordinary_words_are_no_keys() -> None:
    table = {"model": "sk-model", "api_key_env": "OPENAI_API_KEY", "note": "task-1"}
    refuse_secrets(table)
    with pytest.raises(ConfigError):
        refuse_secrets({**table, "note": "sk-" + "a1B2" * 8})
