"""An idempotent producer for one event loop: a record goes in, its delivery report is awaited.

A thread serves the client's callbacks; the loop is woken once for a bunch of reports. After a
fatal error a new client takes over: what the broker has of the unconfirmed records is read back
from the topics first, so that none of them is lost and none is written twice.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeVar

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from dikast.engine.errors import SinkError
from dikast.sinks.kafka import clients
from dikast.sinks.kafka.address import KafkaAddress
from dikast.sinks.kafka.records import RUN_HEADER, SEQ_HEADER, OutgoingRecord

T = TypeVar("T")
_POLL_S = 0.1
_REBUILDS_MAX = 5
_AGAIN_S = 0.25
_FOR_A_WHILE = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._WAIT_COORD,
    }
)
_NOT_THERE = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,  # a topic that was there when the client began
    }
)
_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})


class TooLargeError(Exception):
    """The client or the broker finds a record too large.

    `batched` when the broker has refused it together with others: alone it may be small enough.
    """

    def __init__(self, reason: str, *, batched: bool = False) -> None:
        super().__init__(reason)
        self.batched = batched


class Delivery:
    """A record that is under way, and who waits for it."""

    __slots__ = ("future", "record")

    def __init__(self, record: OutgoingRecord, future: "asyncio.Future[None]") -> None:
        self.record = record
        self.future = future


class Deliverer:
    """Sends records and says when they have arrived.

    Args:
        address: the brokers; its topic is asked for at the first record.
        settings: of the client, with secrets.
        run: the run in the records' headers, to know them again.
    """

    def __init__(self, address: KafkaAddress, settings: Mapping[str, Any], run: str) -> None:
        self._address = address
        self._run = run
        self._heard = clients.Complaints()
        settings = {**settings, "error_cb": self._heard}
        self._settings = {
            **settings,
            "enable.idempotence": True,
            "acks": "all",
            "compression.type": address.compression,
            "linger.ms": settings.get("linger.ms", 5),
            "message.timeout.ms": int(address.delivery_s * 1000),
            "queue.buffering.max.messages": settings.get("queue.buffering.max.messages", 20_000),
            "queue.buffering.max.kbytes": settings.get("queue.buffering.max.kbytes", 65_536),
        }
        self._consumer_settings = dict(settings)
        self._producer: Producer | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._open: dict[int, Delivery] = {}
        self._reports: deque[tuple[int, int, KafkaError | None, Message]] = deque()
        self._room = asyncio.Event()
        self._starting = asyncio.Lock()
        self._no_start: SinkError | None = None
        self._fatal: KafkaError | None = None
        self._rebuild: asyncio.Task[None] | None = None
        self._again: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._from: dict[str, dict[int, int]] = {}
        self._generation = 0
        self.rebuilds = 0

    @property
    def unconfirmed(self) -> int:
        """Records that were sent and of whose fate nothing is known yet."""
        return len(self._open)

    async def start(self, *topics: str) -> None:
        """Connect, and see that the topics are there.

        Raises:
            SinkError: no broker answers, or a topic is missing.
        """
        async with self._starting:
            if self._no_start is not None:
                raise self._no_start  # all who waited behind the first are told at once
            if self._producer is None:
                self._producer = await asyncio.to_thread(
                    clients.producer, self._address, self._settings
                )
                self._serve(self._producer)
            for topic in topics:
                if topic not in self._from:
                    try:
                        self._from[topic] = await asyncio.to_thread(self._ends_of, topic)
                    except SinkError as error:
                        self._no_start = error
                        raise

    async def send(self, record: OutgoingRecord) -> None:
        """Return when the broker has the record.

        Raises:
            TooLargeError: it is too large.
            SinkError: it could not be delivered.
        """
        if record.topic not in self._from:
            await self.start(record.topic)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        delivery = Delivery(record, future)
        self._open[record.seq] = delivery
        try:
            await self._produce(delivery)
        except BaseException:
            self._open.pop(record.seq, None)
            if future.done() and not future.cancelled():
                future.exception()  # it is told here and needs no second telling
            raise
        await future

    async def _produce(self, delivery: Delivery) -> None:
        """Hand a record to the client; waits where its queue is full."""
        record = delivery.record
        while not delivery.future.done():
            if self._rebuild is not None:
                await asyncio.shield(self._rebuild)  # it sends what is open itself
                return
            assert self._producer is not None
            generation = self._generation

            def report(
                error: KafkaError | None,
                message: Message,
                seq: int = record.seq,
                generation: int = generation,
            ) -> None:
                self._report(generation, seq, error, message)

            try:
                self._producer.produce(
                    record.topic,
                    record.value,
                    key=record.key,
                    headers=record.headers,
                    on_delivery=report,
                )
                return
            except BufferError:
                self._room.clear()
                await self._room.wait()
            except KafkaException as error:
                reason = clients.reason_of(error)
                if reason.code() in _TOO_LARGE:
                    raise TooLargeError(reason.str()) from error
                if not reason.fatal():
                    raise self._explain(reason) from error
                self._break(reason)

    async def flush(self, deadline_s: float) -> int:
        """Wait for the reports of all that was sent; how many are still missing then."""
        producer = self._producer
        if producer is None or not self._open:
            return 0
        waiting = [delivery.future for delivery in self._open.values()]
        await asyncio.wait(waiting, timeout=deadline_s)
        return len(self._open)

    async def aclose(self) -> None:
        """Stop the thread and let go of the client; may be called twice."""
        if self._rebuild is not None:
            self._rebuild.cancel()
            with contextlib.suppress(asyncio.CancelledError, SinkError):
                await self._rebuild
        await self._retire(0)

    async def _retire(self, purge_s: float) -> None:
        self._stop.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.to_thread(thread.join)
        producer, self._producer = self._producer, None
        if producer is not None:
            await asyncio.to_thread(_drop, producer, purge_s)

    def _serve(self, producer: Producer) -> None:
        """Run the client's callbacks in a thread until `_stop`."""
        stop = self._stop = threading.Event()
        loop = self._loop = asyncio.get_running_loop()

        def poll() -> None:
            while not stop.is_set():
                try:
                    producer.poll(_POLL_S)
                except (KafkaException, SystemError) as error:  # it tells here that it is dead
                    with contextlib.suppress(RuntimeError):  # so is the loop
                        loop.call_soon_threadsafe(self._break, clients.reason_of(error))
                    return

        self._thread = threading.Thread(target=poll, name="dikast-kafka", daemon=True)
        self._thread.start()

    def _report(
        self, generation: int, seq: int, error: KafkaError | None, message: Message
    ) -> None:
        """In the client's thread: note a report; wake the loop for the first of a bunch."""
        self._reports.append((generation, seq, error, message))
        if len(self._reports) == 1 and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has gone, and with it who waits
                self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        """In the loop: tell those who wait."""
        while self._reports:
            generation, seq, error, message = self._reports.popleft()
            if generation != self._generation:
                continue  # the read-back knows better than a client that is dead
            if error is not None and error.fatal():
                self._break(error)
                continue
            if self._rebuild is not None and error is not None:
                continue  # stays open: the rebuild decides
            delivery = self._open.pop(seq, None)
            if delivery is None or delivery.future.done():
                continue
            if error is None:
                self._confirmed(message)
                delivery.future.set_result(None)
            elif error.code() in _TOO_LARGE:
                delivery.future.set_exception(TooLargeError(error.str(), batched=True))
            else:
                delivery.future.set_exception(self._explain(error))
        self._room.set()

    def _confirmed(self, message: Message) -> None:
        """Below a confirmed record of a partition nothing of ours is unknown (order is kept)."""
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if topic is not None and partition is not None and offset is not None:
            ends = self._from.setdefault(topic, {})
            ends[partition] = max(ends.get(partition, 0), offset + 1)

    def _break(self, error: KafkaError) -> None:
        """The client is dead for good: begin a new one, once."""
        if self._rebuild is None:
            self._fatal = error
            self._rebuild = asyncio.get_running_loop().create_task(self._start_anew())
            self._rebuild.add_done_callback(self._rebuilt)

    async def _start_anew(self) -> None:
        assert self._fatal is not None
        self.rebuilds += 1
        if self.rebuilds > _REBUILDS_MAX:
            raise self._explain(self._fatal)
        await self._retire(1.0)
        self._generation += 1
        there = await asyncio.to_thread(self._read_back)
        self._producer = await asyncio.to_thread(clients.producer, self._address, self._settings)
        self._serve(self._producer)
        for seq in [seq for seq in self._open if seq in there]:
            delivery = self._open.pop(seq)
            if not delivery.future.done():
                delivery.future.set_result(None)

    def _rebuilt(self, task: "asyncio.Task[None]") -> None:
        self._rebuild = None
        self._room.set()
        open_now = list(self._open.values())
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._open.clear()
            for delivery in open_now:
                if not delivery.future.done():
                    delivery.future.set_exception(error)
            return
        if not task.cancelled():
            self._again = asyncio.get_running_loop().create_task(self._send_again(open_now))

    async def _send_again(self, deliveries: list[Delivery]) -> None:
        """Send what the read-back did not find, in its old order."""
        for delivery in deliveries:
            try:
                await self._produce(delivery)
            except (TooLargeError, SinkError) as error:
                self._open.pop(delivery.record.seq, None)
                if not delivery.future.done():
                    delivery.future.set_exception(error)

    def _ends_of(self, topic: str) -> dict[int, int]:
        """The end of every partition before anything of ours is in it."""
        address = msgspec.structs.replace(self._address, topic=topic)
        with self._reader() as consumer:
            return {
                partition: self._end(consumer, topic, partition)
                for partition in partitions_of(consumer, topic, address, self._heard)
            }

    def _end(self, consumer: Consumer, topic: str, partition: int) -> int:
        place = TopicPartition(topic, partition)
        ask_s = self._address.ask_s
        return patiently(
            self._address, lambda: consumer.get_watermark_offsets(place, timeout=ask_s)
        )[1]

    def _read_back(self) -> set[int]:
        """The numbers of our records that are in the topics above what was confirmed."""
        found: set[int] = set()
        with self._reader() as consumer:
            for topic, starts in self._from.items():
                for partition, start in starts.items():
                    end = self._end(consumer, topic, partition)
                    if end > start:
                        consumer.assign([TopicPartition(topic, partition, start)])
                        found |= self._numbers(consumer, topic, partition, end)
        return found

    def _numbers(self, consumer: Consumer, topic: str, partition: int, end: int) -> set[int]:
        found: set[int] = set()
        at = 0
        while at < end:
            message = consumer.poll(self._address.ask_s)
            if message is None:
                raise SinkError(
                    f"{self._address.name}: partition {partition} of {topic} cannot be read back "
                    "after a fatal error, so it is not known what was written; run the same again"
                )
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    break
                raise self._explain(error)
            at = (message.offset() or 0) + 1
            headers = dict(message.headers() or [])
            if _text(headers.get(RUN_HEADER)) == self._run:
                found.add(int(_text(headers.get(SEQ_HEADER)) or "0"))
        return found

    @contextlib.contextmanager
    def _reader(self) -> Generator[Consumer]:
        consumer = clients.consumer(
            self._address,
            {
                **self._consumer_settings,
                "group.id": "dikast-read-back",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_uncommitted",
                "auto.offset.reset": "earliest",
            },
        )
        try:
            yield consumer
        except KafkaException as error:
            raise self._explain(clients.reason_of(error)) from error
        finally:
            consumer.close()

    def _explain(self, error: KafkaError) -> SinkError:
        return explain(self._address.name, error)


