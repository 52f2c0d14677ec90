"""Members that say what they are told to, for tests of the combinators."""

import asyncio
from collections.abc import Mapping
from typing import Any

from dikast.engine.errors import ErrorKind, ProviderError
from dikast.engine.model import (
    Call,
    Completion,
    Judge,
    Outcome,
    Pair,
    Pick,
    Prices,
    Undecided,
    Usage,
    Verdict,
    Vote,
)
from dikast.engine.ports import Ask

PAIR = Pair(id="p1", question="q", response_a="a", response_b="b")
Says = Pick | ErrorKind | BaseException


class Told:
    """A strategy that asks once and then says what it was told."""

    def __init__(
        self,
        says: Says,
        name: str = "told",
        *,
        wait_s: float = 0.0,
        scores: Mapping[str, float] | None = None,
        confidence: float | None = None,
    ) -> None:
        self.says: Says = says
        self._name = name
        self._wait_s = wait_s
        self._scores = dict(scores or {})
        self._confidence = confidence
        self.asked = 0
        self.finished = 0

    @property
    def name(self) -> str:
        return self._name

    def spec(self) -> dict[str, Any]:
        return {"kind": "told", "name": self._name}

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        self.asked += 1
        if self._wait_s:
            await asyncio.sleep(self._wait_s)
        says = self.says
        if isinstance(says, BaseException):
            raise says
        if says != "A" and says != "B" and says != "tie" and says != "na" and says != "none":
            raise ProviderError(says, f"{self._name} {says}")
        judge = Judge(name=self._name, provider="p", model="m", prices=Prices(output=1.0))
        await ask(Call(judge=judge, messages=(), prompt=self._name))
        self.finished += 1
        vote = Vote(judge=self._name, order="ab", pick=says)
        if says == "na" or says == "none":
            return Undecided(id=pair.id, why="unparsed", votes=(vote,))
        return Verdict(
            id=pair.id,
            winner=says,
            votes=(vote,),
            scores=self._scores,
            confidence=self._confidence,
        )


class Desk:
    """An Ask that answers everything and remembers what it was asked."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    async def __call__(self, call: Call) -> Completion:
        self.calls.append(call)
        return Completion(text="", usage=Usage(output=1_000_000))


def panel(*says: Says) -> list[Told]:
    """Members named m0, m1 and so on."""
    return [Told(each, f"m{at}") for at, each in enumerate(says)]
