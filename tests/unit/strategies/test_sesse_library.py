"""A library's file: what goes in comes out, and damage is told in one sentence."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dikast.engine.errors import InputError
from dikast.strategies.sesse import (
    BuildParams,
    Cluster,
    Library,
    Question,
    Split,
    load_library,
    qid_of,
    save_library,
)


def library_of(**changes: Any) -> Library:
    questions = tuple(
        Question(
            qid=qid_of(f"the request sets limit {number}", "keeping the limit"),
            condition=f"the request sets limit {number}",
            conclusion="keeping the limit",
            source_id=f"p{number}",
        )
        for number in range(3)
    )
    cluster = Cluster(
        cid="c01",
        label="the request sets a limit",
        questions=questions,
        insertion_radius=(0.0, 0.31, 0.2),
        centroid=(0.6, 0.8),
    )
    made = Library(
        judge="m",
        clusters=(cluster,),
        params=BuildParams(seed=4),
        split=Split(seed=4, mine_rows=3, mine_ids_sha="0" * 64),
        stats={"k": 1, "rejected": {"duplicate": 2}},
    )
    return msgspec.structs.replace(made, **changes)


def test_a_library_comes_back_as_it_was_written(tmp_path: Path) -> None:
    library = library_of()
    found = save_library(library, tmp_path / "deep" / "lib.json")
    assert load_library(tmp_path / "deep" / "lib.json") == library
    assert found == library.hash == load_library(tmp_path / "deep" / "lib.json").hash
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["lib.json"]


def test_the_hash_follows_the_content_and_nothing_else() -> None:
    assert library_of().hash == library_of().hash
    assert library_of(depth=3).hash != library_of().hash
    assert library_of(stats={"rejected": {"duplicate": 2}, "k": 1}).hash == library_of().hash


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"judge": "another"}, "does not fit its hash"),
        ({"schema_version": 99}, "is of schema version 99, and this version of dikast reads 1"),
        ({"surprise": 1}, "or a damaged one"),
        ({"params": {"q": "three"}}, "or a damaged one"),
        ({"hash": None}, "does not fit its hash"),
    ],
)
def test_a_changed_library_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "lib.json"
    save_library(library_of(), path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=said) as caught:
        load_library(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"judge": "m"}', "\x00\xff"])
def test_what_is_no_library_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lib.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="is no library"):
        load_library(path)


def test_a_missing_library_is_told_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_library(tmp_path / "none.json")


def test_an_id_stands_for_the_words_and_not_for_their_dress() -> None:
    one = qid_of("The request  sets a limit.", "Keeping it")
    assert one == qid_of("the request sets a limit", "keeping it")
    assert one != qid_of("keeping it", "the request sets a limit")
    assert len(one) == 16
