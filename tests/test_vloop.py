"""The virtual loop itself: exact time, order, deadlock, repeatability."""

import asyncio

import pytest

from tests.sim.settle import settle
from tests.sim.vloop import DeadlockError, VirtualLoop


async def test_an_hour_of_sleep_takes_exactly_an_hour_of_virtual_time() -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(3600)
    assert loop.time() == 3600.0


async def test_timers_fire_in_order_of_their_deadlines() -> None:
    seen: list[float] = []

    async def nap(seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append(asyncio.get_running_loop().time())

    await asyncio.gather(*(nap(seconds) for seconds in (0.3, 0.1, 0.2)))
    assert seen == [0.1, 0.2, 0.3]


def test_waiting_for_nothing_is_a_deadlock_and_not_a_hang() -> None:
    loop = VirtualLoop()
    try:
        with pytest.raises(DeadlockError):
            loop.run_until_complete(asyncio.Event().wait())
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


async def test_settle_runs_what_is_ready_and_leaves_the_clock_alone() -> None:
    steps: list[int] = []

    async def walk() -> None:
        for step in range(5):
            steps.append(step)
            await asyncio.sleep(0)

    task = asyncio.create_task(walk())
    await settle()
    assert steps == [0, 1, 2, 3, 4]
    assert task.done()
    assert asyncio.get_running_loop().time() == 0.0
