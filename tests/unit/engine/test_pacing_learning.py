"""What a pacer makes of a limit that nobody stated: the careful start, the learned rate, AIMD."""

import asyncio

import pytest

from dikast.engine.concurrency import AdaptiveLimit
from dikast.engine.learning import HOLD_S, LearnedRate
from dikast.engine.pacing import Limits
from tests.unit.engine.pacing_kit import drive, now_s, pacer
from tests.unit.engine.rate_server import RateServer

KNOWN = {
    "stated": (Limits(requests_per_min=600), False),
    "headers": (Limits(), True),
    "unknown": (Limits(), False),
}


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("burst", [10, 1])
@pytest.mark.parametrize(
    ("latency_s", "refusal_s"),
    [(0.005, 0.005), (0.05, 0.05), (0.05, 0.002), (0.2, 0.04)],
)
async def test_a_key_of_600_a_minute_is_used_fully_and_never_asked_inside_a_window(
    known: str, burst: int, latency_s: float, refusal_s: float
) -> None:
    limits, headers = KNOWN[known]
    server = RateServer(burst=burst, latency_s=latency_s, refusal_s=refusal_s, headers=headers)
    took_s = await drive(pacer(limits), server, 100)
    ideal_s = (100 - burst) / 10
    assert server.requests <= 101
    assert server.inside_window == 0
    assert took_s <= 1.3 * ideal_s + latency_s


@pytest.mark.parametrize("burst", [10, 1])
async def test_a_refusal_that_takes_200_ms_costs_a_few_requests_and_no_more(burst: int) -> None:
    # Whatever is sent before the refusal is heard arrives inside its window: three here.
    server = RateServer(burst=burst, latency_s=0.2)
    took_s = await drive(pacer(), server, 100)
    assert server.requests <= 105
    assert server.inside_window <= 4
    assert took_s <= 1.3 * ((100 - burst) / 10 + 0.2)


async def test_a_limit_that_is_stated_far_too_high_is_corrected_by_the_first_refusal() -> None:
    server = RateServer()
    took_s = await drive(pacer(Limits(requests_per_min=10_000)), server, 100)
    assert server.requests <= 110
    assert took_s <= 12.5


async def test_without_any_limit_the_start_costs_a_large_job_little() -> None:
    server = RateServer(per_s=1e9, burst=1e9, latency_s=0.2, refusal_s=0.04)
    await drive(pacer(), server, 25_600, workers=512)
    in_ten_s = sum(1 for at_s in server.answered_s if at_s <= 10.0)
    assert server.peak == 512
    assert in_ten_s >= 0.95 * 25_600


async def test_a_server_without_latency_is_at_hundreds_of_calls_within_a_second() -> None:
    server = RateServer(per_s=1e9, burst=1e9, latency_s=0.0)
    assert await drive(pacer(), server, 20_000, workers=512) < 1.0


async def test_the_first_request_goes_alone_but_does_not_hold_the_others_for_ever() -> None:
    key = pacer()
    await key.acquire(1, 0)
    waiting = asyncio.create_task(key.acquire(1, 1))
    await asyncio.sleep(1.9)
    assert not waiting.done()
    await waiting
    assert now_s() == pytest.approx(2.0, abs=0.01)


async def test_a_learned_rate_finds_its_way_to_a_slow_key_and_stays_there() -> None:
    server = RateServer(per_s=2.0, burst=1.0)
    took_s = await drive(pacer(), server, 200, workers=100)
    assert server.refused <= 12
    assert took_s <= 1.5 * 199 / 2


async def test_a_key_that_becomes_free_again_is_used_more_and_more() -> None:
    key, server = pacer(), RateServer()
    await drive(key, server, 100)
    server.per_s, server.burst = 1e9, 1e9
    before_s = now_s()
    await drive(key, server, 3000, workers=512)
    assert now_s() - before_s < 60  # at ten a second it would be 300


async def test_refusals_without_retry_after_are_survived_too() -> None:
    server = RateServer(retry_after_s=None, latency_s=0.2, refusal_s=0.04)
    took_s = await drive(pacer(), server, 300)
    assert server.refused <= 20
    assert took_s <= 1.3 * 29.0


