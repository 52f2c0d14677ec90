"""A part of the input as a source: the rows that one shard of a run reads, and no others.

Stands where `FileSource` stands. A plain file is read from a byte offset, so that the last of a
thousand shards starts as fast as the first; a packed file or a JSON array is unpacked up to its
rows. Rows keep the file and line they have in the whole input. Knows nothing of plans or workers.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path

from dikast.engine.errors import InputError
from dikast.engine.intake import duplicate_name, used_before
from dikast.engine.lines import Item, Read, read_items, read_lines
from dikast.engine.model import BadRow, Record, Row, Subject
from dikast.engine.sources import ROW_BYTES_MAX, items_of

_BATCH_ROWS = 256
_TABLES = (".parquet", ".arrow", ".csv", ".tsv")


def is_of_lines(path: str) -> bool:
    """False for folders and tables, whose rows are no ranges of lines."""
    name = path.removesuffix(".gz").removesuffix(".zst")
    return not (name.endswith(_TABLES) or Path(path).is_dir())


class FileRange(Record, frozen=True):
    """Consecutive rows of one file. `lines` counts physical rows: from `first`, the next of them.

    `start` and `end` are byte offsets of a plain file, absent for one that has to be unpacked.
    """

    path: str
    name: str
    form: str
    first: int
    last: int
    start: int | None = None
    end: int | None = None


Taken = Mapping[tuple[str, int, str], str]
"""By file name, line and id: the place (`file:line`) where the id was used before."""


class RangeSource:
    """Pairs of some ranges of files, in order.

    Args:
        ranges: what to read.
        taken: rows whose id an earlier range, read elsewhere, has used; they become failed ones,
            as they would if one process read everything.
    """

    def __init__(self, ranges: Sequence[FileRange], taken: Taken | None = None) -> None:
        self.ranges = list(ranges)
        self._taken = taken or {}

    async def batches(self) -> AsyncIterator[list[Row]]:
        """Rows in input order.

        Raises:
            InputError: a file is missing or cannot be read.
        """
        for each in self.ranges:
            batch: list[Row] = []
            for item in _items(each):
                batch += self._rows(item, each)
                if len(batch) >= _BATCH_ROWS:
                    yield batch
                    batch = []
            if batch:
                yield batch

    async def aclose(self) -> None:
        """Nothing stays open between two batches that closing the iterator does not close."""

    def _rows(self, item: Item, part: FileRange) -> Iterator[Row]:
        for found in items_of(item.raw, part.form):
            yield Row(item=self._seen(found, part, item.number), file=part.name, line=item.number)

    def _seen(self, found: Subject | BadRow, part: FileRange, line: int) -> Subject | BadRow:
        if isinstance(found, BadRow) or not self._taken:
            return found
        there = self._taken.get((part.name, line, found.id))
        if there is None:
            return found
        return BadRow(
            message=used_before(found.id, there),
            id=duplicate_name(found.id, f"{part.name}:{line}"),
            reason="duplicate_id",
        )

    def __repr__(self) -> str:
        return f"RangeSource({len(self.ranges)} ranges)"


def _items(part: FileRange) -> Iterator[Item]:
    """The physical rows of one range, closed when the reader leaves."""
    try:
        with Path(part.path).open("rb", buffering=0) as file:
            if part.start is not None and part.end is not None:
                file.seek(part.start)
                read = _bounded(file.read, part.end - part.start)
                for items in read_lines(read, row_bytes_max=ROW_BYTES_MAX, first=part.first):
                    yield from items
                return
            for items in read_items(file.read, row_bytes_max=ROW_BYTES_MAX, file=part.path):
                for item in items:
                    if item.number > part.last:
                        return
                    if item.number >= part.first:
                        yield item
    except FileNotFoundError as error:
        raise InputError("there is no such file", file=part.path) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=part.path) from error


def _bounded(read: Read, left: int) -> Read:
    """`read`, but no further than `left` bytes."""

    def bounded(size: int) -> bytes:
        nonlocal left
        data = read(min(size, left))
        left -= len(data)
        return data

    return bounded
