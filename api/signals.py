"""SIGINT and SIGTERM while a command runs: one way for all of them, and a better one for a run.

`until_signal` is around every command: what waits is cancelled and what computes is broken off, so
that files and providers are closed in order, and the command ends with one sentence. A command with
pairs in flight takes the signals over for that time with `on_signals`: the first drains, the second
cancels. Used by commands only; a library caller keeps its own signal handling.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Coroutine, Generator
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dikast.engine.run import Engine

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STDIN = 0


class Interrupted(KeyboardInterrupt):
    """A signal has ended a command that had nothing in flight to wait for.

    Args:
        which: the signal.
    """

    def __init__(self, which: signal.Signals) -> None:
        super().__init__(which.name)
        self.which = which


async def until_signal(work: Coroutine[Any, Any, int]) -> int:
    """Run a command to its end, or to the first SIGINT or SIGTERM that it does not take itself.

    Work that waits is cancelled. Work that computes would not see that before it waits again, which
    can take a minute in a report, so it is broken off where it stands, as Python does by default.

    Args:
        work: the command; the task that runs this is its own.

    Raises:
        Interrupted: a signal ended it.
    """
    loop, own = asyncio.get_running_loop(), asyncio.current_task()
    assert own is not None
    came: list[signal.Signals] = []
    broken_off = False

    def received(number: int, _frame: FrameType | None) -> None:
        nonlocal broken_off
        came.append(signal.Signals(number))
        if len(came) > 1 or asyncio.current_task(loop) is own:
            broken_off = True
            raise Interrupted(came[0])
        own.cancel()
        loop.call_soon_threadsafe(_nothing)  # the loop may be asleep

    with _handled_by(received):
        try:
            return await work
        except asyncio.CancelledError:
            # Broken off, this is the clearing up behind an `Interrupted` that is on its way.
            if not came or broken_off:
                raise
            raise Interrupted(came[0]) from None


@contextlib.contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None]) -> Generator[None, None, None]:
    before: dict[signal.Signals, Any] = {}
    for each in SIGNALS:
        if signal.getsignal(each) is signal.SIG_IGN:
            continue
        # Only the main thread may: elsewhere signals stay as they were.
        with contextlib.suppress(ValueError):
            before[each] = signal.signal(each, handler)
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, old)


def _nothing() -> None:
    """Wakes a loop."""


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

    before: dict[signal.Signals, Any] = {}
    for each in SIGNALS:
        old = signal.getsignal(each)
        # Not in the main thread, or not on this platform: then signals stay as they were.
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(each, received, each)
            before[each] = old
    try:
        yield
    finally:
        for each, old in before.items():
            loop.remove_signal_handler(each)
            signal.signal(each, old)  # the loop would leave the system's default


def drain_then_cancel(
    engine: "Engine", say: Callable[[str], None] | None = None
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
