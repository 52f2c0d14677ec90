"""`dikast preferences`: judging as one person would; this file tells the actions apart."""

import argparse
from importlib import import_module, util

from dikast.engine.errors import ConfigError

_NEEDS_NUMPY = ("fit", "evaluate", "paper")
_MODULES = {
    "fit": "preferences_fit",
    "evaluate": "preferences_evaluate",
}


async def run(args: argparse.Namespace) -> int:
    """Do what was asked; the exit status says how it went.

    Raises:
        ConfigError: the packages that the statistics need are not installed.
    """
    if args.action in _NEEDS_NUMPY and util.find_spec("numpy") is None:
        raise ConfigError(
            f"dikast preferences {args.action} needs numpy: pip install 'dikast[analysis]'"
        )
    module = import_module(f"dikast.commands.{_MODULES.get(args.action, 'preferences_people')}")
    code: int = await module.run(args)
    return code
