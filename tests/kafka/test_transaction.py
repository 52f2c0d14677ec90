"""Transactions that go wrong on a mock cluster: counted as done only when they are, and said."""

import asyncio
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition

from dikast.engine.clock import SystemClock
from dikast.engine.errors import SinkError
from dikast.engine.model import Outcome, Row, Verdict
from dikast.sinks.kafka import KafkaSource, TransactionalSink, parse_address
from dikast.sinks.kafka.positions import Mark, Snapshot
from tests.kafka.brokers import MockCluster, produce, read_all

pytestmark = pytest.mark.realtime

# One row of three pairs.
ROW = b'{"id":"r","question":"q","answers":{"x":"a","y":"b","z":"c"}}'


def source_of(cluster: MockCluster) -> KafkaSource:
    options = "group=g&x.session.timeout.ms=6000&drain_s=1"
    return KafkaSource(parse_address(f"kafka://{cluster.servers}/pairs?{options}"))


def sink_of(cluster: MockCluster, source: KafkaSource, options: str = "") -> TransactionalSink:
    address = parse_address(f"kafka://{cluster.servers}/out?{options}")
    return TransactionalSink(address, source, run="r", member="m", clock=SystemClock())


def outcome_of(row: Row, number: int, text: str = "") -> Outcome:
    meta = {"text": text} if text else {}
    return Verdict(id=f"p{number}", winner="A", file=row.file, line=row.line, meta=meta)


def ids_in(cluster: MockCluster, topic: str) -> list[str]:
    return sorted(
        msgspec.json.decode(message.value() or b"")["id"]
        for message in read_all(cluster.servers, topic)
    )


@pytest.fixture
def cluster(mock_cluster: MockCluster) -> MockCluster:
    for topic in ("pairs", "out", "dead"):
        mock_cluster.create_topic(topic, 1)
    produce(mock_cluster.servers, "pairs", [("r", ROW)])
    return mock_cluster


async def test_a_transaction_that_moves_no_position_is_not_taken_for_the_one_before(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(cluster)
    places, sent = source.places, list[list[TopicPartition]]()

    def noted(marks: Iterable[Mark]) -> list[TopicPartition]:
        sent.append(places(marks))
        return sent[-1]

    async def committed(_: Iterable[int]) -> list[TopicPartition]:
        return sent[0]  # the mock cluster does not keep what a transaction commits

    monkeypatch.setattr(source, "places", noted)
    monkeypatch.setattr(source, "committed", committed)
    sink = sink_of(cluster, source)
    rows = await anext(source.batches())
    assert len(rows) == 3
    await sink.write(outcome_of(rows[0], 0))
    cluster.fail_produce(KafkaError.INVALID_PRODUCER_EPOCH)
    await sink.write(outcome_of(rows[1], 1))
    await sink.write(outcome_of(rows[2], 2))
    await source.aclose()
    await sink.aclose()
    assert ids_in(cluster, "out") == ["p0", "p1", "p2"]
    assert sink.written == 3


async def test_a_dead_letter_counts_as_one_and_not_as_written(
    cluster: MockCluster,
) -> None:
    source = source_of(cluster)
    sink = sink_of(cluster, source, "dead_letter=dead")
    rows = await anext(source.batches())
    await sink.write(outcome_of(rows[0], 0))
    await sink.write(outcome_of(rows[1], 1, "x" * 2_000_000))
    await source.aclose()
    await sink.aclose()
    assert (ids_in(cluster, "out"), ids_in(cluster, "dead")) == (["p0"], ["p1"])
    assert (sink.written, sink.dead_lettered) == (1, 1)


async def test_settings_that_the_client_refuses_are_said_to_all_and_nobody_waits(
    cluster: MockCluster,
) -> None:
    source = source_of(cluster)
    sink = sink_of(cluster, source, "x.no.such.setting=1")
    rows = await anext(source.batches())
    for number in range(2):
        async with asyncio.timeout(20):
            with pytest.raises(SinkError, match=r"no\.such\.setting"):
                await sink.write(outcome_of(rows[number], number))
    with pytest.raises(SinkError, match=r"no\.such\.setting"):
        await source.aclose()
    await sink.aclose()
    assert sink.written == 0


async def test_a_source_whose_outcomes_are_not_safe_leaves_all_the_same_and_commits_nothing(
    cluster: MockCluster,
) -> None:
    first = source_of(cluster)

    async def unsafe() -> None:
        raise SinkError("the disk is full")

    first.before_commit = unsafe
    for row in await anext(first.batches()):
        first.finish(row.file, row.line)
    with pytest.raises(SinkError, match="disk is full"):
        await first.aclose()
    assert not first.positions.owns(0)
    (place,) = await first.committed([0])
    assert place.offset < 0


async def test_a_client_that_never_comes_back_is_given_up_and_another_takes_over(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    released, made = threading.Event(), list[Producer]()

    class StuckAtFirst(Producer):
        def send_offsets_to_transaction(
            self, positions: list[TopicPartition], group_metadata: Any, timeout: float = -1
        ) -> None:
            if self is made[0]:
                released.wait(60)  # as seen after a broker was started anew, whatever the time-out
            super().send_offsets_to_transaction(positions, group_metadata, timeout)

    def producer(settings: Mapping[str, Any]) -> Producer:
        made.append(StuckAtFirst(dict(settings)))
        return made[-1]

    source = source_of(cluster)
    sink = sink_of(cluster, source)
    monkeypatch.setattr("dikast.sinks.kafka.clients.Producer", producer)
    monkeypatch.setattr("dikast.sinks.kafka.transaction._TRANSACTION_S", 0.5)
    rows = await anext(source.batches())
    try:
        async with asyncio.timeout(20):
            await sink.write(outcome_of(rows[0], 0))
            await source.aclose()
            await sink.aclose()
    finally:
        released.set()
    assert len(made) == 2
    # The mock cluster shows a reader what was never committed, too; Apache Kafka does not.
    assert set(ids_in(cluster, "out")) == {"p0"}
    assert sink.written == 1


async def test_after_a_defect_that_ends_the_committing_nobody_waits(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(cluster)
    sink = sink_of(cluster, source)
    rows = await anext(source.batches())

    def broken() -> Snapshot:
        raise ValueError("a defect")

    monkeypatch.setattr(source, "snapshot", broken)
    for number in range(2):
        async with asyncio.timeout(20):
            with pytest.raises(SinkError, match=r"broken off \(ValueError\('a defect'\)\)"):
                await sink.write(outcome_of(rows[number], number))
    with pytest.raises(SinkError, match="broken off"):
        await source.aclose()
    await sink.aclose()
