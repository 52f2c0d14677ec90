"""Both orders: judges a pair and its mirror image, and accepts only an agreeing conclusion.

A combinator: takes any strategy that compares and returns one. The inner strategy never learns
that it sees a mirrored pair; its calls leave with the order of the original pair, and what it
concludes is turned back. Knows no judge, no prompt and no provider.
"""

import asyncio
from fractions import Fraction
from typing import Any, Literal

import msgspec

from dikast.engine.errors import ProviderError
from dikast.engine.model import Call, Completion, Failed, Marks, Outcome, Pair, Undecided, Verdict
from dikast.engine.ports import Ask, Strategy
from dikast.strategies.aggregate import Decision, tally
from dikast.strategies.marks import marks_of

VERSION = "1"


class _MirrorAsk:
    """Hands on the calls of a mirrored pair in the terms of the pair itself.

    Where the order is part of a call's key (`by_pair` judges), the turned call has another key
    than the one the inner strategy made; the completion says under which key it was answered.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def __call__(self, call: Call) -> Completion:
        turned = msgspec.structs.replace(call, order="ba" if call.order == "ab" else "ab")
        completion = await self._ask(turned)
        if completion.key is None:
            completion = msgspec.structs.replace(completion, key=turned.key())
        return completion


class Swap:
    """Judges every pair twice, with the answers exchanged; see `swap`."""

    def __init__(self, inner: Strategy) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """`swap@version`; what is inside is in `spec()`."""
        return f"swap@{VERSION}"

    def spec(self) -> dict[str, Any]:
        """All that decides the result."""
        return {"kind": "swap", "version": VERSION, "inner": dict(self._inner.spec())}

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Judge both orders at the same time.

        When one half fails, the other is still waited for, so that the answer it has paid for
        reaches the call store; then the failure is raised as it is. A stopped run or any other
        error goes before a `ProviderError`: the pair must stay "not run", not become failed.

        Raises:
            ProviderError: a call of either half failed for good.
            RunStopped: the run ends.
        """
        plain, turned = await asyncio.gather(
            self._inner.judge(pair, ask),
            self._inner.judge(pair.swapped(), _MirrorAsk(ask)),
            return_exceptions=True,
        )
        for each in (plain, turned):
            if isinstance(each, BaseException) and not isinstance(each, ProviderError):
                raise each
        assert not isinstance(plain, BaseException) or isinstance(plain, ProviderError)
        assert not isinstance(turned, BaseException) or isinstance(turned, ProviderError)
        if isinstance(plain, ProviderError) or isinstance(turned, ProviderError):
            raise _failed(plain, turned)
        return _combine(plain, turned.unswapped())

    def __repr__(self) -> str:
        return f"Swap({self._inner!r})"


def swap(strategy: Strategy) -> Swap:
    """Debias a comparing strategy by asking in both orders.

    The verdict is A or B only where both halves say so (basis "agree"). It is a tie where both
    say tie (basis "both_tie") and where they differ (basis "disagree"); the two are kept apart,
    because the second measures the judge and not the answers. A half that gives no verdict
    makes the whole pair undecided.

    Args:
        strategy: its order may depend on the pair's id, never on the answers; then the two
            halves are in opposite orders whatever the inner rule is.
    """
    return Swap(strategy)


def _failed(plain: Outcome | ProviderError, turned: Outcome | ProviderError) -> ProviderError:
    """The error of a half, with what the other half said, in the terms of the pair."""
    if isinstance(turned, ProviderError):
        votes = tuple(vote.unswapped() for vote in turned.votes)
        turned = turned.beside(votes, tuple(part.unswapped() for part in turned.parts))
        error = plain if isinstance(plain, ProviderError) else turned
    else:
        assert isinstance(plain, ProviderError)
        turned, error = turned.unswapped(), plain
    return error.beside(plain.votes + turned.votes, plain.parts + turned.parts)


def _combine(plain: Outcome, turned: Outcome) -> Outcome:
    """One outcome of two, both in the terms of the pair; votes in the order "ab", then "ba"."""
    halves = (plain, turned)
    # The judgement that saw response_a first comes first, whichever half that was: what is
    # written must not depend on the hash that chose the halves' orders.
    if plain.votes and plain.votes[0].order == "ba":
        halves = (turned, plain)
    votes = halves[0].votes + halves[1].votes
    parts = halves[0].parts + halves[1].parts
    guard = plain.length_guard
    for half in halves:
        if isinstance(half, Failed):
            return msgspec.structs.replace(half, votes=votes, parts=parts)
    for half in halves:
        if isinstance(half, Undecided):
            return Undecided(
                id=half.id,
                why=half.why,
                detail=half.detail,
                votes=votes,
                parts=parts,
                length_guard=guard,
            )
    first, second = halves
    assert isinstance(first, Verdict)
    assert isinstance(second, Verdict)
    basis: Literal["agree", "both_tie", "disagree"]
    if first.winner != second.winner:
        apart = tally((half.winner, Fraction(1)) for half in (first, second))
        marks = marks_of(apart, Decision("tie", level=True))
        return Verdict(
            id=first.id,
            winner="tie",
            basis="disagree",
            votes=votes,
            parts=parts,
            marks=marks,
            length_guard=guard,
        )
    basis = "both_tie" if first.winner == "tie" else "agree"
    return Verdict(
        id=first.id,
        winner=first.winner,
        basis=basis,
        votes=votes,
        parts=parts,
        marks=Marks(votes=2),
        length_guard=guard,
    )
