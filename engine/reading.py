"""One file of whatever kind as numbered rows: recognised, opened, unpacked, and closed again.

Between `engine.places`, which finds the files, and `engine.sources`, which makes pairs of the
rows. What a file is, its first bytes say; only CSV is told by its name, or by a first line that
names known columns.
"""

import io
import json
import os
from collections.abc import Generator, Iterator
from typing import Any, BinaryIO, Final, cast

import msgspec

from dikast.engine.arrowrows import is_table, needs_seek, read_table
from dikast.engine.columns import KNOWN_NAMES, Columns, restored
from dikast.engine.csvrows import looks_like_csv, read_csv
from dikast.engine.errors import InputError
from dikast.engine.lines import Flaw, RawRow, Read, head_of, split_json, unpacked
from dikast.engine.places import STDIN, Place, stem_and_suffix
from dikast.engine.text import scrub

_STDIN_FD: Final = 0
_STDIN_BYTES: Final = 1 << 16
_JSON: Final = (".jsonl", ".ndjson", ".json")
_CSV: Final = (".csv", ".tsv", ".tab")


def read_place(
    place: Place, columns: Columns, *, row_bytes_max: int
) -> Generator[list[RawRow], None, None]:
    """The rows of one file in lists. It is opened with the first pull and closed at the end.

    Out of a table, and where columns are renamed, a row is an object under the names of fields.

    Raises:
        InputError: the file cannot be read at all, or a column is not there.
    """
    tree = place.tree
    try:
        if place.path == STDIN:
            items = _items(_Stdin(), place, columns, row_bytes_max)
            yield from items
            return
        with tree.open(place.path) as file:
            yield from _items(file, place, columns, row_bytes_max)
    except tree.errors as error:
        raise InputError(_why(error), file=place.shown) from error


def _why(error: Exception) -> str:
    """What an error of a tree says. Libraries wrap them: the first cause is the true one."""
    first: BaseException = error
    while first.__cause__ is not None:
        first = first.__cause__
    if isinstance(first, FileNotFoundError) or getattr(first, "status", None) == 404:
        return "there is no such file"
    what = getattr(first, "strerror", None) or " ".join(str(first).split())
    return f"cannot be read: {what or type(first).__name__}"


class _Stdin(io.RawIOBase):
    """Standard input, handed on as it comes."""

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes, as soon as there are some."""
        return os.read(_STDIN_FD, _STDIN_BYTES if size < 0 else min(size, _STDIN_BYTES))


class _Rejoined(io.RawIOBase):
    """A pipe of which the first bytes have been looked at, from its first byte again."""

    def __init__(self, head: bytes, read: Read) -> None:
        self._head = head
        self._read = read

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Exactly `size` bytes where so many are left: readers of tables count on it."""
        parts: list[bytes] = []
        while size < 0 or size > 0:
            part, self._head = (self._head[:size], self._head[size:]) if size > 0 else (
                self._head, b"")  # fmt: skip
            part = part or self._read(size if size > 0 else _STDIN_BYTES)
            if not part:
                break
            parts.append(part)
            size -= len(part) if size > 0 else 0
        return b"".join(parts)


def _items(
    file: BinaryIO | io.RawIOBase, place: Place, columns: Columns, row_bytes_max: int
) -> Iterator[list[RawRow]]:
    def read(size: int) -> bytes:
        return file.read(size) or b""

    head = head_of(read)
    if is_table(head):
        table = _table_of(file, head, read, place)
        yield from _renamed(table, columns, place.shown, text=False)
        return
    chunks = unpacked(head, read)
    first = next(chunks, b"")
    if not isinstance(first, Flaw) and is_table(first):
        raise InputError("is a table inside gzip or zstd; unpack it first", file=place.shown)
    chunks = _again(first, chunks)
    if _is_csv(place, first, columns):
        tabs = stem_and_suffix(place.path)[1] in (".tsv", ".tab")
        cells = read_csv(chunks, tabs=tabs, row_bytes_max=row_bytes_max, file=place.shown)
        yield from _renamed(cells, columns, place.shown, text=True)
        return
    lines = split_json(chunks, row_bytes_max=row_bytes_max, file=place.shown)
    rows = cast("Iterator[list[RawRow]]", lines)  # a line is a row that is still JSON
    yield from _renamed(map(_objects, rows), columns, place.shown, text=None) if columns else rows


def _objects(items: list[RawRow]) -> list[RawRow]:
    return [
        RawRow(number, value if isinstance(value := decoded(raw), dict) else raw)
        for number, raw in items
    ]


def decoded(raw: bytes | dict[str, Any] | Flaw) -> Any:
    """The value of a row, or a flaw. What only a lenient reader takes is taken, and cleaned."""
    if not isinstance(raw, bytes):
        return raw
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as strict:
        try:
            # Lone surrogates, NaN: Python writes them, so files have them. The row stays.
            return scrub(json.loads(raw.decode()))
        except UnicodeDecodeError:
            return Flaw("is not UTF-8 text")
        except RecursionError:
            return Flaw("is nested too deep")
        except ValueError:
            return Flaw(f"is not JSON: {str(strict).removeprefix('JSON is malformed: ')}")


def _table_of(
    file: BinaryIO | io.RawIOBase, head: bytes, read: Read, place: Place
) -> Iterator[list[RawRow]]:
    if not needs_seek(head):
        whole: Any = _Rejoined(head, read)
    elif file.seekable():
        file.seek(0)
        whole = file
    else:
        raise InputError(
            "is a Parquet or Arrow file, which is read from its end, and this input can only be "
            "read from its beginning; name a file on disk",
            file=place.shown,
        )
    return read_table(cast("BinaryIO", whole), head, name=place.shown)


def _again(first: bytes | Flaw, rest: Iterator[bytes | Flaw]) -> Iterator[bytes | Flaw]:
    if first:
        yield first
    yield from rest


def _is_csv(place: Place, first: bytes | Flaw, columns: Columns) -> bool:
    suffix = stem_and_suffix(place.path)[1]
    if suffix in _CSV:
        return True
    if suffix in _JSON or isinstance(first, Flaw):
        return False
    return looks_like_csv(first, KNOWN_NAMES | columns.names)


def _renamed(
    chunks: Iterator[list[RawRow]], columns: Columns, file: str, *, text: bool | None
) -> Iterator[list[RawRow]]:
    """The rows under the names of fields; out of a table (`text` says of which kind, None is of
    none) also with their cells as JSON would have them.
    """

    def fields(row: dict[str, Any]) -> dict[str, Any]:
        row = columns.renamed(row) if columns else row
        return row if text is None else restored(row, text=text)

    checked = not columns
    for items in chunks:
        if not checked and (objs := [each.raw for each in items if isinstance(each.raw, dict)]):
            columns.check(objs, file, items[0].number)
            checked = True
        yield [
            RawRow(number, fields(raw) if isinstance(raw, dict) else raw) for number, raw in items
        ]
