"""What every provider promises, tried on each of them: the Provider port's contract."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.errors import ERROR_KINDS, ProviderError
from dikast.engine.model import Call, Params
from dikast.engine.ports import Reply
from dikast.providers import (
    BuiltProvider,
    OpenAIChatSettings,
    ReplaySettings,
    SimulatedSettings,
    build,
)
from dikast.providers.simulate_server import start
from tests.unit.providers.calls import call_of, pair_of

KEY = "sk-contract-0123456789abcdef"
Opened = Callable[[Path, bool], AbstractAsyncContextManager[BuiltProvider]]


@asynccontextmanager
async def openai(folder: Path, failing: bool) -> AsyncIterator[BuiltProvider]:
    """An endpoint on loopback; it fails every request when asked to."""
    server = await start(SimulatedSettings(error_rate=float(failing)), api_key=KEY)
    settings = OpenAIChatSettings(base_url=server.url, api_key_env="K", concurrency=4)
    provider = build("p", settings, clock=SystemClock(), env={"K": KEY})
    try:
        yield provider
    finally:
        await provider.aclose()
        await server.aclose()


@asynccontextmanager
async def replay(folder: Path, failing: bool) -> AsyncIterator[BuiltProvider]:
    """Recorded outputs of thirty pairs, or of none."""
    rows = [
        {
            "pair_id": pair_of(n).id,
            "judge": "judge-1",
            "template": "t",
            "order": o,
            "raw": f"{o}{n}",
        }
        for n in range(0 if failing else 30)
        for o in ("ab", "ba")
    ]
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    settings = ReplaySettings(paths=(str(path),), template="t")
    provider = build("p", settings, clock=SystemClock(), env={})
    yield provider
    await provider.aclose()


@asynccontextmanager
async def simulated(folder: Path, failing: bool) -> AsyncIterator[BuiltProvider]:
    """A judge with latency, so that calls overlap."""
    settings = SimulatedSettings(error_rate=float(failing), latency_s=0.1)
    provider = build("p", settings, clock=SystemClock(), env={})
    yield provider
    await provider.aclose()


pytestmark = pytest.mark.parametrize(
    "opened",
    [
        pytest.param(openai, marks=pytest.mark.realtime, id="openai"),
        pytest.param(replay, id="replay"),
        pytest.param(simulated, id="simulated"),
    ],
)


def call(number: int) -> Call:
    return call_of(pair_of(number), by_pair=True)


async def test_a_call_gets_a_reply_with_a_text_and_who_served_it(
    opened: Opened, tmp_path: Path
) -> None:
    async with opened(tmp_path, False) as provider:
        reply = await provider.complete(call(1))
    assert isinstance(reply, Reply)
    assert reply.completion.text
    assert reply.completion.served_by
    assert reply.completion.finish_reason == "stop"
    assert reply.completion.latency_s >= 0
    assert not reply.completion.from_store


async def test_the_same_call_gets_the_same_text_at_any_concurrency(
    opened: Opened, tmp_path: Path
) -> None:
    async with opened(tmp_path, False) as provider:
        alone = [(await provider.complete(call(n))).completion.text for n in range(20)]
        many = await asyncio.gather(*(provider.complete(call(n)) for n in range(20)))
    assert [reply.completion.text for reply in many] == alone


async def test_a_failure_is_one_classified_error_and_not_retried(
    opened: Opened, tmp_path: Path
) -> None:
    async with opened(tmp_path, True) as provider:
        with pytest.raises(ProviderError) as caught:
            await provider.complete(call(1))
    assert caught.value.kind in ERROR_KINDS
    assert caught.value.message
    assert caught.value.attempts == 1


async def test_lone_surrogates_in_a_prompt_do_not_kill_the_call(
    opened: Opened, tmp_path: Path
) -> None:
    pair = msgspec.structs.replace(pair_of(1), response_a="half \ud83d an emoji")
    async with opened(tmp_path, False) as provider:
        reply = await provider.complete(call_of(pair, by_pair=True, params=Params(seed=1)))
    assert reply.completion.text


async def test_cancelling_a_call_leaves_the_provider_usable(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path, False) as provider:
        tasks = [asyncio.create_task(provider.complete(call(n))) for n in range(8)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError | Reply) for each in ended)
        again = await asyncio.gather(*(provider.complete(call(n)) for n in range(8)))
        assert all(reply.completion.text for reply in again)


async def test_it_can_be_checked_and_closed_twice(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path, False) as provider:
        await provider.check()
        await provider.aclose()
        await provider.aclose()


async def test_it_can_be_closed_without_having_been_used(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path, False) as provider:
        await provider.aclose()
        assert repr(provider)


async def test_it_says_whether_it_is_simulated_and_shows_no_key(
    opened: Opened, tmp_path: Path
) -> None:
    async with opened(tmp_path, False) as provider:
        assert isinstance(provider.simulated, bool)
        assert provider.simulated == (opened is simulated)
        assert KEY not in repr(provider)
