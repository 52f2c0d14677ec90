"""`dikast audit`: people look at a sample of what a judge decided; three steps, one command.

Dispatches to `audit_sample`, `audit_serve` and `audit_report`.
"""

import argparse
from importlib import import_module


async def run(args: argparse.Namespace) -> int:
    """Run the step that was asked for; its exit status."""
    step = import_module(f"dikast.commands.audit_{args.step}")
    code: int = await step.run(args)
    return code
