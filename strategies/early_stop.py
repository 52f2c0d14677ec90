"""A vote that ends when it is decided: members are asked in waves until nothing should change.

Wraps a committee or a repeat. Without a risk it is exact: the winner is the one that the full vote
would have, whatever the members not asked would have said, failed or refused. With one it also
stops when another result is less likely than the risk. Knows no judge and no provider.
"""

import hashlib
from collections import Counter
from typing import Any

import msgspec

from dikast.engine.errors import ConfigError
from dikast.engine.model import Outcome, Pair
from dikast.engine.ports import Ask
from dikast.strategies.aggregate import exact, settled
from dikast.strategies.ballot import Ballot, Seat, conclude, counted, take
from dikast.strategies.committee import Committee
from dikast.strategies.forecast import SEATS_MAX, Counts, Forecast
from dikast.strategies.repeat import Repeat

VERSION = "1"


class EarlyStop:
    """Asks the members of a vote in waves; see `early_stop`."""

    def __init__(self, inner: Committee | Repeat, wave: int, risk: float | None) -> None:
        if wave < 1:
            raise ConfigError(f"early_stop: wave = {wave} must be at least 1")
        if risk is not None:
            _check_risk(risk, inner)
        self._inner = inner
        self._wave = wave
        self._risk = risk
        self._forecasts: dict[int, Forecast] = {}

    @property
    def name(self) -> str:
        """`early_stop@version`; what is inside is in `spec()`."""
        return f"early_stop@{VERSION}"

    def spec(self) -> dict[str, Any]:
        """All that decides the result, and which members were asked."""
        return {
            "kind": "early_stop",
            "version": VERSION,
            "wave": self._wave,
            **({} if self._risk is None else {"risk": self._risk}),
            "order": self._inner.names(),
            "inner": self._inner.spec(),
        }

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Ask wave after wave.

        Returns:
            The winner of the full vote, for certain or within the risk. Its marks and confidence
            describe the votes that were cast; `marks.spared` says how many were not, and
            `marks.stopped` and `marks.risk` why.

        Raises:
            ProviderError: every member failed.
            RunStopped: the run ends.
        """
        seats = self._seats(pair)
        ballots: list[Ballot] = []
        risk = None
        while len(ballots) < len(seats) and not self._is_settled(ballots, seats):
            risk = self._low_risk(ballots, seats)
            if risk is not None:
                break
            wave = seats[len(ballots) : len(ballots) + self._wave]
            ballots += await take(wave, pair, ask)
        spared = len(seats) - len(ballots)
        outcome = conclude(
            pair,
            ballots,
            self._inner.rules,
            excluded=self._inner.excluded(pair),
            spared=spared,
            # A quorum of the full vote is expected and not yet there; the risk covers it.
            quorum=None if risk is None else 1,
        )
        if not spared or outcome.marks is None:
            return outcome
        marks = msgspec.structs.replace(
            outcome.marks,
            stopped="exact" if risk is None else "risk",
            risk=0.0 if risk is None else round(risk, 6),
        )
        return msgspec.structs.replace(outcome, marks=marks)

    def _seats(self, pair: Pair) -> tuple[Seat, ...]:
        """Who may vote, in the order of asking.

        With a risk the members of a committee are asked in an order drawn from the pair's id: so
        they are exchangeable, whoever they are. Samples are so as they stand.
        """
        seats = self._inner.seats(pair)
        if self._risk is None or isinstance(self._inner, Repeat):
            return seats
        return tuple(sorted(seats, key=lambda seat: _lot(pair.id, seat.name)))

    def _is_settled(self, ballots: list[Ballot], seats: tuple[Seat, ...]) -> bool:
        if all(ballot.errored for ballot in ballots):
            return False  # should all the others fail too, the pair has failed
        left = [exact(seat.weight) for seat in seats[len(ballots) :]]
        rules = self._inner.rules
        return settled(counted(ballots), left, rules, rules.needed(len(seats)))

    def _low_risk(self, ballots: list[Ballot], seats: tuple[Seat, ...]) -> float | None:
        """The risk of stopping now, where it is low enough."""
        if self._risk is None or not ballots:
            return None
        forecast = self._forecasts.get(len(seats))
        if forecast is None:
            forecast = self._forecasts[len(seats)] = Forecast(len(seats), self._inner.rules)
        picks = Counter(ballot.pick for ballot in ballots)
        voted = picks["A"] + picks["B"] + picks["tie"]
        cast = Counts(picks["A"], picks["B"], picks["tie"], len(ballots) - voted)
        risk = forecast.risk(cast)
        return risk if risk <= self._risk else None

    def __repr__(self) -> str:
        return f"EarlyStop({self._inner!r}, wave={self._wave}, risk={self._risk})"


def early_stop(vote: Committee | Repeat, wave: int = 1, risk: float | None = None) -> EarlyStop:
    """Save the calls of members whose votes can no longer matter, or hardly.

    Args:
        vote: a committee, whose members are asked in the order given (cheap ones first), or a
            repeat.
        wave: how many are asked at the same time: 1 saves most calls, more save waiting.
        risk: None is exact. Else the vote also stops where the probability that the full vote has
            another result is at most this, above 0 and at most 0.5 (see `Forecast`); then the
            members of a committee are asked in an order drawn from the pair's id, and all must
            have the same weight.

    Raises:
        ConfigError: `wave` is below 1, the risk is out of range, or the vote cannot be forecast.
    """
    return EarlyStop(vote, wave, risk)


def _check_risk(risk: float, vote: Committee | Repeat) -> None:
    if not 0 < risk <= 0.5:
        raise ConfigError(
            f"early_stop: risk = {risk} must be above 0 and at most 0.5; leave it out for a stop "
            "that is exact"
        )
    if vote.rules.rule == "weighted":
        raise ConfigError(
            "early_stop: risk takes all members as alike, so it cannot forecast rule = 'weighted'; "
            "leave risk out, or use another rule"
        )
    if len(vote.names()) > SEATS_MAX:
        raise ConfigError(
            f"early_stop: risk forecasts votes of at most {SEATS_MAX} members, not of "
            f"{len(vote.names())}; leave risk out"
        )


def _lot(pair_id: str, name: str) -> bytes:
    data = f"{name}\0{pair_id}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).digest()
