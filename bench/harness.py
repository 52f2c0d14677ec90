"""What the benchmarks share: pairs, a server in a child process, results with their context."""

import asyncio
import contextlib
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dikast.engine.model import Pair

SERVER = """
import asyncio, sys
from dikast.providers import simulate_server
from dikast.providers.simulation import SimulatedSettings

async def main():
    server = await simulate_server.start(SimulatedSettings(latency_s=float(sys.argv[1])))
    print(server.url, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def make_pair(place: int) -> Pair:
    """A pair whose prompt is about 2 KB long."""
    return Pair(
        id=f"bench:{place:08d}",
        question=f"Question {place}: " + "why does the tide rise twice a day? " * 8,
        response_a="The moon pulls the water nearest to it. " * 14,
        response_b="The sea is deeper at night, so it rises. " * 14,
    )


def make_pairs(count: int) -> Iterator[Pair]:
    """`count` different pairs, made one by one."""
    return (make_pair(place) for place in range(count))


@contextlib.contextmanager
def simulated_server(latency_s: float) -> Iterator[str]:
    """The base URL of a simulated judge in another process."""
    child = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(latency_s)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        yield child.stdout.readline().strip()
    finally:
        child.terminate()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def cpu_s() -> float:
    """CPU seconds of this process so far, user and system."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def rss_mb() -> float:
    """Resident memory now, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def in_child(module: str, case: str, *arguments: object) -> dict[str, Any]:
    """Run one case of a benchmark in a process of its own and return what it measured."""
    done = subprocess.run(
        [sys.executable, "-m", module, "--case", case, *map(str, arguments)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def new_loop() -> asyncio.AbstractEventLoop:
    """The loop that the command line uses: uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def report(name: str, results: dict[str, Any], *, seed: int = 0) -> None:
    """Print the results and keep them as bench/results/NAME.json with versions and machine."""
    packages = ("dikast", "aiohttp", "msgspec", "orjson", "uvloop", "aiolimiter")
    record = {
        "bench": name,
        "seed": seed,
        "python": platform.python_version(),
        "machine": {"cpus": os.cpu_count(), "arch": platform.machine()},
        "versions": {package: version(package) for package in packages},
        "results": results,
    }
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(record, indent=2))
