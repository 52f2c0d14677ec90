"""The way out: outcomes as JSON lines, gathered into blocks before they are written.

`write` returns when the row is accepted; it reaches the operating system with its block (when
the block is full, or a moment later by a timer), and the device as the sync policy says. A killed
process loses at most one unfinished block, and a resume judges those rows again out of the call
store. The file always consists of whole lines: what a failed write left of a line is cut off.
Knows nothing of how outcomes come to be.
"""

import asyncio
import errno
import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from dikast.engine.errors import ConfigError, InputError, ReaderGone, SinkError
from dikast.engine.model import Outcome
from dikast.engine.text import scrub
from dikast.sinks.files import DiskFile, RawFile, open_output
from dikast.sinks.resume import OutputScan, is_torn_outcome, prepare

SyncPolicy = Literal["never", "batch", "close"]
_BLOCK_BYTES = 1 << 20
_TAIL_BYTES = 1 << 16
_STDOUT, _STDOUT_NAME = 1, "standard output"


class JsonlSink:
    """Outcomes as JSON lines in a file, or on standard output for the path `-`.

    A name that ends in `.gz` is written as gzip, one member a block; it cannot be resumed.

    Args:
        path: the output; an existing one is appended to, after a torn last line was cut off.
        resume: what `scan_output` found in it; stale lines are dropped before the first write.
        fresh: start over: an existing output is emptied (not together with `resume`).
        block_rows: a block is written when it has this many rows,
        block_wait_s: or when its first row has waited this long, whichever is first.
        sync: "never" leaves it to the operating system, "batch" syncs every block, "close" syncs
            when the sink is flushed or closed.
        file: write here instead (tests); nothing is opened.

    Raises:
        SinkError: it cannot be opened, or another process is writing it.
        ConfigError: the combination makes no sense.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        resume: OutputScan | None = None,
        fresh: bool = False,
        block_rows: int = 512,
        block_wait_s: float = 0.05,
        sync: SyncPolicy = "never",
        file: RawFile | None = None,
    ) -> None:
        if fresh and resume is not None:
            raise ConfigError(f"output {path}: cannot start fresh and resume at once; choose one")
        self.path = Path(path)
        self.name = _STDOUT_NAME if str(path) == "-" else str(path)
        self._pack = _packing_of(self.path)
        self._block_rows = block_rows
        self._block_wait_s = block_wait_s
        self._sync: SyncPolicy = sync
        self._encode = msgspec.json.Encoder().encode
        self._lines: list[bytes] = []
        self._line_bytes = 0
        self._unsent = b""
        self._unsent_rows = 0
        self._written_rows = 0
        self._timer: asyncio.TimerHandle | None = None
        self._error: SinkError | None = None
        self._sync_error: SinkError | None = None
        self._size_bytes = 0
        self._file: RawFile | None = file
        if file is None:
            opened = _open(self.path, resume, fresh, packed=self._pack is not None)
            self._size_bytes = opened.size_bytes
            self._file = opened

    @property
    def unwritten_rows(self) -> int:
        """Rows accepted that the operating system does not have yet."""
        return self._unsent_rows + len(self._lines)

    async def write(self, outcome: Outcome) -> None:
        """Accept one outcome.

        Raises:
            SinkError: a block could not be written; accepted rows are kept for another try.
        """
        if self._error is not None:
            raise self._error
        if self._file is None:
            raise SinkError(f"{self.name}: the output is closed")
        try:
            line = self._encode(outcome)
        except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError):
            line = self._encode_anyway(outcome)
        self._lines.append(line)
        self._line_bytes += len(line)
        if len(self._lines) >= self._block_rows or self._line_bytes >= _BLOCK_BYTES:
            self._drain()
        elif self._timer is None and self._lines:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._block_wait_s, self._on_timer)

    async def flush(self) -> None:
        """Write all that was accepted; sync it unless the policy is "never".

        Raises:
            SinkError: it cannot be written.
        """
        self._drain()
        if self._sync != "never":
            self._sync_now()

    async def aclose(self) -> None:
        """Flush, close, give the lock up; may be called twice.

        Raises:
            SinkError: rows are left that could not be written; the message counts them.
        """
        if self._file is None:
            return
        try:
            await self.flush()
        except SinkError as error:
            if not (left := self.unwritten_rows):
                raise
            message = f"{error} ({left} accepted rows are not in the output)"
            raise type(error)(message) from error
        finally:
            file, self._file = self._file, None
            self._stop_timer()
            _close(file, self.name)

    def __repr__(self) -> str:
        return (
            f"JsonlSink({self.name!r}, {self._written_rows} written, "
            f"{self.unwritten_rows} unwritten)"
        )

    def _encode_anyway(self, outcome: Outcome) -> bytes:
        """Text or `meta` that JSON cannot carry must not cost the row."""
        plain = {
            # `meta` may hold anything; all other fields are records and plain data
            name: scrub(value if name == "meta" else msgspec.to_builtins(value))
            for name, value in _fields_to_write(outcome)
        }
        return self._encode({"kind": type(outcome).__struct_config__.tag, **plain})

    def _on_timer(self) -> None:
        self._timer = None
        try:
            self._drain()
        except SinkError:
            return  # kept in _error: the next write, flush or close says it

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drain(self) -> None:
        """Write the block. On failure the file is cut back to whole lines, the rest is kept."""
        self._stop_timer()
        if self._lines:
            rows = len(self._lines)
            block = b"\n".join(self._lines) + b"\n"
            self._lines = []
            self._line_bytes = 0
            self._unsent += self._pack(block) if self._pack else block
            self._unsent_rows += rows
        if not self._unsent:
            return
        if self._file is None:
            raise SinkError(f"{self.name}: the output is closed")
        sent = 0
        view = memoryview(self._unsent)
        try:
            while sent < len(view):
                sent += self._file.write(view[sent:])
        except OSError as error:
            self._keep_rest(sent)
            self._error = _explain(error, self.name)
            raise self._error from error
        self._size_bytes += sent
        self._written_rows += self._unsent_rows
        self._unsent, self._unsent_rows = b"", 0
        self._error = self._sync_error
        if self._sync == "batch":
            self._sync_now()

    def _keep_rest(self, sent: int) -> None:
        """After a failed write: back to the last whole line, or go on from the very byte."""
        assert self._file is not None
        whole = 0 if self._pack else self._unsent.rfind(b"\n", 0, sent) + 1
        if whole != sent:
            try:
                self._file.truncate(self._size_bytes + whole)
            except OSError:
                whole = sent  # a pipe took part of a line: the rest of it must follow
        if not self._pack:
            done = self._unsent.count(b"\n", 0, whole)
            self._unsent_rows -= done
            self._written_rows += done
        self._unsent = self._unsent[whole:]
        self._size_bytes += whole

    def _sync_now(self) -> None:
        """A sync that failed stays failed: what the device lost, no later sync can vouch for."""
        if self._sync_error is not None:
            raise self._sync_error
        if self._file is None:
            return
        try:
            self._file.sync()
        except OSError as error:
            self._error = self._sync_error = _explain(error, self.name)
            raise self._sync_error from error


def _open(path: Path, resume: OutputScan | None, fresh: bool, *, packed: bool) -> DiskFile:
    if str(path) == "-":
        return DiskFile(_STDOUT, owned=False)
    file = open_output(path)
    try:
        if fresh and file.regular:
            file.truncate(0)
        elif resume is not None:
            file = prepare(path, file, resume)
        elif file.size_bytes and packed:
            raise SinkError(
                f"{path}: a compressed output cannot be continued; name another one or use --fresh"
            )
        elif file.size_bytes:
            _repair_tail(file, path)
    except InputError as error:
        file.close()
        raise SinkError(str(error)) from error
    except OSError as error:
        file.close()
        raise _explain(error, str(path)) from error
    except SinkError:
        file.close()
        raise
    return file


def _repair_tail(file: DiskFile, path: Path) -> None:
    """Cut off what follows the last newline, if it is the beginning of a line of ours."""
    size = end = file.size_bytes
    tail = b""
    while end > 0 and b"\n" not in tail:
        start = max(0, end - _TAIL_BYTES)
        tail = os.pread(file.fd, end - start, start) + tail
        end = start
    torn = tail[tail.rfind(b"\n") + 1 :]
    if not torn:
        return
    if not is_torn_outcome(torn):
        raise SinkError(
            f"{path}: is not an output of dikast, so it was left untouched; name another output"
        )
    file.truncate(size - len(torn))


def _packing_of(path: Path) -> Callable[[bytes], bytes] | None:
    if path.suffix in (".zst", ".zstd"):
        raise ConfigError(
            f"output {path}: zstd outputs are not supported; write .jsonl or .jsonl.gz"
        )
    if path.suffix != ".gz":
        return None
    return lambda block: gzip.compress(block, compresslevel=6, mtime=0)


def _fields_to_write(outcome: Outcome) -> list[tuple[str, object]]:
    """The fields that are not at their default, as the record itself is written."""
    fields: list[tuple[str, object]] = []
    for field in msgspec.structs.fields(outcome):
        value = getattr(outcome, field.name)
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        if default is msgspec.NODEFAULT or value != default:
            fields.append((field.name, value))
    return fields


def _close(file: RawFile, name: str) -> None:
    try:
        file.close()
    except OSError as error:
        raise _explain(error, name) from error


def _explain(error: OSError, name: str) -> SinkError:
    """One sentence: which output, what is wrong, what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SinkError(f"{name}: the disk is full; free some space and run the same again")
    if error.errno == errno.EPIPE:
        kind = ReaderGone if name == _STDOUT_NAME else SinkError
        return kind(f"{name}: the reader of this pipe has gone away")
    return SinkError(f"{name}: cannot be written: {error.strerror or error}")
