"""Templates and rubrics as files: the shipped ones by name, a user's own by path, each with a hash.

Off the journey: read once, before the first pair. Knows no template and no rubric, only that both
are TOML files in a folder of this package or anywhere else.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from dikast.engine.errors import ConfigError
from dikast.strategies.names import explain, nearest

T = TypeVar("T")


def content_hash(data: dict[str, Any]) -> str:
    """SHA-256 over what was read, whatever the order of the fields and the comments."""
    canonical = json.dumps(
        data, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str
    )
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def record_hash(record: msgspec.Struct, *left_out: str) -> str:
    """`content_hash` of a record that is written to a file, without the fields that are named."""
    plain: dict[str, Any] = msgspec.to_builtins(record)
    return content_hash({name: each for name, each in plain.items() if name not in left_out})


def parse_toml(text: str, kind: type[T], source: str, known_names: Iterable[str]) -> tuple[T, str]:
    """The text of a template or rubric as a record, and the hash of its content.

    Args:
        text: TOML.
        kind: the record.
        source: what to call the text in messages, usually its path.
        known_names: of all fields; of them, the nearest one is named where a name is not known.

    Raises:
        ConfigError: what is wrong, in which field, and what to do.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: not valid TOML: {error}") from error
    try:
        return msgspec.convert(data, kind), content_hash(data)
    except msgspec.ValidationError as error:
        place, message = explain(error, known_names)
        where = f"{source}, field {place!r}" if place else source
        raise ConfigError(f"{where}: {message}") from error


def shipped_names(folder: Path) -> list[str]:
    """Names of the files that come with the package."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def read_named(what: str, name: str, folder: Path) -> tuple[str, str]:
    """The text of a file and its path, for messages.

    Args:
        what: "template" or "rubric", for messages.
        name: of a shipped file, or a path that ends in ".toml".
        folder: where the shipped ones lie.

    Raises:
        ConfigError: there is no such file, or it cannot be read.
    """
    if name.endswith(".toml"):
        path = Path(name)
    else:
        known = shipped_names(folder)
        if name not in known:
            raise ConfigError(
                f"unknown {what} {name!r}; {nearest(name, (*known, 'auto'))} "
                "(a file of your own is named by its path, ending in .toml)"
            )
        path = folder / f"{name}.toml"
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: the {what} cannot be read: {error}") from error
