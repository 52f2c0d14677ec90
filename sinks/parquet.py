"""Outcomes as a table: a Parquet file that DuckDB, pandas and the rest of the world can query.

A Parquet file is whole or it is nothing: its directory is written last, so it cannot be resumed
and a crash leaves rubbish. `ParquetSink` therefore takes outcomes in as JSON lines beside it (the
journal, `OUT.parquet.jsonl`: appended, locked, resumed like any JSONL output) and writes the table
when it is closed, to a draft that is then put in place. A killed run leaves the journal whole and
the old table untouched. Needs the extra `parquet`, imported when a table is opened.
"""

import contextlib
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from dikast.engine.errors import ConfigError, SinkError
from dikast.engine.model import Outcome
from dikast.engine.tables import OUTCOME_TABLE, RowMaker, Shape
from dikast.sinks.jsonl import JsonlSink, SyncPolicy
from dikast.sinks.resume import OutputScan, scan_output

_GROUP_ROWS: Final = 50_000
_GROUP_CHARS: Final = 32 << 20
_ADDED_ROWS: Final = 1024
_SUFFIXES: Final = (".parquet", ".pq")


def is_table_name(where: str | os.PathLike[str]) -> bool:
    """True when an output of this name is to be a Parquet file."""
    return Path(where).suffix.lower() in _SUFFIXES


def journal_of(path: str | os.PathLike[str]) -> Path:
    """The JSONL file that holds the outcomes of an output: beside a table, else itself."""
    path = Path(path)
    return path.with_name(path.name + ".jsonl") if is_table_name(path) else path


class TableWriter:
    """Records into one Parquet or Arrow file, a row group at a time, in bounded memory.

    Args:
        path: the file; written as it stands, so give a draft.
        columns: see `dikast.engine.tables`.
        kind: "parquet", "arrow" (the IPC file format) or "stream" (the IPC stream format).
        group_rows: a row group is written when it has this many rows (or 32 MiB of text).

    Raises:
        ConfigError: pyarrow is not installed.
        OSError: the file cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        columns: dict[str, Shape],
        *,
        kind: str = "parquet",
        group_rows: int = _GROUP_ROWS,
    ) -> None:
        self._arrow = import_arrow(path)
        self._row_of = RowMaker(columns)
        self._group_rows = group_rows
        self._schema = self._arrow.schema(
            [(name, _arrow_type(self._arrow, shape)) for name, shape in columns.items()]
        )
        self._rows: list[dict[str, Any]] = []
        self._batches: list[Any] = []
        self._held_rows = 0
        self._held_bytes = 0
        self._write, self._end = self._opened(path, kind)

    def add(self, record: msgspec.Struct) -> None:
        """Take one record. Raises `OSError`."""
        self._rows.append(self._row_of(record))
        if len(self._rows) >= _ADDED_ROWS:
            self._pack()
        if self._held_rows >= self._group_rows or self._held_bytes >= _GROUP_CHARS:
            self._write_group()

    def close(self) -> None:
        """Write what is left and the directory of the file. Raises `OSError`."""
        try:
            self._write_group()
        finally:
            self._end()

    def _opened(self, path: Path, kind: str) -> tuple[Callable[[Any], None], Callable[[], None]]:
        if kind != "parquet":
            ipc: Any = import_module("pyarrow.ipc")
            options = ipc.IpcWriteOptions(compression="zstd" if kind == "arrow" else None)
            new = ipc.new_file if kind == "arrow" else ipc.new_stream
            arrow = new(str(path), self._schema, options=options)
            return arrow.write_table, arrow.close
        parquet: Any = import_module("pyarrow.parquet")
        writer = parquet.ParquetWriter(
            str(path), self._schema, compression="zstd", write_page_checksum=True
        )
        return writer.write_table, writer.close

    def _pack(self) -> None:
        """Python objects into columns: a tenth of the memory."""
        if self._rows:
            batch = self._arrow.RecordBatch.from_pylist(self._rows, schema=self._schema)
            self._rows = []
            self._batches.append(batch)
            self._held_rows += batch.num_rows
            self._held_bytes += batch.nbytes

    def _write_group(self) -> None:
        self._pack()
        if self._batches:
            table = self._arrow.Table.from_batches(self._batches, self._schema).combine_chunks()
            self._batches, self._held_rows, self._held_bytes = [], 0, 0
            self._write(table)


class ParquetSink:
    """Outcomes as a Parquet file, gathered in a journal beside it (see the module).

    Columns are the fields of an outcome with their types; `votes` is a list of structs, `scores` a
    map, `meta` and `parts` are JSON text. After a flush the journal holds what was accepted; the
    table is there after `aclose`.

    Args:
        path: the table; what is in its journal is kept and appended to.
        resume: what `scan_output` found in the journal; looked for when it is not given.
        fresh: start over with an empty journal.
        sync: as for `JsonlSink`.

    Raises:
        SinkError: the journal cannot be opened, or another process is writing it.
        ConfigError: pyarrow is not installed.
        InputError: the journal is no output of dikast.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        resume: OutputScan | None = None,
        fresh: bool = False,
        sync: SyncPolicy = "never",
    ) -> None:
        self.path = Path(path)
        self.name = str(path)
        import_arrow(self.path)
        self.journal = journal_of(self.path)
        if resume is None and not fresh:
            resume = scan_output(self.journal)
        self._sink: JsonlSink | None = JsonlSink(
            self.journal, resume=resume, fresh=fresh, sync=sync
        )

    async def write(self, outcome: Outcome) -> None:
        """Accept one outcome into the journal. Raises `SinkError`."""
        if self._sink is None:
            raise SinkError(f"{self.name}: the output is closed")
        await self._sink.write(outcome)

    async def flush(self) -> None:
        """Bring all that was accepted into the journal. Raises `SinkError`."""
        if self._sink is not None:
            await self._sink.flush()

    async def aclose(self) -> None:
        """Close the journal and write the table; may be called twice.

        Raises:
            SinkError: the journal lacks rows, or the table cannot be written (the journal is
                whole then, and the message says how to make the table of it).
        """
        sink, self._sink = self._sink, None
        if sink is not None:
            await sink.aclose()
            write_table(self.journal, self.path)

    def __repr__(self) -> str:
        return f"ParquetSink({self.name!r}, {'closed' if self._sink is None else self._sink!r})"


