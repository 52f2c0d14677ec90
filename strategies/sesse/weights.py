"""What each question and each cluster was worth on rows with a known answer.

Called by tuning, on the votes of one run. A question is never credited with the row that it was
drafted from. Pure.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from dikast.engine.model import Pick, Record, Winner
from dikast.strategies.sesse.library import Cluster, Library, Question
from dikast.strategies.sesse.pool import pool
from dikast.strategies.sesse.replay import Logged

WEIGHT_MAX = 2.0
_PRIOR = 2


class Tally(Record, frozen=True):
    """How a question did: asked on so many rows, voted A or B on `votes` of them, `hits` right.

    `invalid` answers could not be read. `fixed`: the vote on the row that it was drafted from is
    the label (True), or is not (False); None where that was not asked.
    """

    asked: int = 0
    votes: int = 0
    hits: int = 0
    invalid: int = 0
    fixed: bool | None = None

    @property
    def non_na_rate(self) -> float:
        """Share of the readable answers that are A or B; 0 without answers."""
        readable = self.asked - self.invalid
        return self.votes / readable if readable else 0.0

    @property
    def accuracy(self) -> float:
        """(hits + 2) / (votes + 4): the share of right votes, drawn to one half while few."""
        return (self.hits + _PRIOR) / (self.votes + 2 * _PRIOR)

    @property
    def weight(self) -> float:
        """log((h + 2) / (m - h + 2)), at most 2 and at least -2: the log odds of being right."""
        odds = (self.hits + _PRIOR) / (self.votes - self.hits + _PRIOR)
        return max(-WEIGHT_MAX, min(WEIGHT_MAX, math.log(odds)))


def tallies(
    library: Library, rows: Iterable[Logged], fixes: Mapping[str, bool] | None = None
) -> dict[str, Tally]:
    """A tally of every question of the library.

    Args:
        library: the questions, with the rows they come from.
        rows: the log.
        fixes: by qid, whether the vote on the question's own source row was the label.
    """
    source = {each.qid: each.source_id for each in _questions(library)}
    counts = {qid: [0, 0, 0, 0] for qid in source}
    for row in rows:
        for cast in row.casts:
            if cast.qid not in counts or source[cast.qid] == row.id:
                continue
            count = counts[cast.qid]
            count[0] += 1
            if cast.pick == "A" or cast.pick == "B":
                count[1] += 1
                count[2] += cast.pick == row.label
            count[3] += cast.pick == "none"
    fixes = fixes or {}
    return {
        qid: Tally(asked=asked, votes=votes, hits=hits, invalid=invalid, fixed=fixes.get(qid))
        for qid, (asked, votes, hits, invalid) in counts.items()
    }


def _questions(library: Library) -> list[Question]:
    return [question for cluster in library.clusters for question in cluster.questions]


class Gate(Record, frozen=True):
    """What a question must have shown to stay.

    `asked_min`: rows below which nothing is concluded from its votes. `non_na_min` and
    `accuracy_above` hold for `Tally.non_na_rate` and `Tally.accuracy`. `self_fix`: it must have
    voted for the label on its own source row, where that was asked.
    """

    asked_min: int = 10
    non_na_min: float = 0.05
    accuracy_above: float = 0.5
    self_fix: bool = True


def turned_away(tally: Tally, gate: Gate) -> str | None:
    """Why a question does not stay; None where it does."""
    if gate.self_fix and tally.fixed is False:
        return "does not fix its own source row"
    if tally.asked - tally.invalid < gate.asked_min:
        return None
    if tally.non_na_rate < gate.non_na_min:
        return "hardly ever applies"
    if tally.accuracy <= gate.accuracy_above:
        return "no better than chance"
    return None


def weighed(library: Library, found: Mapping[str, Tally]) -> Library:
    """The library with each question's weight and what it was measured on."""

    def of(question: Question) -> Question:
        tally = found[question.qid]
        stats = {
            "asked": tally.asked,
            "votes": tally.votes,
            "hits": tally.hits,
            "invalid": tally.invalid,
            "non_na_rate": round(tally.non_na_rate, 6),
            "accuracy": round(tally.accuracy, 6),
        }
        if tally.fixed is not None:
            stats["self_fix"] = tally.fixed
        return msgspec.structs.replace(
            question, weight=round(tally.weight, 6), stats={**question.stats, **stats}
        )

    return msgspec.structs.replace(
        library,
        clusters=tuple(
            msgspec.structs.replace(cluster, questions=tuple(map(of, cluster.questions)))
            for cluster in library.clusters
        ),
    )


class Effect(Record, frozen=True):
    """How a cluster's own majority did on the rows that it decided, in one category or in all."""

    cid: str
    subset: str | None
    decided: int
    right: int

    @property
    def harm_p(self) -> float:
        """P(at most so many right | a fair coin), one-sided: small where the cluster does harm."""
        ways = sum(math.comb(self.decided, hits) for hits in range(self.right + 1))
        return float(Fraction(ways, 2**self.decided))


def effects(library: Library, rows: Sequence[Logged]) -> list[Effect]:
    """The effect of every cluster, over all rows and in every category."""
    counts: dict[tuple[str, str | None], list[int]] = {}
    for row in rows:
        for cluster in library.clusters:
            pick = _majority(cluster, row)
            if pick is None:
                continue
            for subset in (None, row.subset):
                count = counts.setdefault((cluster.cid, subset), [0, 0])
                count[0] += 1
                count[1] += pick == row.label
    return [
        Effect(cid=cid, subset=subset, decided=decided, right=right)
        for (cid, subset), (decided, right) in counts.items()
    ]


def _majority(cluster: Cluster, row: Logged) -> Winner | Pick | None:
    """What a cluster says about a row by its own votes, those from the row itself left out."""
    own = {each.qid for each in cluster.questions if each.source_id != row.id}
    winner = pool(cast for cast in row.casts if cast.qid in own).winner
    return winner if winner in ("A", "B") else None


def muted(library: Library, found: Iterable[Effect], p_max: float = 0.025) -> Library:
    """The library with harmful clusters muted: everywhere, or in the categories of the harm.

    A cluster does harm where its majorities are wrong so often that a fair coin would hardly ever
    do worse (one-sided exact p below `p_max`).
    """
    harm: dict[str, set[str | None]] = {}
    for effect in found:
        if effect.decided and effect.harm_p < p_max:
            harm.setdefault(effect.cid, set()).add(effect.subset)
    clusters: list[Cluster] = []
    for cluster in library.clusters:
        where = harm.get(cluster.cid)
        if where is not None:
            named = tuple(sorted(each for each in where if each))
            cluster = msgspec.structs.replace(cluster, muted=True if None in where else named)
        clusters.append(cluster)
    return msgspec.structs.replace(library, clusters=tuple(clusters))
