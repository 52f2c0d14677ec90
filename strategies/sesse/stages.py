"""How a stage of building runs: many calls at once, results in order, one retry if unreadable.

Stands between the gateway and the stages. Bounded: no more than a window of tasks is alive. A
stop lets what is in the air come home, because it is paid. Knows no prompt and no file.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from dikast.engine.errors import ProviderError, RunStopped
from dikast.engine.model import Call, Completion, Judge, Record
from dikast.engine.ports import Ask
from dikast.strategies.reader import finish_of
from dikast.strategies.sesse.prompts import StageTemplate
from dikast.strategies.text import blank_thoughts

T = TypeVar("T")
R = TypeVar("R")

WINDOW = 4
"""Tasks alive for each worker: those behind a slow one go on meanwhile."""


class Failure(Record, frozen=True):
    """A call that could not be answered: which, the kind of error and its sentence."""

    id: str
    kind: str
    message: str


class StageStop:
    """Tells the stages that no further call is wanted."""

    def __init__(self) -> None:
        self.message: str | None = None

    def drain(self, message: str = "interrupted") -> None:
        """Begin no further call; those in the air come home."""
        self.message = self.message or message


async def in_order(
    items: Sequence[T],
    work: Callable[[T], Awaitable[R]],
    *,
    workers: int,
    stop: StageStop | None = None,
) -> AsyncGenerator[R, None]:
    """Do `work` on every item, `workers` at a time; results come in the order of the items.

    Raises:
        RunStopped: the run was stopped; what was in the air has come home.
    """
    slots = asyncio.Semaphore(workers)
    window: deque[asyncio.Task[R]] = deque()
    waiting = iter(items)
    left = len(items)

    async def one(item: T) -> R:
        async with slots:
            if stop is not None and stop.message is not None:
                raise RunStopped("interrupted", stop.message)
            return await work(item)

    try:
        while left or window:
            if stop is not None and stop.message is not None:
                break
            while left and len(window) < workers * WINDOW:
                left -= 1
                window.append(asyncio.ensure_future(one(next(waiting))))
            # The oldest is taken out only when it is done: until then a cancel finds it.
            await asyncio.wait((window[0],))
            yield window.popleft().result()
    except RunStopped:
        await asyncio.gather(*window, return_exceptions=True)
        raise
    except asyncio.CancelledError:
        # Whoever cancels waits for nothing, also when a stop had asked to wait before.
        for task in window:
            task.cancel()
        raise
    finally:
        draining = stop is not None and stop.message is not None
        for task in window:
            if not draining:
                task.cancel()
        await asyncio.gather(*window, return_exceptions=True)
    if stop is not None and stop.message is not None and (left or window):
        raise RunStopped("interrupted", stop.message)


class Answered(Generic[T]):
    """What came of a call and, where that could not be read, of a second one.

    `value` is None when neither could be read; `why` then says how. `calls` is how many were
    asked, `key` the key of the last.
    """

    __slots__ = ("calls", "key", "text", "value", "why")

    def __init__(self, value: T | None, why: str, calls: int, key: str, text: str) -> None:
        self.value = value
        self.why = why
        self.calls = calls
        self.key = key
        self.text = text


async def ask_twice(ask: Ask, call: Call, read: Callable[[Completion], T | None]) -> Answered[T]:
    """Ask, and once more (as another sample) where the answer cannot be read.

    A refusal is an answer that cannot be read, and is not asked again.

    Raises:
        ProviderError: the call failed for good, refusals excepted.
        RunStopped: the run ends.
    """
    text = ""
    for sample in (0, 1):
        again = call if sample == 0 else msgspec.structs.replace(call, sample=call.sample + 1)
        try:
            completion = await ask(again)
        except ProviderError as error:
            if error.kind != "refused":
                raise
            return Answered(None, "refused", sample + 1, again.key(), "")
        text = completion.text
        value = read(completion)
        if value is not None:
            return Answered(value, "", sample + 1, again.key(), text)
        if finish_of(completion).refused:
            return Answered(None, "refused", sample + 1, again.key(), text)
    return Answered(None, "unreadable", 2, again.key(), text)


def read_json(completion: Completion, kind: type[T]) -> T | None:
    """The JSON value of an answer, checked against `kind`; None when there is none, or another.

    Thoughts before it and a code fence around it are passed over; an answer that was cut off is
    not read.
    """
    if finish_of(completion).cut:
        return None
    text, unfinished = blank_thoughts(completion.text)
    starts = [place for place in (text.find("{"), text.find("[")) if place >= 0]
    end = max(text.rfind("}"), text.rfind("]"))
    start = min(starts, default=end + 1)
    if unfinished or end < start:
        return None
    try:
        return msgspec.json.decode(text[start : end + 1].encode("utf-8", "replace"), type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


def stage_call(
    judge: Judge, template: StageTemplate, data: dict[str, str], seed: int, pair_id: str
) -> Call:
    """The call that asks `judge` with `template` about these texts."""
    return Call(
        judge=judge,
        messages=template.render(data, seed),
        prompt=template.id,
        pair_id=pair_id,
        schema=template.schema if judge.params.json_mode else None,
    )
