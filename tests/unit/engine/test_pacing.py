"""A key's pacer: exact times, order, pauses, learning. All in virtual time."""

import asyncio
import random
from typing import cast

import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.errors import ProviderError
from dikast.engine.events import Event, Events, KeyPaused
from dikast.engine.model import Call
from dikast.engine.pacing import KeyPacer, Leave, Limits
from dikast.engine.ports import RateInfo
from tests.sim.settle import settle
from tests.unit.engine.rate_server import RateServer


def pacer(limits: Limits | None = None, seen: list[Event] | None = None) -> KeyPacer:
    events = Events((seen.append,) if seen is not None else ())
    return KeyPacer("key", limits or Limits(), SystemClock(), random.Random(1), events)


async def admissions(key: KeyPacer, amounts: list[int]) -> list[float]:
    """When each request of `amounts` tokens was admitted, all asked for at time zero."""
    loop = asyncio.get_running_loop()

    async def one(place: int, tokens: int) -> float:
        permit = await key.acquire(tokens, place)
        at_s = loop.time()
        key.release(permit, used_tokens=tokens)
        return at_s

    return list(await asyncio.gather(*(one(i, tokens) for i, tokens in enumerate(amounts))))


async def drive(key: KeyPacer, server: RateServer, calls: int) -> float:
    """Virtual seconds until `calls` calls have succeeded, 429s tried again for ever."""

    async def one(place: int) -> None:
        while True:
            permit = await key.acquire(100, place)
            try:
                reply = await server.complete(cast(Call, None))
            except ProviderError as error:
                key.release(permit, error=error)
                continue
            key.release(permit, used_tokens=100, rate=reply.rate)
            return

    await asyncio.gather(*(one(place) for place in range(calls)))
    return asyncio.get_running_loop().time()


async def test_requests_are_spaced_evenly_just_below_the_limit() -> None:
    times = await admissions(pacer(Limits(requests_per_min=60)), [1] * 4)
    assert times == pytest.approx([0, 1 / 0.98, 2 / 0.98, 3 / 0.98], abs=0.01)


async def test_no_minute_sees_more_requests_than_the_limit() -> None:
    times = await admissions(pacer(Limits(requests_per_min=6000)), [1] * 12_500)
    for start in range(0, len(times), 97):
        inside = sum(1 for at_s in times if times[start] <= at_s < times[start] + 60)
        assert inside <= 6000
    assert times[-1] < 12_500 / 100 * 1.05


@pytest.mark.parametrize(
    ("limits", "headers"),
    [
        (Limits(requests_per_min=600), False),
        (Limits(), False),
        (Limits(), True),
    ],
    ids=["stated", "unknown", "unknown-with-headers"],
)
@pytest.mark.parametrize("latency_s", [0.005, 0.05])
async def test_a_600_a_minute_key_is_used_fully_and_hardly_ever_refuses(
    limits: Limits, headers: bool, latency_s: float
) -> None:
    server = RateServer(per_s=10, burst=10, latency_s=latency_s, headers=headers)
    took_s = await drive(pacer(limits), server, 100)
    assert server.requests <= 110
    assert server.inside_window == 0
    assert took_s <= 1.3 * 9.0


async def test_a_429_pauses_the_whole_key_and_cuts_once() -> None:
    seen: list[Event] = []
    key = pacer(Limits(requests_per_min=60_000, concurrency_start=16), seen)
    permits = [await key.acquire(1, place) for place in range(10)]
    refusal = ProviderError("rate", "slow down", retry_after_s=5)
    await asyncio.sleep(1)
    for permit in permits:
        key.release(permit, error=refusal)
    assert key.snapshot().concurrency == 8
    await key.acquire(1, 99)
    assert 6.0 < asyncio.get_running_loop().time() < 6.2
    assert any(isinstance(event, KeyPaused) for event in seen)


