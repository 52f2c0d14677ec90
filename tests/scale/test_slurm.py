"""The page's recipe for Slurm, run by Slurm: every id once whatever happens to tasks, one limit."""

import asyncio
import contextlib
import os
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest

from dikast.providers import RateLimit, simulate_server
from dikast.providers.simulate_server import SimulateServer
from dikast.providers.simulation import SimulatedSettings
from tests.cli.test_kill import CONFIG, write_pairs
from tests.cli.tools import manifest_of, rows_of
from tests.redis.servers import most_in_a_second, redis_server
from tests.scale.recipes import write_recipes
from tests.scale.slurm import Slurm, until

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

PAIRS = 300
PER_S = 100
FAST = "requests_per_min = 60000"  # a limit that is stated need not be found out


def prepare(
    folder: Path, url: str, *, shards: int, workers: int, limit: str = "", more: str = ""
) -> None:
    """The recipes, their pairs, and their configuration for a judge at `url`."""
    configure(folder, url, workers=workers, limit=limit, more=more)
    write_pairs(folder / "pairs.jsonl", PAIRS)
    write_recipes(folder, shards, "judge.sh", "merge.sh", "submit.sh")


def configure(folder: Path, url: str, *, workers: int, limit: str = "", more: str = "") -> None:
    config = CONFIG.format(url=url, workers=workers) + more
    config = config.replace('api_key_env = ""', f'api_key_env = ""\n{limit}')
    (folder / "dikast.toml").write_text(config)


@contextlib.asynccontextmanager
async def serving(settings: SimulatedSettings) -> AsyncIterator[SimulateServer]:
    """A simulated judge over HTTP."""
    server = await simulate_server.start(settings)
    try:
        yield server
    finally:
        await server.aclose()


async def submit(slurm: Slurm, folder: Path) -> tuple[int, int]:
    """Run submit.sh; the numbers of the array and of the job that merges."""
    out = await slurm.run("bash", "-e", "submit.sh", cwd=folder)
    merging = int(out.split()[-1])
    text = await slurm.run("scontrol", "-o", "show", "job", merging, cwd=folder)
    (array,) = re.findall(r"Dependency=afterany:(\d+)", text)
    return int(array), merging


def assert_every_pair_once(folder: Path) -> None:
    ids = Counter(row["id"] for row in rows_of(folder / "out.jsonl"))
    assert ids == Counter(f"k{number}" for number in range(PAIRS))


@contextlib.asynccontextmanager
async def arrivals(server: SimulateServer) -> AsyncIterator[list[float]]:
    """When requests arrived, in seconds, to within five milliseconds."""
    loop = asyncio.get_running_loop()
    times_s: list[float] = []

    async def watch() -> None:
        while True:
            times_s.extend([loop.time()] * (server.stats().requests - len(times_s)))
            await asyncio.sleep(0.005)

    watching = asyncio.create_task(watch())
    try:
        yield times_s
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def test_the_recipe_judges_every_pair_and_its_tasks_hold_one_limit(
    slurm: Slurm, tmp_path: Path
) -> None:
    shards = 5  # the node runs four tasks at a time
    gate = RateLimit(requests_per_min=PER_S * 60, burst=PER_S // 2, retry_after_s=1.0)
    with redis_server(tmp_path) as redis:
        async with (
            serving(SimulatedSettings(latency_s=1.0, rate_limit=gate)) as server,
            arrivals(server) as times_s,
        ):
            prepare(
                tmp_path,
                server.url,
                shards=shards,
                workers=64,
                limit=f"requests_per_min = {PER_S * 60}",
                more=f'[pacing]\nshared = "{redis.url}"\n',
            )
            array, merging = await submit(slurm, tmp_path)
            merged = await slurm.ended(merging)
            tasks = await slurm.array(array)
            stats = server.stats()

    assert len(tasks) == shards
    assert {(task.state, task.exit) for task in tasks.values()} == {("COMPLETED", "0:0")}
    assert (merged.state, merged.exit) == ("COMPLETED", "0:0")
    assert_every_pair_once(tmp_path)
    assert stats.requests - stats.refused == 2 * PAIRS
    parts = [tmp_path / "parts" / f"shard-{index:05d}.jsonl" for index in range(shards)]
    runs = [manifest_of(each)["runs"][0] for each in parts]
    begun = sorted(datetime.fromisoformat(each["started"]) for each in runs)
    ended = sorted(datetime.fromisoformat(each["ended"]) for each in runs)
    assert begun[1] < ended[0], "tasks ran side by side"
    most = most_in_a_second(times_s)
    print(f"{most} in the fullest second of {PER_S}, {stats.refused} refused")
    # What a busy machine sends late arrives together with what is on time.
    assert 0.9 * PER_S <= most <= 1.3 * PER_S
    assert stats.refused == 0, "tasks that knew nothing of each other would be told to wait"


async def test_killed_requeued_and_drained_tasks_lose_nothing_and_double_nothing(
    slurm: Slurm, tmp_path: Path
) -> None:
    workers = 4
    async with serving(SimulatedSettings(latency_s=0.5)) as server:
        prepare(tmp_path, server.url, shards=4, workers=workers, limit=FAST)
        array, merging = await submit(slurm, tmp_path)
        parts = [tmp_path / "parts" / f"shard-{index:05d}.part.jsonl" for index in range(4)]

        async def all_have_outcomes() -> bool:
            return all(each.exists() and each.stat().st_size for each in parts)

        await until(all_have_outcomes, "four tasks have outcomes")
        configure(
            tmp_path, server.url, workers=128, limit=FAST
        )  # whoever begins from here on is soon done
        tasks = await slurm.array(array)
        os.kill(await slurm.process_of(tasks[0].id), signal.SIGKILL)
        await slurm.run("scontrol", "requeue", f"{array}_1", cwd=tmp_path)
        await slurm.run("scancel", f"{array}_2", cwd=tmp_path)
        await slurm.run("scancel", "--batch", "--signal=TERM", f"{array}_3", cwd=tmp_path)
        first = await slurm.ended(merging)
        tasks = await slurm.array(array)
        told = (tmp_path / f"slurm-{merging}.out").read_text()
        (missing,) = re.findall(r"missing: shards (.*)", told)
        left = ",".join(re.findall(r"(\d+) \(\d+ of 75 rows\)", missing))

        again = await slurm.run("sbatch", "--parsable", f"--array={left}", "judge.sh", cwd=tmp_path)
        merge = ("sbatch", "--parsable", f"--dependency=afterany:{int(again)}", "merge.sh")
        last = await slurm.ended(int(await slurm.run(*merge, cwd=tmp_path)))
        extra = server.stats().requests - 2 * PAIRS

    ends = {index: (task.state, task.exit, task.restarts) for index, task in tasks.items()}
    assert ends == {
        0: ("FAILED", "0:9", 0),
        1: ("COMPLETED", "0:0", 1),
        2: ("CANCELLED", "130:0", 0),
        3: ("FAILED", "130:0", 0),
    }
    assert (first.state, first.exit) == ("FAILED", "1:0")
    assert left == "0,2,3"
    assert (last.state, last.exit) == ("COMPLETED", "0:0")
    assert_every_pair_once(tmp_path)
    print(f"{extra} calls were paid twice")
    assert 0 <= extra <= 2 * workers, "only what the killed one had in flight"
