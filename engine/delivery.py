"""The last step to the sink: outcomes as they come, or each in its turn.

Called by a worker when its outcome is decided. `InTurn` keeps the input's order: a worker waits
with its outcome until all before it are written or given up, so that the buffer is the workers
themselves and nothing has to be held besides. Knows no files.
"""

import asyncio
from collections.abc import Awaitable
from typing import Protocol

from dikast.engine.model import Outcome
from dikast.engine.ports import Sink


class Delivery(Protocol):
    """Where a worker leaves what it has. `turn` counts the handed-out rows from 1 without gap."""

    def write(self, turn: int, outcome: Outcome) -> Awaitable[None]:
        """To be awaited until the outcome is accepted.

        Raises:
            SinkError: it cannot be written.
        """
        ...

    def skip(self, turn: int) -> None:
        """There will be no outcome for this turn."""
        ...


class AsTheyCome:
    """Outcomes go to the sink in the order of their completion."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, turn: int, outcome: Outcome) -> Awaitable[None]:
        """See `Delivery`."""
        return self._sink.write(outcome)

    def skip(self, turn: int) -> None:
        """Nobody waits for it."""


class InTurn:
    """Outcomes go to the sink in the order of their rows."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._next = 1
        self._over: set[int] = set()
        self._waiting: dict[int, asyncio.Future[None]] = {}

    async def write(self, turn: int, outcome: Outcome) -> None:
        """See `Delivery`."""
        try:
            if turn != self._next:
                future = asyncio.get_running_loop().create_future()
                self._waiting[turn] = future
                await future
            await self._sink.write(outcome)
        finally:
            self._waiting.pop(turn, None)
            self.skip(turn)

    def skip(self, turn: int) -> None:
        """This turn is over: the one who waits for the next may write."""
        self._over.add(turn)
        while self._next in self._over:
            self._over.remove(self._next)
            self._next += 1
        waiting = self._waiting.get(self._next)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def __repr__(self) -> str:
        return f"InTurn(next {self._next}, {len(self._waiting)} waiting)"
