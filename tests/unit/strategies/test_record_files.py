"""The four files that strategies are built with are refused in the same words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from dikast.engine.errors import InputError
from dikast.strategies import load_calibration, load_library, load_weights
from dikast.strategies.calibration_file import FORMAT, Calibration, Metrics
from dikast.strategies.measured import MeasuredMember, measured_weights
from dikast.strategies.preferences import load_profile
from dikast.strategies.sesse.library import BuildParams, Library, Split, save_library


class Kind(NamedTuple):
    """One kind of file: how it is read, and a sound one as plain data."""

    what: str
    load: Callable[[str], Any]
    made_by: str
    format_field: str
    sound: Callable[[Path], dict[str, Any]]


def _plain(record: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(msgspec.json.encode(record))
    return plain


def _calibration(_folder: Path) -> dict[str, Any]:
    metrics = Metrics(ece=0.1, brier=0.2)
    made = Calibration(
        format=FORMAT,
        method="platt",
        raw="confidence",
        spec="s",
        strategy="single@1",
        fitted_on=4,
        agreed=3,
        left_out={},
        before=metrics,
        after=metrics,
        folds=2,
        bins=10,
        seed=0,
        slope=1.0,
    )
    return _plain(made.hashed())


def _weights(_folder: Path) -> dict[str, Any]:
    member = MeasuredMember(
        name="a", weight=1.0, right=3, wrong=1, no_pick=0, accuracy=0.75, low=0.3, high=0.95
    )
    made = measured_weights(
        [member], method="log-odds", pairs=4, level=0.95, simulated=False, specs=["s"]
    )
    return _plain(made)


def _library(folder: Path) -> dict[str, Any]:
    split = Split(seed=0, mine_rows=1, mine_ids_sha="0")
    made = Library(judge="m", clusters=(), params=BuildParams(), split=split)
    save_library(made, folder / "made.json")
    plain: dict[str, Any] = json.loads((folder / "made.json").read_text())
    return plain


def _profile(_folder: Path) -> dict[str, Any]:
    who = {"name": "j", "model": "m", "prompt": "p"}
    return {
        "format": "dikast-preferences/1",
        "person": "ann",
        "version": 1,
        "judge": who,
        "writer": who,
        "entries": [{"topic": "", "use": "plain"}],
    }


KINDS = (
    Kind("calibration", load_calibration, "dikast calibrate", "format", _calibration),
    Kind("file of weights", load_weights, "dikast weights", "format", _weights),
    Kind("library", load_library, "dikast sesse build", "schema_version", _library),
    Kind("profile", load_profile, "dikast preferences fit", "format", _profile),
)
ALL = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.what)


def _told(kind: Kind, path: Path) -> str:
    with pytest.raises(InputError) as told:
        kind.load(str(path))
    assert told.value.file == str(path)
    assert "\n" not in str(told.value)
    return str(told.value)


@ALL
def test_every_file_is_refused_in_the_same_words(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    plain = kind.sound(tmp_path)
    path.write_text(json.dumps(plain))
    kind.load(str(path))

    missing = _told(kind, tmp_path / "none.json")
    assert f"none.json: cannot be read: No such file or directory; make a {kind.what}" in missing
    assert f" with {kind.made_by}" in missing

    for content, why in ((b"{", "not valid JSON: "), (b"\xff", "not valid"), (b"[]", "not a JSON")):
        path.write_bytes(content)
        assert f"is no {kind.what}, or a damaged one ({why}" in _told(kind, path)

    path.write_text(json.dumps({**plain, kind.format_field: 99}))
    newer = _told(kind, path)
    assert f"is of {kind.format_field.replace('_', ' ')} 99, and this version of dikast" in newer
    assert f"make it anew with {kind.made_by}" in newer


@ALL
def test_a_field_of_another_shape_is_named(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    plain = kind.sound(tmp_path)
    field = next(name for name, value in plain.items() if isinstance(value, list | dict))
    path.write_text(json.dumps({**plain, field: "text"}))

    told = _told(kind, path)

    assert f"field {field!r}: is no {kind.what}, or a damaged one (expected `" in told


@pytest.mark.parametrize("kind", KINDS[:3], ids=lambda kind: kind.what)
def test_a_file_with_a_hash_is_not_to_be_edited(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps({**kind.sound(tmp_path), "simulated": True}))

    assert "its content does not fit its hash, so it was changed after it was" in _told(kind, path)


@pytest.mark.parametrize("version", [0, -1])
def test_a_profile_counts_its_versions_from_1(version: int, tmp_path: Path) -> None:
    path = tmp_path / "ann.json"
    path.write_text(json.dumps({**_profile(tmp_path), "version": version}))

    assert f"field 'version': counts fits and edits from 1, and cannot be {version}" in _told(
        KINDS[3], path
    )


def test_a_file_that_is_far_too_large_is_not_taken_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dikast.strategies.record_files._BYTES_MAX", 10)
    path = tmp_path / "profile.json"
    path.write_text('{"a": "b"}')
    with pytest.raises(InputError, match="unknown field"):
        load_profile(str(path))
    path.write_text('{"a": "bc"}')
    with pytest.raises(InputError, match="larger than any"):
        load_profile(str(path))
