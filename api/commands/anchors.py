"""`dikast anchors`: the same items judged again and again, to see whether the judge has changed."""

import argparse
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

from dikast.engine.errors import ConfigError

Action = Callable[[argparse.Namespace], Coroutine[Any, Any, int]]


async def run(args: argparse.Namespace) -> int:
    """Do one of init, run and check."""
    if args.action == "init":
        from dikast.commands.anchors_init import init

        return await init(args)
    if args.action == "run":
        from dikast.commands import anchors_run

        return await anchors_run.run(args)
    action: Action = with_analysis("dikast.commands.anchors_check").check
    return await action(args)


def with_analysis(module: str) -> Any:
    """A module that needs the statistics packages.

    Raises:
        ConfigError: they are not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("numpy", "scipy"):
            raise
        raise ConfigError(
            f"this needs the package {error.name}; install it with: pip install 'dikast[analysis]'"
        ) from error
