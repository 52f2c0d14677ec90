"""Cheap judges first: a pair climbs to the next rung only where the last one left it in doubt.

A combinator over any strategies, in order. Every rung that was asked is shown in the outcome with
its calls and their price, and with the reason why it was not the last. Knows no judge, no prompt
and no provider.
"""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import msgspec

from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Outcome, Pair, Part, Undecided, Verdict, Vote
from dikast.engine.ports import Ask, Strategy
from dikast.strategies.ballot import Ballot, Metered, Seat
from dikast.strategies.committee import judges_named

VERSION = "1"

Doubt = Literal["tie", "low_margin", "disagreement", "unparsed", "failed"]
DOUBTS: tuple[Doubt, ...] = get_args(Doubt)
ESCALATE_WHEN: tuple[Doubt, ...] = ("tie", "disagreement", "unparsed")
"""What sends a pair to the next rung where nothing else is said."""


class Cascade:
    """Judges with one rung after another; see `cascade`."""

    def __init__(
        self, rungs: Sequence[Strategy], escalate_when: Sequence[Doubt], margin_below: float
    ) -> None:
        if len(rungs) < 2:
            raise ConfigError("cascade: at least two rungs are needed")
        unknown = [each for each in escalate_when if each not in DOUBTS]
        if unknown or not escalate_when:
            raise ConfigError(
                f"cascade: escalate_when = {list(escalate_when)!r}; use one or more of "
                f"{', '.join(DOUBTS)}"
            )
        if not 0 < margin_below <= 1:
            raise ConfigError(f"cascade: margin_below = {margin_below} must be above 0, at most 1")
        self._rungs = tuple(rungs)
        self._when = frozenset(escalate_when)
        self._margin_below = margin_below
        self._seats = tuple(
            Seat(name=judges_named(each.spec()) or each.name, strategy=each) for each in rungs
        )

    @property
    def name(self) -> str:
        """`cascade@version`; the rungs are in `spec()`."""
        return f"cascade@{VERSION}"

    def spec(self) -> dict[str, Any]:
        """All that decides the result."""
        return {
            "kind": "cascade",
            "version": VERSION,
            "rungs": [dict(each.spec()) for each in self._rungs],
            "escalate_when": sorted(self._when),
            "margin_below": self._margin_below if "low_margin" in self._when else None,
        }

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Climb until a rung leaves no doubt, or there is none left.

        Returns:
            The last asked rung's outcome, with the votes of all rungs and one part for each.

        Raises:
            ProviderError: the last asked rung failed.
            RunStopped: the run ends.
        """
        votes: tuple[Vote, ...] = ()
        parts: tuple[Part, ...] = ()
        for seat in self._seats:
            meter = Metered(ask)
            said = await _said(seat.strategy, pair, meter)
            ballot = Ballot(seat, said, meter.calls, meter.cost_usd)
            last = seat is self._seats[-1]
            doubt = None if last else self._doubt(said)
            if isinstance(said, ProviderError):
                if doubt is None:
                    raise said.beside(votes + said.votes, (*parts, ballot.part()))
                votes += said.votes
                parts += (msgspec.structs.replace(ballot.part(), why=f"{doubt}: {said.kind}"),)
                continue
            votes += said.votes
            part = ballot.part()
            parts += (part if doubt is None else msgspec.structs.replace(part, why=doubt),)
            if doubt is None:
                return msgspec.structs.replace(said, votes=votes, parts=parts)
        raise AssertionError("the last rung always ends the climb")

    def _doubt(self, said: Outcome | ProviderError) -> str | None:
        """Why the pair must climb on; None where it need not."""
        found: str | None = None
        if isinstance(said, ProviderError):
            found = "unparsed" if said.kind == "refused" else "failed"
        elif isinstance(said, Undecided):
            found = "unparsed"
        elif not isinstance(said, Verdict):
            found = "failed"
        if found is not None:
            return found if found in self._when else None
        assert isinstance(said, Verdict)
        if "disagreement" in self._when and _disagree(said):
            return "disagreement"
        if "tie" in self._when and said.winner == "tie":
            return "tie"
        if "low_margin" in self._when:
            margin = margin_of(said)
            if margin is None:
                return "margin_unknown"
            if margin < self._margin_below:
                return "low_margin"
        return None

    def __repr__(self) -> str:
        return f"Cascade({list(self._rungs)!r}, escalate_when={sorted(self._when)!r})"


def cascade(
    rungs: Sequence[Strategy],
    escalate_when: Sequence[Doubt] = ESCALATE_WHEN,
    margin_below: float = 0.5,
) -> Cascade:
    """Spend a strong judge on the pairs that need one.

    Args:
        rungs: strategies, the cheapest first; at least two.
        escalate_when: what sends a pair on: "tie" (any tie), "disagreement" (the votes, or the
            two orders, are not all alike), "low_margin" (the margin is below `margin_below`, or
            is not known), "unparsed" (no verdict: unreadable, truncated, refused, no quorum),
            "failed" (no answer could be had). What is not named is taken as the rung gave it.
        margin_below: for "low_margin", above 0, at most 1: the lead of the most common pick in
            the votes; of a single vote, of the verdict's token probability (see `margin_of`).

    Raises:
        ConfigError: fewer than two rungs, or an unknown doubt.
    """
    return Cascade(rungs, escalate_when, margin_below)


def margin_of(verdict: Verdict) -> float | None:
    """The lead of a verdict over the next possible one, 0 to 1; None where nothing tells.

    Of several votes it is `marks.margin`. Of one vote with a confidence p from log probabilities
    it is 2p - 1 (at least 0), the smallest lead that p allows.
    """
    if verdict.marks is not None:
        return verdict.marks.margin
    if verdict.confidence is not None:
        return max(0.0, 2 * verdict.confidence - 1)
    return None


def _disagree(verdict: Verdict) -> bool:
    if verdict.basis == "disagree":
        return True
    return verdict.marks is not None and verdict.marks.majority_share < 1


async def _said(strategy: Strategy, pair: Pair, ask: Ask) -> Outcome | ProviderError:
    try:
        return await strategy.judge(pair, ask)
    except ProviderError as error:
        return error
