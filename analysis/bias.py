"""The biases of judges that their verdicts alone show: position, scores, noise, own family.

Counts from `Ratings`; `dikast bias` draws the report. What needs the answers' texts is in
`dikast.analysis.bias_text`. A vote that could not be read is never a pick; it is counted.
"""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from math import log2
from typing import Final, NamedTuple

import msgspec
import numpy as np

from dikast.analysis import kappa
from dikast.analysis.counting import Counting, Mask, Number, wide
from dikast.analysis.intervals import Floats, Interval, Ints, wilson
from dikast.analysis.ratings import NONE, VALUE, Codes, Ratings, Run, Votes

_GAP_EDGES: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


class Judged(NamedTuple):
    """One judge of one run, with its votes by pair and order."""

    name: str
    judge: str
    votes: Votes


class Gap(msgspec.Struct, frozen=True):
    """Consistency where the two models' quality lies `low` to `high` apart (0 is equal)."""

    low: float
    high: float
    consistency: Number


class Position(msgspec.Struct, frozen=True):
    """One judge in both orders. `asked` pairs were asked in both, `readable` of them answered
    readably in both; `votes_read` of `votes_asked` votes were readable.

    `strict` and `lenient` are the consistency over asked and over readable pairs. `bias` is
    P(first slot) - 0.5 with a tie as half, positive towards the answer shown first. `consistent`,
    `leans_first` and `leans_second` split the readable pairs. `kappa` is between the two orders.
    """

    judge: str
    asked: int
    readable: int
    votes_asked: int
    votes_read: int
    strict: Number
    lenient: Number
    bias: Number
    consistent: int
    leans_first: int
    leans_second: int
    kappa: Number
    accuracy_mean: Number
    accuracy_both: Number
    by_gap: tuple[Gap, ...]


class ScoreSpread(msgspec.Struct, frozen=True):
    """How one dimension's scores are spread. `entropy_bits` is that of the histogram,
    `entropy_max_bits` that of equal shares of as many values; `modal_share` is the share of the
    commonest score.
    """

    run: str
    dimension: str
    n: int
    values: int
    mean: float
    standard_deviation: float
    entropy_bits: float
    entropy_max_bits: float
    modal_score: float
    modal_share: Number


class Noise(msgspec.Struct, frozen=True):
    """One judge's variance, with A = 1, tie = 0, B = -1: between pairs (real disagreement of the
    answers), between the two orders of a pair (position), and between repeated questions (noise).

    `cells` are pairs in one order with at least two samples. `modal_share` is the mean
    share of a cell's commonest answer, an unreadable one being an answer of its own; `unanimous`
    the share of cells where all are equal.
    """

    judge: str
    cells: int
    samples: int
    pair_variance: Number
    order_variance: Number
    noise_variance: Number
    noise_share: Number
    modal_share: Number
    unanimous: Number


class Own(msgspec.Struct, frozen=True):
    """How a judge treats answers of its own family, on pairs with exactly one of them.

    `own` is the mean result of the own answer (win 1, tie 1/2); `reference` that by the labels,
    or by the other judges; `excess` is own minus reference, pair by pair.
    """

    judge: str
    family: str
    reference_is: str
    own: Number
    reference: Number
    excess: Number


class FamilyCell(msgspec.Struct, frozen=True):
    """Mean result of one family's answers under one judge, against other families."""

    judge: str
    family: str
    result: Number


def judged_of(ratings: Ratings) -> list[Judged]:
    """Every judge of every run, named so that no two are alike."""
    pairs = len(ratings)
    seen = Counter(judge for run in ratings.runs for judge in run.judges)
    return [
        Judged(
            judge if seen[judge] == 1 else f"{run.name}: {judge}", judge, run.votes(judge, pairs)
        )
        for run in ratings.runs
        for judge in run.judges
    ]


# -- position ---------------------------------------------------------------------------------


def position(judged: Judged, ratings: Ratings, labels: Codes, count: Counting) -> Position | None:
    """Position bias of one judge; None when no pair was asked in both orders.

    The definitions of consistency and of leaning follow Shi et al. 2024, Judging the Judges,
    section 3; the quality gap of two models is |win rate of one over the other - 0.5|, ties half.
    """
    votes = judged.votes
    both = votes.asked(0) & votes.asked(1)
    if not np.any(both):
        return None
    first, second = wide(votes.picks(0)[both]), wide(votes.picks(1)[both])
    clusters = count.clusters[both]
    read = (first != NONE) & (second != NONE)
    same = (read & (first == second)).astype(np.float64)
    one, two, where = VALUE[first[read]], VALUE[second[read]], clusters[read]
    truth = wide(labels[both])
    known = read & (truth != NONE)
    right = np.stack([first == truth, second == truth]).astype(np.float64)
    asked = votes.counts[both].sum(axis=(0, 1))
    lean = one - two
    return Position(
        judge=judged.name,
        asked=int(np.count_nonzero(both)),
        readable=int(np.count_nonzero(read)),
        votes_asked=int(asked.sum()),
        votes_read=int(asked[:3].sum()),
        strict=count.share(same, clusters),
        lenient=count.share(same[read], where),
        bias=count.mean(lean / 4, where),
        consistent=int(same.sum()),
        leans_first=int(np.count_nonzero(lean > 0)),
        leans_second=int(np.count_nonzero(lean < 0)),
        kappa=count.estimate(
            kappa.confusion_rows(first[read], second[read], 3), kappa.cohen, where
        ),
        accuracy_mean=count.mean(right[:, known].mean(axis=0), clusters[known]),
        accuracy_both=count.share(right[:, known].prod(axis=0), clusters[known]),
        by_gap=_by_gap(ratings, both, read, one + two, same, count),
    )


