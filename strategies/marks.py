"""How sure a verdict is and how contested: marks computed from the votes, and from nothing else.

Called by the combinators when the votes are counted. Pure; knows no judge and no pair. The
formulas are those of docs/confidence.md.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from dikast.engine.model import Marks
from dikast.strategies.aggregate import Decision, Tally

_DIGITS = 6


def marks_of(
    votes: Tally,
    decision: Decision,
    *,
    unread: int = 0,
    excluded: int = 0,
    spared: int = 0,
    scores: Mapping[str, Sequence[float]] | None = None,
) -> Marks:
    """The marks of a vote.

    Args:
        votes: as counted.
        decision: what they came to.
        unread: how many were asked and gave no verdict.
        excluded: how many were kept from voting.
        spared: how many were not asked.
        scores: the scores given in each dimension.
    """
    spreads = deviations(scores or {})
    heads = (votes.heads_a, votes.heads_b, votes.heads_tie, unread)
    stability = max(heads) / sum(heads) if sum(heads) else 1.0
    shares = shares_of(votes)
    if not shares:
        return Marks(
            votes=0,
            unread=unread,
            excluded=excluded,
            spared=spared,
            majority_share=0.0,
            margin=0.0,
            stability=_round(stability),
            score_spread=spreads,
        )
    first, second, _ = sorted(shares, reverse=True)
    return Marks(
        votes=votes.heads,
        unread=unread,
        excluded=excluded,
        spared=spared,
        entropy_bits=_round(entropy_bits(shares)),
        majority_share=_round(first),
        margin=_round(first - second),
        spread=_round(_spread(votes)),
        stability=_round(stability),
        level=decision.level,
        score_spread=spreads,
    )


def confidence_of(votes: Tally, decision: Decision) -> float | None:
    """The share of the votes, by weight, for what was concluded; None without a conclusion."""
    if decision.winner is None or not votes.total:
        return None
    return _round(votes.of(decision.winner) / votes.total)


def shares_of(votes: Tally) -> tuple[Fraction, ...]:
    """The shares of A, B and tie by weight; empty where nobody voted."""
    total = votes.total
    return (votes.a / total, votes.b / total, votes.tie / total) if total else ()


def entropy_bits(shares: Sequence[Fraction]) -> float:
    """Shannon entropy of shares that add up to 1, in bits."""
    return max(0.0, -math.fsum(float(p) * math.log2(p) for p in sorted(shares) if p))


def deviations(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The population standard deviation of each dimension's scores."""
    return {name: _round(deviation(values)) for name, values in sorted(scores.items())}


def deviation(values: Sequence[float]) -> float:
    """The population standard deviation."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def _spread(votes: Tally) -> float:
    mean = (votes.a - votes.b) / votes.total
    return math.sqrt((votes.a + votes.b) / votes.total - mean * mean)


def _round(value: float | Fraction) -> float:
    return round(float(value), _DIGITS)
