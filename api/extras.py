"""Optional packages: one clear sentence where one is not installed.

Wraps the late imports of a command. Knows no package but by name.
"""

import contextlib
from collections.abc import Generator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dikast.engine.errors import ConfigError


@contextlib.contextmanager
def needs(extra: str, what: str) -> Generator[None, None, None]:
    """Import optional packages inside; a missing one becomes a `ConfigError`.

    Args:
        extra: the extra of dikast that brings them.
        what: what needs them, to begin the sentence with.

    Raises:
        ConfigError: a module that is not dikast's own is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name in ("", "dikast"):
            raise
        raise ConfigError(_sentence(extra, what, name)) from error


def needed(module: str, extra: str, what: str) -> Any:
    """A module that needs optional packages; see `needs`.

    Raises:
        ConfigError: one of them is missing.
    """
    with needs(extra, what):
        return import_module(module)


def see_installed(extra: str, what: str, *packages: str) -> None:
    """See that packages which are imported later are there, before anything is paid.

    Raises:
        ConfigError: one is missing.
    """
    for name in packages:
        if find_spec(name) is None:
            raise ConfigError(_sentence(extra, what, name))


def _sentence(extra: str, what: str, package: str) -> str:
    return (
        f"{what} needs the package {package}, which is not installed; "
        f"run: pip install 'dikast[{extra}]'"
    )
