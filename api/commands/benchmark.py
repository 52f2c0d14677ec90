"""`dikast benchmark`: prompts out of chat logs, and checks of what is there already."""

import argparse
from importlib import import_module

from dikast.engine.errors import ConfigError
from dikast.extras import needs


async def run(args: argparse.Namespace) -> int:
    """Do what was asked; the exit status says how it went.

    Raises:
        ConfigError: an option is out of range, or the packages it needs are not installed.
    """
    if not 0 < args.similarity <= 1:
        raise ConfigError(f"--similarity: must be above 0 and up to 1, not {args.similarity}")
    for name in ("max_chars", "limit", "review_kept", "review_rejected"):
        given = getattr(args, name, None)
        if given is not None and given < 0:
            raise ConfigError(f"--{name.replace('_', '-')}: must be at least 0, not {given}")
    with needs("analysis", f"dikast benchmark {args.action}"):
        module = import_module(f"dikast.commands.benchmark_{args.action}")
    code: int = await module.run(args)
    return code
