"""Several strategies on one pair: asks them all, loses no paid answer, makes one outcome.

The common ground of committee, repeat and early_stop. A member that fails gives no vote; it is
shown in the outcome and counts against the quorum. Knows no judge, no prompt and no provider.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from dikast.engine.errors import ProviderError
from dikast.engine.model import (
    Call,
    Completion,
    Failed,
    Item,
    LengthGuard,
    Marks,
    Outcome,
    Pair,
    Part,
    Pick,
    Record,
    Scored,
    Subject,
    Undecided,
    Verdict,
    Vote,
)
from dikast.engine.ports import Ask, Strategy
from dikast.strategies.aggregate import Rules, Tally, combine_numbers, decide, exact, tally
from dikast.strategies.marks import confidence_of, deviations, marks_of
from dikast.strategies.subjects import put


class Seat(Record, frozen=True):
    """One entitled to vote: a strategy under a name, with a weight.

    `sample` of `samples` numbers the draw where one strategy sits several times.
    """

    name: str
    strategy: Strategy
    weight: float = 1.0
    sample: int = 0
    samples: int = 1


class Metered:
    """An Ask that keeps the bill of one part, and numbers its draws where there are several.

    Each sample of n gets the number `old * n + sample`, so that repeats inside repeats stay
    apart, and the first sample shares its calls with the strategy asked alone. A seed that is
    sent to the provider moves with the number.
    """

    def __init__(self, ask: Ask, sample: int = 0, samples: int = 1) -> None:
        self._ask = ask
        self._sample = sample
        self._samples = samples
        self.calls = 0
        self.cost_usd = 0.0

    async def __call__(self, call: Call) -> Completion:
        """Pass the call on; see `Ask`."""
        asked = call if self._samples == 1 else self._numbered(call)
        completion = await self._ask(asked)
        self.calls += 1
        if call.judge.prices is not None:
            self.cost_usd += completion.usage.cost_usd(call.judge.prices)
        if asked is not call and completion.key is None:
            completion = msgspec.structs.replace(completion, key=asked.key())
        return completion

    def _numbered(self, call: Call) -> Call:
        number = call.sample * self._samples + self._sample
        if number == call.sample:
            return call
        judge = call.judge
        if judge.params.seed is not None:
            seed = judge.params.seed + number - call.sample
            judge = msgspec.structs.replace(
                judge, params=msgspec.structs.replace(judge.params, seed=seed)
            )
        return msgspec.structs.replace(call, judge=judge, sample=number)


class Ballot(NamedTuple):
    """What a seat said: an outcome or the error that kept it from one, and what it cost."""

    seat: Seat
    said: Outcome | ProviderError
    calls: int
    cost_usd: float

    @property
    def pick(self) -> Pick:
        """What the seat votes for; "none" where it gives no verdict, "na" where it only scores."""
        if isinstance(self.said, Scored):
            return "na"
        return self.said.winner if isinstance(self.said, Verdict) else "none"

    @property
    def errored(self) -> bool:
        """Whether the seat brought no outcome at all."""
        return isinstance(self.said, ProviderError)

    def part(self) -> Part:
        """As it stands in the outcome."""
        said = self.said
        why: str | None = None
        if isinstance(said, ProviderError):
            why = said.kind
        elif isinstance(said, Undecided):
            why = said.why
        elif isinstance(said, Failed):
            why = said.reason
        return Part(
            name=self.seat.name,
            pick=self.pick,
            why=why,
            weight=self.seat.weight,
            calls=self.calls,
            cost_usd=self.cost_usd,
            parts=said.parts,
            scores=said.scores if isinstance(said, Scored) else {},
        )

    def votes(self) -> tuple[Vote, ...]:
        """The votes of every judge call behind it that was answered."""
        return self.said.votes


async def take(seats: Sequence[Seat], pair: Subject, ask: Ask) -> list[Ballot]:
    """Ask all seats at the same time and wait for every one.

    A failed seat leaves the others alone, so that what they have paid for reaches the store. An
    error that is no `ProviderError` is raised when all have ended: a stopped run must leave the
    pair "not run".

    Raises:
        RunStopped: the run ends.
    """
    meters = [Metered(ask, seat.sample, seat.samples) for seat in seats]
    said = await asyncio.gather(
        *(put(seat.strategy, pair, meter) for seat, meter in zip(seats, meters, strict=True)),
        return_exceptions=True,
    )
    ballots: list[Ballot] = []
    for seat, meter, each in zip(seats, meters, said, strict=True):
        if isinstance(each, BaseException) and not isinstance(each, ProviderError):
            raise each
        ballots.append(Ballot(seat, each, meter.calls, meter.cost_usd))
    return ballots


def counted(ballots: Sequence[Ballot]) -> Tally:
    """The votes on the ballots."""
    return tally((ballot.pick, exact(ballot.seat.weight)) for ballot in ballots)


def conclude(
    pair: Pair,
    ballots: Sequence[Ballot],
    rules: Rules,
    *,
    excluded: int = 0,
    spared: int = 0,
    quorum: int | None = None,
) -> Outcome:
    """One outcome of all ballots.

    Args:
        pair: what was judged.
        ballots: of all that were asked; at least one, unless all were excluded.
        rules: how votes are counted.
        excluded: how many members were kept from voting.
        spared: how many were not asked because nothing could change any more.
        quorum: how many votes are enough here; None is as the rules say.

    Raises:
        ProviderError: not one ballot brought an answer; which error does not depend on the order.
    """
    _raise_if_all_failed(ballots)
    votes = counted(ballots)
    quorum = rules.needed(len(ballots) + spared) if quorum is None else quorum
    decision = decide(votes, rules, quorum)
    scores = _scores(ballots)
    marks = marks_of(
        votes,
        decision,
        unread=len(ballots) - votes.heads,
        excluded=excluded,
        spared=spared,
        scores=scores,
    )
    shared: dict[str, Any] = {
        "id": pair.id,
        "votes": tuple(vote for ballot in ballots for vote in ballot.votes()),
        "parts": tuple(ballot.part() for ballot in ballots),
        "marks": marks,
        "length_guard": _guard(ballots),
    }
    if decision.winner is None:
        detail = f"{votes.heads} of {len(ballots) + spared} gave a verdict, {quorum} are needed"
        return _no_quorum(detail, excluded, shared)
    return Verdict(
        winner=decision.winner,
        basis="votes",
        confidence=confidence_of(votes, decision),
        scores=_combined(scores, ballots, rules),
        **shared,
    )


def conclude_item(
    item: Item, ballots: Sequence[Ballot], rules: Rules, *, excluded: int = 0
) -> Outcome:
    """One outcome of several scorings of a single answer: dimension by dimension, by the rule.

    Its marks have no shares (nobody picks anything): `votes` gave scores, `stability` is the share
    of the more common result, scores or none, and `score_spread` tells how far they lie apart.

    Raises:
        ProviderError: as in `conclude`.
    """
    _raise_if_all_failed(ballots)
    scores = _scores(ballots)
    given = sum(isinstance(ballot.said, Scored) for ballot in ballots)
    unread = len(ballots) - given
    quorum = rules.needed(len(ballots))
    marks = Marks(
        votes=given,
        unread=unread,
        excluded=excluded,
        stability=round(max(given, unread) / len(ballots), 6) if ballots else 1.0,
        score_spread=deviations(scores),
    )
    shared: dict[str, Any] = {
        "id": item.id,
        "votes": tuple(vote for ballot in ballots for vote in ballot.votes()),
        "parts": tuple(ballot.part() for ballot in ballots),
        "marks": marks,
        "length_guard": _guard(ballots),
    }
    if given < max(1, quorum):
        detail = f"{given} of {len(ballots)} gave scores, {quorum} are needed"
        return _no_quorum(detail, excluded, shared)
    return Scored(scores=_combined(scores, ballots, rules), **shared)


def _no_quorum(detail: str, excluded: int, shared: dict[str, Any]) -> Undecided:
    if excluded:
        detail += f"; {excluded} excluded as of the same family as an answer"
    return Undecided(why="no_quorum", detail=detail, **shared)


def _raise_if_all_failed(ballots: Sequence[Ballot]) -> None:
    """The error of a vote in which nobody brought an answer; it carries what each member met."""
    errors = [each.said for each in ballots if isinstance(each.said, ProviderError)]
    if errors and len(errors) == len(ballots):
        worst = min(errors, key=_severity)
        votes = tuple(vote for ballot in ballots for vote in ballot.votes())
        raise worst.beside(votes, tuple(ballot.part() for ballot in ballots)) from worst


def _guard(ballots: Sequence[Ballot]) -> LengthGuard | None:
    """What length guards inside did; they work by rules, so where there are several they agree."""
    found = (b.said.length_guard for b in ballots if not isinstance(b.said, ProviderError))
    return next((guard for guard in found if guard is not None), None)


def _severity(error: ProviderError) -> tuple[bool, str, str]:
    """What failed goes before what was refused, then by name: the same in any order."""
    return error.kind == "refused", error.kind, error.message


def _scores(ballots: Sequence[Ballot]) -> dict[str, list[float]]:
    """The scores of every verdict or scoring, by dimension."""
    out: dict[str, list[float]] = {}
    for ballot in ballots:
        if isinstance(ballot.said, Verdict | Scored):
            for name, value in ballot.said.scores.items():
                out.setdefault(name, []).append(value)
    return out


def _combined(
    scores: dict[str, list[float]], ballots: Sequence[Ballot], rules: Rules
) -> dict[str, float]:
    weights = {
        name: [
            ballot.seat.weight
            for ballot in ballots
            if isinstance(ballot.said, Verdict | Scored) and name in ballot.said.scores
        ]
        for name in scores
    }
    return {name: combine_numbers(scores[name], rules, weights[name]) for name in sorted(scores)}
