"""Outcomes into Apache Kafka: the sink alone, and a whole run, against the same run into a file.

python -m bench.kafka [--pairs 100000] [--workers 512]

Starts a broker with scripts/kafka. Judges answer at once and in the process, so the run shows what
the engine and the sink cost, and nothing of a judge.
"""

import argparse
import asyncio
import json
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from bench import harness
from bench.sink import outcomes
from dikast.engine.model import Call, Completion, Judge, Row
from dikast.engine.ports import Provider, Reply, Sink
from dikast.engine.run import Engine
from dikast.sinks import JsonlSink
from dikast.sinks.kafka import KafkaSink, parse_address
from dikast.strategies import Pairwise, load_template
from tests.kafka.brokers import ApacheKafka, create_topics, read_all

ANSWER = Completion(text='{"analysis": "x", "verdict": "A"}', finish_reason="stop")


class Instant:
    """A provider that answers at once."""

    async def complete(self, call: Call) -> Reply:
        return Reply(completion=ANSWER)

    async def aclose(self) -> None:
        """Nothing to close."""


class Pairs:
    """A source that makes its pairs, and notes the memory as it goes."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.rss_mb: list[float] = []

    async def batches(self) -> AsyncIterator[list[Row]]:
        every = max(1, self._count // 10)
        for start in range(0, self._count, 250):
            if start % every == 0:
                self.rss_mb.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
            ends = min(start + 250, self._count)
            yield [Row(item=harness.make_pair(n), line=n + 1) for n in range(start, ends)]

    async def aclose(self) -> None:
        """Nothing to close."""


async def alone(sink: KafkaSink, count: int, workers: int) -> float:
    """Seconds in which `workers` writers put `count` outcomes into the topic."""
    await sink.start()
    made = iter(list(outcomes(count)))

    async def writer() -> None:
        for outcome in made:
            await sink.write(outcome)

    started_s = time.perf_counter()
    await asyncio.gather(*(writer() for _ in range(workers)))
    await sink.flush()
    return time.perf_counter() - started_s


async def run(sink: Sink, count: int, workers: int) -> tuple[float, list[float]]:
    """Seconds of a whole run into `sink`, and the memory along it."""
    provider: Provider = Instant()
    strategy = Pairwise(
        Judge(name="j", provider="p", model="m"), load_template("pairwise-en"), seed=0
    )
    source = Pairs(count)
    started_s = time.perf_counter()
    async with Engine(strategy, {"p": provider}, workers=workers) as engine:
        report = await engine.run(source, sink)
    assert report.complete, report
    return time.perf_counter() - started_s, source.rss_mb


async def measure(servers: str, folder: Path, count: int, workers: int) -> dict[str, Any]:
    address: Callable[[str], str] = lambda topic: f"kafka://{servers}/{topic}"  # noqa: E731
    file = JsonlSink(folder / "out.jsonl")
    file_s, _ = await run(file, count, workers)
    await file.aclose()
    sink = KafkaSink(parse_address(address("alone")), run="bench")
    alone_s = await alone(sink, count, workers)
    await sink.aclose()
    into = KafkaSink(parse_address(address("whole")), run="bench")
    kafka_s, rss_mb = await run(into, count, workers)
    await into.aclose()
    found: Awaitable[set[str]] = asyncio.to_thread(_ids, servers)
    there = await found
    return {
        "pairs": count,
        "workers": workers,
        "run into a file, pairs/s": round(count / file_s),
        "run into Kafka, pairs/s": round(count / kafka_s),
        "Kafka over file": round(file_s / kafka_s, 3),
        "sink alone, outcomes/s": round(count / alone_s),
        "sink alone over the run into a file": round(file_s / alone_s, 2),
        "ids in the topic": len(there),
        "resident MB along the run": [round(each, 1) for each in rss_mb],
    }


def _ids(servers: str) -> set[str]:
    return {msgspec.json.decode(each.value() or b"")["id"] for each in read_all(servers, "whole")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=512)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        broker = ApacheKafka(Path(folder))
        broker.start()
        try:
            create_topics(broker.servers, "alone", "whole")
            with asyncio.Runner(loop_factory=harness.new_loop) as runner:
                told = runner.run(measure(broker.servers, Path(folder), args.pairs, args.workers))
        finally:
            broker.stop()
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
