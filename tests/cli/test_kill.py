"""`kill -9` at random moments, also during resumes: nothing lost, nothing paid twice."""

import asyncio
import json
import random
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from dikast.providers import simulate_server
from dikast.providers.simulation import SimulatedSettings

PAIRS = 400
WORKERS = 16

CONFIG = """
[providers.local]
kind = "openai"
base_url = "{url}"
api_key_env = ""

[judges.j]
provider = "local"
model = "m"

[strategy]
kind = "swap"
inner = {{ kind = "pairwise", judge = "j" }}

[run]
workers = {workers}
"""


def write_pairs(path: Path, count: int = PAIRS) -> None:
    rows = (
        {"id": f"k{i}", "question": f"q {i}?", "response_a": f"one {i}", "response_b": f"two {i}"}
        for i in range(count)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


async def start_judge(folder: Path, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dikast", "judge", str(folder / "pairs.jsonl")),
        *("-o", str(folder / "out.jsonl"), "--config", str(folder / "dikast.toml"), "--json"),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def outcome_lines(folder: Path) -> int:
    output = folder / "out.jsonl"
    return output.read_bytes().count(b"\n") if output.exists() else 0


@pytest.mark.realtime
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
async def test_three_kills_lose_nothing_and_pay_at_most_what_was_in_flight(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    server = await simulate_server.start(SimulatedSettings(latency_s=0.03))
    try:
        write_pairs(tmp_path / "pairs.jsonl")
        config = CONFIG.format(url=server.url, workers=WORKERS)
        (tmp_path / "dikast.toml").write_text(config)
        kills = 0
        for _ in range(3):
            before = server.stats().requests
            child = await start_judge(tmp_path)
            goal = before + rng.randint(20, 150)
            # The server has no event for "the n-th request came".
            while child.returncode is None and server.stats().requests < goal:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
            if child.returncode is None:
                child.send_signal(signal.SIGKILL)
                kills += 1
            await child.communicate()
        assert kills == 3, "the run was over before it could be killed"
        assert outcome_lines(tmp_path) < PAIRS
        child = await start_judge(tmp_path)
        out, err = await child.communicate()
        assert child.returncode == 0, err.decode()
        stats = server.stats()
    finally:
        await server.aclose()

    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().split(b"\n") if line]
    assert Counter(row["id"] for row in rows) == Counter(f"k{i}" for i in range(PAIRS))
    assert {row["kind"] for row in rows} <= {"verdict"}
    extra = stats.requests - 2 * PAIRS
    assert 0 <= extra <= 3 * 2 * WORKERS, f"{extra} calls were paid twice"
    ledger = json.loads(out)["ledger"]
    assert ledger["input"] == PAIRS == ledger["judged"] + ledger["skipped"]
