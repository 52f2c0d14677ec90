"""From `[pacing]` to the limit that workers share; Redis's client is loaded only for it.

Part of the wiring, in a module of its own because it needs an extra.
"""

import os
import socket
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dikast.config import PacingSettings
from dikast.engine.errors import ConfigError
from dikast.engine.ports import SharedLimit


def shared_limit(settings: PacingSettings, env: Mapping[str, str]) -> SharedLimit | None:
    """The limit that workers share, as configured; connects when it is first asked.

    Raises:
        ConfigError: the client library is missing.
    """
    if settings.shared is None:
        return None
    limit: SharedLimit = _redis_limit(settings, env)
    return limit


def _redis_limit(settings: PacingSettings, env: Mapping[str, str]) -> Any:
    try:
        library = import_module("dikast.providers.redis_limit")
    except ImportError as error:
        if error.name is not None and error.name.startswith("dikast"):
            raise
        raise ConfigError(
            "[pacing] shared needs the package redis: pip install 'dikast[redis]'"
        ) from error
    return library.RedisLimit(
        settings.shared,
        password=env.get(settings.password_env),
        worker=f"{socket.gethostname()}:{os.getpid()}",
        prefix=settings.prefix,
    )


async def check_shared(settings: PacingSettings) -> None:
    """See that the shared limit answers, before anything is spent.

    Raises:
        ConfigError: it does not.
    """
    if settings.shared is not None:
        limit = _redis_limit(settings, os.environ)
        try:
            await limit.check()
        finally:
            await limit.aclose()
