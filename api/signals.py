"""Signals of the process as calls on the running loop: the first drains, the second cancels.

Used by commands only; a library caller keeps its own signal handling.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Generator

from dikast.engine.run import Engine

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def on_signals(handle: Callable[[int, signal.Signals], None]) -> Generator[None, None, None]:
    """Call `handle(count, signal)` for each SIGINT or SIGTERM while the context is open.

    Args:
        handle: synchronous; `count` is 1 for the first signal.
    """
    loop = asyncio.get_running_loop()
    count = 0

    def received(which: signal.Signals) -> None:
        nonlocal count
        count += 1
        handle(count, which)

    added = []
    for each in SIGNALS:
        # Not in the main thread, or not on this platform: then signals stay as they were.
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(each, received, each)
            added.append(each)
    try:
        yield
    finally:
        for each in added:
            loop.remove_signal_handler(each)


def drain_then_cancel(
    engine: Engine, say: Callable[[str], None] | None = None
) -> Callable[[int, signal.Signals], None]:
    """A handler for `on_signals`: the first takes no further pair, the second cancels.

    Args:
        engine: what is running.
        say: is told so after the first.
    """

    def handle(count: int, which: signal.Signals) -> None:
        message = f"interrupted by {which.name}"
        if count > 1:
            engine.cancel(message)
            return
        if say is not None:
            say(f"{which.name}: taking no further pair (again to cancel)")
        engine.drain(message)

    return handle


@contextlib.contextmanager
def first_signal() -> Generator[asyncio.Future[signal.Signals], None, None]:
    """A future of the first SIGINT or SIGTERM; they are caught from here on."""
    got: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()

    def take(_count: int, which: signal.Signals) -> None:
        if not got.done():
            got.set_result(which)

    with on_signals(take):
        yield got
