"""The way in: rows from the source to the workers, each counted, none twice.

All workers share one intake. It pulls the next batch only when its buffer is empty, so what is
read ahead is one batch. A row that an earlier run has done is skipped, a row whose id has been
seen before becomes a failed outcome that names both places, a bad row becomes a failed outcome.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from dikast.engine.ids import IdTable
from dikast.engine.ledger import LedgerBook
from dikast.engine.model import BadRow, Failed, Row, Subject
from dikast.engine.ports import Source, StreamSource


def duplicate_name(id: str, here: str) -> str:
    """The id of the outcome of a row at `here` whose own id was used before."""
    return f"{id}#duplicate@{here}"


def used_before(id: str, there: str) -> str:
    """What is said of a row whose id was used before, at `there`."""
    return (
        f"the id {id!r} was already used at {there}; that first one is judged, give this one an "
        "id of its own"
    )


class Work:
    """One thing for a worker to do: a pair or item to judge, or an outcome that is already known.

    `ordinal` is the row's place in the input, `turn` its place among the rows handed out.
    """

    __slots__ = ("known", "ordinal", "row", "subject", "turn")

    def __init__(
        self, ordinal: int, row: Row, subject: Subject | None = None, known: Failed | None = None
    ) -> None:
        self.ordinal = ordinal
        self.turn = 0
        self.row = row
        self.subject = subject
        self.known = known


class Intake:
    """Hands out rows in input order; never more than `limit` of them.

    Args:
        source: where rows come from.
        book: the ledger that every row is entered into.
        is_done: says of an id whether an earlier run has its outcome.
        limit: the most rows to read, or None for all.
    """

    def __init__(
        self,
        source: Source,
        book: LedgerBook,
        *,
        is_done: Callable[[str], bool] | None = None,
        limit: int | None = None,
    ) -> None:
        self._source = source
        self._stream = source if isinstance(source, StreamSource) else None
        self._book = book
        self._is_done = is_done
        self._limit = limit
        self._batches: AsyncIterator[list[Row]] | None = None
        self._buffer: deque[Row] = deque()
        self._pull = asyncio.Lock()
        self._seen = IdTable()
        self._files: list[tuple[int, str]] = []
        self._ordinal = 0
        self._turn = 0
        self._open = True

    def close(self) -> None:
        """Hand out nothing more; rows read ahead are not entered, hence not lost."""
        self._open = False
        self._buffer.clear()

    async def aclose(self) -> None:
        """Hand out nothing more and close the source, also where it was left half read."""
        self.close()
        close = getattr(self._batches, "aclose", None)  # an iterator need not have it
        if close is not None:
            await close()
        await self._source.aclose()

    async def next(self) -> Work | None:
        """The next row's work, or None when there is no more."""
        while True:
            work = self.take()
            if work is not None:
                return work
            if not self._open:
                return None
            async with self._pull:
                if not self._buffer and self._open:
                    await self._refill()

    async def _refill(self) -> None:
        if self._batches is None:
            self._batches = self._source.batches()
        try:
            self._buffer.extend(await anext(self._batches))
        except StopAsyncIteration:
            self._open = False
            self._book.complete_input()

    def take(self) -> Work | None:
        """The next row's work, if one is read already; else ask `next`.

        Synchronous: between looking at a row and entering it nothing else can happen.
        """
        while self._buffer:
            if self._limit is not None and self._ordinal >= self._limit:
                self.close()
                return None
            row = self._buffer.popleft()
            self._ordinal += 1
            self._book.enter()
            work = self._sort(row)
            if work is not None:
                self._turn += 1
                work.turn = self._turn
                return work
        return None

    def _sort(self, row: Row) -> Work | None:
        item, ordinal = row.item, self._ordinal
        if isinstance(item, BadRow):
            place = place_of(row, ordinal)
            field = f", field {item.field!r}" if item.field else ""
            known = Failed(
                id=item.id or place,
                reason=item.reason,
                message=f"{place}{field}: {item.message}",
                file=row.file or None,
                line=row.line or None,
            )
            return Work(ordinal, row, known=known)
        # A stream may be endless and hand a row out again: there an id seen before is no mistake.
        first = self._seen.add(item.id, self._pack(row)) if self._stream is None else None
        if first is not None:
            here = f"{row.file or 'input'}:{row.line}"
            known = Failed(
                id=duplicate_name(item.id, here),
                reason="duplicate_id",
                message=f"{here}: {used_before(item.id, self._unpack(first))}",
                file=row.file or None,
                line=row.line or None,
            )
            return Work(ordinal, row, known=known)
        if self._is_done is not None and self._is_done(item.id):
            self._book.skip()
            if self._stream is not None:
                self._stream.skipped(row)
            return None
        return Work(ordinal, row, subject=item)

    def _pack(self, row: Row) -> int:
        """A place as one number: the count of rows before its file, and its line, interleaved."""
        if not self._files or self._files[-1][1] != row.file:
            self._files.append((len(self._files), row.file))
        return (len(self._files) - 1) << 40 | (row.line or self._ordinal)

    def _unpack(self, packed: int) -> str:
        return f"{self._files[packed >> 40][1] or 'input'}:{packed & ((1 << 40) - 1)}"

    def __repr__(self) -> str:
        return f"Intake({self._ordinal} handed out, {len(self._buffer)} buffered)"


def place_of(row: Row, ordinal: int = 0) -> str:
    """Where a row stands, for messages: file and line, or its number."""
    return f"{row.file}:{row.line}" if row.file else f"row {row.line or ordinal}"
