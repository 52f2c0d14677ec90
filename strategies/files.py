"""Templates and rubrics as files: the shipped ones by name, a user's own by path, each with a hash.

Off the journey: read once, before the first pair. Knows no template and no rubric, only that both
are TOML files in a folder of this package or anywhere else.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from dikast.engine.errors import ConfigError
from dikast.strategies.names import nearest


def content_hash(data: dict[str, Any]) -> str:
    """SHA-256 over what was read, whatever the order of the fields and the comments."""
    canonical = json.dumps(
        data, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str
    )
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


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
