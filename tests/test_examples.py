"""The examples run as they stand: the web service over real sockets, the script as a process."""

import asyncio
import importlib
import io
import json
import re
import runpy
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
from aiohttp import web

from dikast import Engine
from dikast.config import parse_settings
from dikast.wiring import build_engine
from tests.cli.tools import pair

ROOT = Path(__file__).resolve().parents[1]
WAIT_S = 5.0
pytestmark = pytest.mark.realtime


class Served(NamedTuple):
    """The running service, its engine, and a client."""

    engine: Engine
    client: aiohttp.ClientSession


@asynccontextmanager
async def service(*, latency_s: float) -> AsyncIterator[Served]:
    """The example on a port of its own, with a simulated judge that takes `latency_s`."""
    example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "aiohttp_service.py"))
    raw = example["settings_of"](None, "simulated", "")
    raw["providers"]["main"]["latency_s"] = latency_s
    app: web.Application = example["make_app"](lambda: build_engine(parse_settings(raw)))
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession(base) as client:
            yield Served(app[example["ENGINE"]], client)
    finally:
        await runner.cleanup()
        for task in (left := engine_tasks()):
            task.cancel()  # a test that found them has failed; the next one starts clean
        await asyncio.gather(*left, return_exceptions=True)


async def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for something that happens soon, on the real loop."""
    try:
        async with asyncio.timeout(WAIT_S):
            while not holds():  # noqa: ASYNC110  nothing announces it
                await asyncio.sleep(0.005)
    except TimeoutError:
        pytest.fail(f"did not come about: {what}; tasks: {asyncio.all_tasks()}")


def engine_tasks() -> list["asyncio.Task[Any]"]:
    """The tasks that run code of the engine, or wait in a queue of it."""
    return [
        task
        for task in asyncio.all_tasks()
        if re.search(r"Scheduler\.|Queue\.get|Gateway|judge", repr(task.get_coro()))
        and task is not asyncio.current_task()
    ]


def lines_of(pairs: list[Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in pairs)


async def ask(served: Served, number: int) -> tuple[int, Any]:
    async with served.client.post("/judge", json=pair(number)) as response:
        return response.status, await response.json()


async def stream(served: Served, body: bytes) -> list[Any]:
    async with served.client.post("/judge/stream", data=io.BytesIO(body)) as response:
        assert response.content_type == "application/x-ndjson"
        return [json.loads(line) async for line in response.content]


async def test_the_service_judges_one_pair_and_says_that_the_judge_is_simulated() -> None:
    async with service(latency_s=0.0) as served:
        status, outcome = await ask(served, 1)
        async with served.client.post("/judge", data=b'{"id": "x"}') as response:
            wrong = response.status, await response.text()

    assert status == 200
    assert outcome["id"] == pair(1)["id"]
    assert outcome["simulated"] is True
    assert outcome["calls"] == 2
    assert wrong[0] == 400
    assert "response_a" in wrong[1]


async def test_a_stream_of_pairs_gives_every_outcome_once_and_names_the_bad_line() -> None:
    body = lines_of([pair(number) for number in range(25)])
    body += b"this is no pair\n" + lines_of([pair(number) for number in range(25, 50)])
    async with service(latency_s=0.005) as served:
        outcomes = await stream(served, body)

    judged = [each for each in outcomes if each["kind"] == "verdict"]
    failed = [each for each in outcomes if each["kind"] == "failed"]
    assert sorted(each["id"] for each in judged) == sorted(pair(n)["id"] for n in range(50))
    assert [(each["reason"], each["line"]) for each in failed] == [("bad_row", 26)]


async def test_outcomes_arrive_while_the_client_is_still_sending() -> None:
    answered = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield lines_of([pair(0)])
        await answered.wait()
        yield lines_of([pair(1)])

    async with (
        service(latency_s=0.0) as served,
        asyncio.timeout(WAIT_S),
        served.client.post("/judge/stream", data=body()) as response,
    ):
        first = json.loads(await response.content.readline())
        answered.set()
        rest = [json.loads(line) async for line in response.content]

    assert first["id"] == pair(0)["id"]
    assert [each["id"] for each in rest] == [pair(1)["id"]]


async def test_a_line_that_is_too_long_is_refused_and_the_pairs_around_it_are_judged() -> None:
    body = lines_of([pair(0)]) + b"x" * (3 << 20) + b"\n" + lines_of([pair(1)])
    async with service(latency_s=0.0) as served:
        outcomes = await stream(served, body)

    judged = sorted(each["id"] for each in outcomes if each["kind"] == "verdict")
    assert judged == [pair(0)["id"], pair(1)["id"]]
    assert [each["line"] for each in outcomes if each["kind"] == "failed"] == [2]


async def test_a_stream_that_is_left_in_the_middle_stops_and_the_engine_serves_others() -> None:
    async with service(latency_s=0.05) as served:
        body = lines_of([pair(number) for number in range(2000)])
        async with served.client.post("/judge/stream", data=io.BytesIO(body)) as response:
            assert await response.content.readline()
            response.close()
        await until(lambda: served.engine.snapshot().in_flight == 0, "its calls are cancelled")
        await until(lambda: not engine_tasks(), "no task of the stream is left")
        idle = served.engine.snapshot().in_flight
        status, outcome = await ask(served, 9000)

    assert idle == 0
    assert status == 200
    assert outcome["kind"] == "verdict"


async def test_a_stream_left_while_it_waits_for_outcomes_leaves_no_task() -> None:
    async with service(latency_s=WAIT_S * 10) as served:
        body = lines_of([pair(number) for number in range(50)])
        async with served.client.post("/judge/stream", data=io.BytesIO(body)) as response:
            await until(lambda: served.engine.snapshot().in_flight > 0, "calls are in flight")
            response.close()
        await until(lambda: not engine_tasks(), "no task of the stream is left")
        assert served.engine.snapshot().in_flight == 0


async def test_a_client_that_hangs_up_cancels_its_own_pair_and_not_an_equal_one() -> None:
    async with service(latency_s=0.3) as served:
        leaving = asyncio.create_task(ask(served, 1))
        await until(lambda: served.engine.snapshot().in_flight > 0, "the first asks")
        staying = asyncio.create_task(ask(served, 1))
        other = asyncio.create_task(ask(served, 2))
        await asyncio.sleep(0.05)
        leaving.cancel()
        answers = await asyncio.gather(staying, other)
        await until(lambda: not engine_tasks(), "no task of the pairs is left")

    assert leaving.cancelled()
    assert [status for status, _ in answers] == [200, 200]
    assert [outcome["id"] for _, outcome in answers] == [pair(1)["id"], pair(2)["id"]]


def test_the_stream_script_prints_an_outcome_for_every_pair() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "judge_stream.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(line.split()[0] for line in done.stdout.splitlines()) == ["sea", "sum"]
    assert done.stderr == ""


def test_the_script_for_one_pair_prints_its_verdict() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "judge_one_pair.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"Verdict\(id='sum'", done.stdout), done.stdout


def test_the_names_that_are_called_stable_are_there() -> None:
    page = (ROOT / "docs" / "library.md").read_text("utf-8").partition("## What is stable")[2]
    found = 0
    for place, names in re.findall(r"^\| `(dikast[\w.]*)` \| (.*) \|$", page, flags=re.MULTILINE):
        module = importlib.import_module(place)
        for name in re.findall(r"`(\w+)`", names):
            assert hasattr(module, name), f"{place}.{name}"
            found += 1
    assert found > 25


def test_the_library_page_shows_the_scripts_as_they_stand() -> None:
    page = (ROOT / "docs" / "library.md").read_text("utf-8")
    shown = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    scripts = [
        (ROOT / "examples" / name).read_text("utf-8")
        for name in ("judge_one_pair.py", "judge_stream.py", "engine_by_hand.py")
    ]
    assert [each.partition('"""\n\n')[2] for each in scripts] == shown


async def test_the_engine_of_parts_judges_and_keeps_its_deadline(
    capsys: pytest.CaptureFixture[str],
) -> None:
    example = runpy.run_path(str(ROOT / "examples" / "engine_by_hand.py"))

    await example["main"]()
    judged = capsys.readouterr().out.splitlines()
    await example["main"](latency_s=30.0, limit_s=0.05)
    late = capsys.readouterr().out.splitlines()

    assert [line in (f"{name}: A", f"{name}: B", f"{name}: tie") for name, line in zip(
        ("sum", "sea"), judged, strict=True
    )] == [True, True]  # fmt: skip
    assert late == ["sum: no outcome within 0.05 s", "sea: no outcome within 0.05 s"]
