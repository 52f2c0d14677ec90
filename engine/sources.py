"""Where pairs and single answers come from: files, standard input, and whatever a program hands in.

The first station of a pair. A row that is no pair is handed on as a row that says so, with file,
line and field, and the rest go on; only an input that cannot be read at all raises. Reading is
pulled, a batch at a time, so memory does not depend on the size of the input. Knows nothing of
judging.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from dikast.engine.columns import Columns
from dikast.engine.errors import InputError
from dikast.engine.formats import detect, format_named, map_rows
from dikast.engine.lines import Flaw, RawRow
from dikast.engine.model import BadRow, Item, Pair, Row, Subject
from dikast.engine.places import STDIN, Place, is_pipe, is_remote, places, shown
from dikast.engine.reading import decoded, read_place
from dikast.engine.tables import is_outcome

ROW_BYTES_MAX: Final = 64 << 20
_BATCH_ROWS = 256
_LOOK_AT_ROWS = 20

PathLike = str | os.PathLike[str]
T = TypeVar("T")


class FileSource:
    """Pairs from files of any kind, one after the other: JSONL, JSON arrays, CSV, TSV, Parquet,
    Arrow, plain or packed, on disk or at an address; see docs/formats.md.

    The path `-` is standard input; it and whatever is at an address is read in a thread of its
    own, a batch as soon as there is one, so a slow writer keeps nobody waiting. Every file's
    format is recognised by itself.

    Args:
        paths: one or several of: file, folder, saved dataset, pattern, address, `-`.
        format: the name of a format (docs/formats.md), or "auto".
        columns: which column of the input stands for which field: `{"question": "prompt"}`.
        split: the part of a dataset that is wanted.
        batch_rows: the most rows in one batch.
        row_bytes_max: a longer row (in CSV: cell) becomes a bad row; it also bounds the memory.

    Raises:
        InputError: there is no format of that name, or no path was given.
        ConfigError: a field in `columns` is none.
    """

    def __init__(
        self,
        paths: PathLike | Sequence[PathLike],
        *,
        format: str = "auto",
        columns: Mapping[str, str] | None = None,
        split: str | None = None,
        batch_rows: int = _BATCH_ROWS,
        row_bytes_max: int = ROW_BYTES_MAX,
    ) -> None:
        given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
        self.paths = [os.fspath(path) for path in given]
        if not self.paths:
            raise InputError("no input was named; give a file, or - for standard input")
        if format != "auto":
            format_named(format)
        self._format = format
        self._columns = Columns(columns or {})
        self._split = split
        self._batch_rows = batch_rows
        self._row_bytes_max = row_bytes_max
        self._reading: Generator[Any, None, None] | None = None
        self.formats: dict[str, str] = {}
        """The format of each file that has been read from, by its name."""

    async def batches(self) -> AsyncGenerator[list[Row], None]:
        """Rows in input order.

        Raises:
            InputError: a file is missing, cannot be read, or its format is not recognised.
        """
        async for batch in self._each(self._rows):
            yield batch

    async def look(self) -> None:
        """See that every input is there, and that the first rows of each local one can be read.

        Hands nothing out, and takes nothing from standard input or a pipe.

        Raises:
            InputError: one is missing, cannot be read, or its format is not recognised.
        """
        for path in self.paths:
            if path == STDIN or is_pipe(path):
                continue
            for place in (await self._places(path))[:1]:
                if not place.slow:
                    with contextlib.closing(self._rows(place)) as rows:
                        next(rows, None)

    async def objects(self) -> AsyncIterator[list[tuple[str, int, Any]]]:
        """The rows as they stand, whatever they are: file, number, and the value or a `Flaw`.

        Raises:
            InputError: a file is missing or cannot be read.
        """
        async for batch in self._each(self._objects):
            yield batch

    async def aclose(self) -> None:
        """Close the file that is open, if one is."""
        self._close()

    def __repr__(self) -> str:
        return f"FileSource({[shown(path) for path in self.paths]!r}, format={self._format!r})"

    async def _each(
        self, read: Callable[[Place], Generator[list[T], None, None]]
    ) -> AsyncIterator[list[T]]:
        """What `read` gives of every file, in a thread where reading may have to wait."""
        for path in self.paths:
            for place in await self._places(path):
                self._reading = rows = read(place)
                try:
                    if place.slow:
                        while (batch := await _in_thread(partial(next, rows, None))) is not None:
                            yield batch
                    else:
                        for batch in rows:
                            yield batch
                finally:
                    self._close()

    async def _places(self, path: str) -> list[Place]:
        if is_remote(path):
            return await _in_thread(partial(places, path, self._split))
        return places(path, self._split)

    def _close(self) -> None:
        rows, self._reading = self._reading, None
        if rows is not None:
            # A reader that waits in its thread is let go with the thread.
            with contextlib.suppress(ValueError):
                rows.close()

    def _rows(self, place: Place) -> Generator[list[Row], None, None]:
        chunks = read_place(place, self._columns, row_bytes_max=self._row_bytes_max)
        with contextlib.closing(chunks):
            form = self._format
            waiting: list[RawRow] = []
            for items in chunks:
                if form == "auto":
                    waiting.extend(items)
                    if len(waiting) < _LOOK_AT_ROWS and not _any_object(waiting):
                        continue
                    form = _recognise(waiting, place.shown)
                    items, waiting = waiting, []
                self.formats[place.shown] = form
                yield from self._cut(items, form, place.shown)
            if waiting:
                form = self.formats[place.shown] = _recognise(waiting, place.shown)
                yield from self._cut(waiting, form, place.shown)

    def _objects(self, place: Place) -> Generator[list[tuple[str, int, Any]], None, None]:
        chunks = read_place(place, self._columns, row_bytes_max=self._row_bytes_max)
        with contextlib.closing(chunks):
            for items in chunks:
                yield [(place.shown, item.number, decoded(item.raw)) for item in items]

    def _cut(self, items: list[RawRow], form: str, file: str) -> Iterator[list[Row]]:
        """Batches of at most `batch_rows` rows, mapped as they are asked for."""
        batch: list[Row] = []
        for number, raw in items:
            for item in items_of(raw, form):
                if isinstance(item, BadRow) and self._columns:
                    field = self._columns.column_of(item.field)
                    item = msgspec.structs.replace(item, field=field)
                batch.append(Row(item=item, file=file, line=number))
                if len(batch) >= self._batch_rows:
                    yield batch
                    batch = []
        if batch:
            yield batch


class IterableSource:
    """Pairs (or items) that a program has or makes: any iterable or async iterable of them.

    Objects (dicts) are mapped as rows of a file are; ready rows pass through. An async iterable is
    handed on one by one, so that nobody waits for a batch to fill.

    Args:
        items: pairs, items, rows, or objects of one of the known formats.
        format: the format of objects, or "auto".
        name: stands for the file in messages.
    """

    def __init__(
        self,
        items: Iterable[Subject | Row | dict[str, Any]]
        | AsyncIterable[Subject | Row | dict[str, Any]],
        *,
        format: str = "auto",
        name: str = "",
        batch_rows: int = 64,
    ) -> None:
        if format != "auto":
            format_named(format)
        self._items = items
        self._format = format
        self._name = name
        self._batch_rows = batch_rows
        self._number = 0

    async def batches(self) -> AsyncIterator[list[Row]]:
        """Rows in the order of the iterable.

        Raises:
            InputError: an object is of no known format.
        """
        if isinstance(self._items, AsyncIterable):
            async for item in self._items:
                yield self._rows(item)
            return
        iterator = iter(self._items)
        while some := list(islice(iterator, self._batch_rows)):
            yield [row for item in some for row in self._rows(item)]

    async def aclose(self) -> None:
        """Close the async generator behind it, if it is one."""
        close = getattr(self._items, "aclose", None)
        if close is not None:
            await close()

    def __repr__(self) -> str:
        return f"IterableSource({type(self._items).__name__}, {self._number} read)"

    def _rows(self, item: Any) -> list[Row]:
        self._number += 1
        if isinstance(item, Row):
            return [item]
        if isinstance(item, Pair | Item):
            return [Row(item=item, file=self._name, line=self._number)]
        if self._format == "auto" and isinstance(item, dict):
            self._format = detect([item], self._name or None)
        form = "dikast" if self._format == "auto" else self._format
        return [Row(item=each, file=self._name, line=self._number) for each in map_rows(form, item)]


class MemorySource:
    """Pairs from a list, as often as wanted: the in-memory twin of the port, for tests."""

    def __init__(self, items: Iterable[Subject | BadRow], *, batch_rows: int = 16) -> None:
        self._rows = [Row(item=item, line=line) for line, item in enumerate(items, start=1)]
        self._batch_rows = batch_rows
        self.closed = False

    async def batches(self) -> AsyncIterator[list[Row]]:
        """The rows, from the first one."""
        for start in range(0, len(self._rows), self._batch_rows):
            yield self._rows[start : start + self._batch_rows]

    async def aclose(self) -> None:
        """Noted; nothing to release."""
        self.closed = True

    def __repr__(self) -> str:
        return f"MemorySource({len(self._rows)} rows)"


def items_of(raw: bytes | dict[str, Any] | Flaw, form: str) -> list[Subject | BadRow]:
    """What a row (JSON, or an object) stands for in the named format, or what is wrong with it."""
    obj = decoded(raw)
    if isinstance(obj, Flaw):
        return [BadRow(message=obj.message)]
    return map_rows(form, obj)


def _any_object(items: list[RawRow]) -> bool:
    """True when a row to recognise the format by has come (the last one, in all likelihood)."""
    return any(isinstance(decoded(item.raw), dict) for item in items[-_LOOK_AT_ROWS:])


def _recognise(items: list[RawRow], file: str) -> str:
    """The format of the first rows. Where not one can be read, the first complaint is the error."""
    values = [decoded(item.raw) for item in items[:_LOOK_AT_ROWS]]
    if not any(isinstance(value, dict) for value in values):
        flaw = next((value for value in values if isinstance(value, Flaw)), None)
        what = flaw.message if flaw else "the rows are no objects with named fields"
        raise InputError(f"no row can be read; {what}", file=file, line=items[0].number)
    if any(map(is_outcome, values)):
        raise InputError(
            "holds outcomes of dikast judge and no pairs; only dikast convert takes them (on "
            "standard input with --format outcomes)",
            file=file,
            line=items[0].number,
        )
    return detect(values, file)


async def _in_thread(work: Callable[[], T]) -> T:
    """What `work` returns, done in a daemon thread: a reader that waits for ever must not keep the
    program from ending, as a thread of the default executor would.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[Any], None], value: Any) -> None:
        if not done.done():
            set_it(value)

    def run() -> None:
        set_it: Callable[[Any], None] = done.set_exception
        value: Any = RuntimeError("the reader has broken down")
        try:
            set_it, value = done.set_result, work()
        except InputError as problem:
            set_it, value = done.set_exception, problem
        finally:
            # The loop may have ended meanwhile: then nobody waits for this.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, set_it, value)

    threading.Thread(target=run, name="dikast-reader", daemon=True).start()
    return await done
