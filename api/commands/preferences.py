"""`dikast preferences`: judging as one person would; this file tells the actions apart."""

import argparse
from importlib import import_module

from dikast.extras import needs

_MODULES = {
    "fit": "preferences_fit",
    "evaluate": "preferences_evaluate",
    "leaderboard": "preferences_leaderboard",
}


async def run(args: argparse.Namespace) -> int:
    """Do what was asked; the exit status says how it went.

    Raises:
        ConfigError: the packages that the statistics need are not installed.
    """
    with needs("analysis", f"dikast preferences {args.action}"):
        module = import_module(f"dikast.commands.{_MODULES.get(args.action, 'preferences_people')}")
    code: int = await module.run(args)
    return code
