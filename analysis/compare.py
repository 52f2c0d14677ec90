"""Two runs or a history of runs, side by side and pair by pair: what has drifted.

Runs are compared on the pairs that both have judged; what only one has is counted. Counts from
`Ratings`; `dikast compare` draws the report.
"""

from typing import Final

import msgspec
import numpy as np

from dikast.analysis import kappa
from dikast.analysis.agreement import Between, Rater, between, with_holm
from dikast.analysis.counting import Counting, Number, Options, hits_by_rule, wide
from dikast.analysis.ratings import CODE, NONE, VALUE, Codes, Ratings, Run
from dikast.analysis.significance import permutation_p

_NAMES: Final = ("A", "tie", "B")


class RunSummary(msgspec.Struct, frozen=True):
    """One run by itself. `accuracy` is by the report's tie rule, over labelled pairs with a
    verdict; `consistency` over verdicts of two orders that agree (or both say tie).
    """

    run: str
    path: str
    outcomes: int
    verdicts: int
    undecided: int
    failed: int
    simulated: int
    a_wins: Number
    ties: Number
    b_wins: Number
    accuracy: Number
    consistency: Number
    cost_usd: float
    calls: int
    specs: tuple[str, ...]


class ScoreShift(msgspec.Struct, frozen=True):
    """Mean change of a dimension's score (second minus first), over pairs scored in both."""

    dimension: str
    shift: Number


class Paired(msgspec.Struct, frozen=True):
    """A later run against an earlier one. `shared` pairs are in both files, `judged` have a
    verdict in both. `lost` had one in the first only, `gained` in the second only.

    `changes` counts verdicts by how they changed, such as "A to tie". `lean` is the change of the
    mean result of response_a (win 1, tie 1/2), `lean_p` its permutation p by prompt;
    `tie_share` the change of the share of ties. `accuracy` is the later against the earlier run
    on the labels, None where there are none.
    """

    first: str
    second: str
    shared: int
    judged: int
    lost: int
    gained: int
    same: Number
    kappa: Number
    changes: dict[str, int]
    lean: Number
    lean_p: float | None
    tie_share: Number
    accuracy: Between | None
    scores: tuple[ScoreShift, ...]


class CompareReport(msgspec.Struct, frozen=True):
    """All of `dikast compare`, without what the manifests say."""

    pairs: int
    labelled: int
    clusters: int
    clustered: bool
    level: float
    draws: int
    seed: int
    tie_rule: str
    runs: tuple[RunSummary, ...]
    paired: tuple[Paired, ...]
    missing: dict[str, dict[str, int]]


def compare(ratings: Ratings, options: Options) -> CompareReport:
    """Every run against the first, and in a history also against the one before it.

    Args:
        ratings: one run or more, oldest first.
        options: level, draws, seed, rules.
    """
    pairs = len(ratings)
    labels = ratings.truth(options.label_rule)
    count = Counting(ratings.clusters, options)
    raters = [
        Rater(run.name, "result", run.results(pairs), run.present(pairs), dict(run.missing))
        for run in ratings.runs
    ]
    last = len(raters)
    steps = [(0, at) for at in range(1, last)] + [(at - 1, at) for at in range(2, last)]
    found = [
        _paired(ratings.runs[i], ratings.runs[j], raters[i], raters[j], labels, count)
        for i, j in steps
    ]
    adjusted = iter(with_holm([each.accuracy for each in found if each.accuracy is not None]))
    return CompareReport(
        pairs=pairs,
        labelled=int(np.count_nonzero(labels != NONE)),
        clusters=len(np.unique(count.clusters)),
        clustered=ratings.clustered,
        level=options.level,
        draws=options.draws,
        seed=options.seed,
        tie_rule=options.tie_rule,
        runs=tuple(
            _summary(run, rater, labels, count)
            for run, rater in zip(ratings.runs, raters, strict=True)
        ),
        paired=tuple(
            each
            if each.accuracy is None
            else msgspec.structs.replace(each, accuracy=next(adjusted))
            for each in found
        ),
        missing={run.name: dict(run.missing) for run in ratings.runs if run.missing},
    )


def _summary(run: Run, rater: Rater, labels: Codes, count: Counting) -> RunSummary:
    judged = rater.codes != NONE
    codes, clusters = wide(rater.codes[judged]), count.clusters[judged]
    truth = wide(labels[judged])
    known = truth != NONE
    used, hits = hits_by_rule(count.options.tie_rule, codes[known], truth[known])
    shares = [count.share((codes == CODE[name]).astype(np.float64), clusters) for name in _NAMES]
    same = run.bases["agree"] + run.bases["both_tie"]
    return RunSummary(
        run=run.name,
        path=run.path,
        outcomes=int(np.count_nonzero(rater.present)),
        verdicts=int(np.count_nonzero(judged)),
        undecided=sum(n for why, n in run.missing.items() if why.startswith("undecided")),
        failed=sum(n for why, n in run.missing.items() if why.startswith("failed")),
        simulated=run.simulated,
        a_wins=shares[0],
        ties=shares[1],
        b_wins=shares[2],
        accuracy=count.share(hits[used], clusters[known][used]),
        consistency=count.hits(same, same + run.bases["disagree"]),
        cost_usd=run.cost_usd,
        calls=run.calls,
        specs=tuple(sorted(run.specs)),
    )


def _paired(
    earlier: Run, later: Run, first: Rater, second: Rater, labels: Codes, count: Counting
) -> Paired:
    shared = first.present & second.present
    had, has = first.codes != NONE, second.codes != NONE
    both = shared & had & has
    one, two = wide(first.codes[both]), wide(second.codes[both])
    clusters = count.clusters[both]
    confusion = kappa.confusion_rows(one, two, 3)
    gaps = (VALUE[two] - VALUE[one]) / 2
    totals = kappa.summed(gaps[:, None], clusters)[:, 0]
    table = confusion.sum(axis=0).reshape(3, 3)
    known = np.any(both & (labels != NONE))
    return Paired(
        first=first.name,
        second=second.name,
        shared=int(np.count_nonzero(shared)),
        judged=len(one),
        lost=int(np.count_nonzero(shared & had & ~has)),
        gained=int(np.count_nonzero(shared & ~had & has)),
        same=count.share((one == two).astype(np.float64), clusters),
        kappa=count.estimate(confusion, kappa.cohen, clusters),
        changes={
            f"{_NAMES[i]} to {_NAMES[j]}": int(table[i, j])
            for i in range(3)
            for j in range(3)
            if i != j
        },
        lean=count.mean(gaps, clusters),
        lean_p=permutation_p(totals, seed=count.options.seed) if len(one) else None,
        tie_share=count.mean(
            (two == CODE["tie"]).astype(np.float64) - (one == CODE["tie"]), clusters
        ),
        accuracy=between(count, second, first, labels) if known else None,
        scores=_shifts(earlier, later, count),
    )


def _shifts(earlier: Run, later: Run, count: Counting) -> tuple[ScoreShift, ...]:
    pairs = len(count.clusters)
    found: list[ScoreShift] = []
    for dimension in sorted(earlier.scores.keys() & later.scores.keys()):
        gap = later.pair_scores(dimension, pairs) - earlier.pair_scores(dimension, pairs)
        both = np.isfinite(gap)
        found.append(ScoreShift(dimension, count.mean(gap[both], count.clusters[both])))
    return tuple(found)
