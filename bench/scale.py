"""One process, N processes and Ray on the same pairs: pairs a second, and the same outcomes.

    python -m bench.scale [--pairs 1000000] [--cases one,processes-2,ray-2] [--latency-s 0]
    python -m bench.scale --limit [--per-s 500] [--seconds 10]

The second form starts a Redis and measures how well several processes hold one limit together.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson

from bench import harness
from tests.redis.servers import most_in_a_second, redis_server

CONFIG = """
[providers.p]
kind = "simulated"
latency_s = {latency_s}
concurrency_start = 512

[judges.j]
provider = "p"
model = "careful"

[strategy]
kind = "pairwise"
judge = "j"

[run]
no_store = {no_store}
"""


def write_pairs(path: Path, count: int) -> None:
    """Small pairs, so that the disk is not what is measured."""
    with path.open("wb") as file:
        for place in range(count):
            pair = {
                "id": f"p{place:08d}",
                "question": f"Question {place}: why does the tide rise twice a day?",
                "response_a": f"The moon pulls the water nearest to it, {place} times.",
                "response_b": f"The sea is deeper at night, so it rises {place} times.",
            }
            file.write(orjson.dumps(pair) + b"\n")


def digest(path: Path) -> str:
    """Of the set of outcomes: the sum of the lines' digests, so the order plays no part."""
    total = 0
    with path.open("rb") as file:
        for line in file:
            row = orjson.loads(line)
            row.pop("stored_calls", None)
            text = orjson.dumps(row, option=orjson.OPT_SORT_KEYS)
            total += int.from_bytes(hashlib.blake2b(text, digest_size=16).digest())
    return f"{total % 2**128:032x}"


def measure(case: str, folder: Path, pairs: int) -> dict[str, Any]:
    """One whole command, from its start to the merged output."""
    out = folder / f"{case}.jsonl"
    kind, _, workers = case.partition("-")
    more = ["--processes", workers] if workers else []
    if kind == "ray":
        more += ["--on", "ray"]
    started_s = time.perf_counter()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "dikast", "judge", str(folder / "in.jsonl"), "-o", str(out)),
            *("--config", str(folder / "dikast.toml"), "--quiet", "--json", *more),
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    wall_s = time.perf_counter() - started_s
    summary = json.loads(done.stdout)
    assert summary["adds_up"], summary
    assert summary["ledger"]["judged"] == pairs, summary
    measured = {"wall_s": wall_s, "pairs_per_s": pairs / wall_s, "outcomes": digest(out)}
    out.unlink()
    shutil.rmtree(folder / f"{out.name}.shards", ignore_errors=True)
    return measured


def compare(pairs: int, cases: list[str], latency_s: float, *, store: bool) -> dict[str, Any]:
    """Every case on the same input."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pairs(folder / "in.jsonl", pairs)
        config = CONFIG.format(latency_s=latency_s, no_store="false" if store else "true")
        (folder / "dikast.toml").write_text(config)
        results = {}
        for case in cases:
            results[case] = measure(case, folder, pairs)
            for left in folder.glob("dikast-calls.sqlite*"):
                left.unlink()
            print(case, results[case], file=sys.stderr, flush=True)
    same = len({each["outcomes"] for each in results.values()}) == 1
    return {"pairs": pairs, "latency_s": latency_s, "store": store, "cases": results, "same": same}


def hold_limit(per_s: int, seconds: float, workers: int) -> dict[str, Any]:
    """Processes that send as fast as they may, over one Redis of their own."""
    with tempfile.TemporaryDirectory() as name, redis_server(Path(name)) as redis:
        words = [redis.url, str(per_s * 60), "0", str(seconds)]
        children = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.redis.worker", *words], stdout=subprocess.PIPE
            )
            for _ in range(workers)
        ]
        times = [json.loads(child.communicate(timeout=seconds + 60)[0]) for child in children]
    begin, end = max(map(min, times)), min(map(max, times))
    sent = [at for each in times for at in each if begin <= at <= end]
    return {
        "workers": workers,
        "limit_per_s": per_s,
        "used": len(sent) / (end - begin) / per_s,
        "most_in_a_second": most_in_a_second(sent) / per_s,
        "sent_by_each": [len(each) for each in times],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--cases", default="one,processes-2")
    parser.add_argument("--latency-s", type=float, default=0.0)
    parser.add_argument("--store", action="store_true", help="with the call store")
    parser.add_argument("--limit", action="store_true", help="measure the shared limit")
    parser.add_argument("--per-s", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=5)
    args = parser.parse_args()
    if args.limit:
        harness.report("scale-limit", hold_limit(args.per_s, args.seconds, args.workers))
        return
    cases = args.cases.split(",")
    harness.report("scale", compare(args.pairs, cases, args.latency_s, store=args.store))


if __name__ == "__main__":
    main()
