"""What the tests of pacing share: a pacer, admission times, and a crowd that drives a server."""

import asyncio
import random
from typing import cast

from dikast.engine.clock import SystemClock
from dikast.engine.errors import ProviderError
from dikast.engine.events import Event, Events
from dikast.engine.model import Call
from dikast.engine.pacing import KeyPacer, Limits
from tests.unit.engine.rate_server import RateServer


def pacer(limits: Limits | None = None, seen: list[Event] | None = None) -> KeyPacer:
    events = Events((seen.append,) if seen is not None else ())
    return KeyPacer("key", limits or Limits(), SystemClock(), random.Random(1), events)


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def admissions(key: KeyPacer, amounts: list[int]) -> list[float]:
    """When each request of `amounts` tokens was admitted, all asked for at once."""

    async def one(place: int, tokens: int) -> float:
        permit = await key.acquire(tokens, place)
        at_s = now_s()
        key.release(permit, used_tokens=tokens)
        return at_s

    return list(await asyncio.gather(*(one(i, tokens) for i, tokens in enumerate(amounts))))


async def drive(key: KeyPacer, server: RateServer, calls: int, workers: int | None = None) -> float:
    """Virtual seconds until `calls` calls have succeeded, 429s tried again for ever."""
    places = iter(range(calls))

    async def worker() -> None:
        for place in places:
            while not await one(place):
                pass

    async def one(place: int) -> bool:
        permit = await key.acquire(100, place)
        try:
            reply = await server.complete(cast(Call, None))
        except ProviderError as error:
            key.release(permit, error=error)
            return False
        key.release(permit, used_tokens=100, rate=reply.rate)
        return True

    await asyncio.gather(*(worker() for _ in range(workers or calls)))
    return now_s()
