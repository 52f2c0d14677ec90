"""The pacer in front of a shared limit, in virtual time."""

import asyncio
import random

import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.events import Event, Events, KeyPaused, LimitChanged
from dikast.engine.pacing import KeyPacer, Limits
from dikast.engine.ports import Lease, RateInfo, SharedLimit, SharedLimitGone
from dikast.engine.sharing import MemoryLimit, SharedPacer

CALL_S = 0.05


class Flaky:
    """A shared limit that can be taken away, and counts what it is asked."""

    def __init__(self, limit: SharedLimit, workers: int) -> None:
        self.limit = limit
        self.workers = workers
        self.gone = False
        self.asked = 0
        self.requests = 0
        self.tokens = 0

    async def reserve(
        self, key: str, requests: int, tokens: int, requests_per_s: float, tokens_per_s: float
    ) -> Lease:
        if self.gone:
            raise SharedLimitGone("taken away")
        self.asked += bool(requests)
        self.requests += requests
        self.tokens += tokens
        lease = await self.limit.reserve(key, requests, tokens, requests_per_s, tokens_per_s)
        return Lease(wait_s=lease.wait_s, paused_s=lease.paused_s, workers=self.workers)

    async def pause(self, key: str, wait_s: float) -> None:
        if self.gone:
            raise SharedLimitGone("taken away")
        await self.limit.pause(key, wait_s)

    async def aclose(self) -> None:
        return


def pacer_on(limit: SharedLimit, limits: Limits, *observers: list[Event]) -> SharedPacer:
    clock = SystemClock()
    events = Events(tuple(each.append for each in observers))
    local = KeyPacer("key", limits, clock, random.Random(0), events)
    return SharedPacer(local, limit, clock, events)


async def send(
    pacer: SharedPacer, seconds: float, tokens: int = 10, lanes: int = 32
) -> list[float]:
    """When calls were sent in so many seconds."""
    clock, sent = SystemClock(), list[float]()
    end_s = clock.now() + seconds

    async def lane() -> None:
        while clock.now() < end_s:
            permit = await pacer.acquire(tokens, 0)
            if clock.now() < end_s:
                sent.append(clock.now())
                await clock.sleep(CALL_S)
            pacer.release(permit, used_tokens=tokens)

    await asyncio.gather(*(lane() for _ in range(lanes)))
    return sent


async def test_four_workers_hold_one_limit_and_ask_in_blocks() -> None:
    shared = MemoryLimit(SystemClock())
    limits = [Flaky(shared, 4) for _ in range(4)]
    pacers = [pacer_on(each, Limits(requests_per_min=12_000)) for each in limits]
    times = await asyncio.gather(*(send(each, 10.0) for each in pacers))
    for each in pacers:
        await each.aclose()

    sent = sorted(at for each in times for at in each)
    windows = [sum(start <= at < start + 1.0 for at in sent) for start in range(9)]
    assert min(windows) >= 0.9 * 200
    assert max(windows) <= 1.05 * 200
    assert min(map(len, times)) > 250, "no worker is left behind"
    assert sum(each.asked for each in limits) < sum(each.requests for each in limits) / 4


async def test_tokens_that_were_not_used_are_given_back() -> None:
    limit = Flaky(MemoryLimit(SystemClock()), 1)
    pacer = pacer_on(limit, Limits(tokens_per_min=600_000))
    for _ in range(20):
        pacer.release(await pacer.acquire(100, 0), used_tokens=30)
    refused = ProviderError("rate", "429", status=429, retry_after_s=0.1)
    pacer.release(await pacer.acquire(100, 0), error=refused)
    pacer.release(await pacer.acquire(100, 0), used_tokens=100)
    await pacer.aclose()

    assert limit.tokens == 20 * 30 + 100


async def test_a_refusal_here_pauses_the_others_and_they_do_not_rush_in_after_it() -> None:
    clock, seen = SystemClock(), list[Event]()
    shared = MemoryLimit(clock)
    one = pacer_on(shared, Limits(requests_per_min=12_000))
    two = pacer_on(shared, Limits(requests_per_min=12_000), seen)
    sending = asyncio.create_task(send(two, 6.0))
    await clock.sleep(1.0)
    refused = ProviderError("rate", "429", status=429, retry_after_s=2.0)
    one.release(await one.acquire(10, 0), error=refused)
    refused_at_s = clock.now()
    sent = await sending
    await one.aclose()
    await two.aclose()

    assert [at for at in sent if refused_at_s + 0.5 < at < refused_at_s + 2.0] == []
    first_s = min(at for at in sent if at > refused_at_s + 1.0)
    assert sum(first_s <= at < first_s + 0.5 for at in sent) <= 0.5 * 200 * 1.1
    assert [event.why for event in seen if isinstance(event, KeyPaused)] == ["others"]


async def test_without_the_shared_limit_each_takes_its_share_and_says_so() -> None:
    seen: list[Event] = []
    limit = Flaky(MemoryLimit(SystemClock()), 4)
    pacer = pacer_on(limit, Limits(requests_per_min=12_000), seen)
    await send(pacer, 1.0)
    limit.gone = True
    alone = await send(pacer, 5.0)
    note = pacer.snapshot().note
    limit.gone = False
    back = await send(pacer, 4.0)
    after = pacer.snapshot().note
    await pacer.aclose()

    assert 0.9 * 50 <= len(alone) / 5.0 <= 1.2 * 50
    assert note == "shared limit gone, at 1/4 of the limit"
    assert len(back) / 4.0 > 120
    assert after.startswith("shared limit was gone once, ")
    changes = [event for event in seen if isinstance(event, LimitChanged)]
    assert [(each.what, each.value) for each in changes] == [("share", 0.25), ("share", 1.0)]


async def test_a_limit_that_headers_tell_is_shared_too() -> None:
    shared = MemoryLimit(SystemClock())
    pacers = [pacer_on(shared, Limits(concurrency_start=32)) for _ in range(2)]
    told = RateInfo(requests_limit=6000)
    for each in pacers:
        each.release(await each.acquire(10, 0), used_tokens=10, rate=told)
    times = await asyncio.gather(*(send(each, 5.0) for each in pacers))
    for each in pacers:
        await each.aclose()

    assert 0.9 * 100 <= sum(map(len, times)) / 5.0 <= 1.05 * 100


async def test_a_worker_that_is_one_of_several_keeps_to_its_part() -> None:
    clock = SystemClock()
    limits = Limits(requests_per_min=6000, tokens_per_min=60_000, concurrency_max=9, share=3)
    pacer = KeyPacer("key", limits, clock, random.Random(0), Events())
    permit = await pacer.acquire(10, 0)
    pacer.release(permit, used_tokens=10, rate=RateInfo(requests_limit=3000, tokens_limit=30_000))

    assert pacer.snapshot().concurrency == 3
    assert pacer.stated() == (1000, 10_000)
    with pytest.raises(ConfigError, match="share"):
        KeyPacer("key", Limits(share=0), clock, random.Random(0), Events())
