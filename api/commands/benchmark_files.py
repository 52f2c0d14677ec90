"""The files of a benchmark build: one artefact a stage, each replaced whole or not at all.

A killed build leaves `.new` files, which the next one overwrites. All are readable by their owner
only: they hold what people wrote to a chat model.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from dikast.analysis.benchmark_format import Dialogue
from dikast.engine.errors import InputError, SinkError
from dikast.engine.model import Record
from dikast.engine.text import scrub

STORE = "dikast-calls.sqlite"
_BUFFER_BYTES = 1 << 18


def make_private(path: Path) -> None:
    """Make an empty file for its owner only, where there is none; what opens it keeps the mode.

    Raises:
        SinkError: it cannot be made.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        raise SinkError(f"{path}: cannot be written: {error.strerror}") from error


class Artefact:
    """A file that takes its place when the `with` block ends without an error.

    Args:
        path: where it will be.

    Raises:
        SinkError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self._fresh = path.with_name(path.name + ".new")
        try:
            descriptor = os.open(self._fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError as error:
            raise SinkError(f"{path}: cannot be written: {error.strerror}") from error
        self._file = os.fdopen(descriptor, "wb", _BUFFER_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            with self._file:
                if kind is None:
                    self._file.flush()
                    os.fsync(self._file.fileno())
            if kind is None:
                self._fresh.replace(self.path)
        except OSError as problem:
            raise SinkError(f"{self.path}: cannot be written: {problem.strerror}") from error

    def write(self, row: msgspec.Struct) -> None:
        """Append one line.

        Raises:
            SinkError: it cannot be written.
        """
        try:
            line = msgspec.json.encode(row)
        except UnicodeEncodeError:  # half a character, which no file can hold
            line = msgspec.json.encode(scrub(msgspec.to_builtins(row)))
        self.write_bytes(line + b"\n")
        self.rows += 1

    def write_bytes(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            SinkError: they cannot be written.
        """
        try:
            self._file.write(data)
        except OSError as error:
            raise SinkError(f"{self.path}: cannot be written: {error.strerror}") from error

    def __repr__(self) -> str:
        return f"Artefact({self.path}, {self.rows} rows)"


class Rejected(Record, frozen=True):
    """One line of `rejected.jsonl`: which dialogue, by which stage, why. Holds no text of it."""

    id: str
    stage: str
    reason: str
    detail: str | None = None
    file: str = ""
    line: int = 0
    log_id: str | None = None


def read_dialogues(path: Path) -> Iterator[Dialogue]:
    """The lines of an artefact.

    Raises:
        InputError: it cannot be read.
    """
    decode = msgspec.json.Decoder(Dialogue).decode
    try:
        with open(path, "rb") as file:
            for line in file:
                yield decode(line)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
