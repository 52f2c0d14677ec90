"""From votes to a decision: pooled over all questions of a pair, whatever their clusters.

Used while a pair is judged, and again when the log of votes is replayed at another depth or with
other weights: both must come to the same decision. Pure; knows no judge and no call.

Source: Lee, Delgeanu and Youssef 2026 (arXiv 2608.18303), section 2, stage 5: NA votes do not
count, the majority of A against B decides, level votes are a tie. Weights and the cap of a
cluster's total are this project's own.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from dikast.engine.model import Marks, Pick, Winner

TieReason = Literal["equal", "all_na", "no_cluster"]

CONFLICT = "position_conflict"
"""Why a vote is NA: the two orders of its question contradict each other."""

_LEVEL = 1e-9
_DIGITS = 6


class Cast(NamedTuple):
    """One vote: which question of which cluster, at which place of it, and what was said."""

    qid: str
    cid: str
    rank: int
    pick: Pick
    weight: float = 1.0
    why: str | None = None


class Pooled(NamedTuple):
    """What the votes come to.

    `a` and `b` are the weights for each side, `heads_a` and `heads_b` the votes as cast. `winner`
    is None where not one vote could be read. `reason` says of what kind a tie is.
    """

    a: float
    b: float
    heads_a: int
    heads_b: int
    na: int
    invalid: int
    winner: Winner | None
    reason: TieReason | None

    @property
    def margin(self) -> float:
        """|A - B| / (A + B), 0 to 1; 0 without votes."""
        total = self.a + self.b
        return abs(self.a - self.b) / total if total > _LEVEL else 0.0

    @property
    def entropy_bits(self) -> float:
        """Entropy of the shares of A and B in bits, 0 to 1; 0 without votes."""
        total = self.a + self.b
        if total <= _LEVEL:
            return 0.0
        shares = (self.a / total, self.b / total)
        return -math.fsum(share * math.log2(share) for share in shares if share > 0)

    def marks(self, spared: int = 0) -> Marks:
        """The marks of the verdict; NA votes are no votes, invalid ones are "unread"."""
        heads = self.heads_a + self.heads_b
        total = self.a + self.b
        share = max(self.a, self.b) / total if total > _LEVEL else 0.0
        # Votes at +1 and -1 with shares p and 1 - p deviate by 2 sqrt(p (1 - p)).
        return Marks(
            votes=heads,
            unread=self.invalid,
            spared=spared,
            entropy_bits=round(self.entropy_bits, _DIGITS),
            majority_share=round(share, _DIGITS),
            margin=round(self.margin, _DIGITS),
            spread=round(2 * math.sqrt(share * (1 - share)), _DIGITS),
            stability=round(_stability(self, heads), _DIGITS),
            level=self.reason == "equal",
        )


def _stability(pooled: Pooled, heads: int) -> float:
    asked = heads + pooled.na + pooled.invalid
    most = max(pooled.heads_a, pooled.heads_b, pooled.na, pooled.invalid)
    return most / asked if asked else 1.0


def capped(weights: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The factor of each cluster that keeps the sum of its questions' weights at or below 1.

    Args:
        weights: cluster and weight of every question that is to be asked about a pair.
    """
    totals: dict[str, float] = {}
    for cid, weight in weights:
        totals[cid] = totals.get(cid, 0.0) + abs(weight)
    return {cid: 1.0 if total <= 1 else 1 / total for cid, total in totals.items()}


def pool(
    casts: Iterable[Cast], *, factors: Mapping[str, float] | None = None, selected: int = 1
) -> Pooled:
    """Count the votes.

    Args:
        casts: every vote, NA and invalid ones too.
        factors: count each vote with its weight times its cluster's factor (see `capped`); a
            negative weight counts for the other side. None: each counts 1.
        selected: how many clusters Tier 1 selected; 0 makes the tie "no_cluster".
    """
    votes = list(casts)
    sums = {"A": 0.0, "B": 0.0}
    heads = {"A": 0, "B": 0, "na": 0, "none": 0, "tie": 0}
    for cast in votes:
        heads[cast.pick] += 1
        if cast.pick == "A" or cast.pick == "B":
            worth = 1.0 if factors is None else cast.weight * factors[cast.cid]
            side = cast.pick if worth >= 0 else ("B" if cast.pick == "A" else "A")
            sums[side] += abs(worth)
    winner, reason = _decide(sums["A"], sums["B"], heads, selected)
    return Pooled(
        a=sums["A"],
        b=sums["B"],
        heads_a=heads["A"],
        heads_b=heads["B"],
        na=heads["na"],
        invalid=heads["none"],
        winner=winner,
        reason=reason,
    )


def _decide(
    a: float, b: float, heads: Mapping[str, int], selected: int
) -> tuple[Winner | None, TieReason | None]:
    if a - b > _LEVEL:
        return "A", None
    if b - a > _LEVEL:
        return "B", None
    if heads["A"] or heads["B"]:
        return "tie", "equal"
    if heads["na"]:
        return "tie", "all_na"
    return (None, None) if heads["none"] and selected else ("tie", "no_cluster")


def prefix(casts: Iterable[Cast], depth: int) -> list[Cast]:
    """The votes that would have been cast at a smaller depth: questions are asked one by one,
    and a vote does not depend on how many others are asked."""
    return [cast for cast in casts if cast.rank < depth]


def settled(pooled: Pooled, left: float) -> bool:
    """Whether votes of a total weight of `left` can no longer change the winner."""
    return abs(pooled.a - pooled.b) > left + _LEVEL