def _by_gap(
    ratings: Ratings, both: Mask, read: Mask, total: Floats, same: Floats, count: Counting
) -> tuple[Gap, ...]:
    """Consistency by quality gap; empty where the models are not known."""
    model_a, model_b = ratings.model_a[both][read], ratings.model_b[both][read]
    known = (model_a >= 0) & (model_b >= 0) & (model_a != model_b)
    if not np.any(known):
        return ()
    turned = model_a[known] > model_b[known]
    low = np.where(turned, model_b[known], model_a[known])
    high = np.where(turned, model_a[known], model_b[known])
    result = 0.5 + np.where(turned, -total[known], total[known]) / 4
    _, codes = np.unique(low * (int(high.max()) + 1) + high, return_inverse=True)
    rates = np.bincount(codes, weights=result) / np.bincount(codes)
    gap = np.abs(rates - 0.5)[codes]
    hits, clusters = same[read][known], count.clusters[both][read][known]
    found: list[Gap] = []
    for start, end in pairwise(_GAP_EDGES):
        last = end == _GAP_EDGES[-1]
        mine = (gap >= start) & ((gap <= end) if last else (gap < end))
        found.append(Gap(start, end, count.share(hits[mine], clusters[mine])))
    return tuple(found)


# -- scores -----------------------------------------------------------------------------------


def score_spread(run: Run, level: float) -> tuple[ScoreSpread, ...]:
    """The histogram of every dimension a run has scores of; two decimals are told apart."""
    found: list[ScoreSpread] = []
    for dimension, histogram in sorted(run.scores.items()):
        n = histogram.total()
        modal, most = histogram.most_common(1)[0]
        mean = sum(score * count for score, count in histogram.items()) / n
        variance = sum((score - mean) ** 2 * count for score, count in histogram.items()) / n
        entropy = -sum(count / n * log2(count / n) for count in histogram.values())
        interval: Interval = wilson(most, n, level)
        found.append(
            ScoreSpread(
                run=run.name,
                dimension=dimension,
                n=n,
                values=len(histogram),
                mean=mean,
                standard_deviation=variance**0.5,
                entropy_bits=max(0.0, entropy),
                entropy_max_bits=log2(len(histogram)),
                modal_score=modal,
                modal_share=Number(n, most / n, interval),
            )
        )
    return tuple(found)


# -- noise ------------------------------------------------------------------------------------


def noise(judged: Judged, count: Counting) -> Noise | None:
    """Variance components of one judge; None when nothing was asked twice in the same order.

    Unbiased moment estimates of the nested random effects model pair / order / sample, negative
    ones set to 0 (Searle, Casella, McCulloch 1992, Variance Components, chapter 3).
    """
    counts = judged.votes.counts.astype(np.float64)
    n = counts[:, :, :3].sum(axis=2)
    if not np.any(n > 1):
        return None
    s = counts[:, :, 0] - counts[:, :, 2]
    q = counts[:, :, 0] + counts[:, :, 2]
    safe = np.where(n > 0, n, 1.0)
    within = np.where(n > 1, q - s * s / safe, 0.0).sum(axis=1)
    freedom = np.where(n > 1, n - 1, 0.0).sum(axis=1)
    means = s / safe
    both = (n > 0).all(axis=1)
    orders = np.maximum(1, (n > 0).sum(axis=1))
    mean = np.where(n > 0, means, 0.0).sum(axis=1) / orders
    share = np.where(n > 0, 1 / safe, 0.0).sum(axis=1)
    used = (n > 0).any(axis=1)
    features = np.column_stack(
        [
            within,
            freedom,
            np.where(both, (means[:, 0] - means[:, 1]) ** 2 / 2, 0.0),
            np.where(both, share / 2, 0.0),
            both,
            mean,
            mean**2,
            share / orders**2,
            1 / orders,
            used,
        ]
    )[used]
    clusters = count.clusters[used]
    cells = counts.reshape(-1, 4)
    several = cells.sum(axis=1) > 1
    cells, where = cells[several], np.repeat(count.clusters, 2)[several]
    modal = cells.max(axis=1) / cells.sum(axis=1)
    pairs = len(features)
    return Noise(
        judge=judged.name,
        cells=len(cells),
        samples=int(cells.sum()),
        pair_variance=count.estimate(features, _pair_variance, clusters, pairs),
        order_variance=count.estimate(features, _order_variance, clusters, pairs),
        noise_variance=count.estimate(features, _noise_variance, clusters, pairs),
        noise_share=count.estimate(features, _noise_share, clusters, pairs),
        modal_share=count.mean(modal, where),
        unanimous=count.share((modal == 1.0).astype(np.float64), where),
    )


