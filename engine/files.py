"""Files read by the row and written whole: what everything beside the journey itself shares.

Reports, tuning and measured rates read outcomes back through `rows_in` and `decoded_rows`;
calibrations, libraries, profiles and manifests go to disk through `whole_file`. The journey has
its own ways, made for millions of pairs: `engine.sources` on the way in, the sinks on the way out.
Knows nothing of what the rows mean.
"""

import contextlib
import csv
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import msgspec

from dikast.engine.errors import InputError
from dikast.engine.lines import Flaw, read_items

ROW_BYTES_MAX: Final = 64 << 20
_DRAFT: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC

T = TypeVar("T")


def rows_in(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Rows of JSON with their one-based numbers: lines or an array; plain, gzip or zstd.

    Raises:
        InputError: the file cannot be read, or a row cannot be told apart.
    """
    try:
        with open(path, "rb") as file:
            for items in read_items(file.read, row_bytes_max=ROW_BYTES_MAX, file=str(path)):
                for item in items:
                    if isinstance(item.raw, Flaw):
                        raise InputError(item.raw.message, file=str(path), line=item.number)
                    yield item.number, item.raw
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error


def decoded_rows(
    path: str | Path, decode: Callable[[bytes], T], problem: str, remedy: str = ""
) -> Iterator[tuple[int, T]]:
    """As `rows_in`, each row decoded.

    Args:
        path: of the file.
        decode: of a `msgspec.json.Decoder`.
        problem: what is said of a row that is none, such as "is not an outcome".
        remedy: what to do then; "; " and more behind the message.

    Raises:
        InputError: the file cannot be read, or a row cannot be decoded.
    """
    for number, raw in rows_in(path):
        try:
            row = decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{problem} ({error}){remedy}", file=str(path), line=number) from error
        yield number, row


def csv_rows(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of a CSV file in UTF-8 by the names in its first line, each with its line.

    Raises:
        InputError: the file cannot be read, or is not such a file.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            for row in reader:
                yield reader.line_num, {name: value for name, value in row.items() if name}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"is not a CSV file in UTF-8 ({error})", file=str(path)) from error


@contextlib.contextmanager
def whole_file(path: Path, *, private: bool = False) -> Generator[BinaryIO, None, None]:
    """A file to write that takes its name when the block ends well; else what was there stays.

    A pipe or a device (`/dev/stdout`) is written as it is.

    Args:
        path: of the file.
        private: readable by its owner only.

    Raises:
        OSError: it cannot be written.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    place = path.resolve()  # a link stays a link: what it points to is replaced
    draft = _draft_of(place)
    try:
        with os.fdopen(os.open(draft, _DRAFT, 0o600 if private else 0o666), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def check_output(path: str | Path, *, makes_folder: bool = False) -> None:
    """See that a file can be written whole later, before what goes into it is paid for.

    Tries it: the draft that `whole_file` would write is opened and taken away. What is there at
    `path` stays as it is.

    Args:
        path: of the file.
        makes_folder: the folder is made when the file is written, and may be missing until then.

    Raises:
        InputError: it is a folder, or cannot be written.
    """
    where = Path(path)
    try:
        if where.is_dir():
            raise InputError("is a folder; name a file", file=str(path))
        if where.exists() and not where.is_file():
            if not os.access(where, os.W_OK):
                raise InputError("cannot be written: Permission denied", file=str(path))
            return
        draft = _draft_of(where.resolve())
        folder = draft.parent
        while makes_folder and not folder.exists():
            folder = folder.parent
        if not folder.exists():
            message = f"there is no folder {folder}; make it, or name another file"
            raise InputError(message, file=str(path))
        os.close(os.open(folder / draft.name, _DRAFT, 0o600))
        (folder / draft.name).unlink()
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from error


def _draft_of(place: Path) -> Path:
    return place.with_name(f"{place.name}.{os.getpid()}.tmp")


def write_whole(path: str | Path, data: bytes) -> None:
    """Replace a file as a whole, or leave what was there.

    Raises:
        InputError: it cannot be written.
    """
    try:
        with whole_file(Path(path)) as file:
            file.write(data)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from error


def pretty_json(value: Any, *, indent: int = 2) -> bytes:
    """Any value as JSON for people and for version control, with a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=indent) + b"\n"
