"""The way out to a topic: an outcome counts as written when the broker has confirmed it.

`write` waits for the delivery report, so a slow broker slows the workers down and nothing piles
up. Ids are keys: all outcomes of an id are in one partition, in order. What the broker finds too
large goes to a dead-letter topic, without its trail and with the reason, and is counted.
"""

import asyncio
import os
from collections.abc import Callable, Mapping

from dikast.engine.errors import SinkError
from dikast.engine.model import Outcome
from dikast.sinks.kafka.address import KafkaAddress
from dikast.sinks.kafka.producer import Deliverer, TooLargeError
from dikast.sinks.kafka.records import OutgoingRecord, RecordMaker, buried


class KafkaSink:
    """Outcomes as records of a topic.

    Args:
        address: topic, brokers and options.
        run: names this run in every record's headers.
        tell: told at the end how many outcomes went to the dead letters.
        env: where passwords are looked up; the process's environment by default.

    Raises:
        ConfigError: a password is missing.
    """

    def __init__(
        self,
        address: KafkaAddress,
        *,
        run: str,
        tell: Callable[[str], None] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.address = address
        self.name = address.name
        settings = address.common(os.environ if env is None else env)
        self._deliverer = Deliverer(address, settings, run)
        # What a broker has refused in a bunch may be small enough by itself.
        self._one_by_one = Deliverer(address, {**settings, "batch.num.messages": 1}, run)
        self._tell = tell
        self._maker = RecordMaker(address.topic, address.format, run)
        self._closed = False
        self._started = False
        self.written = 0
        self.dead_lettered = 0

    @property
    def rebuilds(self) -> int:
        """How often a fatal error made a new client necessary."""
        return self._deliverer.rebuilds

    async def start(self) -> None:
        """Connect now and see that the topic is there, so that a wrong one costs nothing.

        Raises:
            SinkError: no broker answers, or there is no such topic.
        """
        dead = self.address.dead_letter
        await self._deliverer.start(self.address.topic, *([dead] if dead else []))

    async def write(self, outcome: Outcome) -> None:
        """Return when the broker has confirmed the outcome.

        Raises:
            SinkError: it could not be delivered.
        """
        if self._closed:
            raise SinkError(f"{self.name}: the output is closed")
        record = self._maker.make(outcome)
        try:
            await self._send(record)
        except TooLargeError as error:
            await self._bury(outcome, len(record.value), str(error))
            return
        self.written += 1

    async def _send(self, record: OutgoingRecord) -> None:
        if not self._started:
            await self.start()
            self._started = True
        try:
            await self._deliverer.send(record)
        except TooLargeError as error:
            if not error.batched:
                raise
            await self._one_by_one.send(record)

    async def flush(self) -> None:
        """Return when nothing is under way.

        Raises:
            SinkError: records were not confirmed within the address's `close_s`.
        """
        left = 0
        for each in (self._deliverer, self._one_by_one):
            left += await each.flush(self.address.close_s)
        if left:
            raise SinkError(
                f"{self.name}: {left} records were not confirmed within {self.address.close_s:g} s "
                f"({self.written} are); run the same again"
            )

    async def aclose(self) -> None:
        """Flush and disconnect; may be called twice."""
        if self._closed:
            return
        self._closed = True
        try:
            await self.flush()
        finally:
            await asyncio.shield(
                asyncio.gather(self._deliverer.aclose(), self._one_by_one.aclose())
            )
            if self.dead_lettered and self._tell is not None:
                self._tell(buried(self.name, self.dead_lettered, self.address.dead_letter))

    async def _bury(self, outcome: Outcome, size: int, reason: str) -> None:
        topic = self.address.dead_letter
        if not topic:
            raise SinkError(
                f"{self.name}: the outcome of {outcome.id!r} has {size:,} bytes, which is too "
                "large for the broker; name a dead-letter topic with dead_letter=TOPIC, or raise "
                "the limit (x.message.max.bytes here and max.message.bytes at the topic)"
            )
        try:
            await self._send(self._maker.dead_letter(topic, outcome, size, reason))
        except TooLargeError as error:
            raise SinkError(
                f"{self.name}: not even the dead letter of {outcome.id!r} fits ({error}); "
                f"raise max.message.bytes of {topic}"
            ) from error
        self.dead_lettered += 1

    def __repr__(self) -> str:
        return (
            f"KafkaSink({self.name!r}, {self.written} written, {self.dead_lettered} dead-lettered)"
        )
