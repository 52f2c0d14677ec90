"""Exactly once while another member comes and goes: the run ends, every id is there once."""

import asyncio
import threading
import time

import msgspec
import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.model import Judge
from dikast.engine.run import Engine
from dikast.providers import SimulatedSettings
from dikast.providers.simulated import SimulatedProvider
from dikast.sinks.kafka import KafkaSource, TransactionalSink, parse_address
from dikast.strategies import Pairwise, load_template
from tests.kafka.brokers import ApacheKafka, create_topics, produce, read_all, visit

pytestmark = [pytest.mark.realtime, pytest.mark.slow]
PAIRS = 3000
VISITS = 2


async def test_a_visitor_in_the_group_costs_no_row_and_doubles_none(
    apache: ApacheKafka,
) -> None:
    create_topics(apache.servers, "visited", "visited-out")
    row = '{"id":"p%d","question":"q%d","response_a":"a%d","response_b":"b%d"}'
    rows = [(f"p{n}", (row % (n, n, n, n)).encode()) for n in range(PAIRS)]
    await asyncio.to_thread(produce, apache.servers, "visited", rows)
    options = "group=g&until=end&exactly_once=true&x.session.timeout.ms=6000&drain_s=2"
    source = KafkaSource(parse_address(f"kafka://{apache.servers}/visited?{options}"))
    clock = SystemClock()
    sink = TransactionalSink(
        parse_address(f"kafka://{apache.servers}/visited-out"),
        source,
        run="r",
        member="m",
        clock=clock,
    )
    provider = SimulatedProvider(SimulatedSettings(latency_s=0.05), clock)
    judge = Judge(name="j", provider="s", model="m")
    strategy = Pairwise(judge, load_template("pairwise-en"), seed=0)

    def visit_again_and_again() -> None:
        for _ in range(VISITS):
            visit(apache.servers, "visited", "g", 1.0)

    visits = threading.Thread(target=visit_again_and_again)
    started_s = time.monotonic()
    async with Engine(strategy, {"s": provider}, workers=64) as engine:
        visits.start()
        async with asyncio.timeout(90):
            report = await engine.run(source, sink)
    await sink.aclose()
    await asyncio.to_thread(visits.join)
    assert report.complete, report
    found = [
        msgspec.json.decode(message.value() or b"")["id"]
        for message in await asyncio.to_thread(read_all, apache.servers, "visited-out")
    ]
    assert sorted(found) == sorted(f"p{n}" for n in range(PAIRS))
    assert report.ledger.judged == PAIRS
    assert time.monotonic() - started_s > VISITS  # the visitors were there while it ran
