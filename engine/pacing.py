"""When a call may be sent. One pacer per provider and key knows all its limits together.

A call comes here from the gateway before each attempt and returns here after it. The gates, in a
fixed order: a pause of the whole key (Retry-After), concurrency, requests, tokens. All of them are
looked at in one synchronous step, `_gate`, and taken in one synchronous step, `_grant`: nothing is
held while waiting for another. Waiters are served by priority (older pairs first), then first
come; only the head is ever looked at, by one timer or by a release. Knows nothing of HTTP, calls
or strategies.
"""

import asyncio
import heapq
import math
import random

from dikast.engine.buckets import PACE_SHARE, TIMER_MIN_S, RequestGate, TokenGate
from dikast.engine.concurrency import AdaptiveLimit
from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.events import Events, KeyPaused, LimitChanged
from dikast.engine.learning import CarefulStart, LearnedRate
from dikast.engine.model import Record
from dikast.engine.ports import Clock, PacerStats, Permit, RateInfo

# Pauses after refusals that do not say how long: doubled each time nothing was answered between.
PAUSE_FIRST_S = 1.0
PAUSE_CAP_S = 60.0

# A pause is longer than asked by up to this share (and this many seconds), never shorter.
JITTER_SHARE = 0.03
JITTER_MAX_S = 1.0
MARGIN_S = 0.005

# A stated reset shorter than this is left to the even pace; the answer that told it is as old.
RESET_MIN_S = 1.0
# No bucket of a minute takes longer to fill: such a "limit" counts over a longer time (a day).
MINUTE_RESET_MAX_S = 90.0

# In flight, a rate needs rate times latency; so many times that are left to it after a cut.
NEEDED_SHARE = 1.5

# Share by which each answer moves the estimate of the latency.
LATENCY_WEIGHT = 0.1


