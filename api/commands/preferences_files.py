"""The files of a person: the profile, the votes behind it, and the store of the calls.

All three lie side by side under one name, so that they can be found, handed over and deleted
together. A file is replaced whole or not at all.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from dikast.engine.errors import InputError, SinkError
from dikast.engine.files import whole_file

_UNSAFE = re.compile(r"[^\w.-]+")
_VOTES = ".votes.jsonl"
_STORE = ".calls.sqlite"


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the votes: what was picked in each order, in the pair's own A and B.

    `prompt` stands for the pair's prompt, `label` is the answer that the person took.
    """

    topic: str = ""
    pair: str
    prompt: str
    label: Literal["A", "B"]
    column: str
    ab: Literal["A", "B", "none"] = "none"
    ba: Literal["A", "B", "none"] = "none"
    why: dict[str, str] = {}


def profile_path(folder: Path, person: str) -> Path:
    """The profile of a person: their name where it can be a file's name, with a hash where not."""
    name = _UNSAFE.sub("-", person).strip("-.")[:80]
    if name != person:
        name += f"-{hashlib.sha256(person.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return folder / f"{name}.json"


def make_folder(folder: Path, purpose: str = "the profiles") -> None:
    """Make the folder for profiles (or for what `purpose` says), if it is not there.

    Raises:
        InputError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot be made: {error.strerror}; name a folder for {purpose}"
        raise InputError(message, file=str(folder)) from error


def store_path(folder: Path, person: str) -> Path:
    """The call store of a person: of their own, because its completions speak of them."""
    return store_beside(profile_path(folder, person))


def votes_path(folder: Path, person: str) -> Path:
    """The votes of a person's fit."""
    return votes_beside(profile_path(folder, person))


def store_beside(profile: Path) -> Path:
    """The call store that belongs to a profile."""
    return profile.with_name(profile.stem + _STORE)


def votes_beside(profile: Path) -> Path:
    """The votes that belong to a profile."""
    return profile.with_name(profile.stem + _VOTES)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file, readable by its owner only: it speaks of a person.

    Raises:
        SinkError: it cannot be written.
    """
    try:
        with whole_file(path, private=True) as file:
            file.write(data)
    except OSError as error:
        raise SinkError(f"{path}: cannot be written: {error.strerror}") from error


def keep_votes(path: Path, cells: Sequence[Cell]) -> None:
    """Write the votes of a fit.

    Raises:
        SinkError: they cannot be written.
    """
    write_whole(path, b"".join(msgspec.json.encode(each) + b"\n" for each in cells))


def load_votes(path: Path) -> list[Cell]:
    """Read the votes of a fit.

    Raises:
        InputError: the file cannot be read, or a line is no vote.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
    cells: list[Cell] = []
    for number, line in enumerate(lines, start=1):
        try:
            cells.append(msgspec.json.decode(line, type=Cell))
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(
                f"is no vote of a fit: {error}", file=str(path), line=number
            ) from error
    return cells


def delete_all(profile: Path) -> list[Path]:
    """Delete everything that belongs to a profile; what was deleted.

    Raises:
        SinkError: a file cannot be deleted.
    """
    store = store_beside(profile)
    gone: list[Path] = []
    # The store keeps a journal of its own beside it.
    journals = [store.with_name(store.name + tail) for tail in ("-wal", "-shm", "-journal")]
    for path in (profile, votes_beside(profile), store, *journals):
        try:
            path.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise SinkError(f"{path}: cannot be deleted: {error.strerror}") from error
        gone.append(path)
    return gone
