"""A virtual-time event loop: timers fire in order and at once, and a deadlock is an error.

The selector polls with timeout zero; when nothing is ready, the clock jumps by the time the loop
would have slept. Time is an integer number of nanoseconds, so sums of waits are exact. Threads
are invisible to it, on purpose: a test that needs one is marked `realtime`.
"""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any


class DeadlockError(RuntimeError):
    """Every task waits, and no timer and no socket will ever wake one."""


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise DeadlockError("all tasks wait and nothing will wake them")
        # To the nearest: `timeout` is a difference of floats, and rounding its dust up would add a
        # nanosecond per wait. Never zero, or the loop would spin.
        self.now_ns += max(1, round(timeout * 1_000_000_000))
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio loop whose clock starts at zero and moves only when everybody waits."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        # Wake-ups of timers are compared at this grain: one nanosecond, as the clock's.
        self._clock_resolution = 1e-9

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jumping.now_ns / 1_000_000_000

    def run_in_executor(  # type: ignore[override]  # it never returns, so its types do not matter
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        """Refused: a thread's end cannot be seen in virtual time."""
        raise RuntimeError("no threads on the virtual loop; mark the test `realtime`")
