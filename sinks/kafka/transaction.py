"""Exactly once: outcomes and the positions of their rows in one transaction.

Outcomes that wait are committed together, again and again, and `write` returns when its outcome
is committed: what the ledger counts is in the topic. Rows finish in any order; the finished ones
above a position travel in the commit's metadata (see `positions`), so a slow row holds up nobody.
Rows whose partition was taken away meanwhile are handed back. A commit whose fate is unknown is
looked up in the group's offsets.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer

from dikast.engine.errors import DikastError, HandedBack, SinkError
from dikast.engine.model import Outcome
from dikast.engine.ports import Clock
from dikast.sinks.kafka import clients
from dikast.sinks.kafka.address import KafkaAddress
from dikast.sinks.kafka.positions import Mark
from dikast.sinks.kafka.producer import explain, partitions_of, patiently
from dikast.sinks.kafka.records import OutgoingRecord, RecordMaker, buried
from dikast.sinks.kafka.source import KafkaSource

_TRANSACTION_S = 10.0
_GRACE_S = 1.0
_TRIES = 6
_STEP_S = 3.0
_STEPS = 2
_AGAIN_S = 0.5
_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})


class _Waiting:
    """An outcome that was accepted, its row's place, and who waits for the commit."""

    __slots__ = ("future", "offset", "outcome", "partition", "record", "tenure")

    def __init__(
        self,
        outcome: Outcome,
        partition: int,
        offset: int,
        record: OutgoingRecord,
        future: "asyncio.Future[None]",
    ) -> None:
        self.outcome = outcome
        self.partition = partition
        self.offset = offset
        self.record = record
        self.future = future
        self.tenure: object = None


