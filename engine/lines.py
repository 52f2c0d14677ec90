"""From bytes on disk to numbered rows of bytes: unpacking, splitting, in bounded memory.

The first step of a text file on its way in. `read_items` takes anything with a `read`, recognises
gzip and zstd by their first bytes and a JSON array by its first bracket, and yields the rows as
bytes. `unpacked` alone is the way of other texts (`engine.csvrows`).
What is wrong with the input becomes a `Flaw` in the place where it was met; what was read before
it has been handed out. Knows nothing of JSON values or pairs.
"""

import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dikast.engine.errors import InputError

Read = Callable[[int], bytes]
_CHUNK_BYTES = 1 << 18
PACKED_BYTES = 1 << 15  # packed input is taken in small bites: one bite may unpack to a lot
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
PARQUET = b"PAR1"
HEAD_BYTES = 6
BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Flaw(NamedTuple):
    """Something that stands in the place of a row and cannot be read as one."""

    message: str


class Item(NamedTuple):
    """A row as bytes (or a flaw) and its one-based number: the line, or the place in an array."""

    number: int
    raw: bytes | Flaw


class RawRow(NamedTuple):
    """A row of any input: an `Item`, or out of a table an object with the columns as fields."""

    number: int
    raw: bytes | dict[str, Any] | Flaw


def read_items(read: Read, *, row_bytes_max: int, file: str) -> Iterator[list[Item]]:
    """Rows in lists, one for each chunk that was read. Blank lines are left out, but counted.

    Args:
        read: returns up to so many bytes, and none at the end.
        row_bytes_max: a row longer than this becomes a flaw.
        file: the name for errors.

    Raises:
        InputError: the input is of a kind that cannot be read at all.
        OSError: reading failed.
    """
    first = head_of(read)
    if first.startswith(PARQUET):
        raise InputError(
            "is a Parquet file, and JSON lines are read here; name the journal beside it "
            f"({file}.jsonl), or make JSON lines of it with dikast convert",
            file=file,
        )
    yield from split_json(unpacked(first, read), row_bytes_max=row_bytes_max, file=file)


def split_json(
    chunks: Iterator[bytes | Flaw], *, row_bytes_max: int, file: str
) -> Iterator[list[Item]]:
    """As `read_items`, for text that has been unpacked."""
    head = b""
    for chunk in chunks:  # enough to see a byte order mark and the first character
        if isinstance(chunk, Flaw):
            yield [Item(1, chunk)]
            return
        head += chunk
        if len(head) > len(BOM) and head.removeprefix(BOM).lstrip():
            break
    if head.startswith(UTF16):
        raise InputError("is UTF-16 text; convert it to UTF-8", file=file)
    head = head.removeprefix(BOM)
    is_array = head.lstrip().startswith(b"[")
    splitter: _Lines | _Elements = _Elements(row_bytes_max) if is_array else _Lines(row_bytes_max)
    yield splitter.feed(head)
    for chunk in chunks:
        if isinstance(chunk, Flaw):
            yield [*splitter.cut_off(), Item(splitter.number + 1, chunk)]
            return
        if items := splitter.feed(chunk):
            yield items
    yield splitter.finish()


def read_lines(read: Read, *, row_bytes_max: int, first: int) -> Iterator[list[Item]]:
    """Rows of plain text that is known to be lines, such as a part of a file cut at a newline.

    Args:
        read: returns up to so many bytes, and none at the end.
        row_bytes_max: a row longer than this becomes a flaw.
        first: the number of the first line.

    Raises:
        OSError: reading failed.
    """
    lines = _Lines(row_bytes_max)
    lines.number = first - 1
    while chunk := read(_CHUNK_BYTES):
        if items := lines.feed(chunk):
            yield items
    yield lines.finish()


def is_plain_lines(head: bytes) -> bool:
    """True when an input that begins with `head` is lines of text as they stand: not packed, no
    array, no byte order mark.
    """
    marks = (_GZIP, _ZSTD, PARQUET, BOM, *UTF16)
    return not head.startswith(marks) and not head.lstrip().startswith(b"[")


# -- unpacking --------------------------------------------------------------------------------


def head_of(read: Read) -> bytes:
    """The first bytes of an input, enough to recognise what it is."""
    first = read(PACKED_BYTES)
    while first and len(first) < HEAD_BYTES and (more := read(PACKED_BYTES)):
        first += more
    return first


def unpacked(first: bytes, read: Read) -> Iterator[bytes | Flaw]:
    """The content of an input that begins with `first`, unpacked where it is gzip or zstd."""
    if first.startswith(_GZIP):
        yield from _inflate(first, read, _new_gzip, (zlib.error,), "gzip")
    elif first.startswith(_ZSTD):
        import zstandard  # only where it is needed: it costs start-up time

        new = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj
        yield from _inflate(first, read, new, (zstandard.ZstdError,), "zstd")
    else:
        while first:
            yield first
            first = read(_CHUNK_BYTES)


_TRAILER_BYTES = 8  # checksum and length at the end of a gzip member


def _new_gzip() -> Any:
    return zlib.decompressobj(wbits=31)


