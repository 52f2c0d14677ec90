"""The two rates of a key: requests a minute (aiolimiter, unit amounts) and tokens a minute (FIFO).

Parts of the pacer; a pair meets them on the way to its provider. Both only answer "how long
still?" and "taken": the one queue, and the one timer, are the pacer's. Neither knows the other.
"""

import math

from aiolimiter import AsyncLimiter

# The pace stays this share below a limit, so that clocks which differ a little, and the one request
# more that fits into a window whose both ends count, do not lead to a refusal.
PACE_SHARE = 0.98

# Above fifty requests a second permits are released in batches on this beat: a timer for each would
# cost more than the call (and uvloop's timers have a grain of 1 ms). The window is twice as long,
# so that a beat that comes late loses nothing.
BATCH_S = 0.01
WINDOW_S = 0.02

# The shortest timer. Waits that rounding makes shorter are rounded up to it.
TIMER_MIN_S = 0.001

# Seconds of tokens that may be saved up while nothing is sent. A longer burst would be nearer to
# what providers allow over a minute, but breaks limits that are enforced over shorter windows.
TOKEN_BURST_S = 10.0

# The gap between requests that go before their turn.
CREDIT_GAP_S = 0.051

# A hair of room, so that a permit due exactly now is not lost to rounding.
_HAIR = 1e-6


class RequestGate:
    """Evenly spaced permits: aiolimiter over a window of one request, or of 20 ms if that is more.

    aiolimiter admits a full bucket at once and leaks on top; with the bucket as small as this, any
    window of t seconds admits at most `rate * t + max(1, rate / 50)` requests. It orders waiters
    by amount and arms a timer for each, so no waiter is ever put into it: it is asked, and taken
    from only when it has room.

    Args:
        rate_per_s: requests a second.
        primed: a request was sent just now, so the first permit is due one interval from now.
        credit: so many requests may go before their turn, `CREDIT_GAP_S` apart.
    """

    __slots__ = ("_credit", "_early", "_last_s", "_limiter", "_wait_s", "rate_per_s")

    def __init__(self, rate_per_s: float, *, primed: bool, credit: int = 0) -> None:
        size = max(1.0, rate_per_s * WINDOW_S)
        self.rate_per_s = rate_per_s
        # Scaled by a hair on both sides, the rate stays exact.
        room = size + _HAIR
        self._limiter = AsyncLimiter(room, room / rate_per_s)
        self._wait_s = max(1.0 / rate_per_s, TIMER_MIN_S) if size == 1.0 else BATCH_S
        self._last_s = -math.inf
        self._credit = credit
        self._early = False
        if primed:
            self._pour(int(size))

    def wait_s(self, now_s: float) -> float:
        """Seconds until it is worth asking again; 0.0 when a request may be sent now."""
        self._early = False
        if self._limiter.has_capacity():
            return 0.0
        wait_s = self._wait_s
        if self._credit > 0:
            wait_s = min(wait_s, CREDIT_GAP_S)
            if now_s - self._last_s >= wait_s:
                self._early = True
                return 0.0
        return min(max(self._last_s + wait_s - now_s, TIMER_MIN_S), wait_s)

    def take(self, now_s: float) -> None:
        """Count a request that is sent now; `wait_s` has just returned 0.0."""
        self._last_s = now_s
        if self._early:
            self._credit -= 1
        else:
            self._pour(1)

    def _pour(self, amount: int) -> None:
        # With room in the bucket `acquire` finishes without suspending, so it can be run to its
        # end right here: no task, no future, no waiter.
        acquire = self._limiter.acquire(amount)
        try:
            acquire.send(None)
        except StopIteration:
            return
        acquire.close()
        raise AssertionError("the limiter has no room; ask wait_s first")

    def __repr__(self) -> str:
        return f"RequestGate({self.rate_per_s * 60:.0f} a minute)"


class TokenGate:
    """Tokens a minute, reserved by estimate and settled by use; the level may go below zero.

    A request larger than the whole bucket waits until it is full, goes alone, and leaves a debt
    that those behind it wait out: the rate holds and nobody hangs.

    Args:
        tokens_per_min: the limit.
        now_s: the present; the bucket starts half full.
    """

    __slots__ = ("_at_s", "_level", "_rate", "capacity", "tokens_per_min")

    def __init__(self, tokens_per_min: int, now_s: float) -> None:
        self.tokens_per_min = tokens_per_min
        self._rate = tokens_per_min * PACE_SHARE / 60.0
        self.capacity = max(1.0, tokens_per_min * TOKEN_BURST_S / 60.0)
        self._level = self.capacity / 2
        self._at_s = now_s

    def wait_s(self, tokens: int, now_s: float) -> float:
        """Seconds until `tokens` may be reserved; 0.0 for now."""
        self._flow(now_s)
        missing = min(float(tokens), self.capacity) - self._level
        return max(missing / self._rate, TIMER_MIN_S) if missing > _HAIR else 0.0

    def take(self, tokens: int) -> None:
        """Reserve; `wait_s` has just returned 0.0."""
        self._level -= tokens

    def settle(self, reserved: int, used: int, now_s: float) -> None:
        """Exchange an estimate for what was really used."""
        self._flow(now_s)
        self._level = min(self.capacity, self._level + reserved - used)

    def set_limit(self, tokens_per_min: int, now_s: float) -> None:
        """Change the limit; what is reserved stays reserved."""
        self._flow(now_s)
        self.tokens_per_min = tokens_per_min
        self._rate = tokens_per_min * PACE_SHARE / 60.0
        self.capacity = max(1.0, tokens_per_min * TOKEN_BURST_S / 60.0)
        self._level = min(self._level, self.capacity)

    def at_most(self, tokens: int, now_s: float) -> None:
        """The provider says that so many are left: believe it when it is less."""
        self._flow(now_s)
        self._level = min(self._level, float(tokens))

    def _flow(self, now_s: float) -> None:
        gained = (now_s - self._at_s) * self._rate
        self._level = min(self.capacity, self._level + gained)
        self._at_s = now_s

    def __repr__(self) -> str:
        return f"TokenGate({self._level:.0f} of {self.capacity:.0f})"
