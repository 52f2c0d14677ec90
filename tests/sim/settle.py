"""Let everything that can run now run, without moving the clock."""

import asyncio

SPINS_MAX = 10_000


async def settle() -> None:
    """Yield until nothing but the caller is runnable.

    Raises:
        AssertionError: something keeps itself busy for ever.
    """
    loop = asyncio.get_running_loop()
    ready = loop._ready  # type: ignore[attr-defined]  # asyncio keeps no public count
    for _ in range(SPINS_MAX):
        await asyncio.sleep(0)
        if not ready:
            return
    raise AssertionError(f"still busy after {SPINS_MAX} spins")
