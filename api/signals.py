"""Signals of the process as calls on the running loop: the first drains, the second cancels.

Used by commands only; a library caller keeps its own signal handling.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Generator

from dikast.engine.run import Engine

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STDIN = 0


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


@contextlib.contextmanager
def on_end_of_stdin(gone: Callable[[], None]) -> Generator[None, None, None]:
    """Call `gone` when standard input, a pipe from the parent process, comes to its end.

    A parent that is killed can tell nobody; its end of the pipe is closed all the same.
    """
    loop = asyncio.get_running_loop()

    def ready() -> None:
        if not os.read(_STDIN, 1024):
            loop.remove_reader(_STDIN)
            gone()

    loop.add_reader(_STDIN, ready)
    try:
        yield
    finally:
        loop.remove_reader(_STDIN)
