"""The engine against a bare aiohttp loop, on the same simulated server, in one run.

    python -m bench.throughput [--pairs 20000] [--latency-s 0] [--rounds 3]

Every case runs in a process of its own, the cases of a round one after another; the ratios are
of the medians.
"""

import argparse
import asyncio
import gc
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from bench import harness
from dikast.engine.clock import SystemClock
from dikast.engine.model import Judge, Params
from dikast.engine.pacing import Limits
from dikast.engine.run import Engine
from dikast.engine.sources import IterableSource
from dikast.engine.store import open_store
from dikast.providers import build
from dikast.providers.openai_chat import OpenAIChatSettings
from dikast.sinks.jsonl import JsonlSink
from dikast.strategies import Pairwise, load_template, swap

CONCURRENCY = 512
CASES = ("bare", "engine", "engine-store", "engine-swap")


async def bare(url: str, pairs: int) -> int:
    """Fixed workers, one POST each, body read and decoded: what aiohttp itself costs."""
    template = load_template("pairwise-en")
    prompts = iter(harness.make_pairs(pairs))
    answered = 0
    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def work() -> None:
            nonlocal answered
            for pair in prompts:
                messages = [
                    {"role": message.role, "content": message.content}
                    for message in template.render(pair, 0)
                ]
                body = orjson.dumps({"model": "m", "messages": messages, "max_tokens": 1024})
                headers = {"Content-Type": "application/json"}
                async with session.post(
                    f"{url}/chat/completions", data=body, headers=headers
                ) as response:
                    answer = orjson.loads(await response.read())
                    answered += bool(answer["choices"][0]["message"]["content"])

        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return answered


async def engine(url: str, pairs: int, *, store: bool, both_orders: bool) -> int:
    """The whole engine: pacing, ledger, spec, JSONL sink, and the call store where asked."""
    judge = Judge(name="j", provider="p", model="m", params=Params())
    strategy: Any = Pairwise(judge, load_template("pairwise-en"))
    if both_orders:
        strategy = swap(strategy)
    settings = OpenAIChatSettings(base_url=url, api_key_env=None, concurrency=CONCURRENCY)
    provider = build("p", settings, clock=SystemClock(), env={})
    with tempfile.TemporaryDirectory() as folder:
        sink = JsonlSink(Path(folder) / "out.jsonl")
        async with Engine(
            strategy,
            {"p": provider},
            limits={"p": Limits(concurrency_max=CONCURRENCY, concurrency_start=CONCURRENCY)},
            store=open_store(Path(folder) / "calls.db") if store else None,
            workers=CONCURRENCY,
        ) as running:
            report = await running.run(IterableSource(harness.make_pairs(pairs)), sink)
            await sink.aclose()
        assert report.complete, report
        return report.ledger.judged


def measure(case: str, url: str, pairs: int) -> dict[str, Any]:
    """Run one case in this process."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    started_s, cpu_before_s = time.perf_counter(), harness.cpu_s()
    with asyncio.Runner(loop_factory=harness.new_loop) as runner:
        if case == "bare":
            answered = runner.run(bare(url, pairs))
        else:
            answered = runner.run(
                engine(url, pairs, store=case != "engine", both_orders=case == "engine-swap")
            )
    wall_s, spent_s = time.perf_counter() - started_s, harness.cpu_s() - cpu_before_s
    calls = pairs * (2 if case == "engine-swap" else 1)
    return {
        "answered": answered,
        "calls_per_s": calls / wall_s,
        "cpu_ms_per_call": spent_s * 1000 / calls,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--latency-s", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--url")
    args = parser.parse_args()
    if args.case:
        print(json.dumps(measure(args.case, args.url, args.pairs)))
        return
    rounds: dict[str, list[dict[str, Any]]] = {case: [] for case in CASES}
    with harness.simulated_server(args.latency_s) as url:
        for _ in range(args.rounds):
            for case in CASES:
                measured = harness.in_child(
                    "bench.throughput", case, "--url", url, "--pairs", args.pairs
                )
                rounds[case].append(measured)
    middle = {
        case: {key: statistics.median(each[key] for each in measured) for key in measured[0]}
        for case, measured in rounds.items()
    }
    rate = {case: each["calls_per_s"] for case, each in middle.items()}
    ratios = {case: rate[case] / rate["bare"] for case in CASES}
    ratios["store over no store"] = rate["engine-store"] / rate["engine"]
    if args.latency_s:
        ratios["share of the ideal"] = rate["engine-store"] * args.latency_s / CONCURRENCY
    harness.report(
        "throughput" if not args.latency_s else f"throughput-{args.latency_s:g}s",
        {"pairs": args.pairs, "latency_s": args.latency_s, "median": middle, "ratios": ratios},
    )


if __name__ == "__main__":
    main()
