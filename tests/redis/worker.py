"""A worker on a shared key, as a process: sends as fast as it may and writes down when it sent.

python -m tests.redis.worker URL REQUESTS_PER_MIN TOKENS_PER_MIN SECONDS [PAUSE_AT_S PAUSE_S]
"""

import asyncio
import json
import os
import random
import sys
import time

from dikast.engine.clock import SystemClock
from dikast.engine.errors import ProviderError
from dikast.engine.events import Events
from dikast.engine.pacing import KeyPacer, Limits
from dikast.engine.sharing import SharedPacer
from dikast.providers.redis_limit import RedisLimit

CALL_S = 0.02
TOKENS = 100
LANES = 256


async def work(
    url: str,
    requests_per_min: int | None,
    tokens_per_min: int | None,
    seconds: float,
    pause_at_s: float | None = None,
    pause_s: float = 0.0,
    seed: int = 0,
) -> list[float]:
    """Wall-clock times of what was sent. At `pause_at_s` one call is refused."""
    clock = SystemClock()
    limits = Limits(
        requests_per_min=requests_per_min, tokens_per_min=tokens_per_min, concurrency_start=LANES
    )
    events = Events()
    local = KeyPacer("key", limits, clock, random.Random(seed), events)
    limit = RedisLimit(url, worker=f"{os.getpid()}:{seed}")
    await limit.check()
    pacer = SharedPacer(local, limit, clock, events)
    sent: list[float] = []
    started_s = clock.now()

    async def lane() -> None:
        nonlocal pause_at_s
        while clock.now() < started_s + seconds:
            permit = await pacer.acquire(TOKENS, 0)
            sent.append(time.time())
            await clock.sleep(CALL_S)
            if pause_at_s is not None and clock.now() > started_s + pause_at_s:
                pause_at_s = None
                refused = ProviderError("rate", "429", status=429, retry_after_s=pause_s)
                pacer.release(permit, error=refused)
            else:
                pacer.release(permit, used_tokens=TOKENS)

    lanes = [asyncio.create_task(lane()) for _ in range(LANES)]
    await clock.sleep(seconds)
    for task in lanes:
        task.cancel()
    await asyncio.gather(*lanes, return_exceptions=True)
    await pacer.aclose()
    await limit.aclose()
    return sent


def main() -> None:
    """Run for so long and print the times."""
    url, requests, tokens, seconds, *pause = sys.argv[1:]
    times = asyncio.run(
        work(
            url,
            int(requests) or None,
            int(tokens) or None,
            float(seconds),
            float(pause[0]) if pause else None,
            float(pause[1]) if pause else 0.0,
            seed=os.getpid(),
        )
    )
    print(json.dumps(times))


if __name__ == "__main__":
    main()