def write_table(journal: Path, path: Path) -> int:
    """Make the table of a journal, whole or not at all; the number of rows.

    Raises:
        SinkError: the table cannot be written, or the journal is damaged.
    """
    decode = msgspec.json.Decoder(Outcome).decode
    draft = path.with_name(path.name + ".tmp")
    rows = 0
    try:
        with contextlib.ExitStack() as stack:
            lines = stack.enter_context(journal.open("rb"))
            writer = TableWriter(draft, OUTCOME_TABLE)
            stack.callback(writer.close)
            for rows, line in enumerate(lines, start=1):  # noqa: B007 - counted
                writer.add(decode(line))
        os.replace(draft, path)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise SinkError(
            f"{path}: cannot be written: {what}; the outcomes are in {journal}, and "
            f"`dikast convert {journal} -o {path}` makes the table of them"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
    return rows


def import_arrow(path: Path) -> Any:
    """The library. Raises `ConfigError` where it is not installed."""
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise ConfigError(
            f"{path}: writing a table needs the package pyarrow: pip install 'dikast[parquet]'"
        ) from error


def _arrow_type(arrow: Any, shape: Shape) -> Any:
    if shape.kind == "list":
        return arrow.list_(_arrow_type(arrow, shape.parts[""]))
    if shape.kind == "map":
        return arrow.map_(arrow.string(), _arrow_type(arrow, shape.parts[""]))
    if shape.kind == "struct":
        return arrow.struct(
            [(name, _arrow_type(arrow, part)) for name, part in shape.parts.items()]
        )
    plain = {"int": arrow.int64(), "float": arrow.float64(), "bool": arrow.bool_()}
    return plain.get(shape.kind, arrow.string())
