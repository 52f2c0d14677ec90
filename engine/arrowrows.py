"""Parquet and Arrow files as numbered rows, batch by batch.

Beside `engine.lines` on the way in; needs the extra `parquet`, which is imported when the first
such file is read. Types stay what they are; what JSON has no word for is written as text, a null
is an absent field, and a class number of Hugging Face `datasets` becomes the name of the class.
"""

import base64
import math
from collections.abc import Callable, Iterator
from datetime import date, time
from decimal import Decimal
from importlib import import_module
from typing import Any, BinaryIO, Final

import msgspec

from dikast.engine.errors import InputError
from dikast.engine.lines import PARQUET, Flaw, RawRow

ARROW_FILE: Final = b"ARROW1"
ARROW_STREAM: Final = b"\xff\xff\xff\xff"
_FEATHER_1: Final = b"FEA1"
_ROWS: Final = 256
_BATCH_ROWS: Final = 1024
_BUFFER_BYTES: Final = 1 << 20

Clean = Callable[[Any], Any]


def is_table(head: bytes) -> bool:
    """True when an input that begins with `head` is read here."""
    return head.startswith((PARQUET, ARROW_FILE, ARROW_STREAM, _FEATHER_1))


def needs_seek(head: bytes) -> bool:
    """True when the file has to be read from its end, so that a pipe will not do."""
    return not head.startswith(ARROW_STREAM)


def parquet_rows(file: BinaryIO) -> int:
    """How many rows a Parquet file says it has. Raises `ValueError` or `OSError`."""
    return int(import_module("pyarrow.parquet").ParquetFile(file).metadata.num_rows)


def read_table(file: BinaryIO, head: bytes, *, name: str) -> Iterator[list[RawRow]]:
    """Rows in lists of at most 256, numbered from 1.

    Args:
        file: the table from its first byte; it can be sought in where `needs_seek(head)`.
        head: the first bytes of it.
        name: the name for errors.

    Raises:
        InputError: pyarrow is missing, or this is no table that can be read.
        OSError: reading failed.
    """
    try:
        arrow: Any = import_module("pyarrow")
    except ImportError as error:
        raise InputError(
            "is a Parquet or Arrow file, which needs the package pyarrow: "
            "pip install 'dikast[parquet]'",
            file=name,
        ) from error
    kind = "Parquet" if head.startswith(PARQUET) else "Arrow"
    try:
        schema, batches = _opened(arrow, file, head)
    except (arrow.lib.ArrowException, OSError) as error:
        if getattr(error, "errno", None):
            raise
        raise InputError(
            f"is no {kind} file that can be read: {_said(error)}", file=name
        ) from error
    _check_names(schema.names, name)
    cleaners = _cleaners(arrow, schema)
    number = 0
    while True:
        try:
            batch = next(batches, None)
            rows = [] if batch is None else _checked(arrow, batch, cleaners)
        except (arrow.lib.ArrowException, OSError) as error:
            if getattr(error, "errno", None):
                raise
            said = _said(error)
            yield [RawRow(number + 1, Flaw(f"the {kind} data is damaged here ({said}); the rows "
                                         "before it were read"))]  # fmt: skip
            return
        if batch is None:
            return
        for start in range(0, len(rows), _ROWS):
            some = rows[start : start + _ROWS]
            yield [RawRow(number + at, row) for at, row in enumerate(some, start=1)]
            number += len(some)


def _opened(arrow: Any, file: BinaryIO, head: bytes) -> tuple[Any, Iterator[Any]]:
    """The schema of a table, and its record batches as they are asked for."""
    if head.startswith(PARQUET):
        parquet = import_module("pyarrow.parquet")
        table = parquet.ParquetFile(
            file,
            pre_buffer=False,  # a row group at once would be as large as its writer pleased
            buffer_size=_BUFFER_BYTES,
            page_checksum_verification=True,
        )
        return table.schema_arrow, table.iter_batches(batch_size=_BATCH_ROWS)
    ipc = import_module("pyarrow.ipc")
    if head.startswith(ARROW_STREAM):
        stream = ipc.open_stream(arrow.PythonFile(file, mode="r"))
        return stream.schema, _sliced(iter(stream))
    whole = ipc.open_file(arrow.PythonFile(file, mode="r"))
    batches = (whole.get_batch(at) for at in range(whole.num_record_batches))
    return whole.schema, _sliced(batches)


def _sliced(batches: Iterator[Any]) -> Iterator[Any]:
    """A record batch may hold a million rows; they become Python objects piece by piece."""
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            yield batch.slice(start, _BATCH_ROWS)


