"""What a pacer does about a request limit that nobody stated: start carefully, learn from refusals.

Parts of the pacer; a pair meets them on the way to its provider. `CarefulStart` spaces the first
requests so that a refusal is heard before many more are under way. `LearnedRate` turns refusals
into a rate and lets it grow again. Both are arithmetic on times passed in; neither waits, owns a
timer, or knows HTTP.
"""

import math

from dikast.engine.buckets import BATCH_S, TIMER_MIN_S

# The first request goes alone, so that its headers can speak before a burst does; so long at most.
ALONE_S = 2.0

# The pace of the careful start while few calls wait: one every 51 ms if the one before has been
# answered, every 60 ms otherwise. So a refusal that takes up to 50 ms finds nothing else under way.
GAP_S = 0.051
GAP_OPEN_S = 0.060

# With more calls than this waiting, the start is brisk: the gap is the first answer's latency / 50.
# A large job loses about one and a half round trips, and a refused burst costs it little.
FEW_WAITING = 128
BRISK_SHARE = 1 / 50
BRISK_GAP_MIN_S = 0.004

# The gap is quartered after so many requests, and so many seconds. At the careful pace a key of ten
# requests a second with a burst of ten refuses one of the first 24.
SENDS_A_LEVEL = 28
LEVEL_FACTOR = 4.0
LEVEL_MIN_S = 0.03
GAP_END_S = 0.0002

# How a first refusal is read. After few requests there was no burst, and the rate is somewhere
# below the pace: half of the careful pace is taken. After more, the burst is taken for one second's
# worth, as token buckets commonly are.
FEW_SENT = 8
GUESS_PER_S = 0.5 / GAP_S
GAP_SHARE = 0.85
BURST_S = 1.0

# A learned rate keeps this share of what was admitted.
KEEP_SHARE = 0.98
CREDIT_SHARE = 0.7
FLOOR_PER_S = 1.0

# After a refusal the rate is held, then it grows, each second by more. When a growing rate is
# refused, the rate before the growth is proven, and the next hold is twice as long: probing costs
# a pause each time.
HOLD_S = 15.0
HOLD_MAX_S = 240.0
GROWTH_FIRST = 0.02
GROWTH_MAX = 0.25
FAR_GROWN = 1.5

# Rates are measured over at most about so long, to speak of the present.
WINDOW_S = 20.0


class CarefulStart:
    """Spaces the first requests of a key whose limit is unknown; `over` when the gap is nothing."""

    __slots__ = (
        "_answered",
        "_first_s",
        "_gap_s",
        "_last_s",
        "_latency_s",
        "_level_s",
        "_level_sends",
        "over",
    )

    def __init__(self) -> None:
        self.over = False
        self._first_s: float | None = None
        self._last_s = -math.inf
        self._answered = False
        self._latency_s: float | None = None
        self._gap_s = 1.0
        self._level_sends = 0
        self._level_s = 0.0

    def wait_s(self, now_s: float, in_flight: int, demand: int) -> float:
        """Seconds until the next request may go; 0.0 for now.

        Args:
            now_s: the present.
            in_flight: requests under way.
            demand: requests under way and waiting.
        """
        if self._first_s is None:
            return 0.0
        if not self._answered and (alone_s := self._first_s + ALONE_S - now_s) > 0:
            return alone_s
        left_s = self._last_s + self._gap(in_flight, demand) - now_s
        return max(left_s, TIMER_MIN_S) if left_s > 1e-9 else 0.0

    def sent(self, now_s: float, in_flight: int, demand: int) -> None:
        """A request leaves now; `in_flight` and `demand` do not yet count it as under way."""
        if self._first_s is None:
            self._first_s = self._last_s = self._level_s = now_s
            return
        # Up to one batch of permits is made up for when the timer is coarser than the gap.
        gap_s = self._gap(in_flight, demand)
        self._last_s = max(self._last_s + gap_s, now_s - min(BATCH_S, 2 * TIMER_MIN_S + gap_s))
        if gap_s > BATCH_S:
            self._last_s = now_s
        self._level_sends += 1
        if (
            self._answered
            and self._level_sends >= SENDS_A_LEVEL
            and now_s >= self._level_s + LEVEL_MIN_S
        ):
            self._level_sends = 0
            self._level_s = now_s
            self._gap_s /= LEVEL_FACTOR
            self.over = gap_s / LEVEL_FACTOR < GAP_END_S

    def ended(self, latency_s: float | None) -> None:
        """A request came back; `latency_s` is given if it was answered."""
        self._answered = True
        if latency_s is not None and self._latency_s is None:
            self._latency_s = latency_s

    def _gap(self, in_flight: int, demand: int) -> float:
        if demand > FEW_WAITING and self._latency_s is not None:
            brisk_s = min(max(self._latency_s * BRISK_SHARE, BRISK_GAP_MIN_S), GAP_OPEN_S)
            return brisk_s * self._gap_s
        return (GAP_OPEN_S if in_flight else GAP_S) * self._gap_s

    def __repr__(self) -> str:
        return "CarefulStart(over)" if self.over else f"CarefulStart(gap x {self._gap_s})"