async def test_concurrency_doubles_a_round_trip_until_the_first_429() -> None:
    server = RateServer(per_s=1e9, burst=1e9, latency_s=1.0)
    key = pacer(Limits(concurrency_start=2, concurrency_max=16))
    run = asyncio.create_task(drive(key, server, 100))
    sizes = []
    for _ in range(5):
        await asyncio.sleep(0.5)
        sizes.append(server.in_flight)
        await asyncio.sleep(0.5)
    assert sizes == [2, 4, 8, 16, 16]
    await run


async def test_concurrency_does_not_grow_while_it_is_not_used_up() -> None:
    key = pacer(Limits(concurrency_start=4))
    for place in range(50):
        key.release(await key.acquire(1, place), used_tokens=1)
    assert key.snapshot().concurrency == 4


def test_an_adaptive_limit_ignores_what_was_sent_before_its_cut_and_then_grows_slowly() -> None:
    limit = AdaptiveLimit(10, 100)
    limit.cut(10, in_flight=10, needed=0.0)
    assert limit.limit == 7
    assert not limit.is_current(10)
    assert not limit.succeeded(10, in_flight=9)
    assert limit.succeeded(11, in_flight=7)
    assert limit.limit == pytest.approx(7 + 1 / 7)


def test_an_adaptive_limit_stays_between_one_and_its_maximum() -> None:
    limit = AdaptiveLimit(3, 4)
    for number in range(1, 20):
        limit.succeeded(number, in_flight=int(limit.limit))
    assert limit.limit == 4
    for number in range(20, 40):
        limit.cut(number, in_flight=1, needed=0.0)
    assert limit.limit == 1


def test_an_adaptive_limit_is_not_cut_below_what_the_learned_rate_needs() -> None:
    limit = AdaptiveLimit(64, 64)
    limit.cut(1, in_flight=4, needed=12.0)
    assert limit.limit == 12


def refuse(rate: LearnedRate, number: int, sent_s: float, gap_s: float = 0.05) -> float:
    return rate.refused(number, sent_s, gap_s, sent_s + 2.0, sent_s, float("inf"))


def grown(seconds: int) -> tuple[LearnedRate, float]:
    """A rate that was learned, held, and grew for so many seconds; and what it was before."""
    rate = LearnedRate()
    for number in range(1, 21):
        rate.sent(number, number * 0.05)
    learned = refuse(rate, 21, 1.05)
    assert not rate.grow(1.05 + 2.0 + HOLD_S - 0.1)
    for second in range(seconds):
        assert rate.grow(1.05 + 2.0 + HOLD_S + second)
    rate.sent(200, 22.0)
    return rate, learned


def test_the_first_refusal_is_read_as_a_burst_of_one_second() -> None:
    _, learned = grown(1)
    assert learned == pytest.approx(0.98 * 19 / 1.95, abs=1e-6)  # the first went alone


def test_a_rate_refused_after_it_grew_a_little_returns_to_the_one_that_was_proven() -> None:
    rate, learned = grown(3)
    assert rate.per_s == pytest.approx(learned * 1.02 * 1.04 * 1.08)
    assert refuse(rate, 201, 22.1) == pytest.approx(learned)


def test_a_rate_refused_after_it_grew_far_returns_to_the_middle() -> None:
    rate, learned = grown(6)
    far = rate.per_s
    assert far is not None
    assert far > 1.5 * learned
    assert refuse(rate, 201, 22.1) == pytest.approx((far * learned) ** 0.5)


def test_a_refusal_in_a_quiet_service_does_not_make_the_key_crawl() -> None:
    rate = LearnedRate()
    rate.sent(1, 0.0)
    rate.sent(2, 60.0)
    assert refuse(rate, 3, 120.0, gap_s=60.0) >= 1.0


async def test_a_first_guess_that_is_far_too_low_is_left_behind() -> None:
    server = RateServer(per_s=200, burst=10, latency_s=0.02)
    key = pacer()
    await drive(key, server, 3000)
    before_s = now_s()
    took_s = await drive(key, server, 3000) - before_s
    assert 3000 / took_s >= 0.5 * 200


async def test_a_key_that_was_idle_for_a_day_still_works() -> None:
    server = RateServer(per_s=10, burst=10)
    key = pacer()
    await drive(key, server, 30)
    await asyncio.sleep(86_400)
    await drive(key, server, 30)
    assert server.inside_window == 0
