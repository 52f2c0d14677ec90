"""Files read by the row and written whole."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dikast.engine.errors import InputError
from dikast.engine.files import (
    check_output,
    csv_rows,
    decoded_rows,
    rows_in,
    whole_file,
    write_whole,
)


def test_rows_carry_their_lines_and_blank_lines_count(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n\n{"a": 2}\n')
    assert list(rows_in(path)) == [(1, b'{"a": 1}'), (3, b'{"a": 2}')]


def test_a_row_that_cannot_be_decoded_is_named_with_file_line_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": \n')
    rows = decoded_rows(path, msgspec.json.Decoder(dict[str, int]).decode, "is no row", "; mend it")
    assert next(rows) == (1, {"a": 1})
    with pytest.raises(InputError, match=r"rows\.jsonl, line 2: is no row \(.*\); mend it"):
        next(rows)


def test_csv_rows_have_the_names_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('\ufeffid,text\n1,"two\nlines"\n2,b\n', "utf-8")
    assert list(csv_rows(path)) == [
        (3, {"id": "1", "text": "two\nlines"}),
        (4, {"id": "2", "text": "b"}),
    ]


@pytest.mark.parametrize("read", [rows_in, csv_rows])
def test_a_file_that_is_not_there_is_one_sentence(
    read: Callable[[Path], Iterator[Any]], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        next(read(tmp_path / "none"))


def test_a_write_that_fails_leaves_what_was_there_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), whole_file(path) as file:
        file.writelines([b"new", "no bytes"])  # type: ignore[list-item]
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_is_replaced_and_a_link_stays_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    link.symlink_to(path)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


def test_a_private_file_is_its_owners_only(tmp_path: Path) -> None:
    with whole_file(tmp_path / "private", private=True) as file:
        file.write(b"x")
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600


def test_a_device_is_written_as_it_is() -> None:
    write_whole("/dev/null", b"x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file"):
        write_whole(tmp_path / "none" / "file", b"x")


@pytest.mark.parametrize("name", ["new.json", "there.json", "linked.json", "/dev/null"])
def test_an_output_that_can_be_written_is_let_in_and_left_as_it_is(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "there.json").write_text("old")
    (tmp_path / "linked.json").symlink_to("there.json")
    before = sorted(tmp_path.iterdir())
    check_output(tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "there.json").read_text() == "old"


@pytest.mark.parametrize("makes_folder", [False, True])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "is a folder; name a file"),
        ("file/new.json", "cannot be written: Not a directory"),
        ("x" * 300, "cannot be written: File name too long"),
    ],
)
def test_an_output_that_cannot_be_written_is_told_beforehand(
    tmp_path: Path, name: str, said: str, makes_folder: bool
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=said):
        check_output(tmp_path / name, makes_folder=makes_folder)


def test_a_missing_folder_is_told_unless_it_will_be_made(tmp_path: Path) -> None:
    where = tmp_path / "not" / "there" / "new.json"
    with pytest.raises(InputError, match=r"there is no folder .*there; make it"):
        check_output(where)
    check_output(where, makes_folder=True)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "not").write_text("a file now")
    with pytest.raises(InputError, match="cannot be written: Not a directory"):
        check_output(where, makes_folder=True)
