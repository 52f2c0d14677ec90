"""Ray workers and plain processes on one key: together they hold its limit and use it."""

import asyncio
import json
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

from tests.needs import needs_ray
from tests.redis import worker
from tests.redis.servers import RedisServer, most_in_a_second

PER_S = 400
SECONDS = 8.0  # Ray takes its time to start a worker


def work(url: str, seed: int) -> list[float]:
    """What a Ray worker does: the same as the plain processes."""
    return asyncio.run(worker.work(url, PER_S * 60, None, SECONDS, seed=seed))


@pytest.mark.realtime
@pytest.mark.slow
def test_two_ray_workers_and_three_processes_hold_one_limit(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_ray()
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray: Any = import_module("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        remote = ray.remote(num_cpus=1)(work)
        from_ray = [remote.remote(redis.url, seed) for seed in (1, 2)]
        words = [redis.url, str(PER_S * 60), "0", str(SECONDS)]
        children = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.redis.worker", *words], stdout=subprocess.PIPE
            )
            for _ in range(3)
        ]
        times = [json.loads(child.communicate(timeout=60)[0]) for child in children]
        times += ray.get(from_ray, timeout=60)
    finally:
        ray.shutdown()

    begin, end = max(map(min, times)), min(map(max, times))
    sent = [at for each in times for at in each if begin <= at <= end]
    print(f"{len(sent) / (end - begin) / PER_S:.3f}, {most_in_a_second(sent) / PER_S:.3f}")
    assert end - begin > 2.0, "they ran side by side"
    assert most_in_a_second(sent) <= 1.05 * PER_S
    assert len(sent) / (end - begin) >= 0.9 * PER_S
