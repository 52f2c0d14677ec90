"""A small world for engine tests: scripted providers, a one-call strategy, simple pairs."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from dikast.engine.errors import ProviderError
from dikast.engine.model import (
    Call,
    Completion,
    Judge,
    Message,
    Outcome,
    Pair,
    Pick,
    Prices,
    Usage,
    Verdict,
    Vote,
)
from dikast.engine.ports import Ask, Reply

Answer = Completion | ProviderError | float


def pairs(count: int) -> list[Pair]:
    return [
        Pair(id=f"p{i}", question=f"question {i}", response_a=f"a{i}", response_b=f"b{i}")
        for i in range(count)
    ]


class ScriptedProvider:
    """Answers by a function of the call and the number of times it was asked.

    A float is a latency before the standard answer. Counts everything it sees.
    """

    def __init__(self, script: Callable[[Call, int], Answer] | None = None) -> None:
        self.script = script or (lambda call, times: 0.0)
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.in_flight = self.peak = 0
        self.closed = False

    @property
    def requests(self) -> int:
        return sum(self.asked.values())

    async def complete(self, call: Call) -> Reply:
        key = call.key()
        self.asked[key] += 1
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            answer = self.script(call, self.asked[key])
            if isinstance(answer, int | float):
                if answer:
                    await asyncio.sleep(answer)
                answer = Completion(text="[[A]]", usage=Usage(input=100, output=10))
        finally:
            self.in_flight -= 1
        if isinstance(answer, ProviderError):
            raise answer
        self.answered[key] += 1
        return Reply(completion=answer)

    async def aclose(self) -> None:
        self.closed = True


class OneCall:
    """A strategy that asks `calls` questions and takes the first answer's marker."""

    name = "one-call@1"

    def __init__(self, calls: int = 1, prices: Prices | None = None, version: int = 1) -> None:
        self.calls = calls
        self.version = version
        self.judge_record = Judge(name="j", provider="p", model="m", prices=prices)

    def spec(self) -> Mapping[str, Any]:
        return {"kind": "one-call", "calls": self.calls, "version": self.version}

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        if pair.response_a == "poison":
            raise ZeroDivisionError("poison")
        votes: list[Vote] = []
        for sample in range(self.calls):
            call = Call(
                judge=self.judge_record,
                messages=(Message(role="user", content=pair.question),),
                prompt="t@1",
                sample=sample,
                pair_id=pair.id,
            )
            completion = await ask(call)
            pick: Pick = "A" if completion.text == "[[A]]" else "B"
            votes.append(Vote(judge="j", order="ab", pick=pick, key=call.key()))
        return Verdict(id=pair.id, winner="A", votes=tuple(votes))


def storm(seed: int) -> Callable[[Call, int], Answer]:
    """A hostile provider: latency, 429s, 500s, timeouts, refusals, dead connections, by seed."""

    def script(call: Call, times: int) -> Answer:
        rng = random.Random(f"{seed}:{call.key()}:{times}")
        dice = rng.random()
        if dice < 0.08:
            return ProviderError("rate", "429", retry_after_s=rng.choice([None, 0.5, 2.0]))
        if dice < 0.16:
            return ProviderError("transient", "500")
        if dice < 0.20:
            return ProviderError("timeout", "no answer")
        if dice < 0.22:
            return ProviderError("transient", "closed", reused_connection=True)
        if dice < 0.24:
            return ProviderError("bad_request", "400")
        if dice < 0.26:
            return ProviderError("refused", "content filter")
        return rng.uniform(0.01, 2.0)

    return script
