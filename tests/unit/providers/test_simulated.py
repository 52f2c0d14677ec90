"""The in-process simulated provider: labelled, seeded, with latency, faults and a limit."""

import asyncio

import pytest

from dikast.engine.clock import ManualClock, SystemClock
from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Params
from dikast.engine.ports import Reply
from dikast.providers.simulated import SimulatedProvider
from dikast.providers.simulation import RateLimit, SimulatedSettings
from dikast.providers.truth import TruthTable
from tests.unit.providers.calls import call_of, pair_of


def provider_of(**settings: object) -> SimulatedProvider:
    return SimulatedProvider(SimulatedSettings(**settings), SystemClock())  # type: ignore[arg-type]


async def outcome(provider: SimulatedProvider, number: int) -> Reply | ProviderError:
    try:
        return await provider.complete(call_of(pair_of(number)))
    except ProviderError as error:
        return error


async def test_everything_served_is_marked_as_simulated() -> None:
    provider = provider_of()
    assert provider.simulated
    reply = await provider.complete(call_of(pair_of(1), model="m"))
    assert reply.completion.served_by == "simulated:m"


async def test_answers_do_not_depend_on_concurrency_or_order() -> None:
    settings = {"latency_s": 1.0, "latency_spread": 0.9, "latency_kind": "uniform"}
    calls = [call_of(pair_of(number)) for number in range(60)]
    one, many = provider_of(**settings), provider_of(**settings)
    in_turn = [(await one.complete(call)).completion for call in calls]
    together = await asyncio.gather(*(many.complete(call) for call in reversed(calls)))
    assert in_turn == [reply.completion for reply in reversed(together)]


async def test_latency_passes_on_the_clock() -> None:
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    provider = provider_of(latency_s=3.0)
    await asyncio.gather(*(provider.complete(call_of(pair_of(n))) for n in range(5)))
    assert loop.time() - start_s == pytest.approx(3)
    assert provider.stats().peak_in_flight == 5
    assert provider.stats().in_flight == 0


async def test_samples_are_drawn_anew() -> None:
    provider = provider_of(accuracy=0.5, consistency=0)
    texts = [
        (await provider.complete(call_of(pair_of(1), sample=sample))).completion.text[-5:]
        for sample in range(40)
    ]
    assert set(texts) == {"[[A]]", "[[B]]"}


async def test_the_truth_is_known_in_both_orders() -> None:
    pairs = [pair_of(number, "A") for number in range(20)]
    settings = SimulatedSettings(accuracy=1)
    provider = SimulatedProvider(settings, ManualClock(), TruthTable.from_pairs(pairs))
    for pair in pairs:
        ab = await provider.complete(call_of(pair, order="ab"))
        ba = await provider.complete(call_of(pair, order="ba"))
        assert ab.completion.text.endswith("[[A]]")
        assert ba.completion.text.endswith("[[B]]")


async def test_log_probabilities_come_when_asked_for() -> None:
    provider = provider_of()
    reply = await provider.complete(call_of(pair_of(1), params=Params(logprobs=True)))
    assert reply.completion.logprobs
    assert (await provider.complete(call_of(pair_of(1)))).completion.logprobs is None


@pytest.mark.parametrize(
    ("field", "kind", "status"),
    [
        ("error_rate", "transient", 500),
        ("reset_rate", "transient", None),
        ("error_200_rate", "transient", 200),
        ("hang_rate", "timeout", None),
        ("refuse_rate", "refused", 200),
    ],
)
async def test_each_fault_has_the_kind_a_real_one_would_have(
    field: str, kind: str, status: int | None
) -> None:
    error = await outcome(provider_of(**{field: 1.0}), 1)
    assert isinstance(error, ProviderError)
    assert (error.kind, error.status) == (kind, status)


async def test_a_failed_call_may_succeed_when_it_is_tried_again() -> None:
    provider = provider_of(error_rate=0.5)
    first = [await outcome(provider, number) for number in range(200)]
    failed = [number for number, each in enumerate(first) if isinstance(each, ProviderError)]
    assert len(failed) == pytest.approx(100, abs=30)
    again = [await outcome(provider, number) for number in failed]
    assert 0 < sum(isinstance(each, ProviderError) for each in again) < len(failed)
    # What fails and when is decided by the seed.
    twin = provider_of(error_rate=0.5)
    second = [await outcome(twin, number) for number in range(200)]
    assert [type(each) for each in first] == [type(each) for each in second]


async def test_a_limit_refuses_everything_until_its_window_is_over() -> None:
    clock = ManualClock()
    limit = RateLimit(requests_per_min=60, burst=2, retry_after_s=5, headers=True)
    provider = SimulatedProvider(SimulatedSettings(rate_limit=limit), clock)
    replies = [await outcome(provider, number) for number in range(4)]
    assert isinstance(replies[0], Reply)
    assert replies[0].rate is not None
    assert (replies[0].rate.requests_limit, replies[0].rate.requests_remaining) == (60, 1)
    refused = replies[2]
    assert isinstance(refused, ProviderError)
    assert (refused.kind, refused.status, refused.retry_after_s) == ("rate", 429, 5)
    clock.now_s = 4.0  # the bucket has tokens again, but the window is not over
    early = await outcome(provider, 5)
    assert isinstance(early, ProviderError)
    assert early.retry_after_s == pytest.approx(1)
    clock.now_s = 5.0
    assert isinstance(await outcome(provider, 6), Reply)
    stats = provider.stats()
    assert (stats.requests, stats.refused, stats.in_window) == (6, 3, 2)
    assert (stats.first_s, stats.last_s) == (0, 5)


async def test_pacing_at_the_stated_rate_is_never_refused() -> None:
    clock = ManualClock()
    limit = RateLimit(requests_per_min=600, burst=1)
    provider = SimulatedProvider(SimulatedSettings(rate_limit=limit), clock)
    for number in range(100):
        assert isinstance(await outcome(provider, number), Reply)
        clock.now_s += 0.1
    assert provider.stats().refused == 0


async def test_a_cancelled_call_is_no_longer_in_flight() -> None:
    provider = provider_of(latency_s=100.0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await provider.complete(call_of(pair_of(1)))
    assert provider.stats().in_flight == 0


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"accuracy": 1.1}, "accuracy"),
        ({"position_bias": 0.6}, "position_bias"),
        ({"latency_s": -1.0}, "latency_s"),
        ({"latency_s": float("nan")}, "latency_s"),
        ({"garbage_rate": 0.6, "refuse_rate": 0.6}, "garbage_rate"),
        ({"error_rate": 0.6, "hang_rate": 0.6}, "error_rate"),
        ({"rate_limit": RateLimit(requests_per_min=0)}, "rate_limit"),
    ],
)
def test_an_impossible_character_is_refused_by_name(
    settings: dict[str, object], field: str
) -> None:
    with pytest.raises(ConfigError, match=field):
        provider_of(**settings)
