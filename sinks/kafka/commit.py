"""Between a sink and a Kafka source: positions are committed after the sink's acknowledgement.

At least once: what a crash leaves uncommitted is judged again by whoever takes over (out of the
call store where that is shared). A file as output leaves out what it holds already.
"""

import asyncio

from dikast.engine.errors import DikastError, SinkError
from dikast.engine.model import Outcome
from dikast.engine.ports import Sink
from dikast.sinks.kafka.source import KafkaSource


class CommittingSink:
    """Writes to `inner`; every `every_s` seconds flushes it and commits what was written.

    Args:
        inner: where outcomes go.
        source: where the rows came from.
        every_s: time between two commits.
    """

    def __init__(self, inner: Sink, source: KafkaSource, *, every_s: float = 1.0) -> None:
        self._inner = inner
        self._source = source
        self._every_s = every_s
        self._timer: asyncio.TimerHandle | None = None
        self._committing: asyncio.Task[None] | None = None
        self._error: DikastError | None = None
        source.before_commit = inner.flush

    async def write(self, outcome: Outcome) -> None:
        """Write to the inner sink; its row is finished then.

        Raises:
            SinkError: it cannot be written, or the last commit failed.
        """
        if self._error is not None:
            raise SinkError(str(self._error))
        await self._inner.write(outcome)
        self._source.finish(outcome.file, outcome.line)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._every_s, self._on_timer)

    async def flush(self) -> None:
        """Flush the inner sink. Positions are committed by the timer and when the source closes."""
        await self._inner.flush()

    async def aclose(self) -> None:
        """Stop committing and close the inner sink."""
        if self._timer is not None:
            self._timer.cancel()
        if self._committing is not None:
            await asyncio.gather(self._committing, return_exceptions=True)
        await self._inner.aclose()

    def _on_timer(self) -> None:
        self._timer = None
        if self._committing is None or self._committing.done():
            self._committing = asyncio.get_running_loop().create_task(self._commit())

    async def _commit(self) -> None:
        marks = self._source.positions.marks()
        try:
            await self._inner.flush()
            await self._source.commit(marks)
        except DikastError as error:
            self._error = error  # the next write says it

    def __repr__(self) -> str:
        return f"CommittingSink({self._inner!r}, {self._source!r})"
