"""Accuracy of SESSE beside the holistic verdict: the tables of the paper, ties counted openly.

Reads rows, makes figures; every figure says on how many rows it stands. Pure.

Source: Lee, Delgeanu and Youssef 2026 (arXiv 2608.18303): accuracy on rows without a tie, the
holistic verdict on the same rows, the relative gap, McNemar's test. Coverage-aware figures, Holm
and Wilson intervals and AURC (Geifman, Uziel and El-Yaniv 2019, arXiv 1805.08206) are added.
"""

from collections.abc import Mapping, Sequence

import msgspec

from dikast.analysis.intervals import Interval, wilson
from dikast.analysis.sesse_rows import EvalRow, by_subset, score
from dikast.analysis.significance import McNemar, holm, mcnemar


class Rate(msgspec.Struct, frozen=True):
    """A share of `n` rows with its Wilson interval; `value` is None where n is 0."""

    hits: float
    n: int
    value: float | None
    interval: Interval | None


def rate(hits: float, n: int, level: float = 0.95) -> Rate:
    """A share with its interval."""
    if n == 0:
        return Rate(hits, 0, None, None)
    return Rate(hits, n, hits / n, wilson(hits, n, level))


class Headline(msgspec.Struct, frozen=True):
    """SESSE and the holistic verdict over one set of rows.

    Counts: `rows` with a label, `ties` by SESSE (with `tie_reasons`), `no_verdict` where SESSE
    gave none. Accuracies: `sesse` and `holistic_same` on the rows that SESSE decides,
    `holistic_all` on all rows and `holistic_ties` on the tied ones; of the holistic ones only rows
    that have a holistic verdict count. Coverage-aware, over all rows: `half` counts a tie one
    half, `fall_back` takes the holistic verdict there, `escalate_best` supposes that ties are
    sent on and all answered rightly (the most that escalation can reach). `relative_gap` is
    (SESSE - holistic) / holistic and `difference` SESSE - holistic, both on the `paired` rows:
    decided, with both verdicts. `test` is McNemar's there, b for the holistic verdict alone
    right, c for SESSE alone.
    """

    rows: int
    ties: int
    tie_share: float | None
    tie_reasons: dict[str, int]
    no_verdict: int
    sesse: Rate
    holistic_same: Rate
    holistic_all: Rate
    holistic_ties: Rate
    half: Rate
    fall_back: Rate | None
    escalate_best: Rate
    difference: float | None
    relative_gap: float | None
    paired: int
    test: McNemar | None


def headline(rows: Sequence[EvalRow], level: float = 0.95) -> Headline:
    """The figures over some rows."""
    decided = [row for row in rows if row.decided]
    ties = [row for row in rows if row.sesse == "tie"]
    paired = [row for row in decided if row.holistic is not None]
    half = sum(score(row.sesse, row.label) for row in rows)
    hits = sum(row.sesse == row.label for row in decided)
    reasons: dict[str, int] = {}
    for row in ties:
        reason = row.tie or "after the ladder"
        reasons[reason] = reasons.get(reason, 0) + 1
    ours = _accuracy([score(row.sesse, row.label) for row in paired])
    theirs = _accuracy([score(row.holistic, row.label) for row in paired])
    whole = all(row.holistic is not None for row in ties)
    return Headline(
        rows=len(rows),
        ties=len(ties),
        tie_share=len(ties) / len(rows) if rows else None,
        tie_reasons=dict(sorted(reasons.items())),
        no_verdict=len(rows) - len(decided) - len(ties),
        sesse=rate(hits, len(decided), level),
        holistic_same=_holistic(paired, level),
        holistic_all=_holistic(rows, level),
        holistic_ties=_holistic(ties, level),
        half=rate(half, len(rows), level),
        fall_back=(
            rate(hits + sum(score(row.holistic, row.label) for row in ties), len(rows), level)
            if whole
            else None
        ),
        escalate_best=rate(hits + len(ties), len(rows), level),
        difference=None if ours is None or theirs is None else ours - theirs,
        relative_gap=None if ours is None or not theirs else relative_gap(ours, theirs),
        paired=len(paired),
        test=_test(paired) if paired else None,
    )


def _accuracy(scores: Sequence[float]) -> float | None:
    return sum(scores) / len(scores) if scores else None


def _holistic(rows: Sequence[EvalRow], level: float) -> Rate:
    known = [row for row in rows if row.holistic is not None]
    return rate(sum(score(row.holistic, row.label) for row in known), len(known), level)


def _test(paired: Sequence[EvalRow]) -> McNemar:
    b = sum(row.holistic == row.label and row.sesse != row.label for row in paired)
    c = sum(row.holistic != row.label and row.sesse == row.label for row in paired)
    return mcnemar(b, c)


def relative_gap(ours: float, theirs: float) -> float:
    """(ours - theirs) / theirs: how the paper reports a difference of accuracies."""
    return (ours - theirs) / theirs


# --- by subset ----------------------------------------------------------------------------------


class SubsetLine(msgspec.Struct, frozen=True):
    """One category; `holm_p` is its exact p, adjusted for all categories that were tested."""

    subset: str
    figures: Headline
    holm_p: float | None


def subset_lines(rows: Sequence[EvalRow], level: float = 0.95) -> list[SubsetLine]:
    """Every category by itself, its test adjusted by Holm's method over all that have one."""
    found = {name: headline(each, level) for name, each in by_subset(rows).items()}
    tested = [name for name, each in found.items() if each.test is not None]
    adjusted = dict(
        zip(tested, holm([each.exact_p for each in _tests(found, tested)]), strict=True)
    )
    return [
        SubsetLine(subset=name, figures=each, holm_p=adjusted.get(name))
        for name, each in found.items()
    ]


def _tests(found: Mapping[str, Headline], names: Sequence[str]) -> list[McNemar]:
    return [test for name in names if (test := found[name].test) is not None]


# --- risk and coverage --------------------------------------------------------------------------


class CoveragePoint(msgspec.Struct, frozen=True):
    """Taking only rows with at least this margin: how many those are, and how often wrong."""

    margin: float
    rows: int
    coverage: float
    risk: float


class RiskCoverage(msgspec.Struct, frozen=True):
    """The curve, one point a margin, and the area under it (AURC): the mean risk over all
    coverages, 0 at best. Rows of one margin stand in no order: their risk is shared evenly."""

    rows: int
    aurc: float | None
    points: tuple[CoveragePoint, ...]


def risk_coverage(rows: Sequence[EvalRow]) -> RiskCoverage:
    """Risk against coverage by the margin |A - B| / (A + B); ties stand at 0 with risk one half."""
    groups: dict[float, list[float]] = {}
    for row in rows:
        margin = round(row.margin, 6) if row.decided else 0.0
        groups.setdefault(margin, []).append(1 - score(row.sesse, row.label))
    points: list[CoveragePoint] = []
    taken, lost, area = 0, 0.0, 0.0
    for margin in sorted(groups, reverse=True):
        losses = groups[margin]
        mean_loss = sum(losses) / len(losses)
        for _ in losses:
            taken += 1
            lost += mean_loss
            area += lost / taken
        points.append(
            CoveragePoint(margin=margin, rows=taken, coverage=taken / len(rows), risk=lost / taken)
        )
    return RiskCoverage(len(rows), area / len(rows) if rows else None, tuple(points))