class Limits(Record, frozen=True):
    """What is known of a provider's key. A rate that is None is learned while running."""

    requests_per_min: int | None = None
    """Requests per minute; absent: learned from headers and from refusals."""
    tokens_per_min: int | None = None
    """Tokens per minute, input and output together; absent: learned from headers."""
    concurrency_max: int = 512
    """Requests in flight at most."""
    concurrency_start: int | None = None
    """Requests in flight at first, doubled each round trip; absent: a careful, spaced start for a
    key without `requests_per_min`, and `concurrency_max` at once for a key with it."""
    share: int = 1
    """This worker is one of so many on the key and keeps to its part of every limit, also of one
    that headers tell."""

    def part(self) -> "Limits":
        """The limits of this worker alone."""
        if self.share == 1:
            return self
        return Limits(
            requests_per_min=_part(self.requests_per_min, self.share),
            tokens_per_min=_part(self.tokens_per_min, self.share),
            concurrency_max=max(1, self.concurrency_max // self.share),
            concurrency_start=_part(self.concurrency_start, self.share),
            share=self.share,
        )


class Leave(Permit):
    """A permit: the tokens reserved, and what is needed to learn from how the request goes."""

    __slots__ = ("gap_s", "number", "sent_s", "tokens")

    def __init__(self, tokens: int, number: int, sent_s: float, gap_s: float) -> None:
        self.tokens = tokens
        self.number = number
        self.sent_s = sent_s
        self.gap_s = gap_s


_Waiter = tuple[int, int, int, "asyncio.Future[Leave]"]


class KeyPacer:
    """Implements `ports.Pacer`; see the module.

    Args:
        name: of the key, shown in progress, events and messages.
        limits: what is known of the key.
        clock: time; must run with the event loop's clock.
        rng: draws the jitter of pauses.
        events: where changed limits and pauses are announced.

    Raises:
        ConfigError: a limit is below 1.
    """

    def __init__(
        self, name: str, limits: Limits, clock: Clock, rng: random.Random, events: Events
    ) -> None:
        _check(name, limits)
        limits = limits.part()
        self._share = limits.share
        self.name = name
        self._clock = clock
        self._rng = rng
        self._events = events
        start = limits.concurrency_start
        self._concurrency = AdaptiveLimit(start or limits.concurrency_max, limits.concurrency_max)
        self._start: CarefulStart | None = None
        if limits.requests_per_min is None and start is None:
            self._start = CarefulStart()
        self._learned = LearnedRate()
        self._stated_per_min = limits.requests_per_min
        self._requests: RequestGate | None = None
        self._paced = limits.requests_per_min is None  # the gate needs a running loop
        self._tokens_per_min = limits.tokens_per_min
        self._tokens: TokenGate | None = None
        self._tokens_largest = math.inf
        self._in_flight = 0
        self._sent = 0
        self._last_sent_s = -math.inf
        self._latency_s: float | None = None
        self._paused_until_s = -math.inf
        self._unanswered_pauses = 0
        self._left: tuple[int, float] | None = None  # requests left until that time
        self._tokens_until_s = -math.inf
        self._headers_number = 0
        self._waiters: list[_Waiter] = []
        self._sequence = 0
        self._cancelled = 0
        self._timer: asyncio.Handle | None = None
        self._timer_at_s = math.inf  # uvloop's handles do not all know their time
        self._why = "concurrency"

    # ------------------------------------------------------------------ asking for leave

    async def acquire(self, tokens: int, priority: int) -> Leave:
        """Wait for leave to send. Source: `ports.Pacer.acquire`.

        Raises:
            ProviderError: kind "oversized": more tokens than the provider's whole minute.
        """
        if tokens > self._tokens_largest:
            raise self._oversized(tokens)
        now_s = self._clock.now()
        if not self._waiters and self._gate(tokens, now_s) == 0.0:
            return self._grant(tokens, now_s)
        loop = asyncio.get_running_loop()
        self._sequence += 1
        place = self._sequence
        while True:
            future: asyncio.Future[Leave] = loop.create_future()
            heapq.heappush(self._waiters, (priority, place, tokens, future))
            self._pump()
            leave = await self._wait(future)
            if self._clock.now() >= self._paused_until_s:
                return leave
            # The key was paused between the permit and this step: back to the old place.
            self._unsend(leave)

    async def _wait(self, future: "asyncio.Future[Leave]") -> Leave:
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._unsend(future.result())
            else:
                self._cancelled += 1
            self._pump()
            raise

    def _gate(self, tokens: int, now_s: float) -> float:
        """0.0 when a request may go now, else seconds until asking again is worth it.

        Infinite when only a release can help. The reason is left in `_why`.
        """
        if now_s < self._paused_until_s:
            self._why = "retry_after"
            return self._paused_until_s - now_s
        if self._in_flight >= int(self._concurrency.limit):
            self._why = "concurrency"
            return math.inf
        self._why = "requests"
        if self._start is not None:
            demand = self._in_flight + self._waiting()
            if (wait_s := self._start.wait_s(now_s, self._in_flight, demand)) > 0.0:
                return wait_s
        if not self._paced:
            self._set_pace(now_s)
        if self._requests is not None and (wait_s := self._requests.wait_s(now_s)) > 0.0:
            if not self._learned.grow(now_s):
                return wait_s
            self._set_pace(now_s, "growth")
            return TIMER_MIN_S
        if self._left is not None and (wait_s := self._left_wait_s(now_s)) > 0.0:
            return wait_s
        if self._tokens is not None or self._tokens_per_min is not None:
            self._why = "tokens"
            return self._tokens_wait_s(tokens, now_s)
        return 0.0

    def _left_wait_s(self, now_s: float) -> float:
        assert self._left is not None
        left, until_s = self._left
        if now_s >= until_s:
            self._left = None
            return 0.0
        return 0.0 if left > 0 else until_s - now_s

    def _tokens_wait_s(self, tokens: int, now_s: float) -> float:
        if now_s < self._tokens_until_s:
            return self._tokens_until_s - now_s
        if self._tokens is None:
            assert self._tokens_per_min is not None
            self._tokens = TokenGate(self._tokens_per_min, now_s)
        return self._tokens.wait_s(tokens, now_s)

    def _grant(self, tokens: int, now_s: float) -> Leave:
        """Take from every gate; all have just been found open."""
        if self._start is not None:
            self._start.sent(now_s, self._in_flight, self._in_flight + self._waiting())
            if self._start.over:
                self._start = None
        if self._requests is not None:
            self._requests.take(now_s)
        if self._tokens is not None:
            self._tokens.take(tokens)
        if self._left is not None:
            self._left = (self._left[0] - 1, self._left[1])
        self._in_flight += 1
        self._sent += 1
        self._learned.sent(self._sent, now_s)
        gap_s = now_s - self._last_sent_s
        self._last_sent_s = now_s
        return Leave(tokens, self._sent, now_s, gap_s)

    def _pump(self) -> None:
        """Admit from the head of the queue while the gates are open, then set the one timer."""
        waiters = self._waiters
        now_s = self._clock.now()
        while waiters:
            _, _, tokens, future = waiters[0]
            if future.done():
                heapq.heappop(waiters)
                self._cancelled -= 1
            elif tokens > self._tokens_largest:
                heapq.heappop(waiters)
                future.set_exception(self._oversized(tokens))
            elif (wait_s := self._gate(tokens, now_s)) == 0.0:
                heapq.heappop(waiters)
                future.set_result(self._grant(tokens, now_s))
            else:
                self._arm(wait_s)
                return
        self._arm(math.inf)

    def _arm(self, wait_s: float) -> None:
        timer = self._timer
        if wait_s == math.inf:
            if timer is not None:
                timer.cancel()
                self._timer = None
            return
        wait_s = max(wait_s, TIMER_MIN_S)
        at_s = self._clock.now() + wait_s
        if timer is not None:
            if self._timer_at_s <= at_s + 1e-6:
                return  # it looks again soon enough
            timer.cancel()
        self._timer_at_s = at_s
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._pump()

    # ------------------------------------------------------------------ how it went

    def release(
        self,
        permit: Permit,
        *,
        used_tokens: int | None = None,
        rate: RateInfo | None = None,
        error: ProviderError | None = None,
    ) -> None:
        """Give the slot back and learn from how it went. Source: `ports.Pacer.release`.

        A request refused with 429 gives its tokens back; one that failed otherwise or was
        cancelled keeps them, for the provider has counted them.
        """
        assert isinstance(permit, Leave)
        if used_tokens == 0 and error is None:
            self._unsend(permit)
            self._pump()
            return
        now_s = self._clock.now()
        answered = error is None and (used_tokens is not None or rate is not None)
        if self._start is not None:
            self._start.ended(now_s - permit.sent_s if answered else None)
        refused = error is not None and error.kind == "rate"
        if self._tokens is not None and (refused or used_tokens is not None):
            self._tokens.settle(permit.tokens, 0 if refused else used_tokens or 0, now_s)
        if rate is not None:
            self._read_headers(rate, permit, now_s)
        if error is not None and (refused or error.retry_after_s is not None):
            self._hold_back(permit, error, now_s)
        elif answered:
            self._answered(permit, now_s)
        self._in_flight -= 1
        if self._waiters:
            self._pump()

    def _unsend(self, leave: Leave) -> None:
        """Take a permit back whose request was never sent."""
        self._in_flight -= 1
        if self._tokens is not None:
            self._tokens.settle(leave.tokens, 0, self._clock.now())
        if self._left is not None:
            self._left = (self._left[0] + 1, self._left[1])
        if self._start is not None:
            self._start.ended(None)

    def _answered(self, permit: Leave, now_s: float) -> None:
        took_s = now_s - permit.sent_s
        if self._latency_s is None:
            self._latency_s = took_s
        else:
            self._latency_s += LATENCY_WEIGHT * (took_s - self._latency_s)
        if not self._concurrency.is_current(permit.number):
            return  # sent before the last cut: it says nothing of the present
        self._unanswered_pauses = 0
        before = self._concurrency.limit
        if self._concurrency.succeeded(permit.number, self._in_flight):
            after = self._concurrency.limit
            if after == self._concurrency.maximum or math.log2(after) // 1 > math.log2(before) // 1:
                self._announce("concurrency", after, "growth")

    def _hold_back(self, permit: Leave, error: ProviderError, now_s: float) -> None:
        """Pause the whole key; the first 429 of an episode cuts, those sent before it do not."""
        fresh = self._concurrency.is_current(permit.number)
        asked_s = error.retry_after_s
        if asked_s is None:
            if not fresh:
                return  # the pause of its episode is under way or over
            asked_s = min(PAUSE_CAP_S, PAUSE_FIRST_S * 2.0 ** min(self._unanswered_pauses, 16))
        # Positive jitter only: nobody may knock inside the window, nor all at its very end.
        jitter_s = self._rng.uniform(0.0, min(asked_s * JITTER_SHARE, JITTER_MAX_S))
        until_s = now_s + asked_s + jitter_s + MARGIN_S
        if until_s > self._paused_until_s:
            # Those refused in the same window only repeat what is known: no event for a hair.
            news = until_s > self._paused_until_s + JITTER_MAX_S
            self._paused_until_s = until_s
            if news and self._events.active:
                self._events.emit(
                    KeyPaused(pacer=self.name, wait_s=until_s - now_s, why="retry_after")
                )
        if fresh and error.kind == "rate":
            self._unanswered_pauses += 1
            self._cut(permit, now_s)

    def _cut(self, permit: Leave, now_s: float) -> None:
        stated = math.inf
        if self._stated_per_min is not None:
            stated = self._stated_per_min * PACE_SHARE / 60.0
        rate = self._learned.refused(
            permit.number, permit.sent_s, permit.gap_s, self._paused_until_s, now_s, stated
        )
        # A careful start has few in flight: what was refused there is the rate.
        needed = NEEDED_SHARE * rate * (self._latency_s or 0.0)
        if self._start is not None:
            needed = math.inf
        self._start = None
        self._set_pace(now_s, "429")
        self._concurrency.cut(self._sent, self._in_flight, needed)
        self._announce("concurrency", self._concurrency.limit, "429")

    def _set_pace(self, now_s: float, why: str = "") -> None:
        """Make the request gate anew for the lowest rate that is known."""
        self._paced = True
        per_s = self._learned.per_s or math.inf
        if self._stated_per_min is not None:
            per_s = min(per_s, self._stated_per_min * PACE_SHARE / 60.0)
        if per_s == math.inf or (self._requests and self._requests.rate_per_s == per_s):
            return
        primed = now_s - self._last_sent_s < 1.0 / per_s
        credit = self._learned.credit if why == "429" else 0
        self._requests = RequestGate(per_s, primed=primed, credit=credit)
        if why:
            self._announce("requests_per_min", per_s * 60.0, why)

    # ------------------------------------------------------------------ what headers say

    def _read_headers(self, rate: RateInfo, permit: Leave, now_s: float) -> None:
        limit, reset_s = rate.requests_limit, rate.requests_reset_s
        if limit is not None and (limit < 1 or (reset_s or 0.0) > MINUTE_RESET_MAX_S):
            limit = None
        limit = _part(limit, self._share)
        if limit is not None and (self._stated_per_min is None or limit < self._stated_per_min):
            self._stated_per_min = limit
            self._start = None
            self._set_pace(now_s, "headers")
        tokens = rate.tokens_limit
        if tokens is not None and tokens > 0 and (rate.tokens_reset_s or 0.0) <= MINUTE_RESET_MAX_S:
            self._tokens_largest = tokens
            tokens = _part(tokens, self._share) or 1
            if self._tokens_per_min is None or tokens < self._tokens_per_min:
                self._tokens_per_min = tokens
                if self._tokens is not None:
                    self._tokens.set_limit(tokens, now_s)
                self._announce("tokens_per_min", tokens, "headers")
        if permit.number < self._headers_number:
            return  # a later request has told what is left since
        self._headers_number = permit.number
        self._read_remaining(rate, permit, limit is not None, now_s)

    def _read_remaining(self, rate: RateInfo, permit: Leave, has_pace: bool, now_s: float) -> None:
        left, reset_s = rate.requests_remaining, rate.requests_reset_s
        self._left = None
        if left is not None and reset_s is not None and reset_s > 0.0:
            if not has_pace:
                # What was sent after this one has not been counted in its headers.
                self._left = (max(0, left - (self._sent - permit.number)), now_s + reset_s)
            elif left == 0 and reset_s > RESET_MIN_S:
                self._left = (0, now_s + reset_s)
        tokens_left, tokens_reset_s = rate.tokens_remaining, rate.tokens_reset_s
        if tokens_left is None:
            return
        if self._tokens is not None:
            self._tokens.at_most(tokens_left, now_s)
        if tokens_left == 0 and tokens_reset_s is not None and tokens_reset_s > RESET_MIN_S:
            self._tokens_until_s = now_s + tokens_reset_s

    # ------------------------------------------------------------------ telling

    def _oversized(self, tokens: int) -> ProviderError:
        return ProviderError(
            "oversized",
            f"the request needs about {tokens:,} tokens, but the provider grants the key "
            f"{self.name!r} only {int(self._tokens_largest):,} a minute; lower max_tokens, shorten "
            "the pair or use a key with a higher limit",
        )

    def _announce(self, what: str, value: float, why: str) -> None:
        if self._events.active:
            self._events.emit(LimitChanged(pacer=self.name, what=what, value=value, why=why))

    def _waiting(self) -> int:
        return len(self._waiters) - self._cancelled

    def stated(self) -> tuple[int | None, int | None]:
        """Requests and tokens a minute, as configured or as headers said; None: not known."""
        return self._stated_per_min, self._tokens_per_min

    def snapshot(self) -> PacerStats:
        """Counts for progress and tests. All wait for what the first in the queue waits for."""
        waiting = self._waiting()
        paused_s = max(0.0, self._paused_until_s - self._clock.now())
        return PacerStats(
            name=self.name,
            in_flight=self._in_flight,
            concurrency=self._concurrency.limit,
            waiting={"retry_after" if paused_s else self._why: waiting} if waiting else {},
            paused_s=paused_s,
        )

    def __repr__(self) -> str:
        return (
            f"KeyPacer({self.name}, {self._in_flight} of {int(self._concurrency.limit)} in flight, "
            f"{self._waiting()} waiting)"
        )


def _part(limit: int | None, share: int) -> int | None:
    return None if limit is None else max(1, limit // share)


def _check(name: str, limits: Limits) -> None:
    for field in (
        "requests_per_min", "tokens_per_min", "concurrency_max", "concurrency_start", "share"
    ):  # fmt: skip
        value = getattr(limits, field)
        if value is not None and value < 1:
            raise ConfigError(f"limits of {name!r}: {field} must be at least 1, not {value}")