class TransactionalSink:
    """Outcomes into a topic, together with the source's positions.

    Args:
        address: topic, brokers and options of the output.
        source: where the rows come from; on the same brokers.
        run: names this run in every record's headers.
        member: tells this process's transactions from those of others; must be unique.
        clock: waits before another try.
        tell: told at the end how many outcomes went to the dead letters.
        env: where passwords are looked up; the process's environment by default.

    Raises:
        ConfigError: a password is missing.
    """

    def __init__(
        self,
        address: KafkaAddress,
        source: KafkaSource,
        *,
        run: str,
        member: str,
        clock: Clock,
        tell: Callable[[str], None] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.address = address
        self.name = address.name
        self.written = 0
        self.dead_lettered = 0
        self.transactions = 0
        self._source = source
        self._clock = clock
        self._heard = clients.Complaints()
        self._settings: dict[str, Any] = {
            "error_cb": self._heard,
            **address.common(os.environ if env is None else env),
            "compression.type": address.compression,
            "transaction.timeout.ms": int(_TRANSACTION_S * 1000),
            # A transaction that follows right upon another is asked to come again; soon, then.
            "retry.backoff.ms": 10,
            "retry.backoff.max.ms": 20,
        }
        self._member = f"dikast-{source.address.group}-{member}"
        self._maker = RecordMaker(address.topic, address.format, run)
        self._producer: Producer | None = None
        self._failure: SinkError | None = None
        self._refused: set[int] = set()
        self._tries = 0
        self._one_by_one = False
        self._tell = tell
        self._waiting: list[_Waiting] = []
        self._committed: list[Mark] = []
        self._one = asyncio.Lock()
        self._loop_task: asyncio.Task[None] | None = None
        self._closed = False
        self._wake = asyncio.Event()
        source.before_commit = self.commit_now
        source.commits_itself = False

    async def write(self, outcome: Outcome) -> None:
        """Return when a transaction with the outcome is committed.

        Raises:
            HandedBack: the row's partition has gone to another worker.
            SinkError: it could not be committed.
        """
        if self._closed:
            raise SinkError(f"{self.name}: the output is closed")
        if self._failure is not None:
            raise self._failure
        place = self._source.place_of(outcome.file, outcome.line)
        if place is None:
            raise SinkError(
                f"{self.name}: the outcome of {outcome.id!r} did not come from "
                f"{self._source.address.name}; exactly_once needs that source"
            )
        if self._loop_task is None:
            self._loop_task = asyncio.create_task(self._commit_again_and_again())
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(outcome, *place, self._maker.make(outcome), future))
        self._wake.set()
        await future

    async def flush(self) -> None:
        """Commit what waits."""
        await self.commit_now()

    async def aclose(self) -> None:
        """Commit what waits and disconnect; may be called twice."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._waiting:
                await self.commit_now()
        finally:
            if self._loop_task is not None:
                self._loop_task.cancel()
                await asyncio.gather(self._loop_task, return_exceptions=True)
            self._producer = None
            if self.dead_lettered and self._tell is not None:
                self._tell(buried(self.name, self.dead_lettered, self.address.dead_letter))

    async def commit_now(self) -> None:
        """One transaction over all that is finished now.

        Raises:
            SinkError: it could not be committed; nobody waits for it any more.
        """
        async with self._one:
            batch, self._waiting = self._waiting, []
            if self._failure is not None:
                # The books hold rows as finished whose outcomes were not written.
                _tell_all(batch, self._failure)
                raise self._failure
            if not batch and self._source.left:
                return  # nobody's positions are ours to commit any more
            try:
                await self._commit(batch)
            except BaseException as error:
                self._failure = self._failure_of(error)
                # Whoever waits for the next transaction would wait for ever.
                _tell_all([*batch, *self._waiting], self._failure)
                self._waiting = []
                raise

    def _failure_of(self, error: BaseException) -> SinkError:
        if isinstance(error, SinkError):
            return error
        if isinstance(error, DikastError):  # the client does not take the settings
            return SinkError(str(error))
        why = "" if isinstance(error, asyncio.CancelledError) else f" ({error!r})"
        return SinkError(f"{self.name}: the transaction was broken off{why}")

    async def _commit_again_and_again(self) -> None:
        while not self._closed:
            await self._wake.wait()
            self._wake.clear()
            with contextlib.suppress(DikastError):  # told to all who wait for it
                await self.commit_now()

    async def _commit(self, batch: list[_Waiting]) -> None:
        """Try until the batch is committed, or handed back, or nothing helps any more."""
        positions = self._source.positions
        ours: list[_Waiting] = []
        for each in batch:
            each.tenure = positions.tenure(each.partition)
            if positions.finish(each.partition, each.offset):
                ours.append(each)
            else:
                _hand_back(each)
        for attempt in range(_TRIES):
            marks, tenures, member = self._source.snapshot()
            for each in ours:
                if tenures.get(each.partition) is not each.tenure:
                    _hand_back(each)
            ours = [each for each in ours if not each.future.done()]
            if not ours and (not marks or marks == self._committed):
                break
            reason = await self._try(ours, marks, member)
            if reason is None:
                self._committed = marks
                break
            if not ours:
                break  # positions alone: the next transaction, or the next owner, carries them
            if attempt + 1 == _TRIES:
                raise explain(self.name, reason)
            if self._refused:
                self._make_smaller(ours, reason)
            else:
                await self._clock.sleep(_AGAIN_S)
        for each in ours:
            if not each.future.done():
                each.future.set_result(None)
                if each.record.topic == self.address.topic:
                    self.written += 1
                else:
                    self.dead_lettered += 1

    async def _try(
        self, batch: list[_Waiting], marks: list[Mark], member: Any
    ) -> KafkaError | None:
        """One transaction; None when it is committed, else why it is not."""
        records = [each.record for each in batch]
        self._tries += 1
        signed = [mark.signed(f"{self._member}.{self._tries}") for mark in marks]
        try:
            producer = self._producer
            if producer is None:
                producer = await asyncio.to_thread(self._fresh)
            await self._in_time(partial(self._transact, producer, records, signed, member))
        except (KafkaException, SystemError) as error:
            return await self._after(clients.reason_of(error), signed)
        self.transactions += 1
        return None

    async def _in_time(self, steps: Callable[[], object]) -> None:
        """Take steps of a transaction in a thread that nobody has to wait for.

        The client has been seen to wait for ever in such a step, whatever time it was given, after
        its broker was started anew; a broker gives up a transaction itself after a while.

        Raises:
            KafkaException: a step failed, or they were not over in time.
        """
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()

        def settle(error: KafkaException | SystemError | None) -> None:
            if over.done():
                return
            if error is None:
                over.set_result(None)
            else:
                over.set_exception(error)

        def run() -> None:
            failure: KafkaException | SystemError | None = None
            try:
                steps()
            except (KafkaException, SystemError) as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop has gone, and with it who waits
                loop.call_soon_threadsafe(settle, failure)

        threading.Thread(target=run, name="dikast-transaction", daemon=True).start()
        try:
            await asyncio.wait_for(over, _TRANSACTION_S + _GRACE_S)
        except TimeoutError:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None

    def _transact(
        self, producer: Producer, records: list[OutgoingRecord], marks: list[Mark], member: Any
    ) -> None:
        """In a thread: begin, produce, send positions, commit."""
        self._refused.clear()
        producer.begin_transaction()
        too_large = [error for record in records if (error := self._produce(producer, record))]
        if too_large:
            raise too_large[0]
        producer.flush(_STEP_S)  # tells which records the broker refuses, where it does
        places = self._source.places(marks)
        _again(lambda: producer.send_offsets_to_transaction(places, member, _STEP_S))
        _again(lambda: producer.commit_transaction(_STEP_S))

    def _produce(self, producer: Producer, record: OutgoingRecord) -> KafkaException | None:
        """Hand a record to the client; its error when the client finds it too large."""

        def report(error: KafkaError | None, _: object) -> None:
            if error is not None and error.code() in _TOO_LARGE:
                self._refused.add(record.seq)

        while True:
            try:
                producer.produce(
                    record.topic,
                    record.value,
                    key=record.key,
                    headers=record.headers,
                    on_delivery=report,
                )
            except BufferError:
                producer.poll(0.1)
            except KafkaException as error:
                report(error.args[0], None)
                if record.seq in self._refused:
                    return error
                raise
            else:
                return None

    def _fresh(self) -> Producer:
        """In a thread: a new client. Whatever its predecessor has left open is settled then."""
        settings = {**self._settings, "transactional.id": self._member}
        if self._one_by_one:
            settings["batch.num.messages"] = 1
        producer = clients.producer(self.address, settings)
        for topic in filter(None, (self.address.topic, self.address.dead_letter)):
            # A client would look for a missing topic again and again; nobody makes it meanwhile.
            where = msgspec.structs.replace(self.address, topic=topic)
            partitions_of(producer, topic, where, self._heard)
        patiently(self.address, lambda: producer.init_transactions(self.address.ask_s))
        self._producer = producer
        return producer

    async def _after(self, reason: KafkaError, marks: list[Mark]) -> KafkaError | None:
        """Clear up after a transaction that failed; it may have been committed all the same."""
        producer = self._producer
        if producer is not None and reason.txn_requires_abort():
            with contextlib.suppress(KafkaException):
                await self._in_time(lambda: _again(lambda: producer.abort_transaction(_STEP_S)))
                return reason
        self._producer = None
        await asyncio.to_thread(self._fresh)
        return None if await self._was_committed(marks) else reason

    async def _was_committed(self, marks: list[Mark]) -> bool:
        """Positions and outcomes are committed together, so the one tells of the other.

        All of them or none; one that is there is enough, as another worker may have gone on from
        the rest. They are signed: a position alone may stand as it did before.
        """
        found = await self._source.committed([mark.partition for mark in marks])
        there = {each.partition: (each.offset, each.metadata or "") for each in found}
        return any(there.get(m.partition) == (m.offset, m.metadata) for m in marks)

    def _make_smaller(self, batch: list[_Waiting], reason: KafkaError) -> None:
        """After a refusal for size: first send one by one, then bury what is refused alone."""
        if not self._one_by_one:
            self._one_by_one, self._producer = True, None
            return
        for each in batch:
            if each.record.seq in self._refused:
                self._bury(each, reason)

    def _bury(self, each: _Waiting, reason: KafkaError) -> None:
        """Put a small record in the place of one that is too large."""
        topic = self.address.dead_letter
        size = len(each.record.value)
        if topic and each.record.topic == topic:
            raise SinkError(
                f"{self.name}: not even the dead letter of {each.outcome.id!r} fits "
                f"({reason.str()}); raise max.message.bytes of {topic}"
            )
        if not topic:
            raise SinkError(
                f"{self.name}: the outcome of {each.outcome.id!r} has {size:,} bytes, which is "
                "too large for the broker; name a dead-letter topic with dead_letter=TOPIC, or "
                "raise the limit (x.message.max.bytes here and max.message.bytes at the topic)"
            )
        each.record = self._maker.dead_letter(topic, each.outcome, size, reason.str())

    def __repr__(self) -> str:
        return f"TransactionalSink({self.name!r}, {self.written} written)"


def _tell_all(batch: list[_Waiting], failure: SinkError) -> None:
    for each in batch:
        if not each.future.done():
            each.future.set_exception(failure)


def _hand_back(each: _Waiting) -> None:
    """The row's partition has gone to another worker, who judges it again."""
    if not each.future.done():
        each.future.set_exception(
            HandedBack(
                f"{each.outcome.id!r}: partition {each.partition} has gone to another worker"
            )
        )


def _again(step: Callable[[], object]) -> None:
    """A step of a transaction; one that only came too early is taken again, a few times."""
    for attempt in range(_STEPS):
        try:
            step()
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if not reason.retriable() or attempt + 1 == _STEPS:
                raise
        else:
            return
