"""What the command line says of who judges and how; `judge`, `check` and `anchors run` share it."""

import argparse

from dikast import wiring


def choices_from(args: argparse.Namespace) -> wiring.Choices:
    """The command line's say in the settings."""
    return wiring.Choices(
        config=args.config,
        judges=tuple(args.judge),
        strategy=args.strategy,
        template=args.template,
        seed=args.seed,
        budget_usd=args.budget_usd,
        workers=args.workers,
        limit=getattr(args, "limit", None),
        store=getattr(args, "store", None),
        no_store=True if getattr(args, "no_store", False) else None,
    )