def _inflate(
    first: bytes, read: Read, new: Callable[[], Any], errors: tuple[type[Exception], ...], kind: str
) -> Iterator[bytes | Flaw]:
    """Unpack member after member; a truncated or damaged one ends the input with a flaw."""
    unpacker = new()
    begun = False
    data, kept = first, b""
    while data:
        # The checksum stands at the end. It is unpacked by itself, for an unpacker that meets a
        # wrong one keeps for itself what it has unpacked in the same step.
        if not kept and len(data) > _TRAILER_BYTES:
            data, kept = data[:-_TRAILER_BYTES], data[-_TRAILER_BYTES:]
        try:
            out = unpacker.decompress(data)
        except errors as error:
            yield Flaw(f"the {kind} data is damaged here ({error}); the rows before it were read")
            return
        begun = True
        if out:
            yield out
        if not unpacker.eof:
            data, kept = kept or read(PACKED_BYTES), b""
            continue
        data, kept = unpacker.unused_data + kept or read(PACKED_BYTES), b""
        if kind == "gzip":
            data = data.lstrip(b"\0") or read(PACKED_BYTES)  # tapes pad with zeros
        unpacker, begun = new(), False
    if begun:
        yield Flaw(f"the {kind} data ends too early: the file was cut off; the rows before it "
                   "were read")  # fmt: skip


# -- splitting --------------------------------------------------------------------------------


class _Lines:
    """Lines by newline bytes only: U+2028, U+0085 and a lone CR are text like any other."""

    def __init__(self, row_bytes_max: int) -> None:
        self._max = row_bytes_max
        self._parts: list[bytes] = []
        self._held = 0
        self._overlong = False
        self.number = 0

    def feed(self, chunk: bytes) -> list[Item]:
        lines = chunk.split(b"\n")
        if len(lines) == 1:
            self._hold(chunk)
            return []
        last = lines.pop()
        items: list[Item] = []
        self._hold(lines[0])
        self._end(items)
        number = self.number
        for line in lines[1:]:
            number += 1
            if line and not line.isspace():
                over = len(line) > self._max
                items.append(Item(number, self._too_long() if over else line))
        self.number = number
        self._hold(last)
        return items

    def finish(self) -> list[Item]:
        items: list[Item] = []
        if self._parts or self._overlong:
            self._end(items)
        return items

    def cut_off(self) -> list[Item]:
        """A line that the input broke off in is not a row."""
        return []

    def _hold(self, part: bytes) -> None:
        self._held += len(part)
        if self._held > self._max:
            self._overlong = True
            self._parts = []
        elif part:
            self._parts.append(part)

    def _end(self, items: list[Item]) -> None:
        self.number += 1
        line = b"".join(self._parts)
        if self._overlong:
            items.append(Item(self.number, self._too_long()))
        elif line and not line.isspace():
            items.append(Item(self.number, line))
        self._parts, self._held, self._overlong = [], 0, False

    def _too_long(self) -> Flaw:
        return Flaw(f"the row is longer than {self._max:,} bytes, the most that is read")


_OUTSIDE = re.compile(rb'["\[\]{},]')
_INSIDE = re.compile(rb'["\\]')


class _Elements:
    """The elements of a JSON array, found by their brackets; what they hold is checked later."""

    def __init__(self, row_bytes_max: int) -> None:
        self._max = row_bytes_max
        self._buffer = b""
        self._at = 0  # where to look on in the buffer
        self._depth = 0
        self._in_text = False
        self._closed = False
        self._overlong = False
        self.number = 0

    def feed(self, chunk: bytes) -> list[Item]:
        items: list[Item] = []
        if self._closed:
            self._buffer += chunk.strip()[:1]
            return items
        self._buffer += chunk
        start = self._scan(items)
        self._buffer = self._buffer[start:]
        self._at -= start
        if len(self._buffer) > self._max:
            self._overlong = True
            escape = self._at > len(self._buffer)
            self._buffer, self._at = b"", int(escape)
        return items

    def _scan(self, items: list[Item]) -> int:
        """Look at every bracket, comma and quote once; the start of what is not yet a row."""
        buffer, at, start = self._buffer, self._at, 0
        while True:
            found = (_INSIDE if self._in_text else _OUTSIDE).search(buffer, at)
            if found is None:
                self._at = max(at, len(buffer))
                return start
            at = found.end()
            sign = found[0]
            if sign == b"\\":
                at += 1
            elif sign == b'"':
                self._in_text = not self._in_text
            elif sign in b"[{":
                self._depth += 1
                if self._depth == 1:
                    start = at
            elif sign in b"]}":
                self._depth -= 1
                if self._depth == 0:
                    self._take(buffer[start : at - 1], items)
                    self._closed, self._at = True, at
                    self._buffer = buffer[:at] + buffer[at:].strip()[:1]
                    return at
            elif self._depth == 1:
                self._take(buffer[start : at - 1], items)
                start = at

    def finish(self) -> list[Item]:
        if self._closed:
            if self._buffer:
                return [Item(self.number + 1, Flaw("something follows the end of the JSON array"))]
            return []
        return [Item(self.number + 1, Flaw("the JSON array has no end: the file was cut off"))]

    def cut_off(self) -> list[Item]:
        """An element that the input broke off in is not a row."""
        return []

    def _take(self, raw: bytes, items: list[Item]) -> None:
        if not raw.strip() and not self._overlong:
            return
        self.number += 1
        if self._overlong or len(raw) > self._max:
            self._overlong = False
            flaw = Flaw(f"the row is longer than {self._max:,} bytes, the most that is read")
            items.append(Item(self.number, flaw))
        else:
            items.append(Item(self.number, raw))
