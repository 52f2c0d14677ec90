"""The contracts of Sink and Source over Kafka: a Kafka-protocol broker that runs everywhere."""

import itertools

import msgspec
import pytest

from dikast.engine.model import Outcome
from dikast.engine.ports import Source
from dikast.sinks.kafka import KafkaSink, KafkaSource, parse_address
from tests.contract import test_sink, test_source
from tests.contract.test_sink import Made
from tests.contract.test_source import PAIRS
from tests.kafka.brokers import MockCluster, produce, read_all

pytestmark = pytest.mark.realtime
_GROUPS = itertools.count()

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


@pytest.fixture(params=["json", "msgpack"])
def made(request: pytest.FixtureRequest, mock_cluster: MockCluster) -> Made:
    mock_cluster.create_topic("out", 3)
    sink = KafkaSink(
        parse_address(f"kafka://{mock_cluster.servers}/out?format={request.param}"), run="r"
    )

    def read() -> list[Outcome]:
        decode = (msgspec.json if request.param == "json" else msgspec.msgpack).decode
        values = [message.value() or b"" for message in read_all(mock_cluster.servers, "out")]
        return [decode(value, type=Outcome) for value in values]

    return sink, read


@pytest.fixture(scope="module")
def filled() -> MockCluster:
    """A topic with the pairs of the contract, for all tests of the source."""
    cluster = MockCluster()
    cluster.create_topic("pairs", 1)  # order is a promise of a partition, not of a topic
    produce(cluster.servers, "pairs", [(pair.id, msgspec.json.encode(pair)) for pair in PAIRS])
    return cluster


@pytest.fixture
def source(filled: MockCluster) -> Source:
    group = f"g{next(_GROUPS)}"
    options = f"group={group}&until=end&x.session.timeout.ms=6000"
    return KafkaSource(parse_address(f"kafka://{filled.servers}/pairs?{options}"))
