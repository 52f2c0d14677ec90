"""A vote that ends when it is decided: members are asked in waves until nothing can change.

Wraps a committee or a repeat. Exact: the winner is the one that the full vote would have, whatever
the members not asked would have said, failed or refused. Knows no judge and no provider.
"""

from typing import Any

from dikast.engine.errors import ConfigError
from dikast.engine.model import Outcome, Pair
from dikast.engine.ports import Ask
from dikast.strategies.aggregate import exact, settled
from dikast.strategies.ballot import Ballot, Seat, conclude, counted, take
from dikast.strategies.committee import Committee
from dikast.strategies.repeat import Repeat

VERSION = "1"


class EarlyStop:
    """Asks the members of a vote in waves; see `early_stop`."""

    def __init__(self, inner: Committee | Repeat, wave: int) -> None:
        if wave < 1:
            raise ConfigError(f"early_stop: wave = {wave} must be at least 1")
        self._inner = inner
        self._wave = wave

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
            "order": self._inner.names(),
            "inner": self._inner.spec(),
        }

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Ask wave after wave.

        Returns:
            The winner of the full vote. Its marks and confidence describe the votes that were
            cast; `marks.spared` says how many were not needed.

        Raises:
            ProviderError: every member failed.
            RunStopped: the run ends.
        """
        seats = self._inner.seats(pair)
        ballots: list[Ballot] = []
        while len(ballots) < len(seats) and not self._is_settled(ballots, seats):
            wave = seats[len(ballots) : len(ballots) + self._wave]
            ballots += await take(wave, pair, ask)
        return conclude(
            pair,
            ballots,
            self._inner.rules,
            excluded=self._inner.excluded(pair),
            spared=len(seats) - len(ballots),
        )

    def _is_settled(self, ballots: list[Ballot], seats: tuple[Seat, ...]) -> bool:
        if all(ballot.errored for ballot in ballots):
            return False  # should all the others fail too, the pair has failed
        left = [exact(seat.weight) for seat in seats[len(ballots) :]]
        rules = self._inner.rules
        return settled(counted(ballots), left, rules, rules.needed(len(seats)))

    def __repr__(self) -> str:
        return f"EarlyStop({self._inner!r}, wave={self._wave})"


def early_stop(vote: Committee | Repeat, wave: int = 1) -> EarlyStop:
    """Save the calls of members whose votes can no longer matter.

    Args:
        vote: a committee, whose members are asked in the order given (cheap ones first), or a
            repeat.
        wave: how many are asked at the same time: 1 saves most calls, more save waiting.

    Raises:
        ConfigError: `wave` is below 1.
    """
    return EarlyStop(vote, wave)
