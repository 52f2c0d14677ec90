"""Several processes on one key over a real Redis: the limit holds, a pause reaches all."""

import asyncio
import itertools
import json
import random
import subprocess
import sys
import time

import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.events import Event, Events, LimitChanged
from dikast.engine.pacing import KeyPacer, Limits
from dikast.engine.ports import SharedLimitGone
from dikast.engine.sharing import Rates, Reservations, SharedPacer
from dikast.providers.redis_limit import RedisLimit
from tests.redis.servers import RedisServer, most_in_a_second

pytestmark = pytest.mark.realtime


def send(redis: RedisServer, workers: int, *words: object) -> list[list[float]]:
    """When each of some processes sent; `words` as in tests.redis.worker, a pause by the first."""
    plain = words[:3]
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.redis.worker", redis.url]
            + [str(word) for word in (words if number == 0 else plain)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(workers)
    ]
    try:
        return [json.loads(child.communicate(timeout=30)[0]) for child in children]
    finally:
        for child in children:
            child.kill()


def together(times: list[list[float]]) -> list[float]:
    """What was sent while all of them were sending."""
    begin, end = max(map(min, times)), min(map(max, times))
    return sorted(time_s for each in times for time_s in each if begin <= time_s <= end)


@pytest.mark.slow
@pytest.mark.parametrize(("requests", "tokens"), [(24_000, 0), (0, 2_400_000)])
def test_three_processes_hold_one_limit_and_use_it(
    redis: RedisServer, requests: int, tokens: int
) -> None:
    per_s = 400  # either way: 24,000 requests a minute, or 2,400,000 tokens at 100 a request
    sent = together(send(redis, 3, requests, tokens, 3.0))

    assert most_in_a_second(sent) <= 1.05 * per_s
    assert len(sent) / (sent[-1] - sent[0]) >= 0.9 * per_s


@pytest.mark.slow
def test_a_retry_after_seen_by_one_process_pauses_all_within_a_second(redis: RedisServer) -> None:
    first, *others = send(redis, 3, 12_000, 0, 4.0, 1.0, 2.0)

    gaps = [(after - before, before) for before, after in itertools.pairwise(first)]
    pause_s, refused_at_s = max(gaps)
    assert pause_s >= 2.0
    for times in others:
        late = [at for at in times if refused_at_s + 1.0 < at < refused_at_s + pause_s - 0.1]
        assert late == []
        assert max(times) > refused_at_s + pause_s - 0.1, "it went on after the pause"


async def test_the_script_computes_what_the_engine_computes(redis: RedisServer) -> None:
    rng = random.Random(5)
    limit = RedisLimit(redis.url, worker="w")
    twin = Reservations()
    clock = SystemClock()
    rates = Rates(requests_per_s=50.0, tokens_per_s=4000.0)
    try:
        for _ in range(60):
            requests = rng.randint(0, 4)
            tokens = requests * rng.randint(20, 300) - rng.randint(0, 100)
            before_s = clock.now()
            lease = await limit.reserve("k", requests, tokens, 50.0, 4000.0)
            expected_s = twin.reserve(requests, tokens, rates, before_s)
            assert lease.wait_s == pytest.approx(expected_s, abs=0.06)
        lease = await limit.reserve("k", 0, 0, 50.0, 4000.0)
        assert lease.workers == 1
        assert twin.paused_s(clock.now()) == lease.paused_s == 0.0
        await limit.pause("k", 5.0)
        await limit.pause("k", 1.0)
        assert (await limit.reserve("k", 0, 0, 50.0, 4000.0)).paused_s == pytest.approx(
            5.0, abs=0.5
        )
        assert (await limit.reserve("other", 0, 0, 50.0, 4000.0)).paused_s == 0.0
    finally:
        await limit.aclose()


async def test_without_redis_a_worker_keeps_to_its_share_says_so_and_comes_back(
    redis: RedisServer,
) -> None:
    clock = SystemClock()
    seen: list[Event] = []
    events = Events((seen.append,))
    limits = Limits(requests_per_min=12_000, concurrency_start=64)  # 200 a second
    local = KeyPacer("key", limits, clock, random.Random(0), events)
    other = RedisLimit(redis.url, worker="other")
    limit = RedisLimit(redis.url, worker="this")
    pacer = SharedPacer(local, limit, clock, events)

    async def send_for(seconds: float) -> float:
        count, end_s = 0, clock.now() + seconds
        while clock.now() < end_s:
            pacer.release(await pacer.acquire(10, 0), used_tokens=10)
            count += 1
        return count / seconds

    try:
        await other.reserve("key", 0, 0, 200.0, float("inf"))
        with_redis = await send_for(0.6)
        redis.stop()
        alone = await send_for(1.2)
        note = pacer.snapshot().note
        redis.start()
        await send_for(1.5)
        after = pacer.snapshot().note
    finally:
        await pacer.aclose()
        await limit.aclose()
        await other.aclose()

    assert with_redis > 150
    assert 70 <= alone <= 125, "half of 200 a second, plus what was on its way"
    assert note == "shared limit gone, at 1/2 of the limit"
    assert after.startswith("shared limit was gone once, ")
    shares = [event.value for event in seen if isinstance(event, LimitChanged)]
    assert shares[:2] == [0.5, 1.0]


async def test_a_redis_that_is_not_there_is_told_before_the_run(redis: RedisServer) -> None:
    redis.stop()
    limit = RedisLimit(redis.url, worker="w")
    try:
        with pytest.raises(ConfigError, match="does not answer"):
            await limit.check()
        with pytest.raises(SharedLimitGone, match=r"127\.0\.0\.1"):
            await limit.pause("k", 1.0)
    finally:
        await limit.aclose()


async def test_a_password_is_needed_where_the_server_wants_one(redis: RedisServer) -> None:
    redis.stop()
    redis.start("--requirepass", "open sesame")
    refused = RedisLimit(redis.url, worker="w")
    welcome = RedisLimit(redis.url, worker="w", password="open sesame")
    try:
        with pytest.raises(ConfigError, match="password"):
            await refused.check()
        await welcome.check()
        assert (await welcome.reserve("k", 1, 1, 1.0, 1.0)).wait_s == 0.0
    finally:
        await refused.aclose()
        await welcome.aclose()


async def test_a_cancelled_wait_gives_its_place_and_tokens_back(redis: RedisServer) -> None:
    clock = SystemClock()
    local = KeyPacer("key", Limits(tokens_per_min=60_000), clock, random.Random(0), Events())
    limit = RedisLimit(redis.url, worker="w")
    pacer = SharedPacer(local, limit, clock, Events())
    try:
        await limit.reserve("key", 0, 600, float("inf"), 980.0)  # somebody else is sending
        waiting = asyncio.create_task(pacer.acquire(400, 0))
        await asyncio.sleep(0.1)
        assert pacer.snapshot().waiting == {"shared": 1} or not waiting.done()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        started_s = time.monotonic()
        permit = await asyncio.wait_for(pacer.acquire(10, 0), 5.0)
        waited_s = time.monotonic() - started_s
        pacer.release(permit, error=ProviderError("transient", "reset"))
        assert waited_s < 1.0, "the cancelled 400 tokens are not waited for twice"
        assert pacer.snapshot().in_flight == 0
    finally:
        await pacer.aclose()
        await limit.aclose()
