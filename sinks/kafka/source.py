"""The way in from a topic: one member of a consumer group, its rows finished in any order.

A task keeps the client served whatever the workers do, so that the group never waits for a slow
judge. Nothing is committed that is not finished: `finish` and `skipped` say what is, `marks` what
may be committed. When partitions are taken away, their rows get `drain_s` to finish; what is left
is handed back. Everything that touches the client happens in one thread.
"""

import asyncio
import contextlib
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from dikast.engine.errors import ConfigError, InputError, SinkError
from dikast.engine.formats import detect, format_named, map_rows
from dikast.engine.model import BadRow, Row, Subject
from dikast.engine.sources import items_of
from dikast.sinks.kafka import clients
from dikast.sinks.kafka.address import KafkaAddress
from dikast.sinks.kafka.positions import Mark, Positions, Snapshot
from dikast.sinks.kafka.producer import explain, partitions_of, patiently

T = TypeVar("T")
_BATCH_ROWS = 256
_BUFFER_ROWS = 1024
_POLL_S = 0.1
_CHECK_S = 0.5
_GIVE_UP_S = 20.0


class _Fetched(NamedTuple):
    """A record that was read and not yet handed out, and the tenure it was read in."""

    partition: int
    offset: int
    rows: list[Row]
    tenure: object


