"""One timer for all requests on the wire, instead of one timer each.

They all have the same allowance, so their deadlines fall in the order in which they were sent.
Used by the HTTP client only, once per request; a timer of its own costs a request about as much
as its prompt does.
"""

import asyncio

from dikast.engine.ports import Clock


class Deadlines:
    """Cancels the task whose request has had its time; the caller turns that into a timeout.

    Args:
        allowance_s: seconds from `start` to the deadline, for every request.
        clock: time; must run with the event loop's clock.
    """

    def __init__(self, allowance_s: float, clock: Clock) -> None:
        self._allowance_s = allowance_s
        self._clock = clock
        self._due_s: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._timer: asyncio.Handle | None = None

    def start(self, task: asyncio.Task[object], now_s: float) -> None:
        """The request of `task` leaves now. A task has one request at a time."""
        self._due_s[task] = now_s + self._allowance_s
        if self._timer is None:
            self._arm(self._allowance_s)

    def stop(self, task: asyncio.Task[object]) -> bool:
        """The request is over; True when its deadline had cancelled the task."""
        self._due_s.pop(task, None)
        if task in self._late:
            self._late.remove(task)
            return True
        return False

    def close(self) -> None:
        """Watch nothing more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, wait_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(max(0.001, wait_s), self._on_timer)

    def _on_timer(self) -> None:
        now_s = self._clock.now()
        self._timer = None
        for task, due_s in tuple(self._due_s.items()):
            if due_s > now_s:
                self._arm(due_s - now_s)
                return
            del self._due_s[task]
            self._late.add(task)
            task.cancel()

    def __repr__(self) -> str:
        return f"Deadlines({len(self._due_s)} open, {self._allowance_s} s each)"
