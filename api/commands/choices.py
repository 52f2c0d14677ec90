"""What the command line says of who judges and how; `judge`, `check` and `anchors run` share it."""

import argparse

from dikast import settling


def choices_from(args: argparse.Namespace) -> settling.Choices:
    """The command line's say in the settings."""
    return settling.Choices(
        config=args.config,
        judges=tuple(args.judge),
        strategy=args.strategy,
        template=args.template,
        seed=args.seed,
        budget_usd=args.budget_usd,
        budget_total_usd=getattr(args, "budget_total_usd", None),
        workers=args.workers,
        limit=getattr(args, "limit", None),
        store=getattr(args, "store", None),
        no_store=True if getattr(args, "no_store", False) else None,
        format=getattr(args, "format", None),
        split=getattr(args, "split", None),
        columns=getattr(args, "columns", None),
        one_of=getattr(args, "one_of", None),
    )
