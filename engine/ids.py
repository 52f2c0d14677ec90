"""Millions of ids in some twenty bytes each: has this one been seen, and where?

The way in asks it about duplicates, a resume about what is done. It keeps 64-bit digests, never
the ids themselves, and knows nothing of pairs or files.
"""

import hashlib
import sys
from array import array
from collections.abc import Callable

_SEGMENTS = 256
_FIRST_SLOTS = 8
_FILL_MAX = 0.75
_GROWTH = 1.7
_MASK = (1 << 64) - 1


def digest_of(text: str) -> int:
    """A 64-bit digest of `text`, the same in every process (BLAKE2b)."""
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def default_digest() -> Callable[[str], int]:
    """The fastest sound digest here: CPython's own keyed hash (SipHash) where it has 64 bits.

    The built-in hash differs from process to process, which suits a table that lives in one.
    """
    if sys.hash_info.width == 64 and sys.hash_info.algorithm.startswith("siphash"):
        return hash
    return digest_of


class IdTable:
    """A map from id to a non-negative number below 2**64, such as a line.

    Open addressing over two arrays, cut into 256 segments so that growing never stops the event
    loop for long: at ten million ids one step re-seats 40,000 of them. An id costs 16 to 27 bytes
    while all numbers stay below 2**32, else 21 to 36.

    Two different ids are taken for the same one when their 64-bit digests agree. Among n ids that
    happens with a probability of about n**2 / 2**65: 3e-8 for a million, 3e-4 for a hundred
    million.

    Args:
        digest: 64-bit digest of an id; for tests and for tables shared between processes.
    """

    __slots__ = ("_count", "_digest", "_segments")

    def __init__(self, digest: Callable[[str], int] | None = None) -> None:
        self._digest = digest if digest is not None else default_digest()
        self._segments: list[_Segment | None] = [None] * _SEGMENTS
        self._count = 0

    def add(self, id: str, value: int) -> int | None:
        """Enter `id` unless it is there; the number it was first entered with, or None if new."""
        key = (self._digest(id) & _MASK) or 1
        segment = self._segments[key & 255] or self._open(key & 255)
        keys = segment.keys
        size = len(keys)
        slot = (key >> 8) % size
        while (held := keys[slot]) != 0:
            if held == key:
                return segment.values[slot]
            slot += 1
            if slot == size:
                slot = 0
        self._seat(segment, slot, key, value)
        return None

    def set(self, id: str, value: int) -> int | None:
        """Enter `id`, or give it another number; the number it had, or None if new."""
        key = (self._digest(id) & _MASK) or 1
        segment = self._segments[key & 255] or self._open(key & 255)
        slot = segment.find(key)
        if segment.keys[slot] != key:
            self._seat(segment, slot, key, value)
            return None
        old = segment.values[slot]
        segment.store(slot, value)
        return old

    def get(self, id: str) -> int | None:
        """The number of `id`, or None when it was never entered."""
        key = (self._digest(id) & _MASK) or 1
        segment = self._segments[key & 255]
        if segment is None:
            return None
        slot = segment.find(key)
        return segment.values[slot] if segment.keys[slot] == key else None

    def __contains__(self, id: str) -> bool:
        return self.get(id) is not None

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"IdTable({self._count} ids, {self.size_bytes()} bytes)"

    def size_bytes(self) -> int:
        """Bytes held by the arrays."""
        return sum(each.size_bytes() for each in self._segments if each is not None)

    def _open(self, index: int) -> "_Segment":
        segment = self._segments[index] = _Segment()
        return segment

    def _seat(self, segment: "_Segment", slot: int, key: int, value: int) -> None:
        segment.keys[slot] = key
        segment.store(slot, value)
        segment.used += 1
        self._count += 1
        if segment.used > segment.room:
            segment.grow()


class _Segment:
    """One part of the table: `keys[i] == 0` marks a free slot."""

    __slots__ = ("keys", "room", "used", "values")

    def __init__(self) -> None:
        self.used = 0
        self._allot(_FIRST_SLOTS, "I")

    def _allot(self, slots: int, typecode: str) -> None:
        self.keys = array("Q", bytes(8 * slots))
        values = array(typecode)
        values.frombytes(bytes(values.itemsize * slots))
        self.values = values
        self.room = int(slots * _FILL_MAX)

    def find(self, key: int) -> int:
        """The slot that holds `key`, or the free one where it belongs."""
        keys = self.keys
        size = len(keys)
        slot = (key >> 8) % size
        while (held := keys[slot]) != 0 and held != key:
            slot += 1
            if slot == size:
                slot = 0
        return slot

    def store(self, slot: int, value: int) -> None:
        try:
            self.values[slot] = value
        except OverflowError:
            if not 0 <= value <= _MASK:
                raise
            self.values = array("Q", self.values)
            self.values[slot] = value

    def grow(self) -> None:
        keys, values = self.keys, self.values
        size = int(len(keys) * _GROWTH)
        self._allot(size, values.typecode)
        new_keys, new_values = self.keys, self.values
        for key, value in zip(keys, values, strict=True):
            if key:
                slot = (key >> 8) % size
                while new_keys[slot]:
                    slot += 1
                    if slot == size:
                        slot = 0
                new_keys[slot] = key
                new_values[slot] = value

    def size_bytes(self) -> int:
        return self.keys.itemsize * len(self.keys) + self.values.itemsize * len(self.values)
