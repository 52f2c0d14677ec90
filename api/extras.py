"""Optional packages: one clear sentence where one is not installed.

Wraps the late imports of a command. Knows no package but by name.
"""

import contextlib
from collections.abc import Generator

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
        raise ConfigError(
            f"{what} needs the package {name}, which is not installed; "
            f"run: pip install 'dikast[{extra}]'"
        ) from error
