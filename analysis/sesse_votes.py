"""What the votes themselves say: NA and invalid rates, the health of a library, why SESSE fails.

Reads rows with their votes. Raw values are kept beside every class, so that thresholds can move
without another run. Pure.

Source: Lee, Delgeanu and Youssef 2026 (arXiv 2608.18303) for the classes C1 to C3 and for the
share of the dominant cluster; the paper gives no thresholds, those here are this project's own.
"""

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Literal

import msgspec

from dikast.analysis.sesse_accuracy import Rate, rate
from dikast.analysis.sesse_rows import EvalRow, QuestionVote, mean
from dikast.engine.model import Winner

ENTROPY_MIN_BITS = 0.90
"""C1 from here on: the minority has at least 31.6 % of the votes."""


class VoteRates(msgspec.Struct, frozen=True):
    """NA and invalid votes of a row, a question, a cluster or a category; both of all `asked`."""

    name: str
    asked: int
    na: int
    invalid: int
    na_rate: float
    invalid_rate: float


Level = Literal["question", "cluster", "subset", "row"]


def vote_rates(rows: Sequence[EvalRow], level: Level) -> list[VoteRates]:
    """The rates at one level, the highest NA rate first."""
    key: dict[Level, Callable[[EvalRow, QuestionVote], str]] = {
        "question": lambda row, vote: vote.qid,
        "cluster": lambda row, vote: vote.cid,
        "subset": lambda row, vote: row.subset,
        "row": lambda row, vote: row.id,
    }
    counts: dict[str, list[int]] = {}
    for row in rows:
        for vote in row.votes:
            count = counts.setdefault(key[level](row, vote), [0, 0, 0])
            count[0] += 1
            count[1] += vote.pick == "na"
            count[2] += vote.pick == "none"
    found = [
        VoteRates(name, asked, na, invalid, na / asked, invalid / asked)
        for name, (asked, na, invalid) in counts.items()
    ]
    return sorted(found, key=lambda each: (-each.na_rate, each.name))


class ClusterHealth(msgspec.Struct, frozen=True):
    """A cluster's part: share of rows that select it, share of all A and B votes that are its."""

    cid: str
    rows: int
    row_share: float
    votes: int
    vote_share: float
    right: Rate


class Health(msgspec.Struct, frozen=True):
    """Does one cluster dominate? Both readings of the paper's 51.9 %, and every cluster."""

    rows: int
    votes: int
    dominant_by_rows: str | None
    dominant_row_share: float | None
    dominant_by_votes: str | None
    dominant_vote_share: float | None
    clusters: tuple[ClusterHealth, ...]


def health(rows: Sequence[EvalRow], level: float = 0.95) -> Health:
    """The shares of every cluster over rows and over votes, and how often its votes are right."""
    chosen: dict[str, int] = {}
    votes: dict[str, list[int]] = {}
    for row in rows:
        for cid in row.selected:
            chosen[cid] = chosen.get(cid, 0) + 1
        for vote in row.votes:
            if vote.pick in ("A", "B"):
                count = votes.setdefault(vote.cid, [0, 0])
                count[0] += 1
                count[1] += vote.pick == row.label
    total = sum(count for count, _ in votes.values())
    clusters = [
        ClusterHealth(
            cid=cid,
            rows=chosen.get(cid, 0),
            row_share=chosen.get(cid, 0) / len(rows),
            votes=votes.get(cid, [0, 0])[0],
            vote_share=votes.get(cid, [0, 0])[0] / total if total else 0.0,
            right=rate(votes.get(cid, [0, 0])[1], votes.get(cid, [0, 0])[0], level),
        )
        for cid in sorted({*chosen, *votes})
    ]
    by_rows = max(clusters, key=lambda each: each.row_share, default=None)
    by_votes = max(clusters, key=lambda each: each.vote_share, default=None)
    return Health(
        rows=len(rows),
        votes=total,
        dominant_by_rows=by_rows.cid if by_rows else None,
        dominant_row_share=by_rows.row_share if by_rows else None,
        dominant_by_votes=by_votes.cid if by_votes and total else None,
        dominant_vote_share=by_votes.vote_share if by_votes and total else None,
        clusters=tuple(sorted(clusters, key=lambda each: (-each.row_share, each.cid))),
    )


# --- why it fails -------------------------------------------------------------------------------


class Thresholds(msgspec.Struct, frozen=True):
    """Where C3 begins: the mean cosine and the median NA share of the rows they were frozen on."""

    cosine: float | None
    na_share: float | None
    entropy_bits: float = ENTROPY_MIN_BITS


