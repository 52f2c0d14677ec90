"""What a call store costs: a miss and a durable put for every call, many callers at once.

    python bench/stores.py [--calls 100000] [--callers 512] [--out stores.json]

Measures `SqliteStore` as it ships, `MemoryStore` as the floor (what the loop, the tasks and the
records cost by themselves), and LMDB behind the same batching where lmdb is installed. Every
case runs in a process of its own; the fastest of the repeats counts. Numbers go to standard
output and, as JSON, to the file named with --out.
"""

import argparse
import asyncio
import gc
import hashlib
import importlib.util
import json
import os
import platform
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from dikast.engine.model import Completion, Usage
from dikast.engine.ports import CallStore
from dikast.engine.store import MemoryStore, SqliteStore

CASES = ("memory", "sqlite", "lmdb-nosync", "lmdb-sync")
ANSWER = Completion(
    text="Both answers address the question, but the first one is more precise. " * 10 + "[[A]]",
    finish_reason="stop",
    usage=Usage(input=612, output=158),
    latency_s=1.234,
    served_by="some-model-2024-08-06",
)


class LmdbStore:
    """LMDB with the batching of `SqliteStore`: for this comparison only."""

    def __init__(self, path: Path, *, sync: bool) -> None:
        import lmdb  # type: ignore[import-not-found, unused-ignore]  # pyright: ignore[reportMissingImports]

        self._env: Any = lmdb.open(str(path), map_size=1 << 34, sync=sync, metasync=False)
        self._pending: dict[bytes, bytes] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Completion).decode

    def get(self, key: str) -> Completion | None:
        """As in the port."""
        raw = bytes.fromhex(key)
        value = self._pending.get(raw)
        if value is None:
            with self._env.begin() as transaction:
                value = transaction.get(raw)
        return None if value is None else self._decode(value)

    async def put(self, key: str, completion: Completion) -> None:
        """As in the port."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        marked = msgspec.structs.replace(completion, from_store=True)
        self._pending.setdefault(bytes.fromhex(key), self._encode(marked))
        if len(self._waiters) >= 256:
            self._commit()
        elif self._timer is None:
            self._timer = loop.call_later(0.004, self._commit)
        await waiter

    def _commit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiters, self._waiters = self._waiters, []
        rows, self._pending = self._pending, {}
        with self._env.begin(write=True) as transaction:
            for key, value in rows.items():
                transaction.put(key, value, overwrite=False)
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def aclose(self) -> None:
        """As in the port."""
        self._commit()
        self._env.close()


async def measure(store: CallStore, calls: int, callers: int) -> dict[str, float]:
    """Microseconds a call, and the longest time the event loop was held up."""
    keys = [hashlib.sha256(b"%d" % number).hexdigest()[:32] for number in range(calls)]
    queue = iter(keys)
    longest_s = 0.0

    async def call() -> None:
        for key in queue:
            if store.get(key) is not None:
                raise SystemExit("a fresh store has an answer: the benchmark is wrong")
            await store.put(key, ANSWER)

    async def watch() -> None:
        nonlocal longest_s
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            longest_s = max(longest_s, time.perf_counter() - before)

    gc.collect()
    watcher = asyncio.create_task(watch())
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(call() for _ in range(callers)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    watcher.cancel()
    hits = keys[:: max(1, calls // 20_000)]
    started = time.perf_counter()
    for key in hits:
        store.get(key)
    hit_s = (time.perf_counter() - started) / len(hits)
    await store.aclose()
    return {
        "miss_and_put_us": round(wall / calls * 1e6, 2),
        "miss_and_put_cpu_us": round(cpu / calls * 1e6, 2),
        "hit_us": round(hit_s * 1e6, 2),
        "longest_hold_ms": round(longest_s * 1e3, 1),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def run_case(case: str, calls: int, callers: int, folder: Path) -> dict[str, float]:
    """One case, in this process."""
    makers: dict[str, Callable[[], CallStore]] = {
        "memory": MemoryStore,
        "sqlite": lambda: SqliteStore(folder / "calls.db"),
        "lmdb-nosync": lambda: LmdbStore(folder / "lmdb", sync=False),
        "lmdb-sync": lambda: LmdbStore(folder / "lmdb", sync=True),
    }

    async def main() -> dict[str, float]:
        return await measure(makers[case](), calls, callers)

    result = asyncio.run(main())
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {**result, "bytes_per_call": round(size / calls)}


def run_apart(case: str, calls: int, callers: int, repeats: int) -> dict[str, float]:
    """One case in fresh processes; the fastest counts."""
    best: dict[str, float] = {}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--case", case, "--folder", folder]
            command += ["--calls", str(calls), "--callers", str(callers)]
            done = subprocess.run(command, capture_output=True, check=True, text=True)
        result: dict[str, float] = json.loads(done.stdout)
        if not best or result["miss_and_put_us"] < best["miss_and_put_us"]:
            best = result
    return best


def main() -> None:
    """Run all cases, print a table, write JSON."""
    parser = argparse.ArgumentParser(description="What a call store costs.")
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--callers", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        print(json.dumps(run_case(args.case, args.calls, args.callers, args.folder)))
        return
    results: dict[str, dict[str, float]] = {}
    for case in CASES:
        if case.startswith("lmdb") and importlib.util.find_spec("lmdb") is None:
            print(f"{case}: skipped, lmdb is not installed (pip install lmdb)")
            continue
        results[case] = run_apart(case, args.calls, args.callers, args.repeats)
        print(f"{case}: " + ", ".join(f"{name} {value}" for name, value in results[case].items()))
    report = {
        "bench": "stores",
        "calls": args.calls,
        "callers": args.callers,
        "results": results,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": {
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "msgspec": msgspec.__version__,
        },
    }
    if args.out is not None:
        args.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
