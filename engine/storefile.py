"""The file of the call store: a log of completions, and an index that follows behind it.

`SqliteStore` hands in whole batches and asks for single keys; this module knows SQLite and bytes,
nothing of completions, futures or the event loop.

Completions are appended to a table in the order in which they come, which touches few pages. The
index from key to row would touch one page for every row, for keys are hashes; so the newest rows
are found through a dict of bounded size, and enter the index in sorted runs, a slice with each
batch. A process that opens the file reads back the rows which the index does not have yet. At a
million rows a call was measured to take a third of the time, and two thirds of the CPU time, of
an index kept up to date with every row (docs/decisions/0004-call-store-and-resume.md).
"""

import contextlib
import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dikast.engine.errors import StoreError

APPLICATION_ID: Final = 0x64696B61  # "dika": tells our files from other people's databases
SCHEMA_VERSION: Final = 1
RUN_ROWS: Final = 16_384
_SLICE_ROWS = 1_024
_BUSY_WAIT_MS = 10_000
_CHECKPOINT_PAGES = 4_000
_CACHE_KIB = 2_000
_OPEN_TRIES = 5
_FOLD = 0x9E3779B97F4A7C15  # odd: no bit of the first half is lost
_MASK = (1 << 64) - 1

_SCHEMA = (
    "CREATE TABLE log (id INTEGER PRIMARY KEY, key BLOB NOT NULL, value BLOB NOT NULL)",
    "CREATE TABLE place (folded INTEGER PRIMARY KEY, id INTEGER NOT NULL)",
    "CREATE TABLE state (indexed_to INTEGER NOT NULL)",
    "INSERT INTO state VALUES (0)",
)
_APPEND = "INSERT INTO log (id, key, value) VALUES (?, ?, ?)"
_BY_ID = "SELECT key, value FROM log WHERE id = ?"
_BY_PLACE = "SELECT key, value FROM log WHERE id = (SELECT id FROM place WHERE folded = ?)"
_NEWER = "SELECT id, key FROM log WHERE id > ? ORDER BY id"
_INDEX = "INSERT OR REPLACE INTO place (folded, id) VALUES (?, ?)"
_INDEXED = "UPDATE state SET indexed_to = max(indexed_to, ?)"


class StoreFile:
    """One open call store file. All methods are synchronous and raise `StoreError` only.

    Args:
        path: the file; made when absent, together with its folder.
        run_rows: rows that are found through memory before they enter the index.
    """

    def __init__(self, path: Path, *, run_rows: int = RUN_ROWS) -> None:
        self.path = path
        self._run_rows = run_rows
        self._recent: dict[int, int] = {}
        self._merging: dict[int, int] = {}
        self._unindexed: list[tuple[int, int]] = []
        self._merging_to = 0
        self._last_id = 0
        self._db = _open_database(path)
        self._cursor = self._db.cursor()
        try:
            self._indexed_to = self._last_id = self._read_indexed_to()
            # Of a file that is indexed already, the keys are not read back just for this.
            self._seen = None if self._indexed_to else _Filter()
            self._take_newer()
        except sqlite3.Error as error:
            _discard(self._db)
            raise explain(error, path) from error

    def get(self, key: bytes) -> bytes | None:
        """The value of a 16-byte key, or None. Rows that another process has appended since the
        last `append` of this one may be missed.
        """
        place = _place(key)
        row_id = self._recent.get(place) or self._merging.get(place)
        try:
            if row_id is not None:
                found = self._cursor.execute(_BY_ID, (row_id,)).fetchone()
            elif self._indexed_to and (self._seen is None or place in self._seen):
                found = self._cursor.execute(_BY_PLACE, (place,)).fetchone()
            else:
                return None
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        if found is None or found[0] != key:
            return None
        value: bytes = found[1]
        return value

    def append(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Write keys with their values in one transaction: all of them, or none."""
        execute = self._cursor.execute
        try:
            execute("BEGIN IMMEDIATE")
            self._take_newer()
            first = self._last_id + 1
            self._cursor.executemany(
                _APPEND, [(first + at, key, value) for at, (key, value) in enumerate(rows)]
            )
            slice_ = self._unindexed[-_SLICE_ROWS:]
            indexed_to = self._indexed_to
            if slice_:
                self._cursor.executemany(_INDEX, slice_)
                if len(slice_) == len(self._unindexed):
                    indexed_to = max(indexed_to, self._merging_to)
                    execute(_INDEXED, (indexed_to,))
            execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                execute("ROLLBACK")
            raise explain(error, self.path) from error
        self._appended(rows, first, len(slice_), indexed_to)

    def count(self) -> int:
        """Rows in the file; a key that was written twice counts twice."""
        try:
            return int(self._cursor.execute("SELECT count(*) FROM log").fetchone()[0])
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    def close(self) -> None:
        """Close; what was appended is already safe."""
        _discard(self._db)

    def __repr__(self) -> str:
        return (
            f"StoreFile({str(self.path)!r}, {self._last_id} rows, {self._indexed_to} indexed, "
            f"{len(self._recent) + len(self._merging)} found through memory)"
        )

    def _appended(
        self, rows: Sequence[tuple[bytes, bytes]], first: int, sliced: int, indexed_to: int
    ) -> None:
        """Memory follows the file, once the commit has succeeded."""
        for at, (key, _) in enumerate(rows):
            self._note(_place(key), first + at)
        self._last_id = first + len(rows) - 1
        if sliced:
            del self._unindexed[-sliced:]
            if not self._unindexed:
                self._indexed_to = indexed_to
                self._merging = {}
        if not self._unindexed and len(self._recent) >= self._run_rows:
            self._merging, self._recent = self._recent, {}
            self._merging_to = self._last_id
            self._unindexed = sorted(self._merging.items(), reverse=True)

    def _take_newer(self) -> None:
        """Enter the rows that are newer than what is known: another process has written them."""
        for row_id, key in self._cursor.execute(_NEWER, (self._last_id,)).fetchall():
            self._note(_place(key), row_id)
            self._last_id = row_id

    def _note(self, place: int, row_id: int) -> None:
        self._recent[place] = row_id
        if self._seen is not None:
            self._seen.add(place)

    def _read_indexed_to(self) -> int:
        return int(self._cursor.execute("SELECT indexed_to FROM state").fetchone()[0])


class _Filter:
    """Says of most keys that are not there that they are not, without asking the file.

    A Bloom filter (Bloom, Communications of the ACM 13, 1970) of one MiB with three bits a key:
    wrong about 3 % of the absent keys at a million, 15 % at two; never about a present one.
    """

    _MASK = (1 << 23) - 1

    def __init__(self) -> None:
        self._bits = bytearray(1 << 20)

    def add(self, place: int) -> None:
        bits, mask = self._bits, self._MASK
        for at in (place & mask, place >> 20 & mask, place >> 41 & mask):
            bits[at >> 3] |= 1 << (at & 7)

    def __contains__(self, place: int) -> bool:
        bits, mask = self._bits, self._MASK
        for at in (place & mask, place >> 20 & mask, place >> 41 & mask):
            if not bits[at >> 3] >> (at & 7) & 1:
                return False
        return True


def key_bytes(key: str) -> bytes:
    """A call's key (32 hex digits) as 16 bytes; any other text is hashed to 16 bytes."""
    if len(key) == 32:
        try:
            return bytes.fromhex(key)
        except ValueError:
            pass
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:16]


