"""How likely the votes still to come are to change a result: a Dirichlet-multinomial forecast.

Asked by `early_stop` between two waves. Pure arithmetic over counts; knows no member, no judge and
no pair. The formula and its source are in docs/strategies.md.
"""

from math import factorial
from typing import NamedTuple

from dikast.engine.model import Winner
from dikast.strategies.aggregate import Rules, decide, plain_tally

SEATS_MAX = 25
"""The most voters that a forecast is made for: the work grows with the third power of them."""

PRIOR = 1.0
"""Pseudo-count of each result before the first vote: every vote of the whole is equally likely."""


class Counts(NamedTuple):
    """Votes cast so far; `none` were asked and gave no verdict."""

    a: int = 0
    b: int = 0
    tie: int = 0
    none: int = 0


class Forecast:
    """Forecasts of one vote's result, for `seats` voters of equal weight; remembers what it summed.

    The voters are taken as exchangeable: who has been asked tells no more of the others than by
    what was said. With n_i votes cast for A, B, tie and no verdict (i = 1..4), a uniform prior
    over the shares, and m votes to come, the chance that x_i of them are for i is

        m! / prod(x_i!) x prod((1 + n_i) ... (x_i + n_i)) / ((4 + n) ... (3 + n + m))

    (the beta-binomial predictive distribution with four results instead of two).

    Args:
        seats: how many may vote, at most `SEATS_MAX`.
        rules: how the full vote is counted; its quorum is part of the result.
    """

    def __init__(self, seats: int, rules: Rules) -> None:
        self._seats = seats
        self._rules = rules
        self._quorum = rules.needed(seats)
        self._results: dict[tuple[int, int, int], Winner | None] = {}
        self._known: dict[Counts, float] = {}

    def so_far(self, cast: Counts) -> Winner | None:
        """What the votes cast come to by themselves; None where nobody has voted."""
        return decide(plain_tally(cast.a, cast.b, cast.tie), self._rules, 1).winner

    def risk(self, cast: Counts) -> float:
        """The probability that the full vote has another result than the votes cast, 0 to 1.

        A full vote below its quorum has another result, too. 1 where nobody has voted.
        """
        if cast not in self._known:
            self._known[cast] = self._sum(cast)
        return self._known[cast]

    def _sum(self, cast: Counts) -> float:
        now = self.so_far(cast)
        if now is None:
            return 1.0
        left = self._seats - sum(cast)
        a, b, tie, none = ([_term(count, x) for x in range(left + 1)] for count in cast)
        total = other = 0.0
        for x in range(left + 1):
            for y in range(left + 1 - x):
                for z in range(left + 1 - x - y):
                    chance = a[x] * b[y] * tie[z] * none[left - x - y - z]
                    total += chance
                    if self._result(cast.a + x, cast.b + y, cast.tie + z) != now:
                        other += chance
        return other / total

    def _result(self, a: int, b: int, tie: int) -> Winner | None:
        key = (a, b, tie)
        if key not in self._results:
            self._results[key] = decide(plain_tally(*key), self._rules, self._quorum).winner
        return self._results[key]

    def __repr__(self) -> str:
        return f"Forecast({self._seats} seats, {self._rules!r})"


def _term(count: int, more: int) -> float:
    """(prior + count) ... (prior + count + more - 1) / more!"""
    rising = 1.0
    for step in range(more):
        rising *= PRIOR + count + step
    return rising / factorial(more)
