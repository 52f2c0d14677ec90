"""Readers of outcomes and labels: what they take, and one clear error for what they do not."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from dikast.analysis.rows import LabelRow, read_labels, read_outcomes
from dikast.engine.errors import InputError

VOTE = {"judge": "j", "order": "ba", "pick": "A"}
LINES: list[dict[str, object]] = [
    {"kind": "verdict", "id": "1", "winner": "A", "votes": [VOTE]},
    {"kind": "undecided", "id": "2", "why": "unparsed"},
    {"kind": "failed", "id": "3", "reason": "timeout", "message": "no answer"},
]


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def as_text(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_outcomes_are_read_plain_and_packed(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    rows = list(read_outcomes(written(tmp_path / "out", pack(as_text(LINES).encode()))))
    assert [row.id for row in rows] == ["1", "2", "3"]
    assert [row.missing for row in rows] == [None, "undecided: unparsed", "failed: timeout"]
    assert rows[0].votes[0].pick == "A"


@pytest.mark.parametrize(
    "line", ['{"id": "2"}', '{"kind": "verdict", "id": "2"}', '{"kind": "verdict", "id', "[1]",
             '{"kind": "something", "id": "2"}']
)  # fmt: skip
def test_a_line_that_is_no_outcome_is_named(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "out.jsonl", json.dumps(LINES[0]) + "\n" + line + "\n")
    with pytest.raises(InputError, match=r"out\.jsonl, line 2: .*not an outcome"):
        list(read_outcomes(path))


def test_a_file_that_is_cut_off_or_absent_is_named(tmp_path: Path) -> None:
    packed = gzip.compress(as_text(LINES * 50).encode())
    with pytest.raises(InputError, match="ends too early"):
        list(read_outcomes(written(tmp_path / "cut.gz", packed[:-20])))
    with pytest.raises(InputError, match="No such file"):
        list(read_outcomes(tmp_path / "absent"))


def test_labels_are_read_in_every_shape(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"pair_id": "p", "annotator": "ann", "label": "A"},
        {"id": "p", "judge": "bob", "winner": "model_b", "category": "math"},
        {"id": "q", "votes": [{"annotator": "ann", "label": "tie"}, {"worker": "bob", "label": 2}]},
        {"id": 7, "label": "B"},
        {"id": "r", "label": None},
    ]  # fmt: skip
    assert list(read_labels(written(tmp_path / "l.jsonl", as_text(rows)))) == [
        LabelRow("p", "ann", "A"),
        LabelRow("p", "bob", "B", "math"),
        LabelRow("q", "ann", "tie"),
        LabelRow("q", "bob", "B"),
        LabelRow("7", "labels", "B"),
    ]
    table = '\ufeffpair_id,annotator,label\np,ann,A\nq,bob,\n"r",ann,tie\n'
    assert list(read_labels(written(tmp_path / "l.csv", table))) == [
        LabelRow("p", "ann", "A"),
        LabelRow("r", "ann", "tie"),
    ]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"label": "A"}, "names no pair"),
        ({"id": "p", "label": "C"}, "a label is"),
        ({"id": "p", "votes": "A"}, "votes is a list"),
        ({"id": "p", "votes": ["A"]}, "votes is a list"),
    ],
)
def test_a_row_that_is_no_label_is_named(tmp_path: Path, row: dict[str, object], says: str) -> None:
    path = written(tmp_path / "l.jsonl", as_text([{"id": "o", "label": "A"}, row]))
    with pytest.raises(InputError, match=rf"l\.jsonl, line 2.*{says}"):
        list(read_labels(path))


def test_a_csv_file_of_another_encoding_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "l.csv", "pair_id,label\nä,A\n".encode("latin-1"))
    with pytest.raises(InputError, match="UTF-8"):
        list(read_labels(path))
