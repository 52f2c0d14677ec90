"""What each member of a committee is worth, measured on pairs whose better answer is known.

Used between two runs: outcomes with labels in, a weight for each member out. A member's vote then
counts by the log of its odds to be right. Pure counting; knows no files and no strategies.
"""

from collections import Counter
from collections.abc import Iterable
from math import log
from typing import Any, Final, NamedTuple

import msgspec

from dikast.analysis.intervals import Interval, wilson
from dikast.analysis.rows import OutcomeRow
from dikast.engine.model import Winner

METHOD: Final = "log-odds: max(0, ln((right + 1) / (wrong + 1)))"
_DIGITS: Final = 6


class PartRow(msgspec.Struct, frozen=True, gc=False):
    """One part of a compound outcome, as written; see `dikast.engine.model.Part`."""

    name: str
    pick: str = "none"


class BallotRow(OutcomeRow, frozen=True):
    """An outcome with the members' picks."""

    parts: tuple[PartRow, ...] = ()

    @property
    def picks(self) -> dict[str, str]:
        """Each member's pick by its name; of a lone judge that judge's. Empty: nobody is named.

        A cascade names nobody: its rungs answer for some pairs only, chosen by how hard they are.
        """
        kind = self.strategy.partition("@")[0]
        if kind in ("committee", "early_stop"):
            return {part.name: part.pick for part in self.parts}
        judges = {vote.judge for vote in self.votes}
        if kind == "cascade" or len(judges) != 1:
            return {}
        return {judges.pop(): self.winner or "none"}


class MemberFit(NamedTuple):
    """How often one member's pick was the label (`right`), the other answer, or no pick at all."""

    name: str
    right: int
    wrong: int
    no_pick: int

    @property
    def accuracy(self) -> float | None:
        """Right among its picks; None where it never picked."""
        picked = self.right + self.wrong
        return self.right / picked if picked else None

    def interval(self, level: float = 0.95) -> Interval:
        """Wilson's interval of the accuracy."""
        return wilson(self.right, self.right + self.wrong, level)

    @property
    def log_odds(self) -> float:
        """Natural log of its odds to be right, with one pick added on each side.

        The two added picks (Laplace's rule of succession) keep a member that was never wrong from
        weighing more than all others together on the strength of a few pairs.
        """
        return log((self.right + 1) / (self.wrong + 1))

    @property
    def weight(self) -> float:
        """Its log odds, and 0 where it was not right more often than wrong.

        The optimal rule would turn the vote of a member that is mostly wrong around. A weakness
        measured on one kind of pairs is not to be trusted that far on the next: such a member
        loses its vote.
        """
        return max(0.0, round(self.log_odds, _DIGITS))


class Fit(NamedTuple):
    """The members in order of their names, the number of pairs, what was left out by reason."""

    members: tuple[MemberFit, ...]
    pairs: int
    left_out: dict[str, int]


class WeightFitter:
    """Counts outcomes one by one; keeps a count for each member and the ids it has seen.

    A vote for A or B with a known accuracy p says ln(p / (1 - p)) about which answer is better;
    the sum of these over independent members is the best rule there is. A tie says nothing about
    which, so it neither adds to a weight nor takes from it. Members that err together are not
    independent, and then weights of this kind count one opinion several times.

    Source: Nitzan and Paroush 1982, International Economic Review 23, 289-297.
    """

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self._seen: set[tuple[str, str]] = set()
        self._pairs: set[str] = set()
        self._left_out: Counter[str] = Counter()

    def add(self, row: BallotRow, label: Winner | None) -> str | None:
        """Count one outcome.

        Args:
            row: the last of its pair in its output.
            label: the better answer; a tie and None are left out.

        Returns:
            None, or one clause on why the outcomes do not fit together.
        """
        if label not in ("A", "B"):
            self._left_out["label is a tie" if label else "no label"] += 1
            return None
        if row.kind == "failed":
            self._left_out["failed"] += 1
            return None
        if row.marks is not None and row.marks.spared:
            self._left_out["early_stop asked only some members"] += 1
            return None
        picks = row.picks
        if not picks:
            return (
                f"strategy {row.strategy or 'unknown'!r} says nothing of single members; give the "
                "output of a committee, or one output for each judge"
            )
        self._pairs.add(row.id)
        for name, pick in picks.items():
            if (name, row.id) in self._seen:
                return f"member {name!r} has judged pair {row.id!r} before, in another file"
            self._seen.add((name, row.id))
            counts = self._counts.setdefault(name, Counter())
            counts["no_pick" if pick not in ("A", "B") else str(pick == label)] += 1
        return None

    def fit(self) -> Fit:
        """The counts so far."""
        members = tuple(
            MemberFit(name, counts["True"], counts["False"], counts["no_pick"])
            for name, counts in sorted(self._counts.items())
        )
        return Fit(members, len(self._pairs), dict(sorted(self._left_out.items())))

    def __repr__(self) -> str:
        return f"WeightFitter({len(self._counts)} members, {len(self._pairs)} pairs)"


def majority_labels(labels: Iterable[tuple[str, Winner]]) -> dict[str, Winner | None]:
    """One label for each pair: what most annotators said, None where no answer leads."""
    votes: dict[str, Counter[Any]] = {}
    for pair_id, label in labels:
        votes.setdefault(pair_id, Counter())[label] += 1
    out: dict[str, Winner | None] = {}
    for pair_id, counts in votes.items():
        (first, most), *others = counts.most_common(2)
        out[pair_id] = None if others and others[0][1] == most else first
    return out
