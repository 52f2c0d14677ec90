"""How a stage runs: in order, bounded, stopped without losing what is paid, one retry."""

import asyncio

import msgspec
import pytest

from dikast.engine.errors import ProviderError, RunStopped
from dikast.engine.model import Call, Completion, Judge, Message
from dikast.strategies.sesse.stages import StageStop, ask_twice, in_order, read_json


class Told(msgspec.Struct):
    said: str


CALL = Call(
    judge=Judge(name="j", provider="p", model="m"),
    messages=(Message(role="user", content="?"),),
    prompt="t@1",
)


async def test_results_come_in_order_and_no_more_than_the_workers_are_at_work() -> None:
    running = peak = 0

    async def work(item: int) -> int:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep((item * 7) % 5)
        running -= 1
        return item * 10

    found = [each async for each in in_order(range(50), work, workers=4)]
    assert found == [item * 10 for item in range(50)]
    assert peak == 4


async def test_the_others_go_on_behind_a_slow_one() -> None:
    async def work(item: int) -> int:
        await asyncio.sleep(12 if item == 0 else 1)
        return item

    began = asyncio.get_running_loop().time()
    assert len([each async for each in in_order(range(13), work, workers=4)]) == 13
    assert asyncio.get_running_loop().time() - began == 12


async def test_a_stop_lets_what_is_in_the_air_come_home() -> None:
    stop = StageStop()
    home: list[int] = []

    async def work(item: int) -> int:
        await asyncio.sleep(1)
        home.append(item)
        if item == 1:
            stop.drain("enough")
        return item

    with pytest.raises(RunStopped, match="enough") as caught:
        async for _ in in_order(range(1000), work, workers=2, stop=stop):
            pass
    assert caught.value.reason == "interrupted"
    assert 2 <= len(home) <= 8


async def test_a_run_that_stops_waits_for_the_calls_that_are_paid() -> None:
    home: list[int] = []

    async def work(item: int) -> int:
        if item == 0:
            raise RunStopped("budget", "no money left")
        await asyncio.sleep(3)
        home.append(item)
        return item

    with pytest.raises(RunStopped, match="no money"):
        async for _ in in_order(range(4), work, workers=4):
            pass
    assert sorted(home) == [1, 2, 3]


async def test_a_cancelled_stage_leaves_no_task() -> None:
    async def work(item: int) -> int:
        await asyncio.sleep(1000)
        return item

    async def all_of_it() -> None:
        async for _ in in_order(range(9), work, workers=3):
            pass

    task = asyncio.ensure_future(all_of_it())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("texts", "value", "calls", "why"),
    [
        (['{"said": "x"}'], "x", 1, ""),
        (["what?", '{"said": "x"}'], "x", 2, ""),
        (["what?", "what?"], None, 2, "unreadable"),
        (["REFUSE"], None, 1, "refused"),
        (["what?", "REFUSE"], None, 2, "refused"),
    ],
)
async def test_what_cannot_be_read_is_asked_for_once_more(
    texts: list[str], value: str | None, calls: int, why: str
) -> None:
    asked: list[Call] = []

    async def ask(call: Call) -> Completion:
        asked.append(call)
        text = texts[len(asked) - 1]
        if text == "REFUSE":
            raise ProviderError("refused", "no")
        return Completion(text=text)

    found = await ask_twice(ask, CALL, lambda completion: read_json(completion, Told))
    assert (found.value.said if found.value else None) == value
    assert (found.calls, found.why) == (calls, why)
    assert [call.sample for call in asked] == list(range(calls))


async def test_a_failure_of_the_call_passes_through() -> None:
    async def ask(call: Call) -> Completion:
        raise ProviderError("timeout", "late")

    with pytest.raises(ProviderError, match="late"):
        await ask_twice(ask, CALL, lambda completion: read_json(completion, Told))


@pytest.mark.parametrize(
    ("text", "finish", "expected"),
    [
        ('{"said": "x"}', "stop", "x"),
        ('Here it is:\n```json\n{"said": "x"}\n```', "stop", "x"),
        ('<think>{"said": "no"}</think>\n{"said": "x"}', "stop", "x"),
        ('{"said": "x"}', "length", None),
        ('<think>{"said": "x"}', "stop", None),
        ('{"said": 3}', "stop", None),
        ('{"said": "x"', "stop", None),
        ("nothing", "stop", None),
        ("\ud800{}", "stop", None),
    ],
)
def test_only_a_whole_object_of_the_right_kind_is_read(
    text: str, finish: str, expected: str | None
) -> None:
    found = read_json(Completion(text=text, finish_reason=finish), Told)
    assert (found.said if found else None) == expected
