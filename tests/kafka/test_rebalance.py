"""Exactly once while another member comes and goes: the run ends, every id is there once."""

import asyncio
import threading

import msgspec
import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.model import Call, Judge
from dikast.engine.ports import Provider, Reply
from dikast.engine.run import Engine
from dikast.providers import SimulatedSettings
from dikast.providers.simulated import SimulatedProvider
from dikast.sinks.kafka import KafkaSource, TransactionalSink, parse_address
from dikast.strategies import Pairwise, load_template
from tests.kafka.brokers import ApacheKafka, create_topics, produce, read_all, visit

pytestmark = [pytest.mark.realtime, pytest.mark.slow]
PAIRS = 3000
VISITS = 2


class OnceVisited:
    """A judge that keeps one pair waiting until the first visit is over: the run sees it."""

    def __init__(self, inner: Provider, visited: threading.Event) -> None:
        self._inner = inner
        self._visited = visited

    async def complete(self, call: Call) -> Reply:
        if call.pair_id == f"p{PAIRS - 1}":
            await asyncio.to_thread(self._visited.wait, 60)
        return await self._inner.complete(call)

    async def aclose(self) -> None:
        await self._inner.aclose()


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
    visited = threading.Event()
    simulated = SimulatedProvider(SimulatedSettings(latency_s=0.05), clock)
    provider = OnceVisited(simulated, visited)
    judge = Judge(name="j", provider="s", model="m")
    strategy = Pairwise(judge, load_template("pairwise-en"), seed=0)

    def visit_again_and_again() -> None:
        for _ in range(VISITS):
            visit(apache.servers, "visited", "g", 1.0)
            visited.set()

    visits = threading.Thread(target=visit_again_and_again)
    async with Engine(strategy, {"s": provider}, workers=64) as engine:
        visits.start()
        async with asyncio.timeout(180):
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
