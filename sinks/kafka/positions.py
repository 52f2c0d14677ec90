"""How far a group has come in each partition, with rows finished in any order.

Rows are handed out in the order of the partition and finish in any order. What is committed is a
position, below which everything is finished, and with it the finished rows above: they go into
the commit's metadata, so that whoever takes the partition over leaves them out. Pure; knows no
client.
"""

import base64
from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import structs

from dikast.engine.model import Record

SPAN_MAX = 20_000
"""How far a finished row may be above the position: what fits into a commit's metadata."""
_PREFIX = "dikast1:"
_SIGNED = ";"


class Mark(Record, frozen=True):
    """What is committed for one partition: `offset` is the next row's, `metadata` the rest."""

    partition: int
    offset: int
    metadata: str = ""

    def signed(self, by: str) -> "Mark":
        """The same, and told from every other commit of this position."""
        return structs.replace(self, metadata=f"{self.metadata}{_SIGNED}{by}")


class Snapshot(NamedTuple):
    """Positions at one moment, the tenures they belong to, and the member for the broker."""

    marks: list[Mark]
    tenures: dict[int, object]
    member: Any


class _Partition:
    __slots__ = ("ahead", "open", "upto")

    def __init__(self, offset: int, ahead: Iterable[int]) -> None:
        self.upto = offset
        self.open: dict[int, int] = {}
        self.ahead = set(ahead)

    @property
    def position(self) -> int:
        return next(iter(self.open), self.upto)


class Positions:
    """The books of one consumer. An offset is open from `hand_out` until `finish`."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}
        self._left: dict[int, _Partition] = {}

    def take_over(
        self, partition: int, offset: int, metadata: str | None, *, end: int | None = None
    ) -> None:
        """Begin a partition where its last owner has left it.

        Args:
            partition: that was given to us.
            offset: the next row to read.
            metadata: of the commit.
            end: of the partition, where what was kept by `forget` is still good: rows that we
                have finished since are not handed out again, nor those that are on the way.
        """
        here = self._partitions[partition] = _Partition(offset, decode_ahead(offset, metadata))
        old = self._left.pop(partition, None)
        if old is None or end is None or not offset <= old.upto <= min(end, offset + SPAN_MAX):
            return
        here.ahead.update(range(offset, old.position))
        here.ahead.update(each for each in old.ahead if each >= offset)
        here.open = {each: pairs for each, pairs in old.open.items() if each >= offset}

    def forget(self, partitions: Iterable[int], *, keep: bool = False) -> None:
        """The partitions belong to somebody else now.

        Args:
            partitions: which.
            keep: what is finished here stands, whoever owns the partition.
        """
        for partition in partitions:
            here = self._partitions.pop(partition, None)
            if here is not None and keep:
                self._left[partition] = here

    def owns(self, partition: int) -> bool:
        """True between `take_over` and `forget`."""
        return partition in self._partitions

    def tenure(self, partition: int) -> object:
        """Stands for the time since `take_over`; None when the partition is not ours."""
        return self._partitions.get(partition)

    def tenures(self) -> dict[int, object]:
        """What stands for the time between a `take_over` and its `forget`, for each partition."""
        return dict(self._partitions)

    def hand_out(self, partition: int, offset: int, pairs: int) -> bool:
        """Note that a row was read; False when it is finished already, or on the way here.

        Args:
            partition: of the row.
            offset: of the row.
            pairs: how many pairs came out of it: it is finished when all of them are.
        """
        here = self._partitions[partition]
        here.upto = max(here.upto, offset + 1)
        if offset in here.ahead or offset in here.open:
            return False
        if pairs:
            here.open[offset] = pairs
        return True

    def finish(self, partition: int, offset: int) -> bool:
        """A pair of the row is done; False when the row is not ours any more."""
        here = self._partitions.get(partition)
        book = self._left.get(partition) if here is None else here
        if book is None or offset not in book.open:
            return False
        book.open[offset] -= 1
        if not book.open[offset]:
            del book.open[offset]
            book.ahead.add(offset)
        return here is not None

    def reach(self, partition: int, offset: int) -> None:
        """Nothing is left to read below `offset` (there may be gaps that hold no rows)."""
        here = self._partitions.get(partition)
        if here is not None:
            here.upto = max(here.upto, offset)

    def too_far(self, window: int) -> list[int]:
        """Partitions whose reading has to wait for a slow row."""
        span = min(window, SPAN_MAX)
        return [
            n for n, here in list(self._partitions.items()) if here.upto - here.position >= span
        ]

    def open_rows(self, partitions: Iterable[int] | None = None) -> int:
        """Rows that are handed out and not finished."""
        chosen = list(self._partitions if partitions is None else partitions)
        found = (self._partitions.get(number) for number in chosen)
        return sum(len(here.open) for here in found if here is not None)

    def marks(self, partitions: Iterable[int] | None = None) -> list[Mark]:
        """What may be committed now."""
        chosen = list(self._partitions) if partitions is None else list(partitions)
        out: list[Mark] = []
        for number in chosen:
            here = self._partitions.get(number)
            if here is None:
                continue
            position = here.position
            here.ahead = {offset for offset in here.ahead if offset >= position}
            out.append(
                Mark(partition=number, offset=position, metadata=encode_ahead(position, here.ahead))
            )
        return out

    def __repr__(self) -> str:
        return f"Positions({len(self._partitions)} partitions, {self.open_rows()} rows open)"


def encode_ahead(position: int, ahead: Iterable[int]) -> str:
    """Finished offsets above `position` as text: a bit for each offset, in base 64."""
    bits = 0
    for offset in ahead:
        bits |= 1 << (offset - position)
    if not bits:
        return ""
    data = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
    return _PREFIX + base64.b64encode(data).decode()


def decode_ahead(position: int, metadata: str | None) -> set[int]:
    """The offsets in a commit's metadata; what others have written there says nothing."""
    if not metadata or not metadata.startswith(_PREFIX):
        return set()
    try:
        text = metadata.removeprefix(_PREFIX).partition(_SIGNED)[0]
        data = base64.b64decode(text, validate=True)
    except ValueError:  # binascii.Error is one; what is not ASCII is another
        return set()
    bits = int.from_bytes(data, "little")
    return {position + at for at in range(bits.bit_length()) if bits >> at & 1}
