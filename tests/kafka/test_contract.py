"""The contracts of Sink and Source over Kafka: a Kafka-protocol broker that runs everywhere."""

import itertools
from collections import deque

import msgspec
import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.model import Outcome, Row
from dikast.engine.ports import Sink, Source
from dikast.sinks.kafka import (
    CommittingSink,
    KafkaSink,
    KafkaSource,
    TransactionalSink,
    parse_address,
)
from tests.contract import test_sink, test_source
from tests.contract.test_sink import Made
from tests.contract.test_source import PAIRS
from tests.kafka.brokers import MockCluster, produce, read_all

pytestmark = pytest.mark.realtime
_GROUPS = itertools.count()
RECORDS = [(pair.id, msgspec.json.encode(pair)) for pair in PAIRS]

test_what_was_written_is_there_after_a_flush = (
    test_sink.test_what_was_written_is_there_after_a_flush
)
test_closing_flushes_and_may_be_done_twice = test_sink.test_closing_flushes_and_may_be_done_twice
test_a_closed_sink_takes_nothing_more = test_sink.test_a_closed_sink_takes_nothing_more
test_every_pair_comes_once_whole_and_in_order = (
    test_source.test_every_pair_comes_once_whole_and_in_order
)
test_every_row_says_where_it_stands = test_source.test_every_row_says_where_it_stands
test_batches_are_bounded = test_source.test_batches_are_bounded
test_it_can_be_left_in_the_middle = test_source.test_it_can_be_left_in_the_middle


class OfRows:
    """Gives every outcome the place of a row of a topic, as a run does, and takes it back."""

    def __init__(self, inner: Sink, source: Source) -> None:
        self._inner = inner
        self._source = source
        self._rows: deque[Row] | None = None
        self._closed = False
        self._old: dict[str, tuple[str | None, int | None]] = {}

    async def write(self, outcome: Outcome) -> None:
        if not self._closed:
            if self._rows is None:
                self._rows = deque(await anext(aiter(self._source.batches())))
            row = self._rows.popleft()
            self._old[outcome.id] = (outcome.file, outcome.line)
            outcome = msgspec.structs.replace(outcome, file=row.file, line=row.line)
        await self._inner.write(outcome)

    async def flush(self) -> None:
        await self._inner.flush()

    async def aclose(self) -> None:
        self._closed = True
        await self._inner.aclose()
        await self._source.aclose()

    def as_written(self, outcome: Outcome) -> Outcome:
        file, line = self._old[outcome.id]
        return msgspec.structs.replace(outcome, file=file, line=line)


@pytest.fixture(params=["json", "msgpack", "behind a topic", "transactional"])
def made(request: pytest.FixtureRequest, mock_cluster: MockCluster, filled: MockCluster) -> Made:
    mock_cluster.create_topic("out", 3)
    form = "msgpack" if request.param == "msgpack" else "json"
    address = parse_address(f"kafka://{mock_cluster.servers}/out?format={form}")

    def read() -> list[Outcome]:
        decode = (msgspec.json if form == "json" else msgspec.msgpack).decode
        values = [message.value() or b"" for message in read_all(mock_cluster.servers, "out")]
        return [decode(value, type=Outcome) for value in values]

    if request.param in ("json", "msgpack"):
        return KafkaSink(address, run="r"), read
    if request.param == "behind a topic":
        source = source_of(filled)
        sink = OfRows(CommittingSink(KafkaSink(address, run="r"), source, every_s=0.01), source)
    else:
        mock_cluster.create_topic("pairs", 1)  # a transaction's positions are of its own brokers
        produce(mock_cluster.servers, "pairs", RECORDS)
        source = source_of(mock_cluster)
        clock = SystemClock()
        inner = TransactionalSink(address, source, run="r", member=f"m{id(source)}", clock=clock)
        sink = OfRows(inner, source)
    return sink, lambda: [sink.as_written(each) for each in read()]


@pytest.fixture(scope="module")
def filled() -> MockCluster:
    """A topic with the pairs of the contract, for all tests of the source."""
    cluster = MockCluster()
    cluster.create_topic("pairs", 1)  # order is a promise of a partition, not of a topic
    produce(cluster.servers, "pairs", RECORDS)
    return cluster


def source_of(cluster: MockCluster) -> KafkaSource:
    """A member of a group of its own."""
    options = f"group=g{next(_GROUPS)}&until=end&x.session.timeout.ms=6000"
    return KafkaSource(parse_address(f"kafka://{cluster.servers}/pairs?{options}"))


@pytest.fixture
def source(filled: MockCluster) -> Source:
    return source_of(filled)
