"""Where a paid answer rests: completions by content hash, durable before anyone uses them.

The gateway asks here before it pays and hands in every new completion before the strategy sees
it. The store knows nothing of pairs, strategies or outcomes, and errors never enter it.

`SqliteStore` gathers the puts of many calls into one transaction: a put returns when the commit
of its batch has returned, so from then on the row survives `kill -9` at any point (it is in the
write-ahead log, hence with the operating system). A power cut may cost the last seconds, never
the file. Everything happens on the event loop, in pieces of well under a millisecond; why not in
a thread, and why SQLite, is in docs/decisions/0004-call-store-and-resume.md.
"""

import asyncio
import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Final

import msgspec

from dikast.engine.errors import ConfigError, StoreError
from dikast.engine.model import Completion
from dikast.engine.ports import CallStore
from dikast.engine.text import scrub

APPLICATION_ID: Final = 0x64696B61  # "dika": tells our files from other people's databases
SCHEMA_VERSION: Final = 1
_BUSY_WAIT_MS = 10_000
_CACHE_KIB = 8_000
_CHECKPOINT_PAGES = 4_000
_OPEN_TRIES = 5


class MemoryStore:
    """Completions in a dict: for tests, and for runs that need no resume."""

    def __init__(self) -> None:
        self._rows: dict[str, Completion] = {}

    def get(self, key: str) -> Completion | None:
        """The completion put under `key`, marked `from_store`, or None."""
        return self._rows.get(key)

    async def put(self, key: str, completion: Completion) -> None:
        """Keep `completion`; the first one put under a key stays."""
        self._rows.setdefault(key, msgspec.structs.replace(completion, from_store=True))

    async def aclose(self) -> None:
        """Nothing to release; the rows stay readable."""

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"MemoryStore({len(self._rows)} completions)"


class SqliteStore:
    """Completions in one SQLite file that several processes may share.

    Args:
        path: the file; made when absent, together with its folder.
        batch_rows: a batch is committed when it has this many rows,
        batch_wait_s: or when its first row has waited this long, whichever is first.

    Raises:
        StoreError: the file cannot be opened, is damaged, or is not a dikast call store.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, batch_rows: int = 256, batch_wait_s: float = 0.004
    ) -> None:
        self.path = Path(path)
        self._batch_rows = batch_rows
        self._batch_wait_s = batch_wait_s
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Completion).decode
        self._pending: dict[bytes | str, bytes] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._committed = 0
        self._db: sqlite3.Connection | None = _open_database(self.path)
        self._cursor = self._db.cursor()

    def get(self, key: str) -> Completion | None:
        """The stored completion, marked `from_store`, or None.

        Raises:
            StoreError: the file cannot be read.
        """
        row_key = _row_key(key)
        value = self._pending.get(row_key)
        if value is None:
            try:
                self._open_db()
                found = self._cursor.execute(_SELECT, (row_key,)).fetchone()
            except sqlite3.Error as error:
                raise _explain(error, self.path) from error
            if found is None:
                return None
            value = found[0]
        try:
            return self._decode(value)
        except msgspec.DecodeError as error:
            raise StoreError(
                f"{self.path}: the completion {key} is damaged or was written by a newer dikast "
                f"({error}); name another store, or move this one away"
            ) from error

    async def put(self, key: str, completion: Completion) -> None:
        """Return when the completion would survive `kill -9`; the first one put under a key stays.

        A put that is cancelled while it waits is committed all the same: the answer is paid.

        Raises:
            StoreError: the batch could not be written; none of its rows is in the store.
        """
        self._open_db()
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        self._pending.setdefault(_row_key(key), self._pack(completion))
        if len(self._waiters) >= self._batch_rows:
            self._commit()
        elif self._timer is None:
            self._timer = loop.call_later(self._batch_wait_s, self._commit)
        await waiter

    async def aclose(self) -> None:
        """Commit what is pending and close the file; may be called twice."""
        if self._db is None:
            return
        self._commit()
        db, self._db = self._db, None
        with contextlib.suppress(sqlite3.Error):  # everything acknowledged is already committed
            db.close()

    def __len__(self) -> int:
        """Rows in the file (of all processes); the pending ones are not counted."""
        try:
            return int(self._open_db().execute("SELECT count(*) FROM completion").fetchone()[0])
        except sqlite3.Error as error:
            raise _explain(error, self.path) from error

    def __repr__(self) -> str:
        state = "closed" if self._db is None else f"{len(self._waiters)} pending"
        return f"SqliteStore({str(self.path)!r}, {self._committed} committed, {state})"

    def _open_db(self) -> sqlite3.Connection:
        if self._db is None:
            raise StoreError(f"{self.path}: the call store is closed")
        return self._db

    def _pack(self, completion: Completion) -> bytes:
        marked = msgspec.structs.replace(completion, from_store=True)
        try:
            return self._encode(marked)
        except UnicodeEncodeError:
            return self._encode(scrub(msgspec.to_builtins(marked)))

    def _commit(self) -> None:
        """Write the batch and wake its waiters: the one place where a put succeeds or fails."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiters:
            return
        waiters, self._waiters = self._waiters, []
        rows, self._pending = self._pending, {}
        error = self._write(rows)
        for waiter in waiters:
            if waiter.done():  # its put was cancelled
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

    def _write(self, rows: dict[bytes | str, bytes]) -> StoreError | None:
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
            self._cursor.executemany(_INSERT, rows.items())
            self._cursor.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self._cursor.execute("ROLLBACK")
            return _explain(error, self.path)
        self._committed += len(rows)
        return None


_SELECT = "SELECT value FROM completion WHERE key = ?"
_INSERT = "INSERT OR IGNORE INTO completion (key, value) VALUES (?, ?)"


def open_store(where: str | os.PathLike[str] | None) -> CallStore | None:
    """The store that `where` names: a path or `sqlite:PATH`, `memory:`, or None and `none:`.

    Raises:
        ConfigError: the scheme is unknown.
        StoreError: the file cannot be used.
    """
    if where is None:
        return None
    text = os.fspath(where)
    scheme, colon, rest = text.partition(":")
    if not colon or len(scheme) < 2 or "/" in scheme:  # one letter: a drive, not a scheme
        return SqliteStore(text)
    if scheme == "sqlite" and rest:
        return SqliteStore(rest.removeprefix("//"))
    if scheme == "memory":
        return MemoryStore()
    if scheme == "none":
        return None
    raise ConfigError(
        f"store {text!r}: unknown kind {scheme!r}; use a path, sqlite:PATH, memory: or none:"
    )


def _row_key(key: str) -> bytes | str:
    """32 hex digits as 16 bytes; any other key as it is (SQLite never takes one for the other)."""
    if len(key) == 32:
        try:
            return bytes.fromhex(key)
        except ValueError:
            return key
    return key


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
        raise _explain(error, path) from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be made: {error.strerror}") from error
    except StoreError:
        _discard(db)
        raise
    return db


def _discard(db: sqlite3.Connection | None) -> None:
    if db is not None:
        with contextlib.suppress(sqlite3.Error):
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
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    db.execute("CREATE TABLE IF NOT EXISTS completion (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
    db.execute("COMMIT")


def _check_ours(db: sqlite3.Connection, path: Path) -> None:
    owner, version = _number(db, "application_id"), _number(db, "user_version")
    if owner == APPLICATION_ID:
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{path}: was written by a newer dikast (store version {version}, this one reads "
                f"{SCHEMA_VERSION}); upgrade dikast or name another store"
            )
        return
    if owner or version or db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
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


def _explain(error: sqlite3.Error, path: Path) -> StoreError:
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
