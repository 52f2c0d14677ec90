"""CSV and TSV as numbered rows: the first line names the columns, every cell is text.

Beside `engine.lines` on the way in, and as careful: memory is bounded, a row that is damaged is a
flaw in its place, and the number of a row is the line of the file that it begins in. A quote that
is never closed is a flaw and not one huge cell.
"""

import codecs
import csv
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dikast.engine.errors import InputError
from dikast.engine.lines import BOM, UTF16, Flaw, RawRow

_ROWS: Final = 256
_DELIMITERS: Final = ",;\t"
_NOT_TEXT: Final = re.compile("[\ud800-\udfff]")


def read_csv(
    chunks: Iterator[bytes | Flaw], *, tabs: bool, row_bytes_max: int, file: str
) -> Iterator[list[RawRow]]:
    """Rows in lists, one for what has been read so far and at most 256 rows long.

    Args:
        chunks: the text in pieces, see `dikast.engine.lines.unpacked`.
        tabs: cells are separated by tabs; else by commas, or by what the first line shows.
        row_bytes_max: a cell longer than this, in characters, makes its row a flaw.
        file: the name for errors.

    Raises:
        InputError: the first line names no columns, or one twice.
    """
    feed = _Feed(chunks, row_bytes_max, file)
    first = feed.peek()
    if first is None:
        if feed.flaw is not None:
            yield [RawRow(1, feed.flaw)]
        return
    delimiter = "\t" if tabs else _delimiter_of(first)
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    names: list[str] | None = None
    done = False
    while not done:
        items: list[RawRow] = []
        with _long_cells(row_bytes_max):
            while len(items) < _ROWS and not (items and feed.is_empty):
                number = feed.number + 1
                try:
                    cells = next(reader)
                except StopIteration:
                    done = True
                    break
                except csv.Error as error:
                    if names is None:
                        raise InputError(_explain(error), file=file, line=number) from error
                    items.append(RawRow(number, Flaw(_explain(error))))
                    continue
                if not cells:
                    continue
                if names is None:
                    names = _names(cells, file)
                    continue
                items.append(RawRow(number, _row(names, cells, check=feed.odd)))
        if done and feed.flaw is not None:
            items.append(RawRow(feed.number + 1, feed.flaw))
        if items:
            yield items


def looks_like_csv(head: bytes, known: frozenset[str]) -> bool:
    """True when the first line of a text without a telling name lists columns that are known."""
    line = head.removeprefix(BOM).lstrip().partition(b"\n")[0].decode("utf-8", "replace")
    if line[:1] in ("{", "["):
        return False
    return any(
        len(cells := line.split(delimiter)) > 1
        and any(cell.strip().strip('"') in known for cell in cells)
        for delimiter in _DELIMITERS
    )


class _Feed:
    """Lines of text with their ends, pulled by the CSV reader; counts them as they go."""

    def __init__(self, chunks: Iterator[bytes | Flaw], most: int, file: str) -> None:
        self._chunks = chunks
        self._most = most
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._lines: deque[str] = deque()
        self._rest = ""
        self._at_end = False
        self._begun = False
        self.number = 0
        self.odd = False  # bytes that are no UTF-8 were met: rows have to be looked at
        self.flaw: Flaw | None = None

    @property
    def is_empty(self) -> bool:
        """True when the next line has still to be read from the input."""
        return not self._lines

    def peek(self) -> str | None:
        """The first line; None for an empty input."""
        while not self._lines and self._pull():
            pass
        return self._lines[0] if self._lines else None

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        while not self._lines:
            if not self._pull():
                raise StopIteration
        self.number += 1
        return self._lines.popleft()

    def _pull(self) -> bool:
        if self._at_end:
            return False
        chunk = next(self._chunks, None)
        if chunk is None:
            self._at_end = True
            last = self._rest + self._decode(b"", True)
            self.odd = self.odd or _NOT_TEXT.search(last) is not None
            if last:
                self._lines.append(last)
        elif isinstance(chunk, Flaw):
            self._at_end = True  # what the input broke off in is no row
            self.flaw = chunk
        else:
            self._take_lines(chunk)
        return True

    def _take_lines(self, chunk: bytes) -> None:
        if not self._begun:
            if chunk.startswith(UTF16):
                raise InputError("is UTF-16 text; convert it to UTF-8", file=self._file)
            chunk, self._begun = chunk.removeprefix(BOM), True
        text = self._rest + self._decode(chunk)
        self.odd = self.odd or (not text.isascii() and _NOT_TEXT.search(text) is not None)
        lines = text.split("\n")
        self._rest = lines.pop()
        if len(self._rest) > self._most:
            raise InputError(
                f"a line is longer than {self._most:,} characters, the most that is read",
                file=self._file,
                line=self.number + len(self._lines) + len(lines) + 1,
            )
        self._lines.extend([line + "\n" for line in lines])


@contextmanager
def _long_cells(most: int) -> Iterator[None]:
    """The module's own limit of 128 KiB a cell, raised while rows are taken and put back."""
    before = csv.field_size_limit(most)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _delimiter_of(line: str) -> str:
    """The separator of a first line: a comma, unless only another one is there."""
    if "," in line:
        return ","
    return max(_DELIMITERS, key=line.count) if any(map(line.count, _DELIMITERS)) else ","


def _names(cells: list[str], file: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if any(_NOT_TEXT.search(name) for name in names):
        raise InputError("is not UTF-8 text", file=file, line=1)
    if not any(names):
        raise InputError("the first line of a CSV file has to name its columns", file=file, line=1)
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise InputError(f"two columns are named {name!r}", file=file, line=1)
        seen.add(name)
    return names


def _row(names: list[str], cells: list[str], *, check: bool) -> "dict[str, str] | Flaw":
    if len(cells) != len(names):
        return Flaw(f"has {len(cells)} cells, and the first line names {len(names)} columns")
    if check and any(map(_NOT_TEXT.search, cells)):
        return Flaw("is not UTF-8 text")
    return {name: cell for name, cell in zip(names, cells, strict=True) if name}


def _explain(error: csv.Error) -> str:
    text = str(error)
    if "unexpected end" in text:
        return "a quote that opens here is never closed, so all that follows stands in one cell"
    if "new-line character" in text:
        return "a carriage return alone stands between cells; end lines with a line feed"
    if "field larger" in text:
        return "a cell is longer than what is read; is a quote not closed?"
    return f"is not CSV: {text}"
