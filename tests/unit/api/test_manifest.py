"""The manifest: what it keeps, what it hides, what it compares."""

from pathlib import Path

import pytest

from dikast.engine.errors import InputError
from dikast.manifest import (
    Manifest,
    RunEntry,
    manifest_path,
    read_manifest,
    spec_differences,
    without_secrets,
    write_manifest,
)


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    manifest = Manifest(
        output="out.jsonl",
        spec="ab" * 8,
        spec_tree={"strategy": {"kind": "swap"}},
        runs=(RunEntry(status="running", started="2026-01-01T00:00:00+00:00"),),
    )

    write_manifest(output, manifest)

    assert read_manifest(output) == manifest
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl.manifest.json"]


def test_an_absent_manifest_is_none_and_a_broken_one_is_named(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    assert read_manifest(output) is None
    manifest_path(output).write_text("{")

    with pytest.raises(InputError, match=r"out\.jsonl\.manifest\.json: is not a manifest"):
        read_manifest(output)


def test_a_difference_names_the_path_and_both_values() -> None:
    old = {"judges": {"gpt": {"model": "gpt-4o", "params": {"temperature": 0.0}}}, "kind": "swap"}
    new = {"judges": {"gpt": {"model": "gpt-4o-mini", "params": {"seed": 1}}}, "kind": "swap"}

    assert spec_differences(old, new) == [
        'judges.gpt.model: "gpt-4o" -> "gpt-4o-mini"',
        "judges.gpt.params.temperature: 0.0 -> (absent)",
        "judges.gpt.params.seed: (absent) -> 1",
    ]


def test_lists_are_compared_place_by_place() -> None:
    assert spec_differences({"of": [{"a": 1}, {"a": 2}]}, {"of": [{"a": 1}, {"a": 3}]}) == [
        "of[1].a: 2 -> 3"
    ]
    assert spec_differences({"of": [1]}, {"of": [1, 2]}) == ["of: [1] -> [1,2]"]


def test_a_list_read_back_as_list_equals_the_tuple_it_was() -> None:
    assert spec_differences({"of": [1, 2]}, {"of": (1, 2)}) == []


def test_secrets_in_command_lines_are_masked() -> None:
    argv = [
        "--sink",
        "kafka://user:geheim@host/topic?password=geheim&acks=1",
        "--judge=openai:x",
        "sk-abcdefghijklmnop",
    ]

    masked = without_secrets(argv)

    assert masked == (
        "--sink",
        "kafka://***@host/topic?password=***&acks=1",
        "--judge=openai:x",
        "***",
    )