def _place(key: bytes) -> int:
    """The key folded into one of SQLite's own integers. Where two keys fold into the same one,
    the one that was written last is found and the other is missed, never mistaken: the whole key
    is compared.
    """
    whole = int.from_bytes(key, "big")
    folded = ((whole >> 64) * _FOLD + whole) & _MASK
    return folded - (1 << 64) if folded >> 63 else folded


def _open_database(path: Path) -> sqlite3.Connection:
    if path.is_dir():
        raise StoreError(f"{path}: is a folder; name a file for the call store")
    db: sqlite3.Connection | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        _prepare(db, path)
    except sqlite3.Error as error:
        _discard(db)
        raise explain(error, path) from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be made: {error.strerror}") from error
    except StoreError:
        _discard(db)
        raise
    return db


def _discard(db: sqlite3.Connection | None) -> None:
    if db is not None:
        with contextlib.suppress(sqlite3.Error):  # everything acknowledged is already committed
            db.close()


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    """Check that the file is ours before anything in it is changed, then set it up."""
    db.execute(f"PRAGMA busy_timeout = {_BUSY_WAIT_MS}")
    _check_ours(db, path)
    _enter_wal(db, path)
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    if _number(db, "application_id") == APPLICATION_ID:
        return
    db.execute("BEGIN IMMEDIATE")
    if _number(db, "application_id") != APPLICATION_ID:  # else another process was faster
        for statement in _SCHEMA:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute("COMMIT")


def _check_ours(db: sqlite3.Connection, path: Path) -> None:
    # One statement, hence one moment: another process may be setting the file up just now.
    owner, version, tables = db.execute(
        "SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_master) "
        "FROM pragma_application_id AS a, pragma_user_version AS v"
    ).fetchone()
    if owner == APPLICATION_ID:
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{path}: was written by a newer dikast (store version {version}, this one reads "
                f"{SCHEMA_VERSION}); upgrade dikast or name another store"
            )
        return
    if owner or version or tables:
        raise StoreError(
            f"{path}: is a database of another program, not a dikast call store; name another file"
        )


def _enter_wal(db: sqlite3.Connection, path: Path) -> None:
    for attempt in range(_OPEN_TRIES):
        try:
            mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            # Two processes that open a new file at once: SQLite refuses this one without waiting.
            if "locked" not in str(error) or attempt == _OPEN_TRIES - 1:
                raise
            db.execute("BEGIN IMMEDIATE")  # waits for the other one, up to the busy timeout
            db.execute("ROLLBACK")
            continue
        if mode != "wal":
            raise StoreError(
                f"{path}: this file system does not support SQLite's write-ahead log; "
                "put the call store on a local disk"
            )
        return


def _number(db: sqlite3.Connection, pragma: str) -> int:
    return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])


def explain(error: sqlite3.Error, path: Path) -> StoreError:
    """One sentence: which file, what is wrong, what to do."""
    text = str(error)
    if "full" in text:
        return StoreError(f"{path}: the disk is full; free some space and run the same again")
    if "not a database" in text or "malformed" in text or "no such table" in text:
        return StoreError(
            f"{path}: is damaged or not a dikast call store ({text}); move it away or name "
            "another one (finished outcomes are not touched, their calls would be paid again)"
        )
    if "locked" in text or "busy" in text:
        return StoreError(
            f"{path}: another process has kept the call store locked for "
            f"{_BUSY_WAIT_MS // 1000} s; end it or name another store"
        )
    if "unable to open" in text or "readonly" in text:
        return StoreError(f"{path}: the call store cannot be opened for writing ({text})")
    return StoreError(f"{path}: the call store failed: {text}")
