"""The log of votes read again: what another depth, other weights or a smaller library would say.

After a run, without a call: questions are nested and (asked one by one) a vote does not depend on
what else is asked, so the votes of one run at full depth hold the outcome of every smaller one.
Pure; the caller reads the files.

Source: Lee, Delgeanu and Youssef 2026 (arXiv 2608.18303), depth ablation at inference.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dikast.engine.errors import InputError
from dikast.engine.model import Failed, Outcome, Pick, Record, Verdict, Vote, Winner
from dikast.strategies.sesse.library import Cluster, Library
from dikast.strategies.sesse.pool import Cast, Pooled, capped, pool


class Logged(Record, frozen=True):
    """What the log holds of one pair.

    `selected` are the clusters that Tier 1 chose; `casts` the votes on questions; `winner` what
    the run concluded, None where it gave no verdict. `holistic` is the verdict on the whole pair
    from another run, None where there is none. `a` and `b` are the pooled votes as the run weighed
    them, None where it gave no verdict. `calls` were needed, `spared` were not asked.
    """

    id: str
    label: Winner
    winner: Winner | None
    selected: tuple[str, ...]
    casts: tuple[Cast, ...]
    subset: str = ""
    tie: str | None = None
    holistic: Winner | None = None
    a: float | None = None
    b: float | None = None
    calls: int = 0
    spared: int = 0
    cached_share: float | None = None


def logged(
    outcomes: Iterable[Outcome], holistic: Mapping[str, Winner], where: str = ""
) -> tuple[list[Logged], dict[str, int]]:
    """The log of a run, and how many outcomes are left out and why.

    Args:
        outcomes: of the strategy "sesse".
        holistic: verdicts on whole pairs by id.
        where: the file, for messages.

    Raises:
        InputError: an outcome is not one of "sesse".
    """
    rows: list[Logged] = []
    left_out: dict[str, int] = {}
    for number, outcome in enumerate(outcomes, start=1):
        reason = ""
        if isinstance(outcome, Failed):
            reason = f"failed: {outcome.reason}"
        elif outcome.label is None:
            reason = "no label"
        elif outcome.label == "tie":
            reason = "labelled a tie"
        elif "selected" not in outcome.notes:
            if isinstance(outcome, Verdict) or not outcome.strategy.startswith("sesse@"):
                raise InputError(
                    "is not an outcome of the strategy sesse; judge the pairs with "
                    'kind = "sesse" first',
                    file=where,
                    line=number,
                )
            reason = "refused at Tier 1"
        if reason or outcome.label is None:
            left_out[reason] = left_out.get(reason, 0) + 1
            continue
        rows.append(_row(outcome, outcome.label, holistic.get(outcome.id)))
    return rows, left_out


def _row(outcome: Outcome, label: Winner, holistic: Winner | None) -> Logged:
    votes = [vote for vote in outcome.votes if vote.question is not None]
    return Logged(
        id=outcome.id,
        label=label,
        winner=outcome.winner if isinstance(outcome, Verdict) else None,
        selected=tuple(outcome.notes["selected"]),
        casts=tuple(as_cast(vote) for vote in votes),
        subset=outcome.category or "",
        tie=outcome.notes.get("tie"),
        holistic=holistic,
        a=outcome.scores.get("A.votes") if isinstance(outcome, Verdict) else None,
        b=outcome.scores.get("B.votes") if isinstance(outcome, Verdict) else None,
        calls=outcome.calls,
        spared=outcome.marks.spared if outcome.marks is not None else 0,
        cached_share=_cached(votes),
    )


def _cached(votes: Sequence[Vote]) -> float | None:
    """The share of the votes' input tokens that came from the provider's prefix cache."""
    used = [vote.usage for vote in votes if vote.usage is not None]
    total = sum(usage.input for usage in used)
    return sum(usage.cached_input for usage in used) / total if total else None


def as_cast(vote: Vote, weights: Mapping[str, float] | None = None) -> Cast:
    """A vote of an outcome as it is counted.

    Args:
        vote: with `question`, `cluster` and `rank`.
        weights: of the questions by qid; 1 where absent.
    """
    qid = vote.question or ""
    weight = 1.0 if weights is None else weights.get(qid, 1.0)
    return Cast(qid, vote.cluster or "", vote.rank or 0, vote.pick, weight, vote.why)


def first_votes(casts: Iterable[Cast]) -> list[Cast]:
    """The first vote on each question: a rung that asked again in the other order does not count
    for a depth, where each question is asked once."""
    found: dict[str, Cast] = {}
    for cast in casts:
        found.setdefault(cast.qid, cast)
    return list(found.values())


class Replay:
    """A library as it would have been asked, over votes that another one has taken.

    Args:
        library: whose questions, ranks, weights and muted clusters count; a subset of what the
            votes were taken with.
        weighted: count votes by their weights.
    """

    def __init__(self, library: Library, *, weighted: bool = False) -> None:
        self._weighted = weighted
        self._places = {
            question.qid: (cluster, rank, question.weight)
            for cluster in library.clusters
            for rank, question in enumerate(cluster.questions)
        }

    def casts(self, row: Logged, depth: int) -> list[Cast]:
        """The votes of a row that count at a depth."""
        found: list[Cast] = []
        for cast in first_votes(row.casts):
            place = self._places.get(cast.qid)
            if place is None:
                continue
            cluster, rank, weight = place
            muted = (
                cluster.muted if isinstance(cluster.muted, bool) else row.subset in cluster.muted
            )
            if rank < depth and not muted:
                found.append(cast._replace(cid=cluster.cid, rank=rank, weight=weight))
        return found

    def pooled(self, row: Logged, depth: int) -> Pooled:
        """The decision on a row at a depth."""
        casts = self.casts(row, depth)
        factors = capped((cast.cid, cast.weight) for cast in casts) if self._weighted else None
        return pool(casts, factors=factors, selected=len(row.selected))


def is_muted(cluster: Cluster, subset: str | None) -> bool:
    """Whether a cluster is not asked about pairs of a category."""
    if isinstance(cluster.muted, bool):
        return cluster.muted
    return bool(subset) and subset in cluster.muted


def right(pick: Pick | Winner | None, label: Winner) -> float:
    """1 for the label, one half for a tie, 0 otherwise; no verdict is wrong."""
    return 0.5 if pick == "tie" else float(pick == label)


def without(library: Library, dropped: Iterable[str]) -> Library:
    """The library without some questions; clusters that lose all of theirs go, too."""
    gone = set(dropped)
    clusters = [
        msgspec.structs.replace(
            cluster,
            questions=tuple(each for each in cluster.questions if each.qid not in gone),
            insertion_radius=tuple(
                radius
                for radius, each in zip(cluster.insertion_radius, cluster.questions, strict=False)
                if each.qid not in gone
            ),
        )
        for cluster in library.clusters
    ]
    return msgspec.structs.replace(
        library, clusters=tuple(each for each in clusters if each.questions)
    )
