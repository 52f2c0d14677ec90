"""The page's recipe for Kubernetes without a cluster: its manifest, and the command of its pods."""

import asyncio
import importlib.util
import os
import re
import shlex
import signal
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dikast.config import RunSettings
from dikast.providers import simulate_server
from dikast.providers.simulation import SimulatedSettings
from tests.cli.test_kill import CONFIG, write_pairs
from tests.cli.tools import rows_of
from tests.scale.recipes import PRINTED_SHARDS, recipe, sized
from tests.scale.slurm import until

SHARDS = 4
PAIRS = 320
WORKERS = 4
VERSIONS = ("1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37")


def field(name: str) -> str:
    """A field of the manifest that stands in it once."""
    (found,) = re.findall(rf"^ *(?:- )?{name}: (.*)$", recipe("job.yaml"), re.MULTILINE)
    return str(found)


def test_the_numbers_of_the_manifest_fit_the_plan_and_the_drain() -> None:
    assert int(field("completions")) == PRINTED_SHARDS
    assert int(field("terminationGracePeriodSeconds")) > RunSettings().drain_s
    # Both are conditions of backoffLimitPerIndex.
    assert field("completionMode") == "Indexed"
    assert field("restartPolicy") == "Never"


def test_the_manifest_is_valid() -> None:
    if importlib.util.find_spec("kubernetes_validate") is None:
        pytest.skip("kubernetes-validate is not installed (it is large: pip install it)")
    kubernetes: Any = import_module("kubernetes_validate")
    yaml: Any = import_module("yaml")
    manifest = yaml.safe_load(recipe("job.yaml"))
    for version in VERSIONS:
        assert kubernetes.validate(manifest, version, strict=True) == version


class Cluster:
    """Runs the manifest's command as the kubelet would, `shared` in the place of the volume."""

    def __init__(self, shared: Path) -> None:
        self.shared = shared
        words = re.fullmatch(r"\[(\w+), (-c), '([^']*)'\]", field("command"))
        assert words is not None
        self._command = [sized(each, shared, SHARDS) for each in words.groups()]

    async def pod(self, index: int) -> asyncio.subprocess.Process:
        return await self._start(*self._command, JOB_COMPLETION_INDEX=str(index))

    async def run(self, line: str) -> tuple[int, str]:
        """A line of pod.sh: its status and what it said."""
        child = await self._start(*shlex.split(line))
        return await ended(child)

    async def _start(self, *command: str, **env: str) -> asyncio.subprocess.Process:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return await asyncio.create_subprocess_exec(
            *command,
            cwd="/",
            env={**os.environ, "PATH": path, **env},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )


async def ended(child: asyncio.subprocess.Process) -> tuple[int, str]:
    out, err = await asyncio.wait_for(child.communicate(), 60)
    assert child.returncode is not None
    return child.returncode, (out + err).decode()


@pytest.mark.realtime
@pytest.mark.slow
async def test_the_pods_of_every_index_lose_nothing_when_they_are_told_to_go_or_killed(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "volume"
    shared.mkdir()
    cluster = Cluster(shared)
    plan, merge = sized(recipe("pod.sh"), shared, SHARDS).splitlines()
    server = await simulate_server.start(SimulatedSettings(latency_s=0.5))
    parts = [shared / f"shard-{index:05d}.part.jsonl" for index in range(SHARDS)]

    async def all_have_outcomes() -> bool:
        return all(each.exists() and each.stat().st_size for each in parts)

    def configure(workers: int) -> None:
        config = CONFIG.format(url=server.url, workers=workers)
        config = config.replace('api_key_env = ""', 'api_key_env = ""\nrequests_per_min = 60000')
        (shared / "dikast.toml").write_text(config)

    try:
        write_pairs(shared / "pairs.jsonl", PAIRS)
        configure(WORKERS)
        planned = await cluster.run(plan)
        pods = [await cluster.pod(index) for index in range(SHARDS)]
        await until(all_have_outcomes, "every pod has outcomes")
        pods[2].send_signal(signal.SIGKILL)
        refused = await ended(await cluster.pod(0))  # the one that is there holds the lock
        for index in (0, 1, 3):
            pods[index].send_signal(signal.SIGTERM)
        first = [await ended(each) for each in pods]
        early = await cluster.run(merge)
        judged = [each.read_bytes().count(b"\n") for each in parts]
        configure(128)  # the next ones are soon done
        moved = shared.rename(tmp_path / "elsewhere")
        cluster = Cluster(moved)
        _, merge = sized(recipe("pod.sh"), moved, SHARDS).splitlines()
        pods = [await cluster.pod(index) for index in range(SHARDS)]
        second = [await ended(each) for each in pods]
        merged = await cluster.run(merge)
        extra = server.stats().requests - 2 * PAIRS
    finally:
        await server.aclose()

    assert planned[0] == 0
    assert refused[0] == 3
    assert "another process is writing this output" in refused[1]
    assert [status for status, _ in first] == [130, 130, -signal.SIGKILL, 130]
    assert early[0] == 1
    left = ", ".join(f"{i} ({judged[i]} of {PAIRS // SHARDS} rows)" for i in range(SHARDS))
    assert f"missing: shards {left}" in early[1]
    assert [status for status, _ in (*second, merged)] == [0] * (SHARDS + 1)
    ids = Counter(row["id"] for row in rows_of(moved / "out.jsonl"))
    assert ids == Counter(f"k{number}" for number in range(PAIRS))
    assert 0 <= extra <= 2 * WORKERS, "only what the killed pod had in flight"
