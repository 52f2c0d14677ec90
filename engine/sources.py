"""Where pairs come from: files, standard input, and whatever a program hands in.

The first station of a pair. A row that is no pair is handed on as a row that says so, with file,
line and field, and the rest go on; only an input that cannot be read at all raises. Reading is
pulled, a batch at a time, so memory does not depend on the size of the input. Knows nothing of
judging.
"""

import asyncio
import json
import os
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Iterable,
    Iterator,
    Sequence,
)
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from dikast.engine.errors import InputError
from dikast.engine.formats import detect, format_named, map_rows
from dikast.engine.lines import Flaw, Item, Read, read_items
from dikast.engine.model import BadRow, Pair, Row
from dikast.engine.text import scrub

ROW_BYTES_MAX: Final = 64 << 20
_BATCH_ROWS = 256
_LOOK_AT_ROWS = 20
_STDIN = 0
_STDIN_BYTES = 1 << 16

PathLike = str | os.PathLike[str]


class FileSource:
    """Pairs from JSONL files or JSON arrays, plain, gzip or zstd, one after the other.

    The path `-` is standard input; it is read in a thread of its own, a batch as soon as there is
    one, so a slow writer keeps nobody waiting. Every file's format is recognised by itself.

    Args:
        paths: one path or several.
        format: the name of a format (docs/formats.md), or "auto".
        batch_rows: the most rows in one batch.
        row_bytes_max: a longer row becomes a bad row; it also bounds the memory.

    Raises:
        InputError: there is no format of that name, or no path was given.
    """

    def __init__(
        self,
        paths: PathLike | Sequence[PathLike],
        *,
        format: str = "auto",
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
        self._batch_rows = batch_rows
        self._row_bytes_max = row_bytes_max
        self._fd = -1
        self.formats: dict[str, str] = {}
        """The format of each path that has been read from, by its name."""

    async def batches(self) -> AsyncGenerator[list[Row], None]:
        """Rows in input order.

        Raises:
            InputError: a file is missing, cannot be read, or its format is not recognised.
        """
        for path in self.paths:
            if path == "-":
                rows = self._rows("stdin", lambda size: os.read(_STDIN, min(size, _STDIN_BYTES)))
                while (batch := await _in_thread(rows)) is not None:
                    yield batch
                continue
            self._fd = _open(path)
            try:
                for batch in self._rows(path, lambda size: os.read(self._fd, size)):
                    yield batch
            finally:
                self._close()

    async def aclose(self) -> None:
        """Close the file that is open, if one is."""
        self._close()

    def __repr__(self) -> str:
        return f"FileSource({self.paths!r}, format={self._format!r})"

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _rows(self, file: str, read: Read) -> Iterator[list[Row]]:
        items = read_items(read, row_bytes_max=self._row_bytes_max, file=file)
        try:
            yield from self._mapped(file, items)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=file) from error

    def _mapped(self, file: str, chunks: Iterator[list[Item]]) -> Iterator[list[Row]]:
        form = self._format
        if form != "auto":
            self.formats[file] = form
        waiting: list[Item] = []
        for items in chunks:
            if form == "auto":
                waiting.extend(items)
                if len(waiting) < _LOOK_AT_ROWS and not _any_object(waiting):
                    continue
                form = self.formats[file] = _recognise(waiting, file)
                items, waiting = waiting, []
            yield from self._cut(items, form, file)
        if waiting:
            form = self.formats[file] = _recognise(waiting, file)
            yield from self._cut(waiting, form, file)

    def _cut(self, items: list[Item], form: str, file: str) -> Iterator[list[Row]]:
        """Batches of at most `batch_rows` rows, mapped as they are asked for."""
        batch: list[Row] = []
        for number, raw in items:
            for item in items_of(raw, form):
                batch.append(Row(item=item, file=file, line=number))
                if len(batch) >= self._batch_rows:
                    yield batch
                    batch = []
        if batch:
            yield batch


class IterableSource:
    """Pairs that a program has or makes: any iterable or async iterable of pairs or objects.

    Objects (dicts) are mapped as rows of a file are; ready rows pass through. An async iterable is
    handed on one by one, so that nobody waits for a batch to fill.

    Args:
        items: pairs, rows, or objects of one of the known formats.
        format: the format of objects, or "auto".
        name: stands for the file in messages.
    """

    def __init__(
        self,
        items: Iterable[Pair | Row | dict[str, Any]] | AsyncIterable[Pair | Row | dict[str, Any]],
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
        if isinstance(item, Pair):
            return [Row(item=item, file=self._name, line=self._number)]
        if self._format == "auto" and isinstance(item, dict):
            self._format = detect([item], self._name or None)
        form = "dikast" if self._format == "auto" else self._format
        return [Row(item=each, file=self._name, line=self._number) for each in map_rows(form, item)]


class MemorySource:
    """Pairs from a list, as often as wanted: the in-memory twin of the port, for tests."""

    def __init__(self, items: Iterable[Pair | BadRow], *, batch_rows: int = 16) -> None:
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


def _open(path: str) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise InputError("there is no such file", file=path) from error
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", file=path) from error
    if Path(path).is_dir():
        os.close(fd)
        raise InputError("is a folder; name the files in it", file=path)
    return fd


def items_of(raw: bytes | Flaw, form: str) -> list[Pair | BadRow]:
    """The pairs that a row of JSON stands for in the named format, or what is wrong with it."""
    obj = raw if isinstance(raw, Flaw) else _decoded(raw)
    if isinstance(obj, Flaw):
        return [BadRow(message=obj.message)]
    return map_rows(form, obj)


def _decoded(raw: bytes) -> Any:
    """The value of a row, or a flaw. What only a lenient reader takes is taken, and cleaned."""
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


def _any_object(items: list[Item]) -> bool:
    """True when a row to recognise the format by has come (the last one, in all likelihood)."""
    return any(
        not isinstance(item.raw, Flaw) and isinstance(_decoded(item.raw), dict)
        for item in items[-_LOOK_AT_ROWS:]
    )


def _recognise(items: list[Item], file: str) -> str:
    """The format of the first rows. Where not one can be read, the first complaint is the error."""
    values = [
        item.raw if isinstance(item.raw, Flaw) else _decoded(item.raw)
        for item in items[:_LOOK_AT_ROWS]
    ]
    if not any(isinstance(value, dict) for value in values):
        flaw = next((value for value in values if isinstance(value, Flaw)), None)
        what = flaw.message if flaw else "the rows are no objects with named fields"
        raise InputError(f"no row can be read; {what}", file=file, line=items[0].number)
    return detect(values, file)


async def _in_thread(rows: Iterator[list[Row]]) -> list[Row] | None:
    """The next batch, read in a daemon thread: a reader that waits for ever must not keep the
    program from ending, as a thread of the default executor would.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[list[Row] | None] = loop.create_future()

    def settle(batch: list[Row] | None, error: InputError | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(batch)
        else:
            done.set_exception(error)

    def work() -> None:
        batch: list[Row] | None = None
        error: InputError | None = None
        try:
            batch = next(rows, None)
        except InputError as problem:
            error = problem
        try:
            loop.call_soon_threadsafe(settle, batch, error)
        except RuntimeError:
            return  # the loop has ended meanwhile: nobody waits for this batch

    threading.Thread(target=work, name="dikast-stdin", daemon=True).start()
    return await done
