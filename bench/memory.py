"""Resident memory from 10,000 pairs to a million: is anything kept per pair that need not be?

    python -m bench.memory [--pairs 1000000] [--cases no-store,store]

An instant provider in the process, one judge, one order, outcomes to a JSONL file. What may grow
is the table of seen ids (tens of bytes each). The allocator's own habits are part of the figure.
"""

import argparse
import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import harness
from bench.overhead import Instant
from dikast.engine.model import Judge, Pair
from dikast.engine.pacing import Limits
from dikast.engine.run import Engine
from dikast.engine.sources import IterableSource
from dikast.engine.store import open_store
from dikast.sinks.jsonl import JsonlSink
from dikast.strategies import Pairwise, load_template

CASES = ("no-store", "store")
WARM_PAIRS = 10_000
TASKS_EVERY_PAIRS = 5_000
TARGET_MB = 30.0


class Gauge:
    """Looks at the process each time a pair is handed out; costs no task of its own."""

    def __init__(self) -> None:
        self.warm_mb = 0.0
        self.peak_mb = 0.0
        self.tasks_max = 0

    def watch(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        """The same pairs, with a look at memory and tasks every few thousand."""
        for number, pair in enumerate(pairs, start=1):
            if number % TASKS_EVERY_PAIRS == 0:
                self.tasks_max = max(self.tasks_max, len(asyncio.all_tasks()))
                self.peak_mb = max(self.peak_mb, harness.rss_mb())
            if number == WARM_PAIRS:
                self.warm_mb = harness.rss_mb()
            yield pair


async def judge(pairs: int, *, store: bool) -> dict[str, Any]:
    """Judge `pairs` pairs into a JSONL file and say what the process held meanwhile."""
    strategy = Pairwise(Judge(name="j", provider="p", model="m"), load_template("pairwise-en"))
    gauge = Gauge()
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        sink = JsonlSink(Path(folder) / "out.jsonl")
        async with Engine(
            strategy,
            {"p": Instant()},
            limits={"p": Limits(concurrency_start=512)},
            store=open_store(Path(folder) / "calls.db") if store else None,
        ) as engine:
            report = await engine.run(IterableSource(gauge.watch(harness.make_pairs(pairs))), sink)
            end_mb = harness.rss_mb()
            await sink.aclose()
        assert report.complete, report
    return {
        "rss_mb_at_10k": round(gauge.warm_mb, 1),
        "rss_mb_at_end": round(end_mb, 1),
        "rss_mb_peak": round(max(gauge.peak_mb, end_mb), 1),
        "growth_mb": round(end_mb - gauge.warm_mb, 1),
        "tasks_max": gauge.tasks_max,
        "wall_s": round(time.monotonic() - started_s, 1),
    }


def measure(case: str, pairs: int) -> dict[str, Any]:
    """Run one case in this process, with the collector set as the command line sets it."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    with asyncio.Runner(loop_factory=harness.new_loop) as runner:
        return runner.run(judge(pairs, store=case == "store"))


def main() -> None:
    """Run the cases in child processes and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--cases", default=",".join(CASES), help="which cases, with commas")
    parser.add_argument("--case", choices=CASES)
    args = parser.parse_args()
    if args.pairs < WARM_PAIRS:
        parser.error(f"--pairs: must be at least {WARM_PAIRS}, where the growth is counted from")
    if args.case:
        print(json.dumps(measure(args.case, args.pairs)))
        return
    cases: dict[str, Any] = {
        case: harness.in_child("bench.memory", case, "--pairs", args.pairs)
        for case in args.cases.split(",")
    }
    harness.report("memory", {"pairs": args.pairs, "target_growth_mb": TARGET_MB, **cases})


if __name__ == "__main__":
    main()
