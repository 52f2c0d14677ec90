"""What an earlier run has left in the output topic: the topic is the truth about what is done.

The counterpart of the scan of an output file: read once, from the beginning to the end, before
the first pair. Outcomes of another spec stop the run before anything is paid.
"""

import os
from collections.abc import Callable, Mapping

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from dikast.engine.errors import InputError, SinkError
from dikast.sinks.holdings import OutcomeLine, Standing
from dikast.sinks.kafka import clients
from dikast.sinks.kafka.address import KafkaAddress
from dikast.sinks.kafka.producer import explain, partitions_of

_MANY = 1000
_BUNCH_S = 0.1


class TopicScan(Standing):
    """What is in an output topic; `is_done` answers for an id."""

    def __init__(self, retry_failed: bool) -> None:
        super().__init__()
        self._retry_failed = retry_failed
        self.records = 0
        self.done = 0
        self.retry = 0
        self.specs: dict[str, int] = {}

    def take(self, line: OutcomeLine) -> None:
        """Enter one record; a later one of an id takes the place of an earlier one."""
        done = line.stands(self._retry_failed)
        code = self._holdings.code_of(line)
        old = self._table.set(line.id, code << 2 | 2 | done)
        if old is not None:
            self.done -= old & 1
            self.retry -= not old & 1
            self._holdings.leave(old >> 2)
        self.done += done
        self.retry += not done
        self._holdings.enter(code)
        self.records += 1
        self.specs[line.spec] = self.specs.get(line.spec, 0) + 1

    def __repr__(self) -> str:
        return f"TopicScan({self.records} records, {self.done} done, {self.retry} to retry)"


def scan_topic(
    address: KafkaAddress, *, retry_failed: bool = True, env: Mapping[str, str] | None = None
) -> TopicScan | None:
    """Read an output topic; None when it is empty. Blocks: call it in a thread.

    Only committed records count. Records that are no outcomes are refused.

    Raises:
        InputError: the topic holds something else than outcomes.
        SinkError: it cannot be read.
    """
    settings = address.common(os.environ if env is None else env)
    heard = clients.Complaints()
    consumer = clients.consumer(
        address,
        {
            **settings,
            "error_cb": heard,
            "group.id": "dikast-scan",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        },
    )
    scan = TopicScan(retry_failed)
    try:
        partitions = partitions_of(consumer, address.topic, address, heard)
        consumer.assign([TopicPartition(address.topic, each, 0) for each in partitions])
        _read(consumer, address, scan, len(partitions))
    except KafkaException as error:
        raise explain(address.name, error.args[0]) from error
    finally:
        consumer.close()
    return scan if scan.records else None


def _read(consumer: Consumer, address: KafkaAddress, scan: TopicScan, partitions: int) -> None:
    json = address.format == "json"
    decode = (
        msgspec.json.Decoder(OutcomeLine).decode
        if json
        else msgspec.msgpack.Decoder(OutcomeLine).decode
    )
    ended: set[int] = set()
    silent = 0
    while len(ended) < partitions:
        # Many at once, but without waiting long for a bunch to fill.
        messages = consumer.consume(_MANY, timeout=_BUNCH_S)
        silent = 0 if messages else silent + 1
        if silent * _BUNCH_S > address.ask_s:
            raise SinkError(f"{address.name}: the topic cannot be read to its end; try again")
        for message in messages:
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition() or 0)
            elif error is not None:
                raise explain(address.name, error)
            else:
                scan.take(_line_of(message, address, decode))


def _line_of(
    message: Message, address: KafkaAddress, decode: Callable[[bytes], OutcomeLine]
) -> OutcomeLine:
    try:
        line = decode(message.value() or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
        raise _refusal(message, address) from error
    if not line.is_outcome:
        raise _refusal(message, address)
    return line


def _refusal(message: Message, address: KafkaAddress) -> InputError:
    return InputError(
        "holds records that are no outcomes written by dikast in this format; name another "
        "topic for the output",
        file=f"{address.topic}[{message.partition()}]",
        line=(message.offset() or 0) + 1,
    )
