"""Whether a failed call is tried again, and after how long. Pure: no waiting, no clock.

Consulted by the gateway after each failed attempt. A 429 spends no attempt, because the pacer
holds the whole key back and waiting for capacity is not a failure; a connection that was dead
when it was taken from the pool spends none either, because the request was never processed.
"""

import random

from dikast.engine.errors import ProviderError
from dikast.engine.model import Record

RETRIED = frozenset({"transient", "timeout", "malformed"})
REUSED_IN_A_ROW_MAX = 3


class RetryPolicy(Record, frozen=True):
    """Bounds of one call's retries; attempts and time both bind.

    `attempts_max`: attempts that may be spent. `base_s`, `cap_s`: the back-off before attempt
    n + 1 is drawn from [0, min(cap_s, base_s * 2**(n - 1))] seconds ("full jitter"; Brooker,
    "Exponential Backoff And Jitter", AWS Architecture Blog, 2015). `total_s`: seconds after which
    a failing call is given up, waits after 429s excepted. `rate_total_s`: seconds after a call's
    first 429 until which it is asked again, as often as the key admits it.
    """

    attempts_max: int = 5
    base_s: float = 0.5
    cap_s: float = 30.0
    total_s: float = 600.0
    rate_total_s: float = 3600.0


class RetryState(Record, frozen=True):
    """What a call has behind it: the attempt it is on (from 1) and dead connections in a row.

    `rate_first_s` is when its first 429 came, `rate_last_s` when the last failure was one (both
    in seconds since it was asked for); `excused_s` adds up what waiting after 429s took. That
    time is the key's doing, and no part of the call's `total_s`.
    """

    attempt: int = 1
    reused_in_a_row: int = 0
    rate_first_s: float | None = None
    rate_last_s: float | None = None
    excused_s: float = 0.0


class Again(Record, frozen=True):
    """Try again after `wait_s` seconds; `spent` says whether the failure used up an attempt."""

    wait_s: float
    spent: bool
    state: RetryState


class GiveUp(Record, frozen=True):
    """The call failed for good after this many attempts."""

    attempts: int


def decide(
    policy: RetryPolicy,
    state: RetryState,
    error: ProviderError,
    elapsed_s: float,
    rng: random.Random,
) -> Again | GiveUp:
    """What follows a failed attempt.

    Args:
        policy: the bounds.
        state: the call's past.
        error: what went wrong this time.
        elapsed_s: seconds since the call first failed.
        rng: draws the jitter.
    """
    excused_s = state.excused_s
    if state.rate_last_s is not None:
        excused_s += elapsed_s - state.rate_last_s
    if error.kind == "rate":
        return _after_429(policy, state, error.retry_after_s or 0.0, elapsed_s, excused_s)
    if error.reused_connection and state.reused_in_a_row < REUSED_IN_A_ROW_MAX:
        return Again(
            wait_s=0.0,
            spent=False,
            state=RetryState(
                attempt=state.attempt,
                reused_in_a_row=state.reused_in_a_row + 1,
                rate_first_s=state.rate_first_s,
                excused_s=excused_s,
            ),
        )
    if error.kind not in RETRIED or state.attempt >= policy.attempts_max:
        return GiveUp(attempts=state.attempt)
    wait_s = max(backoff_s(policy, state.attempt, rng), error.retry_after_s or 0.0)
    if elapsed_s - excused_s + wait_s > policy.total_s:
        return GiveUp(attempts=state.attempt)
    again = RetryState(
        attempt=state.attempt + 1, rate_first_s=state.rate_first_s, excused_s=excused_s
    )
    return Again(wait_s=wait_s, spent=True, state=again)


def _after_429(
    policy: RetryPolicy, state: RetryState, asked_s: float, elapsed_s: float, excused_s: float
) -> Again | GiveUp:
    """Again at once and for free: the pacer holds the key back. Bounded from the first 429 on."""
    first_s = elapsed_s if state.rate_first_s is None else state.rate_first_s
    if elapsed_s - first_s + asked_s > policy.rate_total_s:
        return GiveUp(attempts=state.attempt)
    again = RetryState(
        attempt=state.attempt, rate_first_s=first_s, rate_last_s=elapsed_s, excused_s=excused_s
    )
    return Again(wait_s=0.0, spent=False, state=again)


def backoff_s(policy: RetryPolicy, attempt: int, rng: random.Random) -> float:
    """Full jitter after `attempt` attempts, in seconds."""
    # 2**60 seconds is beyond any cap; without the bound a large attempt number would overflow.
    ceiling_s = min(policy.cap_s, policy.base_s * 2.0 ** min(attempt - 1, 60))
    return rng.uniform(0.0, ceiling_s)
