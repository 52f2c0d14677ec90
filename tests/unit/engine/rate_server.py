"""A fake rate-limited server in virtual time, strict about Retry-After."""

import asyncio

from dikast.engine.errors import ProviderError
from dikast.engine.model import Call, Completion, Usage
from dikast.engine.ports import RateInfo, Reply


class RateServer:
    """A token bucket of `burst` requests refilled at `per_s`; a refusal opens a window in which
    everything is refused. What arrives in a window although its sender could already know of it
    (the refusal had travelled back before it was sent) is counted in `inside_window`.
    """

    def __init__(
        self,
        per_s: float = 10.0,
        burst: float = 10.0,
        retry_after_s: float = 2.0,
        latency_s: float = 0.05,
        headers: bool = False,
    ) -> None:
        self.per_s, self.burst, self.latency_s = per_s, burst, latency_s
        self.retry_after_s, self.headers = retry_after_s, headers
        self.level, self.last_s = burst, 0.0
        self.window_s = (-1.0, -1.0)
        self.requests = self.refused = self.inside_window = self.in_flight = self.peak = 0

    async def complete(self, call: Call) -> Reply:
        loop = asyncio.get_running_loop()
        sent_s = loop.time()
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(self.latency_s / 2)
            taken = self._arrive(sent_s, loop.time())
            await asyncio.sleep(self.latency_s / 2)
        finally:
            self.in_flight -= 1
        if not taken:
            raise ProviderError("rate", "too fast", status=429, retry_after_s=self.retry_after_s)
        rate = None
        if self.headers:
            rate = RateInfo(requests_limit=int(self.per_s * 60), requests_remaining=int(self.level))
        return Reply(completion=Completion(text="[[A]]", usage=Usage(input=9, output=1)), rate=rate)

    def _arrive(self, sent_s: float, now_s: float) -> bool:
        self.requests += 1
        self.level = min(self.burst, self.level + (now_s - self.last_s) * self.per_s)
        self.last_s = now_s
        opened_s, closes_s = self.window_s
        if now_s < closes_s:
            self.refused += 1
            if sent_s > opened_s + self.latency_s / 2 + 1e-6:
                self.inside_window += 1
            return False
        if self.level < 1.0 - 1e-6:
            self.refused += 1
            self.window_s = (now_s, now_s + self.retry_after_s)
            return False
        self.level -= 1.0
        return True

    async def aclose(self) -> None:
        """Nothing to close."""
