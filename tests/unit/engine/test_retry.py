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
    result = after(error, attempt=5)
    assert result == Again(wait_s=0.0, spent=False, state=RetryState(attempt=5))


def test_a_429_is_given_up_after_the_time_for_it() -> None:
    assert after(ProviderError("rate", "429"), elapsed_s=3600) == GiveUp(attempts=1)
    assert after(ProviderError("rate", "429", retry_after_s=7200)) == GiveUp(attempts=1)


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
