"""Retry decisions, without a loop or a clock."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dikast.engine.errors import ErrorKind, ProviderError
from dikast.engine.retry import Again, GiveUp, RetryPolicy, RetryState, backoff_s, decide

POLICY = RetryPolicy()


def after(error: ProviderError, attempt: int = 1, elapsed_s: float = 0.0) -> Again | GiveUp:
    return decide(POLICY, RetryState(attempt=attempt), error, elapsed_s, random.Random(0))


@given(attempt=st.integers(1, 10_000), seed=st.integers())
def test_jitter_stays_between_zero_and_the_cap(attempt: int, seed: int) -> None:
    wait_s = backoff_s(POLICY, attempt, random.Random(seed))
    assert 0.0 <= wait_s <= min(POLICY.cap_s, POLICY.base_s * 2.0 ** min(attempt - 1, 60))


def test_a_transient_error_spends_attempts_until_they_are_used_up() -> None:
    error = ProviderError("transient", "503")
    assert isinstance(first := after(error), Again)
    assert first.spent
    assert first.state.attempt == 2
    assert after(error, attempt=5) == GiveUp(attempts=5)


def test_a_429_spends_no_attempt_however_often_it_comes() -> None:
    error = ProviderError("rate", "429", retry_after_s=2)
    state = RetryState(attempt=5)
    for turn in range(1000):
        result = decide(POLICY, state, error, 3.0 * turn, random.Random(0))
        assert isinstance(result, Again), turn
        assert (result.wait_s, result.spent, result.state.attempt) == (0.0, False, 5)
        state = result.state


def test_a_429_is_given_up_an_hour_after_the_first_one_and_not_after_waiting_for_capacity() -> None:
    error = ProviderError("rate", "429")
    first = after(error, elapsed_s=5000)  # it stood in the queue of a slow key until now
    assert isinstance(first, Again)
    within = decide(POLICY, first.state, error, 8600, random.Random(0))
    assert isinstance(within, Again)
    assert decide(POLICY, within.state, error, 8601, random.Random(0)) == GiveUp(attempts=1)
    assert after(ProviderError("rate", "429", retry_after_s=7200)) == GiveUp(attempts=1)


def test_time_spent_waiting_after_a_429_is_not_counted_against_a_call_that_fails_later() -> None:
    limited = after(ProviderError("rate", "429"), elapsed_s=10)
    assert isinstance(limited, Again)
    broken = ProviderError("transient", "503")
    result = decide(POLICY, limited.state, broken, 1500, random.Random(0))
    assert isinstance(result, Again)
    assert result.state.excused_s == 1490
    # 10 s of its own so far; from here on every second counts again.
    late = decide(POLICY, result.state, broken, 1490 + 601, random.Random(0))
    assert late == GiveUp(attempts=2)


def test_a_spent_attempt_ends_the_row_of_dead_connections() -> None:
    dead = ProviderError("transient", "closed", reused_connection=True)
    state = RetryState(reused_in_a_row=3)
    spent = decide(POLICY, state, dead, 0.0, random.Random(0))
    assert isinstance(spent, Again)
    free = decide(POLICY, spent.state, dead, 0.0, random.Random(0))
    assert isinstance(free, Again)
    assert (spent.spent, free.spent) == (True, False)


def test_the_schedule_of_a_seed_is_exact() -> None:
    rng, twin = random.Random(7), random.Random(7)
    waits = [backoff_s(POLICY, attempt, rng) for attempt in range(1, 10)]
    ceilings = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert waits == [twin.uniform(0.0, ceiling_s) for ceiling_s in ceilings]


def test_a_dead_pooled_connection_is_retried_at_once_and_for_free_but_not_for_ever() -> None:
    error = ProviderError("transient", "closed", reused_connection=True)
    state = RetryState()
    for turn in range(3):
        result = decide(POLICY, state, error, 0.0, random.Random(0))
        assert isinstance(result, Again)
        assert (result.wait_s, result.spent, result.state.attempt) == (0.0, False, 1), turn
        state = result.state
    result = decide(POLICY, state, error, 0.0, random.Random(0))
    assert isinstance(result, Again)
    assert result.spent


def test_retry_after_wins_when_it_is_longer_than_the_back_off() -> None:
    result = after(ProviderError("transient", "503", retry_after_s=45))
    assert isinstance(result, Again)
    assert result.wait_s == 45


def test_a_wait_beyond_the_total_time_is_not_begun() -> None:
    late = after(ProviderError("transient", "503", retry_after_s=45), elapsed_s=590)
    assert late == GiveUp(attempts=1)


@pytest.mark.parametrize(
    "kind", ["quota", "refused", "bad_request", "auth", "oversized", "missing", "too_large"]
)
def test_errors_that_would_repeat_are_not_retried(kind: ErrorKind) -> None:
    assert after(ProviderError(kind, "no")) == GiveUp(attempts=1)