class KafkaSource:
    """Pairs from the records of a topic. `Row.file` is `topic[partition]`, `Row.line` offset + 1.

    Args:
        address: topic, brokers, group and options.
        form: the format of the objects in the records (docs/formats.md), or "auto".
        env: where passwords are looked up; the process's environment by default.

    Raises:
        ConfigError: there is no group, or a password is missing.
        InputError: there is no format of that name.
    """

    def __init__(
        self,
        address: KafkaAddress,
        *,
        form: str = "auto",
        env: Mapping[str, str] | None = None,
    ) -> None:
        if not address.group:
            raise ConfigError(
                f"{address.name}: a source needs a consumer group; add ?group=NAME, the same for "
                "all workers that share the topic"
            )
        if form != "auto":
            format_named(form)
        self.address = address
        self.positions = Positions()
        self.lag: int | None = None
        self.left = False
        self.before_commit: Callable[[], Awaitable[None]] = _nothing
        """Awaited before partitions are given up: makes what was accepted durable."""
        self.commits_itself = True
        """False where a transaction of the sink carries the positions."""
        self._form = form
        self._heard = clients.Complaints()
        self._settings = self._consumer_settings(os.environ if env is None else env)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dikast-kafka-source")
        self._consumer: Consumer | None = None
        self._handover = threading.Lock()
        self._member: Any = None
        self._ready: deque[_Fetched] = deque()
        self._ready_rows = 0
        self._arrived = asyncio.Event()
        self._progress = asyncio.Event()
        self._closing = False
        self._over = False
        self._pump_task: asyncio.Task[None] | None = None
        self._paused: set[int] = set()
        self._all: dict[int, int] = {}
        self._at_end: dict[int, int] = {}

    def _consumer_settings(self, env: Mapping[str, str]) -> dict[str, Any]:
        settings = self.address.common(env)
        settings.setdefault("session.timeout.ms", 10_000)
        # A member that is heard less often than its session lasts is thrown out again and again.
        try:
            session_ms = int(float(settings["session.timeout.ms"]))
        except (ValueError, OverflowError) as error:
            raise ConfigError(
                f"{self.address.name}: x.session.timeout.ms must be a number of milliseconds"
            ) from error
        settings.setdefault("heartbeat.interval.ms", min(3_000, max(1, session_ms // 3)))
        return {
            **settings,
            "error_cb": self._heard,
            "group.id": self.address.group,
            "auto.offset.reset": self.address.start,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }

    async def batches(self) -> AsyncIterator[list[Row]]:
        """Rows as they arrive; ends when closed, or at the end with `until=end`.

        Raises:
            InputError: the topic cannot be read, or its records are of no known format.
        """
        await self.start()
        while True:
            while not self._ready:
                assert self._pump_task is not None
                if self._pump_task.done():
                    self._pump_task.result()
                    return
                self._arrived.clear()
                arrived = asyncio.ensure_future(self._arrived.wait())
                try:
                    await asyncio.wait(
                        (arrived, self._pump_task), return_when=asyncio.FIRST_COMPLETED
                    )
                finally:
                    arrived.cancel()
            rows: list[Row] = []
            while self._ready and len(rows) < _BATCH_ROWS:
                fetched = self._ready.popleft()
                self._ready_rows -= len(fetched.rows)
                if self._hand_out(fetched):
                    rows.extend(fetched.rows)
            if rows:
                yield rows

    def _hand_out(self, fetched: _Fetched) -> bool:
        with self._handover:
            # A partition that was lost and came back is read again from its position.
            if self.positions.tenure(fetched.partition) is not fetched.tenure:
                return False
            return self.positions.hand_out(fetched.partition, fetched.offset, len(fetched.rows))

    async def start(self) -> None:
        """Connect and join the group; may be called twice.

        Raises:
            InputError: no broker answers, or there is no such topic.
        """
        if self._pump_task is None:
            self._loop = asyncio.get_running_loop()
            await self._in_thread(self._open)
            self._pump_task = asyncio.create_task(self._pump())

    def finish(self, file: str | None, line: int | None) -> None:
        """An outcome of the row at this place was accepted."""
        place = self.place_of(file, line)
        if place is not None:
            with self._handover:
                self.positions.finish(*place)
            self._progress.set()

    def skipped(self, row: Row) -> None:
        """An earlier run has done this row."""
        self.finish(row.file, row.line)

    def place_of(self, file: str | None, line: int | None) -> tuple[int, int] | None:
        """Partition and offset that an outcome names; None when it is not of this topic."""
        head = f"{self.address.topic}["
        if not file or not line or not file.startswith(head):
            return None
        return int(file[len(head) : -1]), line - 1

    async def commit(self, marks: Iterable[Mark]) -> None:
        """Commit positions now.

        Raises:
            SinkError: the broker refuses.
        """
        places = self.places(marks)
        if places:
            await self._in_thread(self._commit, places)

    def places(self, marks: Iterable[Mark]) -> list[TopicPartition]:
        """Marks as the client wants them."""
        return [
            TopicPartition(self.address.topic, mark.partition, mark.offset, metadata=mark.metadata)
            for mark in marks
        ]

    def snapshot(self) -> Snapshot:
        """What may be committed now, and who this member was when it got those partitions.

        Belongs together: a broker refuses positions of a member whose partitions have gone to
        others, but only if it is told of the generation in which they were ours.
        """
        with self._handover:
            return Snapshot(self.positions.marks(), self.positions.tenures(), self._member)

    async def committed(self, partitions: Iterable[int]) -> list[TopicPartition]:
        """What the group has committed. Asked with a client of its own: ours may be waiting.

        Raises:
            SinkError: no broker answers.
        """
        places = [TopicPartition(self.address.topic, each) for each in partitions]

        def ask() -> list[TopicPartition]:
            client = clients.consumer(self.address, self._settings)
            try:
                return self._committed(client, places)
            finally:
                client.close()

        return await asyncio.to_thread(ask)

    def _committed(self, client: Consumer, places: list[TopicPartition]) -> list[TopicPartition]:
        return patiently(self.address, lambda: client.committed(places, timeout=self.address.ask_s))

    def _ends(self, client: Consumer, place: TopicPartition) -> tuple[int, int]:
        return patiently(
            self.address, lambda: client.get_watermark_offsets(place, timeout=self.address.ask_s)
        )

    async def aclose(self) -> None:
        """Leave the group; may be called twice. What is not finished is another's to do."""
        if self._closing:
            return
        self._closing = True
        if self._pump_task is not None:
            await asyncio.gather(self._pump_task, return_exceptions=True)
        try:
            if self._consumer is not None:
                await self._leave(self._consumer)
        finally:
            self.left = True
            self._thread.shutdown(wait=False)

    async def _leave(self, consumer: Consumer) -> None:
        try:
            await self.before_commit()
        except BaseException:
            # What could not be made durable must not be committed by the closing either.
            self.before_commit, self.commits_itself = _nothing, False
            with contextlib.suppress(KafkaException):
                await asyncio.shield(self._in_thread(consumer.close))
            self._consumer = None
            raise
        # Closing gives the partitions up, for which the client is still needed.
        await self._in_thread(consumer.close)
        self._consumer = None

    async def _in_thread(self, work: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    def _client(self) -> Consumer:
        assert self._consumer is not None
        return self._consumer

    def _open(self) -> None:
        consumer = clients.consumer(self.address, self._settings)
        try:
            partitions = partitions_of(consumer, self.address.topic, self.address, self._heard)
            if self.address.until == "end":
                for each in partitions:
                    place = TopicPartition(self.address.topic, each)
                    low, high = self._ends(consumer, place)
                    if high > low:
                        self._all[each] = high
            consumer.subscribe(
                [self.address.topic],
                on_assign=self._assigned,
                on_revoke=self._revoked,
                on_lost=self._lost,
            )
        except (SinkError, KafkaException) as error:
            consumer.close()
            message = str(error) if isinstance(error, SinkError) else error.args[0].str()
            raise InputError(
                message.removeprefix(f"{self.address.name}: "), file=self.address.name
            ) from error
        self._consumer = consumer

    async def _pump(self) -> None:
        """Serve the client until closed: rows into the buffer, callbacks, the end of the topic."""
        checked_s = self._loop.time()
        while not self._closing:
            held = set(self.positions.too_far(self.address.window))
            messages = await self._in_thread(self._consume, held)
            for message in messages:
                self._take(message)
            if messages:
                self._arrived.set()
            if self._loop.time() - checked_s >= _CHECK_S:
                checked_s = self._loop.time()
                self.lag = await self._in_thread(self._lag, self.positions.marks())
                if self.address.until == "end" and await self._is_over():
                    return

    def _consume(self, held: set[int]) -> list[Message]:
        """In the client's thread: leave `held` partitions alone, take what there is."""
        consumer = self._client()
        owned = {each.partition for each in consumer.assignment()}
        full = self._ready_rows >= _BUFFER_ROWS
        wanted = owned if full else owned & held
        for partitions, act in (
            (wanted - self._paused, consumer.pause),
            ((self._paused - wanted) & owned, consumer.resume),
        ):
            if partitions:
                act([TopicPartition(self.address.topic, each) for each in partitions])
        self._paused = wanted
        return consumer.consume(_BATCH_ROWS, timeout=_POLL_S)

    def _take(self, message: Message) -> None:
        partition = message.partition() or 0
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self._at_end[partition] = message.offset() or 0
                return
            if error.retriable() or error.code() == KafkaError._TRANSPORT:
                return  # the client tries again by itself
            raise InputError(error.str(), file=self.address.name)
        rows = self._rows(message)
        offset, tenure = message.offset() or 0, self.positions.tenure(partition)
        self._ready.append(_Fetched(partition, offset, rows, tenure))
        self._ready_rows += len(rows)

    def _rows(self, message: Message) -> list[Row]:
        file = f"{self.address.topic}[{message.partition()}]"
        line = (message.offset() or 0) + 1
        return [Row(item=item, file=file, line=line) for item in self._items(message.value())]

    def _items(self, value: bytes | None) -> list[Subject | BadRow]:
        if value is None:
            return [BadRow(message="the record has no value")]
        if self.address.format == "msgpack":
            try:
                obj = msgspec.msgpack.decode(value)
            except (msgspec.DecodeError, UnicodeDecodeError):
                return [BadRow(message="is not MessagePack")]
            if self._form == "auto" and isinstance(obj, dict):
                self._form = detect([obj], self.address.name)
            return map_rows("dikast" if self._form == "auto" else self._form, obj)
        if self._form == "auto":
            try:
                self._form = detect([msgspec.json.decode(value)], self.address.name)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return items_of(value, "dikast")
        return items_of(value, self._form)

    def _lag(self, marks: list[Mark]) -> int:
        """Records that are in our partitions and not finished."""
        total = 0
        for mark in marks:
            place = TopicPartition(self.address.topic, mark.partition)
            high = self._client().get_watermark_offsets(place, cached=True)[1]
            total += max(0, high - mark.offset)
        return total

    async def _is_over(self) -> bool:
        """True when what was in the topic at the start is read here or done elsewhere."""
        if self._ready:
            return False
        if any(each not in self._at_end for each in self._all if self.positions.owns(each)):
            return False
        for partition, offset in self._at_end.items():
            self.positions.reach(partition, offset)  # what lies between holds no rows
        if self.commits_itself:
            await self.before_commit()
            await self.commit(self.positions.marks())
        # A transaction commits by itself; to wait for one here would leave the client unserved,
        # and the group with it, while the transaction waits for the group.
        others = [each for each in self._all if not self.positions.owns(each)]
        if not others:
            return True
        return all(
            each.offset >= self._all[each.partition] for each in await self.committed(others)
        )

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        """In the client's thread: begin where the last owner has left off."""
        if self._closing:
            return  # the group was quicker than our leave; what is not read is not ours
        numbers = [each.partition for each in places]
        committed = self._committed(consumer, places)
        # Asked for before the books are taken: the loop waits for them.
        ends = {each.partition: self._ends(consumer, each) for each in committed}
        with self._handover:
            self._begin(committed, ends)
            self._member = consumer.consumer_group_metadata()
            # Said and not left to the client, which asks a second time: reading begins where the
            # books do.
            starts = {mark.partition: mark.offset for mark in self.positions.marks(numbers)}
        for number in numbers:
            self._at_end.pop(number, None)
        self._paused.difference_update(numbers)
        topic = self.address.topic
        consumer.assign([TopicPartition(topic, each, starts[each]) for each in numbers])
        # The client remembers a pause from before, though it is another tenure.
        consumer.resume([TopicPartition(topic, each) for each in numbers])

    def _begin(self, places: list[TopicPartition], ends: Mapping[int, tuple[int, int]]) -> None:
        for each in places:
            low, high = ends[each.partition]
            if 0 <= each.offset <= high:
                self.positions.take_over(each.partition, each.offset, each.metadata, end=high)
            else:  # a new group, or a position in a topic that was made anew since
                start = low if self.address.start == "earliest" else high
                self.positions.take_over(each.partition, start, None)

    def _revoked(self, _: Consumer, places: list[TopicPartition]) -> None:
        """In the client's thread: let open rows finish, commit what is, hand back the rest."""
        numbers = [each.partition for each in places]
        giving_up = asyncio.run_coroutine_threadsafe(self._give_up(numbers), self._loop)
        try:
            marks = giving_up.result(self.address.drain_s + _GIVE_UP_S)
        except TimeoutError:
            marks = []  # the group has waited long enough; what was not committed is handed back
            giving_up.cancel()
        if self.commits_itself and (ready := self.places(marks)):
            self._commit(ready)
        self._forget(numbers)

    def _lost(self, _: Consumer, places: list[TopicPartition]) -> None:
        """In the client's thread: the group has already given these to others."""
        self._forget([each.partition for each in places])

    def _forget(self, numbers: list[int]) -> None:
        with self._handover:
            # Outside a transaction an outcome is written whoever owns its partition by then.
            self.positions.forget(numbers, keep=self.commits_itself)

    async def _give_up(self, numbers: list[int]) -> list[Mark]:
        gone = set(numbers)
        kept = [each for each in self._ready if each.partition not in gone]
        self._ready = deque(kept)
        self._ready_rows = sum(len(each.rows) for each in kept)
        until_s = self._loop.time() + self.address.drain_s
        # At the end of a run nobody judges any more: what is open stays open.
        while not self._closing and self.positions.open_rows(numbers):
            left_s = until_s - self._loop.time()
            if left_s <= 0:
                break
            self._progress.clear()
            try:
                await asyncio.wait_for(self._progress.wait(), left_s)
            except TimeoutError:
                break
        await self.before_commit()
        return self.positions.marks(numbers)

    def _commit(self, places: list[TopicPartition]) -> None:
        try:
            self._client().commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if reason.code() in _NOT_OURS_ANY_MORE:
                return  # another worker has the partitions: it will judge the rows again
            raise explain(self.address.name, reason) from error

    def __repr__(self) -> str:
        return f"KafkaSource({self.address.name!r}, {self.positions!r})"


_NOT_OURS_ANY_MORE = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.FENCED_INSTANCE_ID,
    }
)


async def _nothing() -> None:
    """Nothing has to be made durable."""
