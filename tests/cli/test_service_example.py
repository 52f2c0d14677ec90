"""The example service: the engine inside an aiohttp application."""

import asyncio
import runpy
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.cli.tools import pair

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.realtime


async def test_the_example_service_judges_many_requests_at_once() -> None:
    example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "service.py"))
    app: web.Application = example["make_app"](str(ROOT / "examples" / "simulated.toml"))
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession(base) as client:

            async def ask(body: Any) -> tuple[int, Any]:
                async with client.post("/judge", json=body) as response:
                    found = await response.read()
                    return response.status, found

            answers = await asyncio.gather(*(ask(pair(number)) for number in range(20)))
            wrong = await ask({"id": "x"})
    finally:
        await runner.cleanup()

    assert [status for status, _ in answers] == [200] * 20
    assert all(b'"simulated":true' in body for _, body in answers)
    assert wrong[0] == 400
    assert b"response_a" in wrong[1]
