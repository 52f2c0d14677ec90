"""The sink against a cluster that misbehaves: nothing lost, nothing doubled, one clear sentence."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from confluent_kafka import KafkaError, Producer

from dikast.engine.errors import InputError, SinkError
from dikast.engine.model import Failed, Outcome, Undecided, Verdict
from dikast.sinks.kafka import KafkaSink, parse_address, scan_topic
from tests.kafka.brokers import MockCluster, read_all

pytestmark = pytest.mark.realtime
COUNT = 200


def verdict(number: int, text: str = "") -> Outcome:
    return Verdict(id=f"p{number}", winner="A", spec="s1", meta={"text": text} if text else {})


@pytest_asyncio.fixture
async def sink(mock_cluster: MockCluster) -> AsyncIterator[KafkaSink]:
    mock_cluster.create_topic("out", 2)
    mock_cluster.create_topic("dead", 1)
    address = parse_address(
        f"kafka://{mock_cluster.servers}/out?dead_letter=dead&delivery_s=20&close_s=5"
    )
    made = KafkaSink(address, run="r1")
    await made.start()
    yield made
    try:
        await made.aclose()
    except SinkError:
        return


async def write_all(sink: KafkaSink, numbers: range) -> list[object]:
    return await asyncio.gather(
        *(sink.write(verdict(number)) for number in numbers), return_exceptions=True
    )


def ids_in(cluster: MockCluster, topic: str) -> list[str]:
    return sorted(
        msgspec.json.decode(message.value() or b"")["id"]
        for message in read_all(cluster.servers, topic)
    )


def expected(numbers: range) -> list[str]:
    return sorted(f"p{number}" for number in numbers)


async def test_errors_that_pass_cost_nothing(sink: KafkaSink, mock_cluster: MockCluster) -> None:
    mock_cluster.fail_produce(
        KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.REQUEST_TIMED_OUT, KafkaError.NOT_ENOUGH_REPLICAS
    )
    assert await write_all(sink, range(COUNT)) == [None] * COUNT
    assert ids_in(mock_cluster, "out") == expected(range(COUNT))
    assert sink.written == COUNT
    assert sink.rebuilds == 0


async def test_after_a_fatal_error_a_new_client_loses_and_doubles_nothing(
    sink: KafkaSink, mock_cluster: MockCluster
) -> None:
    assert await write_all(sink, range(COUNT)) == [None] * COUNT
    mock_cluster.set_rtt_ms(20)
    writing = asyncio.create_task(write_all(sink, range(COUNT, 3 * COUNT)))
    await asyncio.sleep(0.01)
    mock_cluster.fail_produce(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
    more = await write_all(sink, range(3 * COUNT, 4 * COUNT))
    assert [*await writing, *more] == [None] * (3 * COUNT)
    assert sink.rebuilds >= 1
    assert ids_in(mock_cluster, "out") == expected(range(4 * COUNT))


async def test_what_is_too_large_goes_to_the_dead_letters_with_its_reason(
    sink: KafkaSink, mock_cluster: MockCluster
) -> None:
    await sink.write(verdict(1))
    await sink.write(verdict(2, "x" * 2_000_000))
    await sink.write(verdict(3))
    assert ids_in(mock_cluster, "out") == ["p1", "p3"]
    (dead,) = read_all(mock_cluster.servers, "dead")
    headers = dict(dead.headers() or [])
    assert "too large" in str(headers["dikast-reason"])
    told = msgspec.json.decode(dead.value() or b"")
    assert (told["id"], told["winner"], told["kind"]) == ("p2", "A", "verdict")
    assert told["bytes"] > 2_000_000
    assert (sink.written, sink.dead_lettered) == (2, 1)


async def test_a_topic_one_may_not_write_to_is_said(
    sink: KafkaSink, mock_cluster: MockCluster
) -> None:
    mock_cluster.fail_produce(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(SinkError, match="may not do that"):
        await sink.write(verdict(1))


async def test_brokers_that_go_and_come_back_cost_only_time(
    sink: KafkaSink, mock_cluster: MockCluster
) -> None:
    await sink.write(verdict(0))
    mock_cluster.down()
    writing = asyncio.create_task(write_all(sink, range(1, COUNT)))
    await asyncio.sleep(1.0)
    assert not writing.done()
    mock_cluster.up()
    assert await asyncio.wait_for(writing, 60) == [None] * (COUNT - 1)
    assert ids_in(mock_cluster, "out") == expected(range(COUNT))


async def test_brokers_that_stay_away_are_an_error_and_an_honest_count(
    mock_cluster: MockCluster,
) -> None:
    mock_cluster.create_topic("out", 1)
    sink = KafkaSink(
        parse_address(f"kafka://{mock_cluster.servers}/out?delivery_s=1&close_s=0"), run="r1"
    )
    await sink.write(verdict(0))
    mock_cluster.down()
    writing = asyncio.create_task(write_all(sink, range(1, 4)))
    await asyncio.sleep(0.1)
    with pytest.raises(SinkError, match=r"3 records were not confirmed within 0 s \(1 are\)"):
        await sink.flush()
    errors = await writing
    assert all(isinstance(each, SinkError) for each in errors)
    assert "not confirmed in time" in str(errors[0])
    await sink.aclose()


async def test_latency_slows_down_and_does_not_pile_up(
    sink: KafkaSink, mock_cluster: MockCluster
) -> None:
    mock_cluster.set_rtt_ms(100)
    assert await write_all(sink, range(COUNT)) == [None] * COUNT
    assert sink.written == COUNT


async def test_brokers_that_never_answer_are_said(mock_cluster: MockCluster) -> None:
    sink = KafkaSink(parse_address(f"kafka://{mock_cluster.servers}/out?ask_s=0.5"), run="r1")
    mock_cluster.down()
    with pytest.raises(SinkError, match="no broker answers"):
        await sink.start()
    await sink.aclose()


async def test_brokers_that_speak_otherwise_are_told_from_brokers_that_are_away(
    mock_cluster: MockCluster,
) -> None:
    mock_cluster.create_topic("out", 1)
    address = parse_address(f"kafka://{mock_cluster.servers}/out?security=ssl&ask_s=3")
    with pytest.raises(SinkError, match=r"no broker answers \(ssl://.*security="):
        scan_topic(address)


async def test_a_scan_tells_what_is_done(sink: KafkaSink, mock_cluster: MockCluster) -> None:
    address = parse_address(f"kafka://{mock_cluster.servers}/out")
    assert await asyncio.to_thread(scan_topic, address) is None
    await write_all(sink, range(5))
    scan = await asyncio.to_thread(scan_topic, address)
    assert scan is not None
    assert (scan.done, scan.retry, scan.specs) == (5, 0, {"s1": 5})
    assert scan.is_done("p4")
    assert not scan.is_done("p5")
    assert scan.held().judged == 5
    await sink.write(Failed(id="p5", reason="timeout", message="m", spec="s1"))
    await sink.write(Undecided(id="p0", why="refused", spec="s1"))
    await sink.flush()
    scan = await asyncio.to_thread(scan_topic, address)
    assert scan is not None
    held = scan.held()
    assert (held.judged, held.undecided, held.failed) == (4, {"refused": 1}, {"timeout": 1})
    scan.replaced("p5")
    assert (scan.held().rows, scan.held().failed) == (5, {})


async def test_records_that_are_no_outcomes_are_refused(mock_cluster: MockCluster) -> None:
    mock_cluster.create_topic("out", 1)
    producer = Producer({"bootstrap.servers": mock_cluster.servers})
    producer.produce("out", b'{"kind": "invoice", "id": "p1"}')
    producer.flush(10)
    address = parse_address(f"kafka://{mock_cluster.servers}/out")
    with pytest.raises(InputError, match="no outcomes written by dikast"):
        await asyncio.to_thread(scan_topic, address)