async def test_older_pairs_go_first_and_a_cancelled_waiter_gives_its_place_up() -> None:
    key = pacer(Limits(concurrency_max=1))
    held = await key.acquire(1, 0)
    order: list[int] = []

    async def wait_for(priority: int) -> None:
        permit = await key.acquire(1, priority)
        order.append(priority)
        key.release(permit, used_tokens=1)

    tasks = [asyncio.create_task(wait_for(priority)) for priority in (7, 3, 5)]
    await settle()
    assert key.snapshot().waiting == {"concurrency": 3}
    tasks[1].cancel()
    await settle()
    key.release(held, used_tokens=1)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [5, 7]
    assert key.snapshot().in_flight == 0


async def test_a_cancel_at_the_moment_of_admission_gives_the_slot_back() -> None:
    key = pacer(Limits(concurrency_max=1))
    held = await key.acquire(1, 0)
    task = asyncio.create_task(key.acquire(1, 1))
    await settle()
    key.release(held, used_tokens=1)  # the waiter has its permit, but has not run yet
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert isinstance(await key.acquire(1, 2), Leave)


async def test_tokens_are_reserved_and_settled_with_what_was_used() -> None:
    key = pacer(Limits(tokens_per_min=6000))  # 98 a second, the bucket holds 588
    first = await key.acquire(588, 0)
    key.release(first, used_tokens=88)  # 500 come back
    await key.acquire(500, 1)
    assert asyncio.get_running_loop().time() == 0.0
    await key.acquire(98, 2)
    assert asyncio.get_running_loop().time() == pytest.approx(1.0, abs=0.01)


async def test_a_request_larger_than_the_bucket_goes_alone_and_the_next_waits_its_debt_off() -> (
    None
):
    times = await admissions(pacer(Limits(tokens_per_min=6000)), [3000, 98])
    assert times[0] == 0.0
    assert times[1] == pytest.approx((3000 - 588 + 98) / 98, abs=0.01)


async def test_a_request_larger_than_a_whole_minute_fails_with_a_sentence_and_never_hangs() -> None:
    with pytest.raises(ProviderError, match=r"about 7,000 tokens.*6,000 a minute") as caught:
        await pacer(Limits(tokens_per_min=6000)).acquire(7000, 0)
    assert caught.value.kind == "oversized"


async def test_without_any_429_concurrency_grows_to_the_maximum() -> None:
    server = RateServer(per_s=1e9, burst=1e9, latency_s=0.2)
    took_s = await drive(pacer(), server, 25_600)
    assert server.peak == 512
    assert 25_600 / took_s >= 0.85 * 2560


async def test_a_limit_learned_from_headers_replaces_guessing() -> None:
    key = pacer()
    permit = await key.acquire(1, 0)
    key.release(permit, used_tokens=1, rate=RateInfo(requests_limit=60, requests_remaining=50))
    times = await admissions(key, [1, 1, 1])
    assert times[2] - times[1] == pytest.approx(1 / 0.98, abs=0.01)


async def test_a_429_without_retry_after_pauses_longer_each_time() -> None:
    key = pacer(Limits(requests_per_min=600_000))
    pauses: list[float] = []
    loop = asyncio.get_running_loop()
    for _ in range(3):
        permit = await key.acquire(1, 0)
        at_s = loop.time()
        key.release(permit, error=ProviderError("rate", "slow down"))
        again = await key.acquire(1, 0)
        pauses.append(loop.time() - at_s)
        key.release(again)
    assert pauses == pytest.approx([1, 2, 4], abs=0.1)


async def test_a_first_guess_that_is_far_too_low_is_left_behind_within_half_a_minute() -> None:
    server = RateServer(per_s=200, burst=10, latency_s=0.02)
    key = pacer()
    await drive(key, server, 3000)
    before_s = asyncio.get_running_loop().time()
    took_s = await drive(key, server, 3000) - before_s
    assert 3000 / took_s >= 0.5 * 200


async def test_a_key_that_was_idle_for_a_day_still_works() -> None:
    server = RateServer(per_s=10, burst=10)
    key = pacer()
    await drive(key, server, 30)
    await asyncio.sleep(86_400)
    await drive(key, server, 30)
    assert server.inside_window == 0
