"""The file under a sink: opened, locked against a second writer, appended to, repaired.

A sink hands bytes to a `RawFile`; this module knows file descriptors and nothing of outcomes.
The lock sits on the output itself and goes with the process, however it dies.
"""

import contextlib
import errno
import fcntl
import os
import select
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from dikast.engine.errors import SinkError

_OPEN_TRIES = 10
_NO_LOCKS_HERE = {errno.ENOLCK, errno.ENOTSUP}


class RawFile(Protocol):
    """What a sink needs of a file; tests put one in that fails when told to."""

    def write(self, data: bytes | memoryview) -> int:
        """Append some of `data`; the number of bytes taken. Raises `OSError`."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to its first `size_bytes` bytes. Raises `OSError` where it cannot be."""
        ...

    def sync(self) -> None:
        """Return when the device has it. Raises `OSError`."""
        ...

    def close(self) -> None:
        """Close and give the lock up; may be called twice. Raises `OSError`."""
        ...


class DiskFile:
    """A file descriptor that appends. Pipes and devices are neither locked nor truncated."""

    def __init__(self, fd: int, *, owned: bool = True) -> None:
        self.fd = fd
        self._owned = owned
        self.regular = owned and stat.S_ISREG(os.fstat(fd).st_mode)

    @property
    def size_bytes(self) -> int:
        """The size now; 0 for a pipe or a device."""
        return os.fstat(self.fd).st_size if self.regular else 0

    def write(self, data: bytes | memoryview) -> int:
        """Append some of `data`; waits where the reader of a pipe is slow."""
        while True:
            try:
                return os.write(self.fd, data)
            except BlockingIOError:
                select.select([], [self.fd], [])

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to its first `size_bytes` bytes."""
        if not self.regular:
            raise OSError(errno.ESPIPE, os.strerror(errno.ESPIPE))
        os.ftruncate(self.fd, size_bytes)

    def sync(self) -> None:
        """Return when the device has it; nothing to do for a pipe."""
        if self.regular:
            os.fsync(self.fd)

    def close(self) -> None:
        """Close (the lock goes with it); a descriptor that was handed in stays open."""
        fd, self.fd = self.fd, -1
        if fd >= 0 and self._owned:
            os.close(fd)

    def __repr__(self) -> str:
        return f"DiskFile(fd {self.fd}, {'regular' if self.regular else 'stream'})"


def open_output(path: Path) -> DiskFile:
    """Open `path` for appending, make it when absent, and lock it.

    Raises:
        SinkError: it cannot be opened, or another process is writing it.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    for _ in range(_OPEN_TRIES):
        try:
            fd = os.open(path, flags, 0o644)
        except OSError as error:
            raise _cannot_open(path, error) from error
        file = DiskFile(fd)
        try:
            if not file.regular:
                return file
            _lock(fd, path)
            # A writer that compacts the output puts a new file in its place: lock that one.
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                return file
        except FileNotFoundError:  # moved away between opening and looking: open anew
            pass
        except (OSError, SinkError):
            file.close()
            raise
        file.close()
    raise SinkError(f"{path}: is replaced again and again by another process; name another output")


def refuse_if_written(path: Path) -> None:
    """Refuse a file that another process is writing, before it is moved out of its way.

    Raises:
        SinkError: another process holds its lock.
    """
    try:
        # Without waiting: what stands there may be a pipe that nobody writes.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # not there, or not ours to read: moving it says what is wrong
        return
    try:
        _lock(fd, path)
    finally:
        os.close(fd)


def _cannot_open(path: Path, error: OSError) -> SinkError:
    if isinstance(error, FileNotFoundError):
        return SinkError(f"{path}: the folder {path.parent} does not exist; make it first")
    if isinstance(error, IsADirectoryError):
        return SinkError(f"{path}: is a folder; name a file for the output")
    return SinkError(f"{path}: the output cannot be opened for writing: {error.strerror}")


def _lock(fd: int, path: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise SinkError(
            f"{path}: another process is writing this output; wait for it or name another one"
        ) from error
    except OSError as error:
        # Some network file systems know no locks; refusing to write there would help nobody.
        if error.errno not in _NO_LOCKS_HERE:
            raise SinkError(f"{path}: the output cannot be locked: {error.strerror}") from error


def replace_output(
    path: Path, old: DiskFile, write_content: Callable[[DiskFile], None]
) -> DiskFile:
    """Put a new file in the place of `path`, whole or not at all, and locked from the start.

    The new file is written beside the old one, synced, and renamed over it. A crash at any point
    leaves either the old file or the new one; a left-over beside it is overwritten next time.

    Raises:
        SinkError: it cannot be written; the old file stays as it was, open and locked.
    """
    place = path.resolve()  # a link stays a link: what it points to is replaced
    beside = place.with_name(place.name + ".compacting")
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    new: DiskFile | None = None
    try:
        new = DiskFile(os.open(beside, flags, 0o644))
        _lock(new.fd, beside)
        os.ftruncate(new.fd, 0)
        os.fchmod(new.fd, stat.S_IMODE(os.fstat(old.fd).st_mode))
        write_content(new)
        new.sync()
        os.replace(beside, place)
        _sync_folder(place.parent)
    except (OSError, SinkError) as error:
        if new is not None:
            with contextlib.suppress(OSError):
                beside.unlink()  # on a full disk it would stand in the way of everything else
            new.close()
        if isinstance(error, SinkError):
            raise
        raise SinkError(f"{beside}: cannot be written: {error.strerror}") from error
    old.close()
    return new


def write_all(file: RawFile, data: bytes) -> None:
    """Write all of `data`, however many pieces it takes. Raises `OSError`."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system can; the rename is done anyway
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
