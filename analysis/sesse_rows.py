"""What a log of votes says of each pair, as the tables of SESSE count it.

First step of `dikast sesse evaluate`: the command turns outcomes into these rows (it knows
strategies, this package does not), everything after is arithmetic on them.
"""

from collections.abc import Iterable, Sequence

import msgspec

from dikast.engine.model import Pick, Winner


class QuestionVote(msgspec.Struct, frozen=True, gc=False):
    """One vote on one question: `rank` is its place in the cluster."""

    qid: str
    cid: str
    rank: int
    pick: Pick


class EvalRow(msgspec.Struct, frozen=True):
    """One labelled pair.

    `sesse` and `holistic` are the two verdicts, None where there is none. `a` and `b` are the
    pooled votes for each side. `tie` says of what kind a tie is. `cosine` is the nearness of the
    two answers, None where it was not measured.
    """

    id: str
    label: Winner
    sesse: Winner | None
    holistic: Winner | None = None
    subset: str = ""
    a: float = 0.0
    b: float = 0.0
    tie: str | None = None
    selected: tuple[str, ...] = ()
    votes: tuple[QuestionVote, ...] = ()
    cosine: float | None = None
    calls: int = 0

    @property
    def margin(self) -> float:
        """|A - B| / (A + B); 0 without votes."""
        total = self.a + self.b
        return abs(self.a - self.b) / total if total > 0 else 0.0

    @property
    def decided(self) -> bool:
        """Whether SESSE gives A or B."""
        return self.sesse in ("A", "B")

    def count(self, pick: Pick) -> int:
        """How many votes are `pick`."""
        return sum(vote.pick == pick for vote in self.votes)

    @property
    def na_share(self) -> float | None:
        """Share of NA among the readable votes; None without any."""
        na = self.count("na")
        readable = len(self.votes) - self.count("none")
        return na / readable if readable else None


def score(verdict: Winner | None, label: Winner) -> float:
    """1 for the label, one half for a tie, 0 otherwise; no verdict is wrong."""
    return 0.5 if verdict == "tie" else float(verdict == label)


def by_subset(rows: Iterable[EvalRow]) -> dict[str, list[EvalRow]]:
    """Rows by category, in the order of the names."""
    found: dict[str, list[EvalRow]] = {}
    for row in rows:
        found.setdefault(row.subset, []).append(row)
    return dict(sorted(found.items()))


def mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return sum(values) / len(values) if values else None
