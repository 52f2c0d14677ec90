"""A key's pacer: exact times, order, pauses, tokens. All in virtual time."""

import asyncio
import bisect
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.events import Event, KeyPaused, LimitChanged
from dikast.engine.pacing import Leave, Limits
from dikast.engine.ports import RateInfo
from tests.sim.settle import settle
from tests.sim.vloop import VirtualLoop
from tests.unit.engine.pacing_kit import admissions, now_s, pacer

SLOW_DOWN = ProviderError("rate", "slow down", retry_after_s=5)


def most_in_a_minute(times: list[float], amounts: list[int]) -> int:
    """The largest sum of `amounts` within any 60 s, both ends included."""
    worst = 0
    for first, start_s in enumerate(times):
        worst = max(worst, sum(amounts[first : bisect.bisect_right(times, start_s + 60.0)]))
    return worst


async def test_requests_are_spaced_evenly_just_below_the_limit() -> None:
    times = await admissions(pacer(Limits(requests_per_min=60)), [1] * 4)
    assert times == pytest.approx([0, 1 / 0.98, 2 / 0.98, 3 / 0.98], abs=1e-6)


async def test_no_minute_sees_more_requests_than_the_limit_even_the_first() -> None:
    times = await admissions(pacer(Limits(requests_per_min=6000)), [1] * 12_500)
    for start in range(0, len(times), 97):
        assert bisect.bisect_right(times, times[start] + 60.0) - start <= 6000
    assert times[-1] < 12_500 / 100 * 1.03


async def test_a_high_rate_is_released_in_batches_and_not_by_a_timer_each() -> None:
    times = await admissions(pacer(Limits(requests_per_min=600_000)), [1] * 10_000)
    assert times[-1] == pytest.approx(10_000 / 9800, rel=0.02)
    assert len(set(times)) <= 110


@settings(max_examples=40, deadline=None)
@given(
    gaps=st.lists(st.floats(0, 3), min_size=1, max_size=120),
    per_min=st.integers(10, 300),
    seed=st.integers(0, 3),
)
def test_for_any_arrivals_every_minute_is_within_the_limits(
    gaps: list[float], per_min: int, seed: int
) -> None:
    tokens_per_min = 6000
    amounts = [(seed * 37 + index * 101) % 900 + 1 for index in range(len(gaps))]

    async def arrivals() -> list[tuple[float, int]]:
        key = pacer(Limits(requests_per_min=per_min, tokens_per_min=tokens_per_min))
        admitted: list[tuple[float, int]] = []

        async def one(place: int) -> None:
            await asyncio.sleep(sum(gaps[: place + 1]))
            permit = await key.acquire(amounts[place], place)
            admitted.append((now_s(), amounts[place]))
            key.release(permit, used_tokens=amounts[place])

        await asyncio.gather(*(one(place) for place in range(len(gaps))))
        return admitted

    loop = VirtualLoop()
    try:
        admitted = sorted(loop.run_until_complete(arrivals()))
    finally:
        loop.close()
    times = [at_s for at_s, _ in admitted]
    assert len(times) == len(gaps)
    assert most_in_a_minute(times, [1] * len(times)) <= per_min + 1
    # The stated burst of tokens: ten seconds' worth.
    assert most_in_a_minute(times, [tokens for _, tokens in admitted]) <= tokens_per_min * 7 / 6


async def test_a_429_pauses_the_whole_key_and_cuts_once() -> None:
    seen: list[Event] = []
    key = pacer(Limits(requests_per_min=60_000, concurrency_start=16), seen)
    permits = [await key.acquire(1, place) for place in range(10)]
    await asyncio.sleep(1)
    for permit in permits:
        key.release(permit, error=SLOW_DOWN)
    assert key.snapshot().concurrency == 7  # 0.7 of the ten in flight, once
    await key.acquire(1, 99)
    assert 6.0 < now_s() < 6.3
    assert [type(each) for each in seen].count(KeyPaused) == 1
    cuts = [each for each in seen if isinstance(each, LimitChanged) and each.what == "concurrency"]
    assert [(each.value, each.why) for each in cuts] == [(7, "429")]


async def test_waiters_do_not_all_wake_at_the_end_of_a_pause() -> None:
    key = pacer(Limits(concurrency_start=64))
    permits = [await key.acquire(1, place) for place in range(20)]
    for permit in permits:
        key.release(permit, error=SLOW_DOWN)
    times = await admissions(key, [1] * 20)
    assert min(times) > 5.0
    assert len(set(times)) == 20


