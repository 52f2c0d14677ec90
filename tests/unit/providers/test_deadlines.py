"""One timer for all requests: each has its own time, and cancels from elsewhere pass through."""

import asyncio

from dikast.engine.clock import SystemClock
from dikast.providers.deadlines import Deadlines


async def test_each_request_is_cancelled_at_its_own_deadline_and_a_finished_one_never() -> None:
    loop = asyncio.get_running_loop()
    deadlines = Deadlines(10.0, SystemClock())
    ends: dict[str, tuple[float, bool]] = {}

    async def request(name: str, sent_s: float, takes_s: float) -> None:
        await asyncio.sleep(sent_s)
        task = asyncio.current_task()
        assert task is not None
        deadlines.start(task, loop.time())
        try:
            await asyncio.sleep(takes_s)
        except asyncio.CancelledError:
            task.uncancel()
        ends[name] = (round(loop.time(), 3), deadlines.stop(task))

    await asyncio.gather(
        request("quick", 0.0, 1.0), request("slow", 2.0, 99.0), request("slower", 5.0, 99.0)
    )
    assert ends == {"quick": (1.0, False), "slow": (12.0, True), "slower": (15.0, True)}
    assert repr(deadlines).startswith("Deadlines(0 open")
    deadlines.close()


async def test_a_cancel_from_elsewhere_is_not_taken_for_the_deadline() -> None:
    deadlines = Deadlines(10.0, SystemClock())
    late: list[bool] = []

    async def request() -> None:
        task = asyncio.current_task()
        assert task is not None
        deadlines.start(task, asyncio.get_running_loop().time())
        try:
            await asyncio.sleep(99)
        finally:
            late.append(deadlines.stop(task))

    task = asyncio.create_task(request())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert late == [False]
    deadlines.close()