def _check_names(names: list[str], file: str) -> None:
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise InputError(f"two columns are named {twice!r}", file=file)


def _checked(
    arrow: Any, batch: Any, cleaners: dict[str, Clean | None]
) -> list[dict[str, Any] | Flaw]:
    """The rows of a batch, with a flaw for each that is damaged.

    Neither format promises that what it holds is sound, and making objects of what is not would
    take the process down: so lengths and texts are checked first, and row by row where they fail.
    """
    try:
        batch.validate(full=True)
    except arrow.lib.ArrowException as error:
        if batch.num_rows == 1:
            return [Flaw(f"is damaged: {_said(error)}")]
        single = (batch.slice(at, 1) for at in range(batch.num_rows))
        return [row for each in single for row in _checked(arrow, each, cleaners)]
    return _rows(arrow, batch, cleaners)


def _rows(arrow: Any, batch: Any, cleaners: dict[str, Clean | None]) -> list[dict[str, Any] | Flaw]:
    names: list[str] = []
    columns: list[list[Any]] = []
    for name, clean in cleaners.items():
        column = batch.column(name)
        if arrow.types.is_temporal(column.type):
            column = _as_text(arrow, column)
        cells = column.to_pylist()
        columns.append(cells if clean is None else list(map(clean, cells)))
        names.append(name)
    return [
        {name: cell for name, cell in zip(names, row, strict=True) if cell is not None}
        for row in zip(*columns, strict=True)
    ]


def _as_text(arrow: Any, column: Any) -> Any:
    """Dates and times as text: Python's own types hold no nanoseconds."""
    try:
        return column.cast(arrow.string())
    except arrow.lib.ArrowException:
        return column  # durations have no text of their own; `_plain` writes them


def _cleaners(arrow: Any, schema: Any) -> dict[str, Clean | None]:
    """For each column what makes its cells plain data, or None where they are."""
    classes = _classes_of(schema.metadata or {})
    return {
        field.name: (
            _named(classes[field.name])
            if field.name in classes
            else _cleaner(arrow.types, field.type)
        )
        for field in schema
    }


def _cleaner(types: Any, kind: Any) -> Clean | None:
    if types.is_dictionary(kind):
        return _cleaner(types, kind.value_type)
    if types.is_map(kind):
        inner = _cleaner(types, kind.item_type) or _same
        return lambda cell: None if cell is None else {str(key): inner(each) for key, each in cell}
    if types.is_struct(kind):
        parts = [kind.field(at) for at in range(kind.num_fields)]
        clean = {part.name: _cleaner(types, part.type) or _same for part in parts}
        return lambda cell: (
            cell and {name: clean[name](value) for name, value in cell.items() if value is not None}
        )
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner_list = _cleaner(types, kind.value_type)
        if inner_list is None:
            return None
        return lambda cell: cell and [inner_list(each) for each in cell]
    if types.is_boolean(kind) or types.is_integer(kind):
        return None
    if types.is_string(kind) or types.is_large_string(kind):
        return None
    return _plain


def _same(cell: Any) -> Any:
    return cell


def _plain(cell: Any) -> Any:
    """A cell as JSON knows it; "not a number" is the null of many tables."""
    if cell is None or isinstance(cell, (str, bool, int)):
        return cell
    if isinstance(cell, float):
        return None if math.isnan(cell) else cell
    if isinstance(cell, Decimal):
        return int(cell) if cell == cell.to_integral_value() else float(cell)
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return base64.b64encode(cell).decode()
    if isinstance(cell, (date, time)):
        return cell.isoformat()
    return str(cell)


class _Class(msgspec.Struct):
    """A column's entry in the description that Hugging Face `datasets` leaves in a schema."""

    kind: str | None = msgspec.field(name="_type", default=None)
    names: list[str] = []


def _classes_of(metadata: dict[bytes, bytes]) -> dict[str, list[str]]:
    """The names of the classes of each column that holds class numbers."""
    try:
        described = msgspec.json.decode(metadata.get(b"huggingface", b"{}"))
        features = described["info"]["features"]
        found = {name: msgspec.convert(each, _Class) for name, each in features.items()
                 if isinstance(each, dict)}  # fmt: skip
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        return {}
    return {name: each.names for name, each in found.items() if each.kind == "ClassLabel"}


def _named(names: list[str]) -> Clean:
    """A class number as its name; -1 is "not labelled"."""
    return lambda cell: (
        names[cell] if isinstance(cell, int) and 0 <= cell < len(names)
        else None if cell == -1 else cell
    )  # fmt: skip


def _said(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
