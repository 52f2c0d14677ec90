"""`dikast anchors`: the same items judged again and again, to see whether the judge has changed."""

import argparse
from collections.abc import Callable, Coroutine
from typing import Any

from dikast.extras import needed

Action = Callable[[argparse.Namespace], Coroutine[Any, Any, int]]


async def run(args: argparse.Namespace) -> int:
    """Do one of init, run and check."""
    if args.action == "init":
        from dikast.commands.anchors_init import init

        return await init(args)
    if args.action == "run":
        from dikast.commands import anchors_run

        return await anchors_run.run(args)
    action: Action = needed(
        "dikast.commands.anchors_check", "analysis", "dikast anchors check"
    ).check
    return await action(args)
