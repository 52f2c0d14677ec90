"""What happens to a simulated request before the judge sees it: limits, faults, counts.

Shared by the in-process provider and the simulate server. Times are passed in; nothing waits here.
"""

from typing import Literal

import msgspec

from dikast.engine.model import Record
from dikast.providers.simulation import RateLimit, SimulatedSettings, fault_draw

Fault = Literal["error", "hang", "reset", "error_200"]
_CALLS_MAX = 65_536


class TrafficStats(Record, frozen=True):
    """What arrived so far. Times are the clock's seconds; `in_window` counts the requests that
    came although `Retry-After` had asked to wait."""

    requests: int = 0
    refused: int = 0
    in_window: int = 0
    unauthorized: int = 0
    faults: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    in_flight: int = 0
    peak_in_flight: int = 0
    first_s: float | None = None
    last_s: float | None = None


class RateGate:
    """A token bucket that, once it refuses, refuses everything for a while.

    Args:
        limit: rate, burst and length of the refusal.
        now_s: the present.
    """

    def __init__(self, limit: RateLimit, now_s: float) -> None:
        self._limit = limit
        self._level = float(limit.burst)
        self._at_s = now_s
        self._closed_until_s = float("-inf")

    def __repr__(self) -> str:
        return f"RateGate({self._level:.1f} of {self._limit.burst})"

    def admit(self, now_s: float) -> tuple[float | None, bool]:
        """Seconds to wait (None: admitted), and whether the request came inside a window."""
        if now_s < self._closed_until_s:
            return self._closed_until_s - now_s, True
        self._flow(now_s)
        if self._level >= 1:
            self._level -= 1
            return None, False
        self._closed_until_s = now_s + self._limit.retry_after_s
        return self._limit.retry_after_s, False

    def remaining(self, now_s: float) -> tuple[int, float]:
        """Whole requests left, and the seconds until the bucket is full."""
        self._flow(now_s)
        missing = self._limit.burst - self._level
        return int(self._level), missing * 60 / self._limit.requests_per_min

    def _flow(self, now_s: float) -> None:
        # A hair is added so that a request at exactly the right moment is not lost to rounding.
        gained = (now_s - self._at_s) * self._limit.requests_per_min / 60 + 1e-9
        self._level = min(float(self._limit.burst), self._level + gained)
        self._at_s = now_s


class Traffic:
    """Counts requests and decides which of them come to grief.

    Args:
        settings: rates and limit.
        now_s: the present, in the clock's seconds.
    """

    def __init__(self, settings: SimulatedSettings, now_s: float) -> None:
        self._settings = settings
        self.gate = RateGate(settings.rate_limit, now_s) if settings.rate_limit else None
        self._attempts: dict[bytes, int] = {}
        self._requests = self._refused = self._in_window = self._unauthorized = 0
        self._in_flight = self._peak = 0
        self._faults: dict[str, int] = {}
        self._first_s: float | None = None
        self._last_s: float | None = None
        self._total_rate = (
            settings.error_rate + settings.hang_rate + settings.reset_rate + settings.error_200_rate
        )

    def __repr__(self) -> str:
        return f"Traffic({self._requests} requests, {self._in_flight} in flight)"

    def arrive(self, now_s: float) -> float | None:
        """Count a request; seconds to wait when it is refused. End it with `leave`."""
        self._requests += 1
        if self._first_s is None:
            self._first_s = now_s
        self._last_s = now_s
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)
        if self.gate is None:
            return None
        wait_s, inside = self.gate.admit(now_s)
        self._refused += wait_s is not None
        self._in_window += inside
        return wait_s

    def leave(self) -> None:
        """A request that arrived is over."""
        self._in_flight -= 1

    def reject(self) -> None:
        """Count a request with a wrong key."""
        self._unauthorized += 1

    def fault(self, digest: bytes) -> Fault | None:
        """The fault that befalls the next attempt of a call, if any.

        The attempt number is remembered only for calls that failed, and for so many at most.
        """
        if not self._total_rate:
            return None
        attempt = self._attempts.pop(digest, 0)
        fault = self._draw(fault_draw(self._settings.seed, digest, attempt))
        if fault is not None:
            if len(self._attempts) >= _CALLS_MAX:
                del self._attempts[next(iter(self._attempts))]
            self._attempts[digest] = attempt + 1
            self._faults[fault] = self._faults.get(fault, 0) + 1
        return fault

    def stats(self) -> TrafficStats:
        """The counts so far."""
        return TrafficStats(
            requests=self._requests,
            refused=self._refused,
            in_window=self._in_window,
            unauthorized=self._unauthorized,
            faults=dict(self._faults),
            in_flight=self._in_flight,
            peak_in_flight=self._peak,
            first_s=self._first_s,
            last_s=self._last_s,
        )

    def _draw(self, uniform: float) -> Fault | None:
        settings = self._settings
        rates: tuple[tuple[Fault, float], ...] = (
            ("error", settings.error_rate),
            ("hang", settings.hang_rate),
            ("reset", settings.reset_rate),
            ("error_200", settings.error_200_rate),
        )
        for name, rate in rates:
            if uniform < rate:
                return name
            uniform -= rate
        return None