class LearnedRate:
    """A request rate learned from refusals; `per_s` is None while there was none.

    Between two refusals n requests were admitted: what the bucket held plus what flowed in. So the
    rate is at least n over the whole cycle, pause included, and at most n over the time in which
    requests were sent; the truth lies between, and both ends come nearer with each cycle.
    Increase and decrease follow Chiu and Jain (1989) in spirit, on a rate instead of a window.
    """

    __slots__ = (
        "_begun",
        "_cycle_number",
        "_cycle_s",
        "_grown",
        "_growth",
        "_hold_s",
        "_mark",
        "_next_growth_s",
        "_pause_s",
        "_proven",
        "credit",
        "per_s",
    )

    def __init__(self) -> None:
        self.per_s: float | None = None
        self.credit = 0
        self._begun = False
        self._cycle_number: int | None = None
        self._cycle_s = 0.0
        self._pause_s = BURST_S
        self._mark = (0, 0.0)
        self._hold_s = HOLD_S
        self._next_growth_s = math.inf
        self._growth = GROWTH_FIRST
        self._grown = False
        self._proven = 0.0

    def sent(self, number: int, now_s: float) -> None:
        """Request `number` leaves now."""
        if self._cycle_number is None:
            self._cycle_number, self._cycle_s = number, now_s
            self._mark = (number, now_s)
        elif not self._begun:
            self._begun = True
            if now_s - self._cycle_s > GAP_S / 2:
                # The very first went alone; the bucket was full again when the second left.
                self._cycle_number, self._cycle_s = number, now_s
        elif now_s - self._mark[1] > WINDOW_S:
            self._cycle_number, self._cycle_s = self._mark
            self._mark = (number, now_s)

    def refused(
        self, number: int, sent_s: float, gap_s: float, until_s: float, now_s: float, stated: float
    ) -> float:
        """Learn from a refusal and return the new rate, in requests a second.

        Args:
            number: of the refused request.
            sent_s: when it was sent.
            gap_s: seconds between it and the one sent before it.
            until_s: when the pause ends.
            now_s: the present.
            stated: requests a second that somebody stated, or infinity.
        """
        count = 0 if self._cycle_number is None else max(0, number - self._cycle_number)
        took_s = max(sent_s - self._cycle_s, 1e-3)
        old = self.per_s
        self.credit = 0
        if old is None:
            rate = min(self._first(count, took_s, gap_s), stated)
            # The bucket fills up in the pause; most of what it is taken to hold may go early.
            self.credit = int(rate * BURST_S * CREDIT_SHARE) if count >= FEW_SENT else 0
        else:
            flowed_s = took_s + min(self._pause_s, BURST_S)
            rate = KEEP_SHARE * max(count / flowed_s, count / took_s / 2)
            proven = self._proven
            if old > FAR_GROWN * proven:  # the truth lies somewhere between the two
                proven = math.sqrt(proven * old)
            rate = min(max(rate, old / 2, proven), old * KEEP_SHARE)
        confirmed = self._grown or (old is not None and rate > old * 0.7)
        self._hold_s = min(self._hold_s * 2, HOLD_MAX_S) if confirmed else HOLD_S
        self._next_growth_s = until_s + self._hold_s
        self._growth, self._grown, self._proven = GROWTH_FIRST, False, 0.0
        self._cycle_number = None
        self._pause_s = until_s - now_s
        self.per_s = rate
        return rate

    def grow(self, now_s: float) -> bool:
        """Raise the rate if the time has come; call it only when the rate is what holds back."""
        if self.per_s is None or now_s < self._next_growth_s:
            return False
        if not self._grown:
            # It was used for a whole hold and never refused.
            self._grown, self._proven = True, self.per_s
        self.per_s *= 1.0 + self._growth
        self._growth = min(self._growth * 2, GROWTH_MAX)
        self._next_growth_s = now_s + 1.0
        return True

    @staticmethod
    def _first(count: int, took_s: float, gap_s: float) -> float:
        if count == 0:
            return GUESS_PER_S
        if count < FEW_SENT:
            return max(min(GUESS_PER_S, GAP_SHARE / max(gap_s, 1e-3)), FLOOR_PER_S)
        return max(KEEP_SHARE * count / (took_s + BURST_S), FLOOR_PER_S)

    def __repr__(self) -> str:
        return "LearnedRate(none)" if self.per_s is None else f"LearnedRate({self.per_s:.2f} a s)"