def _noise_variance(sums: Floats) -> Floats:
    result: Floats = sums[:, 0] / sums[:, 1]
    return result


def _order_variance(sums: Floats) -> Floats:
    """Between the two orders of a pair; 0 where no pair was asked in both."""
    pairs = np.where(sums[:, 4] > 0, sums[:, 4], 1.0)
    raw = (sums[:, 2] - sums[:, 3] * _noise_variance(sums)) / pairs
    result: Floats = np.maximum(0.0, np.where(sums[:, 4] > 0, raw, 0.0))
    return result


def _pair_variance(sums: Floats) -> Floats:
    n = sums[:, 9]
    total = (sums[:, 6] - sums[:, 5] ** 2 / n) / (n - 1)
    below = (sums[:, 8] * _order_variance(sums) + sums[:, 7] * _noise_variance(sums)) / n
    result: Floats = np.maximum(0.0, total - below)
    return result


def _noise_share(sums: Floats) -> Floats:
    own = _noise_variance(sums)
    result: Floats = own / (own + _order_variance(sums) + _pair_variance(sums))
    return result


# -- own family -------------------------------------------------------------------------------


def self_preference(
    judges: list[Judged],
    ratings: Ratings,
    labels: Codes,
    family_of: Callable[[str], str | None],
    count: Counting,
) -> tuple[tuple[Own, ...], tuple[FamilyCell, ...]]:
    """Every judge on answers of its own family, and the table of judges by families.

    Args:
        judges: see `judged_of`.
        labels: (pairs,) labels; the reference where there are any.
        family_of: family of a judge's or a model's name, None where unknown.
    """
    families = [family_of(name) for name in ratings.models.names]
    known = sorted({family for family in families if family is not None})
    codes = np.array([known.index(each) if each else -1 for each in families] + [-1])
    of_a, of_b = codes[ratings.model_a], codes[ratings.model_b]
    verdicts = [judge.votes.verdicts() for judge in judges]
    own: list[Own] = []
    cells: list[FamilyCell] = []
    for at, judge in enumerate(judges):
        for code, family in enumerate(known):
            sign = (of_a == code).astype(np.int64) - (of_b == code).astype(np.int64)
            use = (sign != 0) & (verdicts[at] != NONE)
            if not np.any(use):
                continue
            result = _result(verdicts[at], sign, use)
            cells.append(FamilyCell(judge.name, family, count.mean(result, count.clusters[use])))
            if family_of(judge.judge) == family:
                others = [each for place, each in enumerate(verdicts) if place != at]
                found = _own(judge.name, family, (verdicts[at], sign, use), labels, others, count)
                own.append(found)
    return tuple(own), tuple(cells)


def _own(
    name: str,
    family: str,
    mine: tuple[Codes, Ints, Mask],
    labels: Codes,
    others: list[Codes],
    count: Counting,
) -> Own:
    codes, sign, use = mine
    labelled = use & (labels != NONE)
    if np.any(labelled):
        kind, kept = "labels", labelled
        reference = _result(labels, sign, kept)
    else:
        judged = np.stack([each != NONE for each in others]) if others else np.zeros((1, len(use)))
        kept = use & (judged.sum(axis=0) > 0)
        kind = "other judges" if np.any(kept) else "none"
        values = [np.where(each != NONE, VALUE[each], 0.0) for each in others]
        total = np.sum(values, axis=0)[kept] if others else np.zeros(0)
        reference = 0.5 + sign[kept] * total / judged.sum(axis=0)[kept] / 2
    own = _result(codes, sign, kept if kind != "none" else use)
    where = count.clusters[kept]
    return Own(
        judge=name,
        family=family,
        reference_is=kind,
        own=count.mean(own, where if kind != "none" else count.clusters[use]),
        reference=count.mean(reference, where),
        excess=count.mean(own - reference, where) if kind != "none" else Number(0, None),
    )


def _result(codes: Codes, sign: Ints, use: Mask) -> Floats:
    """Win 1, tie 1/2, loss 0 of the side that `sign` names (1 is A, -1 is B)."""
    result: Floats = 0.5 + sign[use] * VALUE[codes[use]] / 2
    return result
