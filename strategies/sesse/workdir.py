"""What a build leaves to read beside the library: one file a stage, written whole or not at all.

For people and for debugging; nothing is ever read back from it. The call store resumes a build.
"""

import contextlib
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import msgspec

from dikast.engine.errors import InputError
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
        draft = path.with_name(name + ".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as file:

                def write(row: Record) -> None:
                    file.write(self._encoder.encode(row) + b"\n")

                yield write
            draft.replace(path)
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
        draft = path.with_name(name + ".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(msgspec.json.format(self._encoder.encode(content), indent=1) + b"\n")
            draft.replace(path)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from error

    def __repr__(self) -> str:
        return f"Workdir({str(self.folder)!r})"
