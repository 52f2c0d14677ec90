"""Near-duplicate texts in a stream: each is compared with those kept before, in bounded memory.

The third stage of a benchmark build. Texts are sets of character shingles (so that Chinese, which
has no spaces, works as English does); MinHash signatures cut into bands find candidates, and the
candidates' sets are then compared exactly. Bands and sets lie in a private SQLite file that spills
to disk, so memory does not grow with the log. Source: Broder 1997 (MinHash); Leskovec, Rajaraman
and Ullman, Mining of Massive Datasets, section 3.4 (bands).
"""

import sqlite3
import unicodedata
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

SHINGLE_CHARS: Final = 4
BANDS: Final = 16
ROWS: Final = 4
THRESHOLD: Final = 0.8
"""Jaccard similarity from which two texts count as one; 16 bands of 4 find such a pair with a
probability of at least 0.9998."""

_CANDIDATES_MAX: Final = 64
_CACHE_KIB: Final = 32_768
_BASE: Final = 0x9E3779B97F4A7C15
_MIX: Final = 0xFF51AFD7ED558CCD
_MASK: Final = (1 << 63) - 1


class Duplicate(NamedTuple):
    """The text kept before, by its name, and the similarity of the two (Jaccard, 0 to 1)."""

    of: str
    similarity: float


class NearDuplicates:
    """Remembers texts that were kept; use it as a context manager.

    Args:
        threshold: similarity from which a text is a duplicate, above 0 and up to 1.
        seed: of the hash functions; changes which candidates are found, not their similarity.

    Raises:
        ValueError: the threshold is out of range.
    """

    def __init__(self, threshold: float = THRESHOLD, *, seed: int = 0) -> None:
        if not 0 < threshold <= 1:
            raise ValueError(f"a threshold lies above 0 and up to 1, not at {threshold}")
        self._threshold = threshold
        rng = np.random.default_rng(seed)
        size = (BANDS * ROWS, 1)
        # Odd factors, as multiply-shift hashing wants them.
        self._factors = rng.integers(0, 1 << 63, size=size, dtype=np.uint64) | np.uint64(1)
        self._terms = rng.integers(0, 1 << 63, size=size, dtype=np.uint64)
        self._count = 0
        # An empty name is a private file that SQLite deletes by itself.
        self._table = sqlite3.connect("")
        self._table.executescript(
            f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            f"PRAGMA cache_size = -{_CACHE_KIB};"
            "CREATE TABLE texts (number INTEGER PRIMARY KEY, name TEXT, shingles BLOB);"
            "CREATE TABLE bands (key INTEGER, number INTEGER, PRIMARY KEY (key, number))"
            " WITHOUT ROWID;"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget everything; may be called twice."""
        self._table.close()

    def add(self, name: str, text: str) -> Duplicate | None:
        """The most similar earlier text at or above the threshold; else the text is remembered.

        Args:
            name: what to call it when a later text turns out to be its duplicate.
            text: compared without regard to case, width and white space.
        """
        shingles = shingles_of(text)
        keys = self._keys(shingles)
        found = self._best(keys, shingles)
        if found is not None and found.similarity >= self._threshold:
            return found
        number = self._count
        self._count += 1
        self._table.execute(
            "INSERT INTO texts VALUES (?, ?, ?)", (number, name, shingles.tobytes())
        )
        self._table.executemany(
            "INSERT OR IGNORE INTO bands VALUES (?, ?)", ((key, number) for key in keys)
        )
        return None

    def _keys(self, shingles: NDArray[np.uint32]) -> list[int]:
        """One key a band, 63 bits, from the minima of its hash functions."""
        wide = shingles.astype(np.uint64)
        lows = ((self._factors * wide + self._terms) >> np.uint64(32)).min(axis=1)
        keys: list[int] = []
        for band in range(BANDS):
            key = band + 1
            for low in lows[band * ROWS : (band + 1) * ROWS].tolist():
                key = ((key ^ low) * _MIX + (key >> 29)) & ((1 << 64) - 1)
            keys.append(key & _MASK)
        return keys

    def _best(self, keys: list[int], shingles: NDArray[np.uint32]) -> Duplicate | None:
        marks = ",".join("?" * len(keys))
        rows = self._table.execute(
            f"SELECT name, shingles FROM texts JOIN (SELECT number, COUNT(*) AS shared FROM bands"
            f" WHERE key IN ({marks}) GROUP BY number ORDER BY shared DESC, number LIMIT"
            f" {_CANDIDATES_MAX}) USING (number) ORDER BY shared DESC, number",
            keys,
        )
        best: Duplicate | None = None
        for name, blob in rows:
            similarity = jaccard(shingles, np.frombuffer(blob, dtype=np.uint32))
            if best is None or similarity > best.similarity:
                best = Duplicate(str(name), similarity)
        return best

    def __repr__(self) -> str:
        return f"NearDuplicates({self._count} texts, threshold {self._threshold})"


def shingles_of(text: str) -> NDArray[np.uint32]:
    """Hashes of all runs of four characters, sorted, each once; a shorter text is one run."""
    plain = "".join(unicodedata.normalize("NFKC", text).casefold().split())
    codes = np.frombuffer(plain.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    codes = codes.astype(np.uint64)
    width = min(SHINGLE_CHARS, len(codes))
    runs = np.zeros(max(1, len(codes) - width + 1), dtype=np.uint64)
    for offset in range(width):
        runs = (runs + codes[offset : offset + len(runs)] + np.uint64(1)) * np.uint64(_BASE)
    runs ^= runs >> np.uint64(33)
    runs *= np.uint64(_MIX)
    return np.unique((runs >> np.uint64(32)).astype(np.uint32))


def jaccard(a: NDArray[np.uint32], b: NDArray[np.uint32]) -> float:
    """Shared elements over all elements of two sorted sets without repetitions, 0 to 1."""
    shared = len(np.intersect1d(a, b, assume_unique=True))
    return shared / (len(a) + len(b) - shared)
