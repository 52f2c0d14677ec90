"""Several logs side by side: depths of one run, batches against single questions, transfer.

Reads rows that the command made by replay or from several files. All differences are paired: they
look at the pairs that both have. Pure.

Source: Lee, Delgeanu and Youssef 2026 (arXiv 2608.18303): depth ablation and transfer of a library
to another judge.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from dikast.analysis.intervals import Interval, normal
from dikast.analysis.kappa import agreement, cohen, confusion_rows, estimate_of
from dikast.analysis.sesse_accuracy import Headline, Rate, headline, rate
from dikast.analysis.sesse_rows import EvalRow, score

_PICKS = {"A": 0, "B": 1, "na": 2, "none": 3, "tie": 2}


class Difference(msgspec.Struct, frozen=True):
    """The mean of a paired difference over `n` pairs, with a normal interval."""

    n: int
    value: float | None
    interval: Interval | None


def paired_difference(differences: Sequence[float], level: float = 0.95) -> Difference:
    """Mean and interval of differences, one a pair; no interval below two pairs."""
    n = len(differences)
    if not n:
        return Difference(0, None, None)
    middle = math.fsum(differences) / n
    if n < 2:
        return Difference(n, middle, None)
    spread = math.fsum((each - middle) ** 2 for each in differences) / (n - 1)
    return Difference(n, middle, normal(middle, math.sqrt(spread / n), level))


# --- depth --------------------------------------------------------------------------------------


class DepthLine(msgspec.Struct, frozen=True):
    """One depth: SESSE's accuracy without ties, score with ties one half, and what it asks.

    `delta` is the paired difference of the score to that of the chosen depth.
    """

    depth: int
    accuracy: Rate
    half: Rate
    ties: int
    tie_share: float | None
    na_rate: float | None
    questions: float
    effective: float
    delta: Difference


def depth_lines(
    by_depth: Mapping[int, Sequence[EvalRow]], chosen: int, level: float = 0.95
) -> list[DepthLine]:
    """The depth curve.

    Args:
        by_depth: the same pairs at every depth, in the same order.
        chosen: the depth that the others are held against.
        level: of the intervals.
    """
    base = [score(row.sesse, row.label) for row in by_depth[chosen]]
    lines: list[DepthLine] = []
    for depth, rows in sorted(by_depth.items()):
        scores = [score(row.sesse, row.label) for row in rows]
        figures = headline(rows, level)
        na = sum(row.count("na") for row in rows)
        cast = sum(row.count("A") + row.count("B") for row in rows)
        asked = sum(len(row.votes) for row in rows)
        lines.append(
            DepthLine(
                depth=depth,
                accuracy=figures.sesse,
                half=figures.half,
                ties=figures.ties,
                tie_share=figures.tie_share,
                na_rate=na / asked if asked else None,
                questions=asked / len(rows) if rows else 0.0,
                effective=cast / len(rows) if rows else 0.0,
                delta=paired_difference(
                    [one - other for one, other in zip(scores, base, strict=True)], level
                ),
            )
        )
    return lines


# --- batches ------------------------------------------------------------------------------------


class Measured(msgspec.Struct, frozen=True):
    """A coefficient with its interval; None where it is undefined."""

    value: float | None
    interval: Interval | None


class BatchAgreement(msgspec.Struct, frozen=True):
    """How far two runs over the same questions agree: the votes, and what comes of them.

    `votes` are the question votes that both have; `alike` and `kappa` (Cohen's) count A, B, NA and
    invalid as four answers. `score_delta` and `tie_delta` are this run minus the reference, over
    `pairs` that both have, ties one half.
    """

    pairs: int
    votes: int
    alike: Measured
    kappa: Measured
    score_delta: Difference
    tie_delta: Difference
    same_verdict: Rate


def batch_agreement(
    rows: Sequence[EvalRow],
    reference: Sequence[EvalRow],
    *,
    seed: int = 0,
    draws: int = 2000,
    level: float = 0.95,
) -> BatchAgreement:
    """A run against the reference, which asked one question a call.

    Intervals of the votes resample whole pairs: votes on one pair are not independent.
    """
    other = {row.id: row for row in reference}
    both = [(row, other[row.id]) for row in rows if row.id in other]
    ours: list[int] = []
    theirs: list[int] = []
    clusters: list[int] = []
    for number, (row, twin) in enumerate(both):
        known = {(vote.cid, vote.qid): vote.pick for vote in twin.votes}
        for vote in row.votes:
            if (vote.cid, vote.qid) in known:
                ours.append(_PICKS[vote.pick])
                theirs.append(_PICKS[known[vote.cid, vote.qid]])
                clusters.append(number)
    features = confusion_rows(np.array(theirs, dtype=np.int64), np.array(ours, dtype=np.int64), 4)
    codes = np.array(clusters, dtype=np.int64)
    alike, kappa = (
        Measured(*estimate_of(features, statistic, codes, seed=seed, draws=draws, level=level))
        for statistic in (agreement, cohen)
    )
    return BatchAgreement(
        pairs=len(both),
        votes=len(ours),
        alike=alike,
        kappa=kappa,
        score_delta=paired_difference(
            [score(row.sesse, row.label) - score(twin.sesse, twin.label) for row, twin in both],
            level,
        ),
        tie_delta=paired_difference(
            [float(row.sesse == "tie") - float(twin.sesse == "tie") for row, twin in both], level
        ),
        same_verdict=rate(sum(row.sesse == twin.sesse for row, twin in both), len(both), level),
    )


# --- transfer -----------------------------------------------------------------------------------


class TransferCell(msgspec.Struct, frozen=True):
    """A library asked of a judge: accuracy, ties, NA, and how many clusters Tier 1 selects."""

    library: str
    judge: str
    figures: Headline
    na_rate: float | None
    clusters_mean: float


def transfer_cell(
    library: str, judge: str, rows: Sequence[EvalRow], level: float = 0.95
) -> TransferCell:
    """One field of the matrix library by judge."""
    asked = sum(len(row.votes) for row in rows)
    return TransferCell(
        library=library,
        judge=judge,
        figures=headline(rows, level),
        na_rate=sum(row.count("na") for row in rows) / asked if asked else None,
        clusters_mean=sum(len(row.selected) for row in rows) / len(rows) if rows else 0.0,
    )
