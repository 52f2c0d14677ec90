"""A round that judges nothing: texts come back by name, failures are named, signals stop it."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import pytest

from dikast.commands.preferences_fit import tell_unwritten
from dikast.commands.rounds import Current, Rounds
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ErrorKind, ProviderError, RunStopped
from dikast.engine.model import Call, Completion, Judge, Message
from dikast.engine.pacing import Limits
from dikast.engine.ports import Ask, Reply
from dikast.engine.run import Engine
from dikast.engine.store import MemoryStore
from dikast.progress import Progress
from dikast.strategies.preferences import Written
from dikast.strategies.sesse.stages import Failure

JUDGE = Judge(name="w", provider="p", model="m")


class Echo:
    """Answers with the prompt after a second; prompts that it is told of fail."""

    simulated = False

    def __init__(self, fails: Mapping[str, ErrorKind] | None = None) -> None:
        self.fails = fails or {}
        self.asked: list[str] = []

    async def complete(self, call: Call) -> Reply:
        text = call.messages[0].content
        self.asked.append(text)
        await asyncio.sleep(1)
        if text in self.fails:
            raise ProviderError(self.fails[text], "no answer")
        return Reply(completion=Completion(text=text, finish_reason="stop"))

    async def check(self) -> None:
        """It is there."""

    async def aclose(self) -> None:
        """Nothing is open."""


def rounds_over(provider: Echo, *, workers: int = 2) -> Rounds:
    clock = SystemClock()
    current, progress = Current(), Progress(clock)
    engine = Engine(
        current,
        {"p": provider},
        limits={"p": Limits(concurrency_start=64)},
        store=MemoryStore(),
        clock=clock,
        observers=(progress,),
    )
    return Rounds(engine, current, progress, workers=workers)


async def said(name: str, ask: Ask) -> str:
    call = Call(judge=JUDGE, messages=(Message(role="user", content=name),), prompt="t@1")
    return (await ask(call)).text


def jobs(count: int) -> dict[str, Callable[[Ask], Awaitable[str]]]:
    return {f"j{number}": partial(said, f"j{number}") for number in range(count)}


async def test_every_piece_of_work_comes_back_by_its_name_and_nothing_is_undecided() -> None:
    rounds = rounds_over(Echo({"j2": "bad_request"}))

    found = await rounds.ask(jobs(5))

    failure = found.pop("j2")
    assert isinstance(failure, Failure)
    assert failure.kind == "bad_request"
    assert found == {name: name for name in ("j0", "j1", "j3", "j4")}
    progress = rounds.progress
    assert (progress.done, progress.failed, progress.undecided, progress.total) == (5, 1, 0, 5)
    assert rounds.spent == {"calls": 4, "stored_calls": 0, "spent_usd": 0.0}
    again = await rounds.ask(jobs(2))
    assert again == {"j0": "j0", "j1": "j1"}
    assert rounds.spent["stored_calls"] == 2


async def test_the_first_signal_lets_paid_answers_come_home_and_begins_no_other() -> None:
    provider = Echo()
    rounds = rounds_over(provider, workers=2)
    asyncio.get_running_loop().call_later(1.5, rounds.on_signal, 1, signal.SIGTERM)

    with pytest.raises(RunStopped) as stop:
        await rounds.ask(jobs(9))

    assert stop.value.reason == "interrupted"
    assert str(stop.value) == "interrupted by SIGTERM; the same command resumes"
    assert provider.asked == ["j0", "j1", "j2", "j3"]
    assert rounds.spent["calls"] == 4


async def test_the_second_signal_waits_for_nothing() -> None:
    rounds = rounds_over(Echo())
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    loop.call_later(0.2, rounds.on_signal, 1, signal.SIGINT)
    loop.call_later(0.3, rounds.on_signal, 2, signal.SIGINT)

    with pytest.raises(RunStopped, match="interrupted by SIGINT; the same command resumes"):
        await rounds.ask(jobs(3))

    assert loop.time() - started_s == pytest.approx(0.3)


async def test_a_stopped_run_says_that_the_same_command_resumes() -> None:
    rounds = rounds_over(Echo({"j1": "quota"}))

    with pytest.raises(RunStopped, match="; the same command resumes") as stop:
        await rounds.ask(jobs(9))

    assert stop.value.reason == "quota"


def test_sentences_that_could_not_be_had_are_counted_by_their_reasons(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell_unwritten({"a": Written("Prefers care."), "b": Written("Prefers haste.")})
    assert capsys.readouterr().err == ""

    tell_unwritten(
        {
            "a": Written("Prefers care."),
            "b": Written(None, "empty"),
            "c": Written(None, "failed (timeout)"),
            "d": Written(None, "empty"),
        }
    )

    assert capsys.readouterr().err == (
        "dikast: 3 of 4 sentences could not be had: 2 empty, 1 failed (timeout)\n"
    )
