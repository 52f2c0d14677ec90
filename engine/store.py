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
import os
from pathlib import Path

import msgspec

from dikast.engine.errors import ConfigError, StoreError
from dikast.engine.model import Completion
from dikast.engine.ports import CallStore
from dikast.engine.storefile import RUN_ROWS, StoreFile, key_bytes
from dikast.engine.text import scrub


class MemoryStore:
    """Completions in a dict: for tests, and for runs that need no resume."""

    def __init__(self) -> None:
        self._rows: dict[str, Completion] = {}

    def get(self, key: str) -> Completion | None:
        """The completion put under `key`, marked `from_store`, or None."""
        return self._rows.get(key)

    async def put(self, key: str, completion: Completion) -> None:
        """Keep `completion`; the last one put under a key stays."""
        self._rows[key] = msgspec.structs.replace(completion, from_store=True)

    async def aclose(self) -> None:
        """Nothing to release; the rows stay readable."""

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"MemoryStore({len(self._rows)} completions)"


class SqliteStore:
    """Completions in one SQLite file that several processes may share.

    What another process has put is seen after the next commit of this one, at the latest.

    Args:
        path: the file; made when absent, together with its folder.
        batch_rows: a batch is committed when it has this many rows,
        batch_wait_s: or when its first row has waited this long, whichever is first.
        run_rows: rows found through memory before they enter the index (about 0.2 KB each).

    Raises:
        StoreError: the file cannot be opened, is damaged, or is not a dikast call store.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        batch_rows: int = 256,
        batch_wait_s: float = 0.004,
        run_rows: int = RUN_ROWS,
    ) -> None:
        self.path = Path(path)
        self._batch_rows = batch_rows
        self._batch_wait_s = batch_wait_s
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Completion).decode
        self._pending: dict[bytes, bytes] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._committed = 0
        self._file: StoreFile | None = StoreFile(self.path, run_rows=run_rows)

    def get(self, key: str) -> Completion | None:
        """The stored completion, marked `from_store`, or None.

        Raises:
            StoreError: the file cannot be read.
        """
        raw = key_bytes(key)
        value = self._pending.get(raw)
        if value is None:
            value = self._open_file().get(raw)
            if value is None:
                return None
        try:
            return self._decode(value)
        except (msgspec.DecodeError, RecursionError) as error:
            raise StoreError(
                f"{self.path}: the completion {key} is damaged or was written by a newer dikast "
                f"({error}); name another store, or move this one away"
            ) from error

    async def put(self, key: str, completion: Completion) -> None:
        """Return when the completion would survive `kill -9`; the last one put under a key stays.

        A put that is cancelled while it waits is committed all the same: the answer is paid.

        Raises:
            StoreError: the batch could not be written; none of its rows is in the store.
        """
        self._open_file()
        loop = asyncio.get_running_loop()
        self._pending[key_bytes(key)] = self._pack(completion)
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        if len(self._waiters) >= self._batch_rows:
            self._commit()
        elif self._timer is None:
            self._timer = loop.call_later(self._batch_wait_s, self._commit)
        await waiter

    async def aclose(self) -> None:
        """Commit what is pending and close the file; may be called twice."""
        if self._file is None:
            return
        self._commit()
        file, self._file = self._file, None
        file.close()

    def __len__(self) -> int:
        """Rows in the file (of all processes); the pending ones are not counted."""
        return self._open_file().count()

    def __repr__(self) -> str:
        state = "closed" if self._file is None else f"{len(self._waiters)} pending"
        return f"SqliteStore({str(self.path)!r}, {self._committed} committed, {state})"

    def _open_file(self) -> StoreFile:
        if self._file is None:
            raise StoreError(f"{self.path}: the call store is closed")
        return self._file

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
        rows, self._pending = list(self._pending.items()), {}
        error: StoreError | None = None
        try:
            self._open_file().append(rows)
            self._committed += len(rows)
        except StoreError as problem:
            error = problem
        for waiter in waiters:
            if waiter.done():  # its put was cancelled
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)


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
