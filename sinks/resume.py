"""What an earlier run left behind: the output file is the truth about what is done.

`scan_output` reads it and changes nothing, so that an output of another spec, or a file that is
no output at all, is refused untouched. What it found is handed to `JsonlSink(resume=...)`, which
takes the lock, cuts off a torn last line and drops the lines that are to be judged again, before
the first new line is appended: every id stands once in the final output.

Verdict, scored and undecided are done. Failed ones are tried again unless told otherwise; rows
that were bad or had a used id are never "done", because reading the input finds them again for
nothing. Where the input hands out no row again (a topic), failed lines are kept until another
line of their id is there. A later line of an id takes the place of an earlier one. Knows nothing
of stores or strategies.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from dikast.engine.errors import InputError
from dikast.sinks.files import DiskFile, replace_output, write_all
from dikast.sinks.holdings import CODE_BITS, CODE_MASK, OutcomeLine, Standing

_BLOCK_BYTES = 1 << 20
_HEAD = b'{"kind":"'
_SPECS_MAX = 16
_UNPACKED = (".gz", ".zst", ".zstd")


class OutputScan(Standing):
    """What is in an output. `is_done` answers for an id; the counts are of ids, not of lines.

    `specs` counts the lines of each spec (at most 16 are told apart). `torn_bytes` stand after
    the last newline: a write that a crash cut short. `retry` ids failed and are tried again.
    `stale_lines` will not be in the output after the sink has opened it.
    """

    def __init__(self, path: Path, *, retry_failed: bool = True, keep_failed: bool = False) -> None:
        super().__init__()
        self.path = path
        self.retry_failed = retry_failed
        self.keep_failed = keep_failed
        self.size_bytes = 0
        self.torn_bytes = 0
        self.lines = 0
        self.done = 0
        self.retry = 0
        self.stale_lines = 0
        self.specs: dict[str, int] = {}
        self._decode = msgspec.json.Decoder(OutcomeLine).decode

    def __contains__(self, id: str) -> bool:
        return self.is_done(id)

    def __repr__(self) -> str:
        return (
            f"OutputScan({str(self.path)!r}, {self.done} done, {self.retry} to retry, "
            f"{self.torn_bytes} torn bytes)"
        )

    def take(self, raw: bytes, number: int) -> None:
        """Enter line `number`. Raises `InputError` when it is not an outcome."""
        line = self.read(raw, number)
        done = line.stands(self.retry_failed)
        kept = done or self.keep_failed
        code = self._holdings.code_of(line)
        self.lines += 1
        if line.spec and (line.spec in self.specs or len(self.specs) < _SPECS_MAX):
            self.specs[line.spec] = self.specs.get(line.spec, 0) + 1
        # The line, what it is counted as, whether it stays in the file, whether its pair is done.
        value = (number << CODE_BITS | code) << 2 | kept << 1 | done
        old = self._table.set(line.id, value)
        if old is not None:
            self.done -= old & 1
            self.retry -= not old & 1
            if old & 2:
                self.stale_lines += 1
                self._holdings.leave(old >> 2 & CODE_MASK)
        self.done += done
        self.retry += not done
        self.stale_lines += not kept
        if kept:
            self._holdings.enter(code)

    def keeps(self, raw: bytes, number: int) -> bool:
        """True when line `number` is the one that stands for its id."""
        value = self._table.get(self.read(raw, number).id)
        return value is not None and value >> (CODE_BITS + 2) == number and value & 2 == 2

    def read(self, raw: bytes, number: int) -> OutcomeLine:
        """The fields that matter of one line."""
        try:
            line = self._decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self.refuse(number) from error
        if not line.is_outcome:
            raise self.refuse(number)
        return line

    def refuse(self, number: int) -> InputError:
        """The error for a line that is no outcome."""
        return InputError(
            "is not an outcome written by dikast, so the file was left untouched; name another "
            "output, or start over with --fresh",
            file=str(self.path),
            line=number,
        )


def scan_output(
    path: str | Path, *, retry_failed: bool = True, keep_failed: bool = False
) -> OutputScan | None:
    """Read what an earlier run wrote to `path`; None when there is no such file or it is empty.

    Args:
        path: the output of an earlier run.
        retry_failed: whether failed outcomes are to be tried again.
        keep_failed: whether their lines stay until then, as the input may not hand them out.

    Raises:
        InputError: the file is not an output of dikast, cannot be read, or is compressed.
    """
    path = Path(path)
    scan = OutputScan(path, retry_failed=retry_failed, keep_failed=keep_failed)
    try:
        if not path.exists() or (path.is_file() and path.stat().st_size == 0):
            return None
        if not path.is_file():
            raise InputError("is not a regular file and cannot be resumed", file=str(path))
        if path.suffix in _UNPACKED:
            raise InputError(
                "a compressed output cannot be resumed; name another output, start over with "
                "--fresh, or unpack it and resume that",
                file=str(path),
            )
        tail = b""
        number = 0
        for number, raw in _numbered_lines(path):
            if raw.endswith(b"\n"):
                if not raw.isspace():
                    scan.take(raw, number)
                scan.size_bytes += len(raw)
            else:
                tail = raw
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
    if tail and not is_torn_outcome(tail):
        raise scan.refuse(number)
    scan.torn_bytes = len(tail)
    scan.size_bytes += len(tail)
    return scan


def is_torn_outcome(tail: bytes) -> bool:
    """True when `tail` can be the beginning of a line of ours (or blank blocks of a power cut)."""
    text = tail.rstrip(b"\0")
    return text.startswith(_HEAD) or _HEAD.startswith(text)


def prepare(path: Path, file: DiskFile, scan: OutputScan) -> DiskFile:
    """Make a locked output ready to be appended to: no torn line, no line that is stale.

    Returns:
        The file to append to: another one when lines had to be dropped.

    Raises:
        SinkError: the new file cannot be written; the old one is as it was.
        InputError: the output was changed since it was scanned.
    """
    if file.size_bytes != scan.size_bytes:
        raise InputError(
            "has changed since it was read; another run has written it, start this one again",
            file=str(path),
        )
    if scan.torn_bytes:
        file.truncate(scan.size_bytes - scan.torn_bytes)
    if not scan.stale_lines:
        return file

    def write_kept(new: DiskFile) -> None:
        kept: list[bytes] = []
        room = _BLOCK_BYTES
        for number, raw in _numbered_lines(path):
            if raw.isspace() or not scan.keeps(raw, number):
                continue
            kept.append(raw)
            room -= len(raw)
            if room <= 0:
                write_all(new, b"".join(kept))
                kept, room = [], _BLOCK_BYTES
        write_all(new, b"".join(kept))

    return replace_output(path, file, write_kept)


def _numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines split on newline bytes only, each with its newline; the last may lack it."""
    with path.open("rb", buffering=_BLOCK_BYTES) as file:
        yield from enumerate(file, start=1)
