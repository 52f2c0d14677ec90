"""A file of pairs judged into Apache Kafka: nothing lost or doubled, memory flat, no brake.

    python -m bench.kafka [--pairs 1000000] [--http-pairs 20000] [--alone 200000]

Starts a broker with scripts/kafka. `whole` is the command line itself on a file of `--pairs`
pairs, whose topic is read back and compared id by id. `http` judges over loopback HTTP, `alone` is
the sink without a judge; they run one after the other, so that their ratio is of one run.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from bench import harness, throughput
from bench.scale import CONFIG, write_pairs
from bench.sink import outcomes
from dikast.sinks.kafka import KafkaSink, parse_address
from tests.kafka.brokers import ApacheKafka, create_topics, each_of

CASES = ("http", "alone")
WRITERS = 512
LOOK_EVERY_S = 1.0
WARM_S = 10
TARGET_MB = 30.0


class Id(msgspec.Struct):
    """What the comparison needs of an outcome."""

    id: str
    kind: str


async def alone(address: str, count: int) -> float:
    """Outcomes a second that `WRITERS` writers get confirmed, each waiting for its own."""
    sink = KafkaSink(parse_address(address), run="bench")
    await sink.start()
    made = outcomes(count)

    async def writer() -> None:
        for outcome in made:
            await sink.write(outcome)

    started_s = time.perf_counter()
    await asyncio.gather(*(writer() for _ in range(WRITERS)))
    await sink.flush()
    spent_s = time.perf_counter() - started_s
    await sink.aclose()
    return count / spent_s


def measure(case: str, where: str, count: int) -> dict[str, Any]:
    """Run one case in this process."""
    if case == "http":
        return throughput.measure("engine", where, count)
    with asyncio.Runner(loop_factory=harness.new_loop) as runner:
        return {"outcomes_per_s": runner.run(alone(where, count))}


def whole(folder: Path, address: str, pairs: int) -> dict[str, Any]:
    """`dikast judge PAIRS -o kafka://...`, watched from outside."""
    write_pairs(folder / "in.jsonl", pairs)
    (folder / "dikast.toml").write_text(CONFIG.format(latency_s=0.0, no_store="true"))
    command = [
        *(sys.executable, "-m", "dikast", "judge", str(folder / "in.jsonl"), "-o", address),
        *("--config", str(folder / "dikast.toml"), "--quiet", "--json"),
    ]
    started_s = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        looks = _looks(child)
        assert child.stdout is not None
        summary = json.loads(child.stdout.read())
    wall_s = time.perf_counter() - started_s
    assert child.returncode == 0, summary
    assert summary["adds_up"], summary
    warm = looks[min(WARM_S, len(looks) - 1)]
    return {
        "judged": summary["ledger"]["judged"],
        "wall_s": round(wall_s, 1),
        "pairs_per_s": round(pairs / wall_s),
        "rss_mb_warm": warm,
        "rss_mb_peak": max(looks),
        "growth_mb": round(max(looks) - warm, 1),
        "target_growth_mb": TARGET_MB,
        "rss_mb_along": [looks[len(looks) * tenth // 10] for tenth in range(1, 10)],
    }


def _looks(child: "subprocess.Popen[str]") -> list[float]:
    """The child's resident memory in MiB, once a second until it ends."""
    looks: list[float] = []
    while child.poll() is None:
        try:
            pages = int(Path(f"/proc/{child.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            break
        looks.append(round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1))
        time.sleep(LOOK_EVERY_S)
    return looks


def compared(servers: str, topic: str, pairs: int) -> dict[str, int]:
    """Records of the topic, held against the ids that were put in."""
    seen = bytearray(pairs)
    records = verdicts = foreign = 0
    decode = msgspec.json.Decoder(Id).decode
    for message in each_of(servers, topic, deadline_s=600.0):
        outcome = decode(message.value() or b"")
        records += 1
        verdicts += outcome.kind == "verdict"
        place = int(outcome.id[1:])
        if not 0 <= place < pairs:
            foreign += 1
        else:
            seen[place] = min(255, seen[place] + 1)
    return {
        "records": records,
        "verdicts": verdicts,
        "missing": seen.count(0),
        "doubled": pairs - seen.count(0) - seen.count(1),
        "foreign": foreign,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--http-pairs", type=int, default=20_000)
    parser.add_argument("--alone", type=int, default=200_000)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--where")
    args = parser.parse_args()
    if args.case:
        print(json.dumps(measure(args.case, args.where, args.pairs)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker = ApacheKafka(folder)
        broker.start()
        try:
            create_topics(broker.servers, "alone", "whole")
            to = f"kafka://{broker.servers}"
            with harness.simulated_server(0.0) as url:
                http = _child("http", url, args.http_pairs)
            sink = _child("alone", f"{to}/alone", args.alone)
            run = whole(folder, f"{to}/whole", args.pairs)
            there = compared(broker.servers, "whole", args.pairs)
        finally:
            broker.stop()
    results = {
        "pairs": args.pairs,
        "whole": run,
        "in_the_topic": there,
        "judging_over_http_per_s": round(http["calls_per_s"]),
        "sink_alone_per_s": round(sink["outcomes_per_s"]),
        "sink over judging": round(sink["outcomes_per_s"] / http["calls_per_s"], 2),
    }
    harness.report("kafka", results)


def _child(case: str, where: str, count: int) -> dict[str, Any]:
    return harness.in_child("bench.kafka", case, "--where", where, "--pairs", count)


if __name__ == "__main__":
    main()
