"""Records into files of any kind that dikast reads: JSONL, JSON, CSV, TSV, Parquet, Arrow.

For `dikast convert`; a run itself writes through a `Sink`. A file is put in place only when it is
whole. The kind is told by the name, and `.gz` or `.zst` behind it packs it.
"""

import contextlib
import csv
import gzip
import hashlib
import io
import os
import shutil
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, cast

import msgspec

from dikast.engine.errors import ConfigError, InputError
from dikast.engine.tables import SCALARS, Shape
from dikast.sinks.parquet import TableWriter

PACKED: Final = (".gz", ".zst", ".zstd")
_TABLES: Final = {".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow"}
_DATASET: Final = "/"
_SHARD: Final = "data-00000-of-00001.arrow"
_TEXTS: Final = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".tab")


class RecordWriter(Protocol):
    """Takes records of one kind."""

    def add(self, record: msgspec.Struct) -> None:
        """Take one. Raises `OSError`."""
        ...

    def close(self) -> None:
        """Write what is left. Raises `OSError`."""
        ...


def kind_of(where: str) -> str:
    """The suffix that decides what is written; ".jsonl" for standard output, "/" for a dataset.

    Raises:
        ConfigError: a file of this name is not written.
    """
    if where == "-":
        return ".jsonl"
    if where.endswith("/"):
        return _DATASET
    path = Path(where)
    packed = path.suffix.lower() in PACKED
    suffix = (Path(path.stem) if packed else path).suffix.lower()
    if suffix in _TEXTS or (suffix in _TABLES and not packed):
        return suffix
    raise ConfigError(
        f"{where}: the name does not say what to write; let it end in "
        f"{', '.join((*_TEXTS, *_TABLES))} (.gz or .zst behind one of text packs it), or in / for "
        "a dataset"
    )


@contextlib.contextmanager
def open_records(where: str, columns: dict[str, Shape]) -> Generator[RecordWriter, None, None]:
    """A writer into `where`, whose file is put in place at the end; "-" is standard output.

    Args:
        where: path or "-".
        columns: the columns of a table, see `dikast.engine.tables`.

    Raises:
        ConfigError: a file of this name is not written, or a package is missing.
        InputError: it cannot be written.
    """
    kind = kind_of(where)
    if where == "-":
        writer: RecordWriter = _JsonLines(sys.stdout.buffer)
        yield writer
        sys.stdout.buffer.flush()
        return
    path = Path(where)
    draft = path.with_name(path.name + ".tmp")
    if kind == _DATASET:
        with _dataset(path, draft, columns) as writer:
            yield writer
        return
    try:
        with contextlib.ExitStack() as stack:
            if kind in _TABLES:
                writer = TableWriter(draft, columns, kind=_TABLES[kind])
            else:
                file = stack.enter_context(draft.open("wb"))
                packed = stack.enter_context(_packing(file, path.suffix.lower()))
                writer = _text_writer(kind, packed, columns)
            stack.callback(writer.close)
            yield writer
        os.replace(draft, path)
    except OSError as error:
        what = error.strerror or str(error)
        raise InputError(f"cannot be written: {what}", file=where) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


@contextlib.contextmanager
def _dataset(
    path: Path, draft: Path, columns: dict[str, Shape]
) -> Generator[RecordWriter, None, None]:
    """A folder as Hugging Face `datasets` saves and loads one: a shard and two descriptions."""
    if path.exists():
        raise InputError("is there already; name a folder that is not", file=str(path))
    if any(map(_has_map, columns.values())):
        raise ConfigError(
            f"{path}/: a dataset has no maps, which outcomes have; write them as .parquet"
        )
    state: dict[str, Any] = {
        "_data_files": [{"filename": _SHARD}],
        "_fingerprint": hashlib.sha256(path.name.encode()).hexdigest()[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    try:
        draft.mkdir()
        writer = TableWriter(draft / _SHARD, columns, kind="stream")
        with contextlib.closing(writer):
            yield writer
        (draft / "state.json").write_bytes(msgspec.json.encode(state))
        (draft / "dataset_info.json").write_bytes(b"{}")
        draft.rename(path)
    except OSError as error:
        what = error.strerror or str(error)
        raise InputError(f"cannot be written: {what}", file=str(path)) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _has_map(shape: Shape) -> bool:
    return shape.kind == "map" or any(map(_has_map, shape.parts.values()))


@contextlib.contextmanager
def _packing(file: BinaryIO, suffix: str) -> Generator[BinaryIO, None, None]:
    if suffix == ".gz":
        packer = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
        with packer as packed:
            yield cast("BinaryIO", packed)
    elif suffix in PACKED:
        import zstandard  # only where it is needed: it costs start-up time

        compressor = zstandard.ZstdCompressor(level=6)
        with compressor.stream_writer(file, closefd=False) as squeezed:
            yield cast("BinaryIO", squeezed)
    else:
        yield file


def _text_writer(kind: str, file: BinaryIO, columns: dict[str, Shape]) -> RecordWriter:
    if kind == ".json":
        return _JsonArray(file)
    if kind in (".jsonl", ".ndjson"):
        return _JsonLines(file)
    return _Csv(file, columns, "," if kind == ".csv" else "\t")


class _JsonLines:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._encode = msgspec.json.Encoder().encode

    def add(self, record: msgspec.Struct) -> None:
        self._file.write(self._encode(record) + b"\n")

    def close(self) -> None:
        return


class _JsonArray:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._encode = msgspec.json.Encoder().encode
        self._before = b"[\n"

    def add(self, record: msgspec.Struct) -> None:
        self._file.write(self._before + self._encode(record))
        self._before = b",\n"

    def close(self) -> None:
        self._file.write(b"[]\n" if self._before == b"[\n" else b"\n]\n")


class _Csv:
    """Scalars as text, everything else as JSON; what is empty or absent is an empty cell."""

    def __init__(self, file: BinaryIO, columns: dict[str, Shape], delimiter: str) -> None:
        self._columns = columns
        self._text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        self._rows = csv.writer(self._text, delimiter=delimiter, lineterminator="\r\n")
        self._rows.writerow(columns)

    def add(self, record: msgspec.Struct) -> None:
        tag = record.__struct_config__.tag
        self._rows.writerow(
            tag if name == "kind" else _csv_cell(getattr(record, name, None), shape)
            for name, shape in self._columns.items()
        )

    def close(self) -> None:
        self._text.detach()


def _csv_cell(value: Any, shape: Shape) -> str:
    if value is None:
        return ""
    if shape.kind == "bool":
        return "true" if value else "false"
    if shape.kind in SCALARS:
        return str(value)
    return msgspec.json.encode(value).decode() if value else ""
