"""The way out for tests and for callers who want a list: outcomes kept in memory.

Knows nothing of files. It is bounded only by what is written to it.
"""

from dikast.engine.errors import SinkError
from dikast.engine.model import Outcome


class MemorySink:
    """Outcomes in a list, in the order in which they were written."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.flushes = 0
        self.closed = False

    async def write(self, outcome: Outcome) -> None:
        """Append.

        Raises:
            SinkError: the sink is closed.
        """
        if self.closed:
            raise SinkError("the memory sink is closed")
        self.outcomes.append(outcome)

    async def flush(self) -> None:
        """Counted; there is nothing to do."""
        self.flushes += 1

    async def aclose(self) -> None:
        """Take no more; the outcomes stay readable."""
        self.closed = True

    def __repr__(self) -> str:
        return f"MemorySink({len(self.outcomes)} outcomes)"
