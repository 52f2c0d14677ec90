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
    a failing call is given up. `rate_total_s`: the same for a call that meets nothing but 429.
    """

    attempts_max: int = 5
    base_s: float = 0.5
    cap_s: float = 30.0
    total_s: float = 600.0
    rate_total_s: float = 3600.0


class RetryState(Record, frozen=True):
    """What a call has behind it: the attempt it is on (from 1) and dead connections in a row."""

    attempt: int = 1
    reused_in_a_row: int = 0


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
        elapsed_s: seconds since the call was first asked for.
        rng: draws the jitter.
    """
    if error.kind == "rate":
        too_far = (error.retry_after_s or 0.0) > policy.rate_total_s - elapsed_s
        if too_far or elapsed_s >= policy.rate_total_s:
            return GiveUp(attempts=state.attempt)
        return Again(wait_s=0.0, spent=False, state=RetryState(attempt=state.attempt))
    if error.reused_connection and state.reused_in_a_row < REUSED_IN_A_ROW_MAX:
        again = RetryState(attempt=state.attempt, reused_in_a_row=state.reused_in_a_row + 1)
        return Again(wait_s=0.0, spent=False, state=again)
    if error.kind not in RETRIED or state.attempt >= policy.attempts_max:
        return GiveUp(attempts=state.attempt)
    wait_s = max(backoff_s(policy, state.attempt, rng), error.retry_after_s or 0.0)
    if elapsed_s + wait_s > policy.total_s:
        return GiveUp(attempts=state.attempt)
    return Again(wait_s=wait_s, spent=True, state=RetryState(attempt=state.attempt + 1))


def backoff_s(policy: RetryPolicy, attempt: int, rng: random.Random) -> float:
    """Full jitter after `attempt` attempts, in seconds."""
    # 2**60 seconds is beyond any cap; without the bound a large attempt number would overflow.
    ceiling_s = min(policy.cap_s, policy.base_s * 2.0 ** min(attempt - 1, 60))
    return rng.uniform(0.0, ceiling_s)