def patiently(address: KafkaAddress, step: Callable[[], T]) -> T:
    """Ask a broker until it answers; blocks, for a thread.

    A broker that has just been started, or a coordinator that has moved, refuses for a while.

    Raises:
        SinkError: it has not answered within the address's `delivery_s`.
    """
    waiting = threading.Event()
    waited_s = 0.0
    while True:
        try:
            return step()
        except KafkaException as error:
            reason = clients.reason_of(error)
            if waited_s >= address.delivery_s or not (
                reason.retriable() or reason.code() in _FOR_A_WHILE
            ):
                raise explain(address.name, reason) from error
        waiting.wait(_AGAIN_S)
        waited_s += _AGAIN_S


def explain(where: str, error: KafkaError) -> SinkError:
    """One sentence: which topic, what is wrong, what to do."""
    code = error.code()
    if code == KafkaError._MSG_TIMED_OUT:
        return SinkError(
            f"{where}: records were not confirmed in time ({error.str()}); see to the brokers and "
            "the topic and run the same again"
        )
    if code in _NOT_THERE:
        return SinkError(f"{where}: there is no such topic; create it first")
    if code in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
        return SinkError(f"{where}: this user may not do that; grant it or use another one")
    return SinkError(f"{where}: {error.str()} ({error.name()})")


def partitions_of(
    client: Consumer | Producer, topic: str, address: KafkaAddress, heard: clients.Complaints
) -> list[int]:
    """The partitions of a topic of these brokers.

    Raises:
        SinkError: no broker answers, or there is no such topic.
    """
    where = address.name
    try:
        found = client.list_topics(topic, timeout=address.ask_s).topics[topic]
    except KafkaException as error:
        reason = heard.of(client, clients.reason_of(error).str())
        raise SinkError(
            f"{where}: no broker answers ({reason}); is it running, and does it take this address, "
            "security=, user and password?"
        ) from error
    if found.error is not None:
        raise explain(where, found.error)
    return sorted(found.partitions)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")


def _drop(producer: Producer, purge_s: float) -> None:
    """Let a client go without waiting for what it cannot deliver any more."""
    with contextlib.suppress(KafkaException):
        producer.purge(blocking=False)
    producer.flush(purge_s)
