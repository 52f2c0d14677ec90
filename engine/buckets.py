"""The gates of a pacer, each a small synchronous object: may one more request go, and if not, when?

Used by `engine/pacing.py` only. None of them waits, none of them owns a timer.
"""

from aiolimiter import AsyncLimiter

from dikast.engine.ports import Clock

# Pacing exactly at a limit meets 429s whenever two clocks disagree by a hair.
HEADROOM = 0.98
TICK_S = 0.005
WINDOW_MIN_S = 0.010
TOKEN_WINDOW_S = 6.0


class RequestGate:
    """Requests per minute through aiolimiter, with unit amounts over one short window.

    The window is one request's interval (or 10 ms where the interval is shorter), because
    aiolimiter admits a full bucket at once and then the leak besides: with a bucket of a minute's
    requests the first minute would see twice the limit.
    """

    def __init__(self, requests_per_min: float, clock: Clock) -> None:
        self.requests_per_min = requests_per_min
        self._clock = clock
        per_s = requests_per_min * HEADROOM / 60.0
        self._interval_s = 1.0 / per_s
        window_s = max(self._interval_s, WINDOW_MIN_S)
        # The tiny surplus keeps a bucket that leaked for exactly one interval from missing by a
        # rounding error.
        self._limiter = AsyncLimiter(per_s * window_s + 1e-9, window_s)
        self._last_s = float("-inf")

    def wait_s(self) -> float:
        """Seconds until it is worth asking again; 0 means that a request may go now."""
        if self._limiter.has_capacity(1):
            return 0.0
        if self._interval_s < WINDOW_MIN_S:
            return TICK_S
        return max(0.001, self._last_s + self._interval_s - self._clock.now())

    def take(self) -> None:
        """Book one request; only right after `wait_s` said 0."""
        self._last_s = self._clock.now()
        grant = self._limiter.acquire()
        try:
            grant.send(None)  # there is capacity, so it ends without ever suspending
        except StopIteration:
            return
        grant.close()
        raise AssertionError("the request gate was asked to admit beyond its capacity")


class TokenGate:
    """Tokens per minute: reserve an estimate, settle with the usage; may go into debt.

    The bucket holds six seconds' worth. A request larger than the bucket waits until it is full,
    then goes alone and leaves a debt that those behind it wait off.
    """

    def __init__(self, tokens_per_min: float, clock: Clock) -> None:
        self.tokens_per_min = tokens_per_min
        self._clock = clock
        self._per_s = tokens_per_min * HEADROOM / 60.0
        self._capacity = self._per_s * TOKEN_WINDOW_S
        self._level = self._capacity
        self._last_s = clock.now()

    def _refill(self) -> None:
        now_s = self._clock.now()
        self._level = min(self._capacity, self._level + (now_s - self._last_s) * self._per_s)
        self._last_s = now_s

    def wait_s(self, tokens: int) -> float:
        """Seconds until `tokens` may go; 0 means now."""
        self._refill()
        missing = min(float(tokens), self._capacity) - self._level
        return missing / self._per_s if missing > 1e-6 else 0.0

    def take(self, tokens: int) -> None:
        """Reserve."""
        self._level -= tokens

    def settle(self, reserved: int, used: int) -> None:
        """Replace the estimate by what was used."""
        self._level = min(self._capacity, self._level + reserved - used)


class LearnedRate:
    """A request rate that nobody stated: learned from the first 429, then kept just under it.

    Additive-increase/multiplicative-decrease in spirit (Chiu and Jain, 1989), on a rate: after a
    429 the rate is what was really admitted lately, and it grows again while no 429 comes,
    slowly at first, faster when the last cut lies far back.
    """

    GROWTH_EARLY = 1.02  # a second, in the first EARLY_S seconds after a cut
    GROWTH_GUESSED = 1.50  # a second, after that, while the rate is the first guess
    GROWTH_MEASURED = 1.20  # a second, after that, once a second episode has measured it
    EARLY_S = 8.5
    PER_S_MIN = 0.2
    PER_S_MAX = 100_000.0
    STEP_MAX_S = 10.0  # an idle key does not grow for hours

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._admitted = 0
        self._since_s = clock.now()
        self.per_s: float | None = None
        self._late = self.GROWTH_GUESSED
        self._burst = 1.0
        self._level = 0.0
        self._last_s = self._since_s

    def succeeded(self) -> None:
        """The provider took a request."""
        self._admitted += 1

    def cut(self, pause_s: float) -> None:
        """A 429 episode begins, and nothing is sent for `pause_s`."""
        now_s = self._clock.now()
        if self.per_s is None:
            # What was taken so far is the provider's burst and the leak since the start. Token
            # buckets commonly hold about one second's worth, so that is the first guess; where
            # it is wrong, the next episode measures.
            self._burst = max(1.0, self._admitted * 0.9)
            self.per_s = max(self.PER_S_MIN, float(self._admitted))
        else:
            self._late = self.GROWTH_MEASURED
            span_s = max(now_s - self._since_s, 0.5)
            measured = max(0.0, self._admitted - self._burst) / span_s
            self.per_s = max(
                self.PER_S_MIN, min(self.per_s * 0.85, measured * 0.97 or self.per_s / 2)
            )
        self._admitted = 0
        self._since_s = now_s + pause_s
        self._last_s = now_s + pause_s
        # The provider's bucket fills up during the pause, as far as we know its size.
        self._level = min(self._burst, max(1.0, self.per_s * pause_s))

    def _refill(self) -> None:
        per_s = self.per_s
        if per_s is None:
            return
        now_s = self._clock.now()
        elapsed_s = now_s - self._last_s
        if elapsed_s <= 0:
            return
        self._last_s = now_s
        early = now_s - self._since_s < self.EARLY_S
        growth = self.GROWTH_EARLY if early else self._late
        per_s = min(self.PER_S_MAX, per_s * growth ** min(elapsed_s, self.STEP_MAX_S))
        self.per_s = per_s
        self._level = min(self._burst, self._level + elapsed_s * per_s)

    def wait_s(self) -> float:
        """Seconds until a request may go; 0 means now."""
        if self.per_s is None:
            return 0.0
        self._refill()
        missing = 1.0 - self._level
        return max(0.001, missing / self.per_s) if missing > 1e-6 else 0.0

    def take(self) -> None:
        """Book one request."""
        if self.per_s is not None:
            self._level -= 1.0
