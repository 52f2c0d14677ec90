"""What a build leaves to read beside the library: one file a stage, written whole or not at all.

For people and for debugging; nothing is ever read back from it. The call store resumes a build.
"""

import contextlib
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import msgspec

from dikast.engine.errors import InputError
from dikast.engine.files import pretty_json, whole_file
from dikast.engine.model import Record

Write = Callable[[Record], None]


class Workdir:
    """A folder of artefacts.

    Args:
        folder: made when absent; None writes nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._encoder = msgspec.json.Encoder()

    @contextlib.contextmanager
    def rows(self, name: str) -> Generator[Write, None, None]:
        """Write JSON lines as they come; the file has its name once it is whole.

        Raises:
            InputError: it cannot be written.
        """
        if self.folder is None:
            yield lambda row: None
            return
        path = self.folder / name
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as file:

                def write(row: Record) -> None:
                    file.write(self._encoder.encode(row) + b"\n")

                yield write
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from error

    def table(self, name: str, content: Any) -> None:
        """Write one JSON file.

        Raises:
            InputError: it cannot be written.
        """
        if self.folder is None:
            return
        path = self.folder / name
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as file:
                file.write(pretty_json(content, indent=1))
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from error

    def __repr__(self) -> str:
        return f"Workdir({str(self.folder)!r})"
