"""`dikast sesse ...`: to the module of the sub-command that was named."""

import argparse
from importlib import import_module


async def run(args: argparse.Namespace) -> int:
    """Run the sub-command; the exit status says how it went."""
    command = import_module(f"dikast.commands.sesse_{args.sesse_command}")
    code: int = await command.run(args)
    return code