async def test_a_permit_given_in_the_very_step_of_a_429_waits_the_pause_out() -> None:
    key = pacer(Limits(requests_per_min=60_000, concurrency_start=2))
    first, second = [await key.acquire(1, place) for place in range(2)]
    waiting = asyncio.create_task(key.acquire(1, 2))
    await settle()
    key.release(first, used_tokens=1)  # admits the waiter, which has not run yet
    key.release(second, error=SLOW_DOWN)
    await waiting
    assert now_s() > 5.0
    assert key.snapshot().in_flight == 1


async def test_nothing_is_held_while_the_key_is_paused() -> None:
    key = pacer(Limits(concurrency_start=4))
    key.release(await key.acquire(1, 0), error=SLOW_DOWN)
    tasks = [asyncio.create_task(key.acquire(1, place)) for place in range(3)]
    await settle()
    stats = key.snapshot()
    assert (stats.in_flight, stats.waiting) == (0, {"retry_after": 3})
    assert 5.0 < stats.paused_s < 5.2
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert key.snapshot().waiting == {}


async def test_older_pairs_go_first_and_a_cancelled_waiter_gives_its_place_up() -> None:
    key = pacer(Limits(concurrency_max=1, concurrency_start=1))
    held = await key.acquire(1, 0)
    order: list[int] = []

    async def wait_for(priority: int, name: int) -> None:
        permit = await key.acquire(1, priority)
        order.append(name)
        key.release(permit, used_tokens=1)

    queue = [(7, 71), (3, 31), (5, 51), (5, 52)]
    tasks = [asyncio.create_task(wait_for(*each)) for each in queue]
    await settle()
    assert key.snapshot().waiting == {"concurrency": 4}
    tasks[1].cancel()
    await settle()
    assert key.snapshot().waiting == {"concurrency": 3}
    key.release(held, used_tokens=1)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [51, 52, 71]
    assert key.snapshot().in_flight == 0


async def test_a_cancel_at_the_moment_of_admission_gives_the_slot_back() -> None:
    key = pacer(Limits(concurrency_max=1, concurrency_start=1))
    held = await key.acquire(1, 0)
    task = asyncio.create_task(key.acquire(1, 1))
    await settle()
    key.release(held, used_tokens=1)  # the waiter has its permit, but has not run yet
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert isinstance(await key.acquire(1, 2), Leave)


async def test_tokens_are_reserved_and_settled_with_what_was_used() -> None:
    key = pacer(Limits(tokens_per_min=6000, concurrency_start=9))  # holds 1000, starts with 500
    key.release(await key.acquire(500, 0), used_tokens=100)  # 400 come back
    await key.acquire(400, 1)
    assert now_s() == 0.0
    await key.acquire(98, 2)
    assert now_s() == pytest.approx(1.0, abs=1e-6)


async def test_a_refused_request_gives_its_tokens_back_and_a_failed_one_does_not() -> None:
    key = pacer(Limits(tokens_per_min=6000, concurrency_start=9))
    refusal = ProviderError("rate", "slow down", retry_after_s=0)
    key.release(await key.acquire(500, 0), error=refusal)
    key.release(await key.acquire(500, 1), error=ProviderError("timeout", "no answer"))
    refunded_s = now_s()
    assert refunded_s < 0.2
    await key.acquire(490, 2)
    assert now_s() - refunded_s == pytest.approx(5.0, abs=0.15)


async def test_a_request_larger_than_the_bucket_goes_alone_and_the_next_waits_its_debt_off() -> (
    None
):
    times = await admissions(pacer(Limits(tokens_per_min=6000, concurrency_start=9)), [3000, 98])
    assert times[0] == pytest.approx(500 / 98, abs=1e-6)  # until the bucket is full
    assert times[1] - times[0] == pytest.approx((2000 + 98) / 98, abs=1e-6)


async def test_a_large_request_is_not_overtaken_by_small_ones_behind_it() -> None:
    times = await admissions(
        pacer(Limits(tokens_per_min=6000, concurrency_start=99)), [900] + [9] * 30
    )
    assert times == sorted(times)
    assert times[0] == pytest.approx(400 / 98, abs=1e-6)


