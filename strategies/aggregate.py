"""From several votes to one result: pure arithmetic, the same whatever the order of the votes.

Called by the combinators once their members have answered. Weights are taken as the decimal
numbers that were written and added as fractions, so that 0.1 + 0.2 against 0.3 is level. Knows no
judge, no call and no pair. Formulas: docs/confidence.md.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from statistics import median
from typing import Literal, NamedTuple, get_args

from dikast.engine.errors import ConfigError
from dikast.engine.model import Pick, Record, Winner

Rule = Literal["majority", "plurality", "median", "mean", "trimmed_mean", "weighted"]
RULES: tuple[Rule, ...] = get_args(Rule)
_ZERO = Fraction(0)
_ONE = Fraction(1)


class Rules(Record, frozen=True):
    """How votes are counted.

    `rule`: see `decide`. `quorum`: how many votes are needed; None is more than half of those
    entitled to vote. `trim`: the share cut off at each end by "trimmed_mean". `band`: how far from
    0 the mean, trimmed mean, median or weighted mean must be to be no tie.
    """

    rule: Rule = "majority"
    quorum: int | None = None
    trim: float = 0.2
    band: float = 0.0

    def check(self, where: str, seats: int) -> None:
        """Refuse rules that cannot work.

        Args:
            where: who asks, for the message.
            seats: how many members there are.

        Raises:
            ConfigError: an unknown rule, or a number out of range.
        """
        if self.rule not in RULES:
            raise ConfigError(f"{where}: rule = {self.rule!r}; known are {', '.join(RULES)}")
        if self.quorum is not None and not 1 <= self.quorum <= seats:
            raise ConfigError(
                f"{where}: quorum = {self.quorum} must be at least 1 and at most the number of "
                f"members, {seats}"
            )
        if not 0 <= self.trim < 0.5:
            raise ConfigError(f"{where}: trim = {self.trim} must be at least 0 and below 0.5")
        if not 0 <= self.band < 1:
            raise ConfigError(f"{where}: band = {self.band} must be at least 0 and below 1")

    def needed(self, entitled: int) -> int:
        """The quorum where `entitled` members may vote."""
        return entitled // 2 + 1 if self.quorum is None else self.quorum


class Tally(NamedTuple):
    """Votes, counted: weights and heads by pick."""

    a: Fraction = _ZERO
    b: Fraction = _ZERO
    tie: Fraction = _ZERO
    heads_a: int = 0
    heads_b: int = 0
    heads_tie: int = 0

    @property
    def total(self) -> Fraction:
        """The weight of all votes."""
        return self.a + self.b + self.tie

    @property
    def heads(self) -> int:
        """How many voted."""
        return self.heads_a + self.heads_b + self.heads_tie

    def of(self, winner: Winner) -> Fraction:
        """The weight of the votes for `winner`."""
        return {"A": self.a, "B": self.b, "tie": self.tie}[winner]


class Decision(NamedTuple):
    """What the votes come to; `winner` None: fewer than the quorum voted.

    `level`: the tie stands because the votes cancel out or are too few for a majority, not
    because more than half of them say tie.
    """

    winner: Winner | None
    level: bool = False


def exact(weight: float) -> Fraction:
    """A weight as the decimal number that was written."""
    return Fraction(repr(weight)) if isinstance(weight, float) else Fraction(weight)


def tally(votes: Iterable[tuple[Pick, Fraction]]) -> Tally:
    """Count votes; "none" and "na" are no votes.

    Args:
        votes: pick and weight of each.
    """
    weight = {"A": _ZERO, "B": _ZERO, "tie": _ZERO}
    heads = {"A": 0, "B": 0, "tie": 0}
    for pick, each in votes:
        if pick in weight:
            weight[pick] += each
            heads[pick] += 1
    return Tally(weight["A"], weight["B"], weight["tie"], heads["A"], heads["B"], heads["tie"])


def plain_tally(a: int, b: int, tie: int) -> Tally:
    """A count of votes of equal weight."""
    return Tally(Fraction(a), Fraction(b), Fraction(tie), a, b, tie)


def decide(votes: Tally, rules: Rules, quorum: int) -> Decision:
    """The result of a vote.

    With A counted as +1, tie as 0 and B as -1:

    * majority: the pick that has more than half of the votes; a tie where there is none.
    * plurality: ties abstain; A or B, whichever has more votes; a tie where they are level.
    * mean, weighted: the sign of the (weighted) mean; a tie within `band` of 0.
    * median, trimmed_mean: likewise; the median of an even number is the mean of the middle two,
      the trimmed mean leaves out floor(trim x votes) at each end.

    Args:
        votes: as counted by `tally`.
        rules: which rule, and its numbers.
        quorum: how many must have voted.
    """
    if votes.heads < max(1, quorum):
        return Decision(None)
    winner = _winner(votes, rules)
    return Decision(winner, level=winner == "tie" and 2 * votes.tie <= votes.total)


def _winner(votes: Tally, rules: Rules) -> Winner:
    if rules.rule == "majority":
        for side in _SIDES:
            if 2 * votes.of(side) > votes.total:
                return side
        return "tie"
    if rules.rule == "plurality":
        return _sign(votes.a - votes.b, _ZERO)
    band = exact(rules.band)
    if rules.rule == "median":
        return _sign(_median(votes), band)
    if rules.rule == "trimmed_mean":
        return _sign(_trimmed(votes, exact(rules.trim)), band)
    return _sign(votes.a - votes.b, band * votes.total)


_SIDES: tuple[Winner, ...] = ("A", "B")


def _sign(value: Fraction, band: Fraction) -> Winner:
    if abs(value) <= band:
        return "tie"
    return "A" if value > 0 else "B"


def _median(votes: Tally) -> Fraction:
    n = votes.heads
    return Fraction(_at(votes, (n - 1) // 2) + _at(votes, n // 2), 2)


def _at(votes: Tally, place: int) -> int:
    """The value at `place` of the votes sorted from B (-1) to A (+1)."""
    if place < votes.heads_b:
        return -1
    return 0 if place < votes.heads_b + votes.heads_tie else 1


def _trimmed(votes: Tally, trim: Fraction) -> Fraction:
    n = votes.heads
    cut = math.floor(trim * n)
    kept_b = max(0, votes.heads_b - cut) - max(0, cut - (n - votes.heads_b))
    kept_a = max(0, votes.heads_a - cut) - max(0, cut - (n - votes.heads_a))
    return Fraction(kept_a - kept_b, n - 2 * cut)


def settled(votes: Tally, left: Sequence[Fraction], rules: Rules, quorum: int) -> bool:
    """Whether those who have not voted yet can no longer change the winner, whatever they do.

    Each of them may still vote for A, B or a tie, or give no vote at all.

    Args:
        votes: cast so far.
        left: weights of those still to come.
        rules: as for `decide`.
        quorum: as for `decide`.
    """
    if not left or votes.heads + len(left) < max(1, quorum):
        return True
    if votes.heads < max(1, quorum):
        return False
    if rules.rule in ("median", "trimmed_mean"):
        return _settled_by_count(votes, len(left), rules)
    rest = sum(left, _ZERO)
    lead = votes.a - votes.b
    if rules.rule == "majority":
        return abs(lead) - votes.tie > rest or abs(lead) + rest <= votes.tie
    band = _ZERO if rules.rule == "plurality" else exact(rules.band)
    edge = band * votes.total
    decided = abs(lead) - edge > rest * (_ONE + band)
    # A tie stands only where neither side can climb out of the band with all that is left.
    return decided or abs(lead) - edge + rest * (_ONE - band) <= 0


def _settled_by_count(votes: Tally, left: int, rules: Rules) -> bool:
    now = _winner(votes, rules)
    for a in range(left + 1):
        for b in range(left + 1 - a):
            for tie in range(left + 1 - a - b):
                then = plain_tally(votes.heads_a + a, votes.heads_b + b, votes.heads_tie + tie)
                if _winner(then, rules) != now:
                    return False
    return True


def combine_numbers(
    values: Sequence[float], rules: Rules, weights: Sequence[float] | None = None
) -> float:
    """One number of several, by the rule; rules that only know picks take the median.

    Args:
        values: at least one.
        rules: which rule.
        weights: for "weighted", one for each value.

    Raises:
        ValueError: no value, or not one weight for each.
    """
    if not values:
        raise ValueError("no value to combine")
    if rules.rule == "weighted":
        if weights is None or len(weights) != len(values):
            raise ValueError("one weight for each value is needed")
        total = sum(map(exact, weights), _ZERO)
        return float(
            sum((exact(w) * Fraction(v) for v, w in zip(values, weights, strict=True)), _ZERO)
            / total
        )
    if rules.rule == "mean":
        return math.fsum(values) / len(values)
    if rules.rule == "trimmed_mean":
        cut = math.floor(exact(rules.trim) * len(values))
        kept = sorted(values)[cut : len(values) - cut]
        return math.fsum(kept) / len(kept)
    return float(median(values))
