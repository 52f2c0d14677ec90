"""A strict 600-a-minute server over real HTTP: fully used, hardly ever refused, never pestered."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from dikast.providers import RateLimit, simulate_server
from dikast.providers.simulation import SimulatedSettings
from tests.cli.test_kill import CONFIG, write_pairs

CALLS = 100
IDEAL_S = (CALLS - 10) / 10


@pytest.mark.realtime
@pytest.mark.slow
@pytest.mark.parametrize("stated", ["requests_per_min = 600", ""], ids=["stated", "unknown"])
async def test_a_hundred_calls_take_a_hundred_and_ten_requests_at_most(
    tmp_path: Path, stated: str
) -> None:
    limit = RateLimit(requests_per_min=600, burst=10, retry_after_s=2.0)
    server = await simulate_server.start(SimulatedSettings(latency_s=0.02, rate_limit=limit))
    try:
        write_pairs(tmp_path / "pairs.jsonl", CALLS // 2)
        config = CONFIG.format(url=server.url, workers=64)
        config = config.replace('api_key_env = ""', f'api_key_env = ""\n{stated}')
        (tmp_path / "dikast.toml").write_text(config)
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dikast", "judge", str(tmp_path / "pairs.jsonl")),
            *("-o", str(tmp_path / "out.jsonl"), "--config", str(tmp_path / "dikast.toml")),
            "--json",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await child.communicate()
        stats = server.stats()
    finally:
        await server.aclose()
    assert child.returncode == 0, err.decode()
    assert json.loads(out)["ledger"]["judged"] == CALLS // 2
    assert stats.requests <= 110
    assert stats.in_window == 0
    assert stats.last_s is not None
    assert stats.first_s is not None
    assert stats.last_s - stats.first_s <= 1.3 * IDEAL_S
