"""Stage 5 of SESSE against plain judging: calls per second, and memory, in one run.

    python -m bench.sesse [--pairs 2000] [--rounds 3]

The judge answers at once, in the process ("instant") or over loopback HTTP ("http"): what is
measured is what the strategy, the engine and the transport cost. Every case runs in a process of
its own, the cases of a round one after another; the ratios are of the medians. SESSE makes 16 calls
a pair here (Tier 1, then 3 clusters of 5 questions); plain judging gets as many pairs as make the
same number of calls.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import harness
from dikast.engine.clock import SystemClock
from dikast.engine.model import Call, Completion, Judge, Pair, Usage
from dikast.engine.pacing import Limits
from dikast.engine.ports import Reply
from dikast.engine.run import Engine
from dikast.engine.sources import IterableSource
from dikast.providers import build
from dikast.providers.openai_chat import OpenAIChatSettings
from dikast.sinks.jsonl import JsonlSink
from dikast.strategies import Loaders, Pairwise, SesseConfig, load_template
from dikast.strategies import build as build_strategy
from dikast.strategies.sesse.library import (
    BuildParams,
    Cluster,
    Library,
    Question,
    Split,
    qid_of,
)

CASES = ("plain-instant", "sesse-instant", "plain-http", "sesse-http", "memory")
CLUSTERS, DEPTH = 3, 5
CALLS = 1 + CLUSTERS * DEPTH
WORKERS = 256
CONCURRENCY = 512

SERVER = r"""
import asyncio, json
from aiohttp import web

def body(text):
    return json.dumps({
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop",
                     "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 500, "completion_tokens": 4},
    }).encode()

LIST, VOTE = body("[1, 2, 3]"), body("A")
WHOLE = body('{"analysis": "The first is right.", "verdict": "A"}')

async def answer(request):
    raw = await request.read()
    said = WHOLE
    if b"Reply with the JSON list" in raw:
        said = LIST
    elif b"The property:" in raw:
        said = VOTE
    return web.Response(body=said, content_type="application/json")

async def main():
    app = web.Application(client_max_size=1 << 24)
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def library() -> Library:
    """Three clusters of five questions."""

    def question(cluster: int, rank: int) -> Question:
        condition = f"the request sets condition {cluster} of kind {rank}"
        return Question(
            qid=qid_of(condition, "keeping to it"), condition=condition, conclusion="keeping to it"
        )

    return Library(
        judge="m",
        params=BuildParams(n_max=DEPTH),
        split=Split(seed=0, mine_rows=0, mine_ids_sha=""),
        clusters=tuple(
            Cluster(
                cid=f"c{cluster}",
                label=f"the request sets condition {cluster}",
                questions=tuple(question(cluster, rank) for rank in range(DEPTH)),
            )
            for cluster in range(CLUSTERS)
        ),
        simulated=True,
    )


class Instant:
    """Answers every call at once, in the form that its prompt asks for."""

    simulated = True

    def __init__(self) -> None:
        usage = Usage(input=500, output=4)
        self._replies = {
            name: Reply(completion=Completion(text=text, finish_reason="stop", usage=usage))
            for name, text in (
                ("sesse-tier1", "[1, 2, 3]"),
                ("sesse-tier2", "A"),
                ("pairwise-en", '{"analysis": "The first is right.", "verdict": "A"}'),
            )
        }

    async def complete(self, call: Call) -> Reply:
        return self._replies[call.prompt.partition("@")[0]]

    async def aclose(self) -> None:
        return None


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The address of a server that answers at once, in another process."""
    child = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        yield child.stdout.readline().strip()
    finally:
        child.terminate()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


class Watched:
    """Pairs one by one; notes resident memory and live tasks on the way."""

    def __init__(self, pairs: int, warm: int) -> None:
        self._pairs = pairs
        self._warm = warm
        self.warm_mb = 0.0
        self.tasks = 0

    def __iter__(self) -> Iterator[Pair]:
        for place in range(self._pairs):
            if place == self._warm:
                self.warm_mb = harness.rss_mb()
            if place % 500 == 0:
                self.tasks = max(self.tasks, len(asyncio.all_tasks()))
            yield harness.make_pair(place)


async def judge(case: str, url: str, pairs: Iterator[Pair] | Watched) -> None:
    """Judge all pairs into a JSONL file."""
    judge = Judge(name="j", provider="p", model="m")
    strategy: Any = Pairwise(judge, load_template("pairwise-en"))
    if not case.startswith("plain"):
        strategy = build_strategy(
            SesseConfig(judge="j", library="x"),
            {"j": judge},
            seed=0,
            loaders=Loaders(library=lambda _: library()),
        )
    provider: Any = Instant()
    if case.endswith("http"):
        settings = OpenAIChatSettings(base_url=url, api_key_env=None, concurrency=CONCURRENCY)
        provider = build("p", settings, clock=SystemClock(), env={})
    with tempfile.TemporaryDirectory() as folder:
        sink = JsonlSink(Path(folder) / "out.jsonl")
        limits = Limits(concurrency_max=CONCURRENCY, concurrency_start=CONCURRENCY)
        async with Engine(strategy, {"p": provider}, limits={"p": limits}, workers=WORKERS) as run:
            report = await run.run(IterableSource(iter(pairs)), sink)
            await sink.aclose()
        assert report.complete, report
        assert report.ledger.failed_total == 0, report


def measure(case: str, url: str, pairs: int) -> dict[str, Any]:
    """Run one case in this process."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    number = pairs * CALLS if case.startswith("plain") else pairs
    watched = Watched(number, number // 10)
    started_s, before_s = time.perf_counter(), harness.cpu_s()
    with asyncio.Runner(loop_factory=harness.new_loop) as runner:
        runner.run(judge(case, url, watched))
    wall_s, spent_s = time.perf_counter() - started_s, harness.cpu_s() - before_s
    calls = pairs * CALLS
    return {
        "calls_per_s": calls / wall_s,
        "cpu_us_per_call": spent_s * 1e6 / calls,
        "growth_mb": harness.rss_mb() - watched.warm_mb,
        "tasks": watched.tasks,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--url", default="")
    args = parser.parse_args()
    if args.case:
        print(json.dumps(measure(args.case, args.url, args.pairs)))
        return
    rounds: dict[str, list[dict[str, Any]]] = {case: [] for case in CASES[:4]}
    with server() as url:
        for _ in range(args.rounds):
            for case in rounds:
                rounds[case].append(
                    harness.in_child("bench.sesse", case, "--url", url, "--pairs", args.pairs)
                )
    middle = {
        case: {key: statistics.median(each[key] for each in measured) for key in measured[0]}
        for case, measured in rounds.items()
    }
    ratios = {
        how: middle[f"sesse-{how}"]["calls_per_s"] / middle[f"plain-{how}"]["calls_per_s"]
        for how in ("instant", "http")
    }
    many = args.pairs * 10
    memory = harness.in_child("bench.sesse", "memory", "--pairs", many)
    harness.report(
        "sesse",
        {
            "pairs": args.pairs,
            "calls_a_pair": CALLS,
            "median": middle,
            "sesse over plain, calls per second": ratios,
            "memory": {"pairs": many, "workers": WORKERS, **memory},
        },
    )


if __name__ == "__main__":
    main()
