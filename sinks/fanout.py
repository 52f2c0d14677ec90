"""The way out to several sinks at once: each outcome goes to all of them.

What happens when one of them breaks is a stated policy. Knows the sinks only by their port.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from dikast.engine.errors import ConfigError, SinkError
from dikast.engine.model import Outcome
from dikast.engine.ports import Sink

BrokenPolicy = Literal["stop", "drop"]


class FanoutSink:
    """Writes every outcome to every sink, one after the other.

    Args:
        sinks: where to; the first is served first, the last has only what all others have.
        broken: "stop": the error is raised, and the sinks after it do not get that outcome; "drop":
            the broken sink gets nothing more and the rest go on, as long as one is left. One policy
            for all, or one for each sink.
        on_drop: told of each sink that was dropped, with its error.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        *,
        broken: BrokenPolicy | Sequence[BrokenPolicy] = "stop",
        on_drop: Callable[[Sink, SinkError], None] | None = None,
    ) -> None:
        self._sinks = list(sinks)
        each = [broken] * len(self._sinks) if isinstance(broken, str) else list(broken)
        if len(each) != len(self._sinks):
            raise ConfigError("a fan-out needs one policy for all sinks, or one for each of them")
        self._stops = [sink for sink, policy in zip(sinks, each, strict=True) if policy == "stop"]
        self._on_drop = on_drop
        self.dropped: list[tuple[Sink, SinkError]] = []

    async def write(self, outcome: Outcome) -> None:
        """Write to all.

        Raises:
            SinkError: one broke under "stop", or none is left under "drop".
        """
        for sink in list(self._sinks):
            try:
                await sink.write(outcome)
            except SinkError as error:
                self._settle([(sink, error)])

    async def flush(self) -> None:
        """Flush all. Raises `SinkError` as `write` does."""
        errors: list[tuple[Sink, SinkError]] = []
        for sink in list(self._sinks):
            try:
                await sink.flush()
            except SinkError as error:
                errors.append((sink, error))
        self._settle(errors)

    async def aclose(self) -> None:
        """Close all, the dropped ones too.

        Raises:
            SinkError: a sink that was not dropped could not be closed; the others are.
        """
        first: SinkError | None = None
        for sink in self._sinks:
            try:
                await sink.aclose()
            except SinkError as error:
                first = first or error
        for sink, _ in self.dropped:
            try:
                await sink.aclose()
            except SinkError:
                continue  # it was reported when it was dropped
        if first is not None:
            raise first

    def __repr__(self) -> str:
        return f"FanoutSink({self._sinks!r}, {len(self.dropped)} dropped)"

    def _settle(self, errors: list[tuple[Sink, SinkError]]) -> None:
        if not errors:
            return
        for sink, error in errors:
            if any(sink is each for each in self._stops):
                raise error
        for sink, error in errors:
            if not any(sink is each for each in self._sinks):
                continue  # another write has met the same break
            self._sinks.remove(sink)
            self.dropped.append((sink, error))
            if self._on_drop is not None:
                self._on_drop(sink, error)
        if not self._sinks:
            raise SinkError(f"no sink is left to write to; the last one: {errors[-1][1]}")