async def test_a_request_larger_than_the_providers_minute_fails_and_never_hangs() -> None:
    key = pacer(Limits(concurrency_start=2, concurrency_max=2))
    held = [await key.acquire(1, place) for place in range(2)]
    waiting = asyncio.create_task(key.acquire(7000, 2))
    await settle()
    key.release(held[0], used_tokens=1, rate=RateInfo(tokens_limit=6000))
    for attempt in (waiting, key.acquire(7000, 3)):
        with pytest.raises(ProviderError, match=r"about 7,000 tokens.*6,000 a minute") as caught:
            await attempt
        assert caught.value.kind == "oversized"
    assert key.snapshot().waiting == {}


async def test_a_limit_lowered_by_headers_while_calls_wait_holds_from_then_on() -> None:
    key = pacer(Limits(requests_per_min=600))
    first = await key.acquire(1, 0)
    rest = asyncio.create_task(admissions(key, [1] * 3))
    await settle()
    key.release(first, used_tokens=1, rate=RateInfo(requests_limit=60))
    times = await rest
    assert times == pytest.approx([1 / 0.98, 2 / 0.98, 3 / 0.98], abs=0.01)


async def test_a_stated_limit_is_not_raised_by_headers() -> None:
    key = pacer(Limits(requests_per_min=60))
    key.release(await key.acquire(1, 0), used_tokens=1, rate=RateInfo(requests_limit=6000))
    times = await admissions(key, [1] * 2)
    assert times == pytest.approx([1 / 0.98, 2 / 0.98], abs=1e-6)


async def test_headers_that_say_none_left_hold_the_key_until_the_reset() -> None:
    key = pacer()
    none_left = RateInfo(requests_limit=6000, requests_remaining=0, requests_reset_s=7.0)
    key.release(await key.acquire(1, 0), used_tokens=1, rate=none_left)
    await key.acquire(1, 1)
    assert now_s() == pytest.approx(7.0, abs=0.01)


async def test_without_a_stated_limit_no_more_are_sent_than_are_left() -> None:
    key = pacer()
    left = RateInfo(requests_remaining=3, requests_reset_s=20.0)
    key.release(await key.acquire(1, 0), used_tokens=1, rate=left)
    times = [(await key.acquire(1, place), now_s())[1] for place in range(4)]
    assert max(times[:3]) < 1.0
    assert times[3] == pytest.approx(20.0, abs=0.01)


async def test_tokens_that_are_gone_hold_the_key_until_their_reset() -> None:
    key = pacer()
    gone = RateInfo(tokens_limit=60_000, tokens_remaining=0, tokens_reset_s=9.0)
    key.release(await key.acquire(1, 0), used_tokens=1, rate=gone)
    await key.acquire(10, 1)
    assert now_s() == pytest.approx(9.0, abs=0.01)


async def test_a_429_without_retry_after_pauses_longer_each_time() -> None:
    key = pacer(Limits(requests_per_min=600_000))
    pauses: list[float] = []
    permit = await key.acquire(1, 0)
    for _ in range(8):
        at_s = now_s()
        key.release(permit, error=ProviderError("rate", "slow down"))
        permit = await key.acquire(1, 0)
        pauses.append(now_s() - at_s)
    assert pauses == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60], rel=0.04)
    assert all(pause_s >= wanted for pause_s, wanted in zip(pauses, (1, 2, 4, 8), strict=False))


async def test_a_permit_that_was_not_used_leaves_no_trace() -> None:
    key = pacer(Limits(tokens_per_min=6000, concurrency_start=4))
    key.release(await key.acquire(500, 0), used_tokens=0)
    await key.acquire(500, 1)
    assert now_s() == 0.0
    assert key.snapshot().in_flight == 1


@pytest.mark.parametrize("field", ["requests_per_min", "tokens_per_min", "concurrency_max"])
def test_a_limit_below_one_is_refused_with_its_name(field: str) -> None:
    with pytest.raises(ConfigError, match=f"limits of 'key': {field} must be at least 1, not 0"):
        pacer(Limits(**{field: 0}))


async def test_it_asks_nothing_of_a_timer_but_to_be_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # uvloop's `call_later` returns a handle that does not know its time when that has just passed.
    loop = asyncio.get_running_loop()
    real = loop.call_later

    class Plain:
        def __init__(self, handle: asyncio.TimerHandle) -> None:
            self.cancel = handle.cancel

    def call_later(wait_s: float, callback: Callable[[], object]) -> Plain:
        return Plain(real(wait_s, callback))

    monkeypatch.setattr(loop, "call_later", call_later)
    times = await admissions(pacer(Limits(requests_per_min=60)), [1] * 4)
    assert times[-1] > 2.9
