"""Tuning a library on rows with known answers: what stays, weights, depth and threshold.

After one run at full depth over calibration rows; everything here is replay of its votes and
costs no call. Pure: a library and logs in, a library (child of the old one) and an account out.

Source: depth by accuracy on development rows is the paper's (arXiv 2608.18303); ties counted one
half, the half standard error, the gates, the weights and the threshold are this project's own.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dikast.engine.errors import ConfigError
from dikast.engine.model import Record
from dikast.strategies.sesse.library import Library
from dikast.strategies.sesse.replay import Logged, Replay, right, without
from dikast.strategies.sesse.weights import (
    Effect,
    Gate,
    Tally,
    effects,
    muted,
    tallies,
    turned_away,
    weighed,
)

NEVER = 2.0
"""The threshold at which SESSE never overrides the holistic verdict: no margin exceeds 1."""


class DepthPoint(Record, frozen=True):
    """What one depth would have come to.

    `score` is the accuracy with ties counted one half over all rows, `score_se` its standard
    error; `non_tie_accuracy` is that over rows without a tie (None: there is none). `calls` is the
    mean number of questions asked, `effective` the mean number of A and B votes.
    """

    depth: int
    rows: int
    score: float
    score_se: float
    ties: int
    non_tie_accuracy: float | None
    na_rate: float
    calls: float
    effective: float


def depth_curve(
    library: Library, rows: Sequence[Logged], *, weighted: bool = False
) -> list[DepthPoint]:
    """Every depth from 1 to the library's, from one run at full depth.

    Raises:
        ConfigError: there is no row.
    """
    if not rows:
        raise ConfigError("no labelled row with votes is left to tune on")
    replay = Replay(library, weighted=weighted)
    deepest = max((len(each.questions) for each in library.clusters), default=1)
    return [_point(replay, rows, depth) for depth in range(1, deepest + 1)]


def _point(replay: Replay, rows: Sequence[Logged], depth: int) -> DepthPoint:
    pooled = [replay.pooled(row, depth) for row in rows]
    scores = [right(each.winner, row.label) for each, row in zip(pooled, rows, strict=True)]
    decided = [
        score for score, each in zip(scores, pooled, strict=True) if each.winner in ("A", "B")
    ]
    na = sum(each.na for each in pooled)
    votes = sum(each.heads_a + each.heads_b for each in pooled)
    asked = na + votes + sum(each.invalid for each in pooled)
    mean = math.fsum(scores) / len(scores)
    spread = math.fsum((score - mean) ** 2 for score in scores)
    return DepthPoint(
        depth=depth,
        rows=len(rows),
        score=mean,
        score_se=math.sqrt(spread / max(1, len(rows) - 1) / len(rows)),
        ties=sum(each.winner == "tie" for each in pooled),
        non_tie_accuracy=math.fsum(decided) / len(decided) if decided else None,
        na_rate=na / asked if asked else 0.0,
        calls=asked / len(rows),
        effective=votes / len(rows),
    )


def chosen_depth(curve: Sequence[DepthPoint]) -> int:
    """The smallest depth whose score is within half a standard error of the best one's."""
    best = max(curve, key=lambda point: (point.score, -point.depth))
    return next(point.depth for point in curve if point.score >= best.score - best.score_se / 2)


class ThresholdPoint(Record, frozen=True):
    """What one threshold of the hybrid mode would have come to."""

    threshold: float
    rows: int
    accuracy: float
    overridden: int


def threshold_curve(
    library: Library, rows: Sequence[Logged], depth: int, *, weighted: bool = False
) -> list[ThresholdPoint]:
    """Every threshold that makes a difference, on the rows that have a holistic verdict."""
    replay = Replay(library, weighted=weighted)
    found = [(replay.pooled(row, depth), row) for row in rows if row.holistic is not None]
    margins = {round(pooled.margin, 6) for pooled, _ in found if pooled.winner in ("A", "B")}
    points: list[ThresholdPoint] = []
    for threshold in [*sorted(margins), NEVER] if found else []:
        score, overridden = 0.0, 0
        for pooled, row in found:
            over = pooled.winner in ("A", "B") and round(pooled.margin, 6) >= threshold
            overridden += over and pooled.winner != row.holistic
            score += right(pooled.winner if over else row.holistic, row.label)
        points.append(
            ThresholdPoint(
                threshold=threshold,
                rows=len(found),
                accuracy=score / len(found),
                overridden=overridden,
            )
        )
    return points


def chosen_threshold(curve: Sequence[ThresholdPoint]) -> float | None:
    """The threshold with the best accuracy; of equal ones the highest, which overrides least."""
    if not curve:
        return None
    return max(curve, key=lambda point: (point.accuracy, point.threshold)).threshold


class Tuned(Record, frozen=True):
    """The tuned library and how it came about."""

    library: Library
    curve: tuple[DepthPoint, ...]
    thresholds: tuple[ThresholdPoint, ...]
    tallies: dict[str, Tally]
    dropped: dict[str, str]
    effects: tuple[Effect, ...]


def tune(
    library: Library,
    rows: Sequence[Logged],
    *,
    fixes: Mapping[str, bool] | None = None,
    gate: Gate | None = None,
    weighted: bool = False,
    mute: bool = True,
) -> Tuned:
    """Verify, weigh, mute, choose the depth and the threshold.

    Args:
        library: that the rows were judged with, at full depth and without early stop.
        rows: the log over calibration rows.
        fixes: by qid, whether the vote on the question's own source row was the label.
        gate: what a question must have shown to stay; None keeps all.
        weighted: choose depth and threshold for weighted votes.
        mute: mute clusters that do harm.

    Raises:
        ConfigError: no row, votes that were cut short, or no question that stays.
    """
    if any(row.spared for row in rows):
        raise ConfigError(
            "these votes were stopped early, so other depths cannot be read from them; judge the "
            "calibration rows again with early_stop = false"
        )
    found = tallies(library, rows, fixes)
    dropped: dict[str, str] = {}
    if gate is not None:
        for qid, tally in found.items():
            if (why := turned_away(tally, gate)) is not None:
                dropped[qid] = why
    kept = without(library, dropped)
    if not kept.clusters:
        raise ConfigError(
            f"none of {len(found)} questions passes the gates; more calibration rows, another "
            "judge, or --keep-all"
        )
    kept = weighed(kept, found)
    harm = effects(kept, rows)
    if mute:
        kept = muted(kept, harm)
    curve = depth_curve(kept, rows, weighted=weighted)
    depth = chosen_depth(curve)
    thresholds = threshold_curve(kept, rows, depth, weighted=weighted)
    result = msgspec.structs.replace(
        kept,
        depth=depth,
        hybrid_threshold=chosen_threshold(thresholds),
        parent=library.hash,
        stats={**kept.stats, "tune": _stats(rows, dropped, curve[depth - 1], weighted)},
    )
    return Tuned(
        library=result,
        curve=tuple(curve),
        thresholds=tuple(thresholds),
        tallies=found,
        dropped=dropped,
        effects=tuple(harm),
    )


def _stats(
    rows: Sequence[Logged], dropped: Mapping[str, str], point: DepthPoint, weighted: bool
) -> dict[str, Any]:
    reasons: dict[str, int] = {}
    for why in dropped.values():
        reasons[why] = reasons.get(why, 0) + 1
    return {
        "rows": len(rows),
        "dropped": reasons,
        "weighted": weighted,
        "depth": msgspec.to_builtins(point),
    }
