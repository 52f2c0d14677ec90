"""The virtual loop itself: exact time, order, deadlock, repeatability."""

import asyncio

import pytest

from tests.sim.settle import settle
from tests.sim.vloop import DeadlockError, VirtualLoop


async def test_an_hour_of_sleep_takes_exactly_an_hour_of_virtual_time() -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(3600)
    assert loop.time() == 3600.0


async def test_a_thousand_short_sleeps_add_up_without_drift() -> None:
    loop = asyncio.get_running_loop()
    for _ in range(1000):
        await asyncio.sleep(0.1)
    assert loop.time() == 100.0


async def test_a_wait_of_a_month_is_one_wait() -> None:
    await asyncio.sleep(30 * 24 * 3600)
    assert asyncio.get_running_loop().time() == 30 * 24 * 3600.0


async def test_a_timeout_fires_at_its_deadline_and_not_later() -> None:
    loop = asyncio.get_running_loop()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2.5):
            await asyncio.Event().wait()
    assert loop.time() == 2.5


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


def test_each_loop_starts_at_zero_and_repeats_the_last_one_exactly() -> None:
    async def story() -> list[tuple[int, float]]:
        seen: list[tuple[int, float]] = []

        async def walker(number: int) -> None:
            for step in range(3):
                await asyncio.sleep(0.05 * (number % 3) + 0.01 * step)
                seen.append((number, asyncio.get_running_loop().time()))

        await asyncio.gather(*(walker(number) for number in range(20)))
        return seen

    def told() -> list[tuple[int, float]]:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            assert runner.get_loop().time() == 0.0
            return runner.run(story())

    assert told() == told()


async def test_settle_says_so_when_something_never_comes_to_rest() -> None:
    async def spin() -> None:
        while True:  # noqa: ASYNC110  # never resting is the point
            await asyncio.sleep(0)

    task = asyncio.create_task(spin())
    with pytest.raises(AssertionError, match="still busy"):
        await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_thread_is_refused_with_the_way_out() -> None:
    with pytest.raises(RuntimeError, match="realtime"):
        await asyncio.to_thread(int)


@pytest.mark.realtime
async def test_a_realtime_test_gets_the_ordinary_loop() -> None:
    assert not isinstance(asyncio.get_running_loop(), VirtualLoop)
    assert await asyncio.to_thread(int) == 0
