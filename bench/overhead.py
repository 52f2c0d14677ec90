"""The engine's own cost per call: a provider in the process that answers at once.

    python -m bench.overhead [--pairs 50000]

What is left when the transport costs nothing: intake, strategy, prompt, key, pacing, ledger,
reader, sink, and the call store where named.
"""

import argparse
import asyncio
import gc
import json
import tempfile
from pathlib import Path
from typing import Any

from bench import harness
from dikast.engine.model import Call, Completion, Judge, Usage
from dikast.engine.pacing import Limits
from dikast.engine.ports import Reply
from dikast.engine.run import Engine
from dikast.engine.sources import IterableSource
from dikast.engine.store import open_store
from dikast.sinks.jsonl import JsonlSink
from dikast.strategies import Pairwise, load_template, swap

CASES = ("single", "swap", "single-store", "swap-store")


class Instant:
    """Answers every call at once, with the same words."""

    reply = Reply(
        completion=Completion(
            text='{"analysis": "The first is right.", "verdict": "A"}',
            finish_reason="stop",
            usage=Usage(input=500, output=12),
        )
    )

    async def complete(self, call: Call) -> Reply:
        return self.reply

    async def aclose(self) -> None:
        return None


async def judge(pairs: int, *, both_orders: bool, store: bool) -> None:
    """Judge `pairs` pairs into a JSONL file."""
    strategy: Any = Pairwise(Judge(name="j", provider="p", model="m"), load_template("pairwise-en"))
    if both_orders:
        strategy = swap(strategy)
    with tempfile.TemporaryDirectory() as folder:
        sink = JsonlSink(Path(folder) / "out.jsonl")
        async with Engine(
            strategy,
            {"p": Instant()},
            limits={"p": Limits(concurrency_start=512)},
            store=open_store(Path(folder) / "calls.db") if store else None,
        ) as engine:
            report = await engine.run(IterableSource(harness.make_pairs(pairs)), sink)
            await sink.aclose()
        assert report.complete, report


def measure(case: str, pairs: int) -> dict[str, Any]:
    """Run one case in this process."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    both_orders, store = case.startswith("swap"), case.endswith("store")
    before_s = harness.cpu_s()
    with asyncio.Runner(loop_factory=harness.new_loop) as runner:
        runner.run(judge(pairs, both_orders=both_orders, store=store))
    calls = pairs * (2 if both_orders else 1)
    return {"cpu_us_per_call": (harness.cpu_s() - before_s) * 1e6 / calls}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=50_000)
    parser.add_argument("--case", choices=CASES)
    args = parser.parse_args()
    if args.case:
        print(json.dumps(measure(args.case, args.pairs)))
        return
    results = {
        case: harness.in_child("bench.overhead", case, "--pairs", args.pairs) for case in CASES
    }
    harness.report("overhead", {"pairs": args.pairs, **results})


if __name__ == "__main__":
    main()
