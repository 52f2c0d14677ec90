"""A fake rate-limited server in virtual time, strict about Retry-After."""

import asyncio

from dikast.engine.errors import ProviderError
from dikast.engine.model import Call, Completion, Usage
from dikast.engine.ports import RateInfo, Reply


class RateServer:
    """A token bucket of `burst` requests refilled at `per_s`; a refusal opens a window in which
    everything is refused.

    Every request that arrives in a window is counted in `inside_window`, also one whose sender
    could not know yet. A refusal takes `refusal_s` there and back, an answer `latency_s`.
    """

    def __init__(
        self,
        per_s: float = 10.0,
        burst: float = 10.0,
        retry_after_s: float | None = 2.0,
        latency_s: float = 0.05,
        refusal_s: float | None = None,
        headers: bool = False,
    ) -> None:
        self.per_s, self.burst, self.latency_s = per_s, burst, latency_s
        self.refusal_s = latency_s if refusal_s is None else refusal_s
        self.retry_after_s, self.headers = retry_after_s, headers
        self.level, self.last_s, self.closed_until_s = burst, 0.0, -1.0
        self.requests = self.refused = self.inside_window = self.in_flight = self.peak = 0
        self.answered_s: list[float] = []

    async def complete(self, call: Call) -> Reply:
        loop = asyncio.get_running_loop()
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(self.refusal_s / 2)
            if not self._arrive(loop.time()):
                await asyncio.sleep(self.refusal_s / 2)
                raise ProviderError("rate", "slow", status=429, retry_after_s=self.retry_after_s)
            rate = self._rate_info() if self.headers else None
            await asyncio.sleep(self.latency_s - self.refusal_s / 2)
        finally:
            self.in_flight -= 1
        self.answered_s.append(loop.time())
        return Reply(completion=Completion(text="[[A]]", usage=Usage(input=9, output=1)), rate=rate)

    def _arrive(self, now_s: float) -> bool:
        self.requests += 1
        self.level = min(self.burst, self.level + (now_s - self.last_s) * self.per_s + 1e-9)
        self.last_s = now_s
        if now_s < self.closed_until_s:
            self.refused += 1
            self.inside_window += 1
            return False
        if self.level < 1.0:
            self.refused += 1
            self.closed_until_s = now_s + (self.retry_after_s or 0.0)
            return False
        self.level -= 1.0
        return True

    def _rate_info(self) -> RateInfo:
        return RateInfo(
            requests_limit=int(self.per_s * 60),
            requests_remaining=int(self.level),
            requests_reset_s=(self.burst - self.level) / self.per_s,
        )

    async def aclose(self) -> None:
        """Nothing to close."""