class Failure(msgspec.Struct, frozen=True):
    """A row on which SESSE and the holistic verdict disagree, with what it was classed by.

    `kind`: C1 ambiguous label (votes divided), C2 decomposition (confident and diverging), C3
    equivalent answers (near each other, many NA).
    """

    id: str
    subset: str
    kind: Literal["C1", "C2", "C3"]
    sesse: Winner
    holistic: Winner
    label: Winner
    entropy_bits: float
    na_share: float | None
    cosine: float | None


class Taxonomy(msgspec.Struct, frozen=True):
    """The classes over all disagreements, over those that SESSE lost, and without hep-*.

    `both` counts rows that satisfy the rules of C1 and of C3 alike (they are classed C3). Where
    `thresholds.cosine` is None no cosine was measured, and no row can be C3.
    """

    thresholds: Thresholds
    disagreements: int
    counts: dict[str, int]
    lost: dict[str, int]
    without_hep: dict[str, int]
    both: int
    failures: tuple[Failure, ...]


def entropy_of(row: EvalRow) -> float:
    """Entropy of the shares of A and B votes in bits, 0 to 1."""
    total = row.a + row.b
    if total <= 0:
        return 0.0
    return -math.fsum(
        share * math.log2(share) for share in (row.a / total, row.b / total) if share > 0
    )


def thresholds_of(rows: Sequence[EvalRow]) -> Thresholds:
    """The thresholds that these rows give; freeze them on development rows."""
    cosines = [row.cosine for row in rows if row.cosine is not None]
    shares = [share for row in rows if (share := row.na_share) is not None]
    return Thresholds(cosine=mean(cosines), na_share=median(shares) if shares else None)


def taxonomy(rows: Sequence[EvalRow], thresholds: Thresholds | None = None) -> Taxonomy:
    """Class every row that SESSE decides otherwise than the holistic verdict.

    Args:
        rows: to be classed.
        thresholds: frozen ones; by default those of `rows`.
    """
    limits = thresholds or thresholds_of(rows)
    failures: list[Failure] = []
    both = 0
    for row in rows:
        if row.sesse in (None, "tie") or row.holistic in (None, "tie", row.sesse):
            continue
        near = _near(row, limits)
        divided = entropy_of(row) >= limits.entropy_bits
        both += near and divided
        assert row.sesse is not None
        assert row.holistic is not None
        failures.append(
            Failure(
                id=row.id,
                subset=row.subset,
                kind="C3" if near else "C1" if divided else "C2",
                sesse=row.sesse,
                holistic=row.holistic,
                label=row.label,
                entropy_bits=entropy_of(row),
                na_share=row.na_share,
                cosine=row.cosine,
            )
        )
    return Taxonomy(
        thresholds=limits,
        disagreements=len(failures),
        counts=_kinds(failures),
        lost=_kinds([each for each in failures if each.sesse != each.label]),
        without_hep=_kinds([each for each in failures if not each.subset.startswith("hep-")]),
        both=both,
        failures=tuple(failures),
    )


def _near(row: EvalRow, limits: Thresholds) -> bool:
    share = row.na_share
    if row.cosine is None or share is None or limits.cosine is None or limits.na_share is None:
        return False
    return row.cosine >= limits.cosine and share >= limits.na_share


def _kinds(failures: Sequence[Failure]) -> dict[str, int]:
    return {kind: sum(each.kind == kind for each in failures) for kind in ("C1", "C2", "C3")}


class Suspect(msgspec.Struct, frozen=True):
    """A row whose label may be wrong: SESSE and the holistic verdict agree against it."""

    id: str
    subset: str
    label: Winner
    verdict: Winner
    margin: float
    votes: int
    na_share: float | None


def suspects(rows: Sequence[EvalRow], limit: int | None = None) -> list[Suspect]:
    """Candidates for a wrong label, the most suspicious first: wide margin, many votes, few NA."""
    found = [
        Suspect(
            id=row.id,
            subset=row.subset,
            label=row.label,
            verdict=row.sesse,
            margin=row.margin,
            votes=row.count("A") + row.count("B"),
            na_share=row.na_share,
        )
        for row in rows
        if row.sesse is not None
        and row.decided
        and row.sesse != row.label
        and row.holistic == row.sesse
    ]
    found.sort(key=lambda each: (-each.margin, -each.votes, each.na_share or 0.0, each.id))
    return found[:limit]
