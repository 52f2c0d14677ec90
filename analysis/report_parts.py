"""Counts of the strategies that have sections of their own in a report: SESSE and preferences.

Streaming: an outcome goes in, counters stay. What is counted depends on the size of a library of
questions or of a profile, never on the number of pairs. `ReportRow` is the outcome with the fields
that only a report needs.
"""

from collections import Counter
from typing import Any, Final, cast

import msgspec

from dikast.analysis.intervals import Interval, wilson
from dikast.analysis.ratings import CODE, NONE
from dikast.analysis.rows import OutcomeRow, VoteRow

_NOTHING: Final = msgspec.Raw(b"[]")
_PREFERENCES: Final = "preferences@"


class ReportVote(VoteRow, frozen=True, gc=False):
    """One vote with its words and, where it answers a question of a library, which one."""

    text: str | None = None
    cluster: str | None = None
    finish_reason: str | None = None


class PartRow(msgspec.Struct, frozen=True):
    """One part of a compound strategy; see `dikast.engine.model.Part`."""

    name: str
    pick: str = "none"
    why: str | None = None
    weight: float = 1.0


class ReportRow(OutcomeRow, frozen=True):
    """An outcome with everything a report shows of it; `parts` are decoded where needed."""

    votes: tuple[ReportVote, ...] = ()
    parts: msgspec.Raw = _NOTHING
    notes: dict[str, Any] = {}
    detail: str | None = None
    message: str | None = None
    rationale: str | None = None
    consistent: bool | None = None
    model: str | None = None
    grade: float | None = None
    file: str | None = None
    line: int | None = None

    def parts_read(self) -> list[PartRow]:
        """The parts, decoded."""
        return msgspec.json.decode(self.parts, type=list[PartRow])


class Rate(msgspec.Struct, frozen=True):
    """`hits` of `n`, with Wilson's interval; no share without n."""

    hits: int
    n: int
    share: float | None
    interval: Interval | None


class ClusterPart(msgspec.Struct, frozen=True):
    """One cluster of questions: `rows` selected it. Of its votes `votes` say A or B, `na` say that
    the question does not apply, `unread` could not be read; `right` compares A and B with A and B
    labels."""

    cluster: str
    rows: Rate
    votes: int
    na: Rate
    unread: Rate
    right: Rate


class Questions(msgspec.Struct, frozen=True):
    """SESSE: which clusters were selected, and how their questions were answered."""

    rows: int
    libraries: tuple[str, ...]
    nothing_selected: Rate
    ties: dict[str, int]
    na: Rate
    unread: Rate
    position_conflicts: int
    clusters: tuple[ClusterPart, ...]


class PreferencePart(msgspec.Struct, frozen=True):
    """One preference: how often both orders agreed, and how often it then said what was decided,
    and what the label says."""

    preference: str
    consistent: Rate
    with_verdict: Rate
    with_label: Rate


class Preferences(msgspec.Struct, frozen=True):
    """Verdicts after a person's preferences."""

    rows: int
    consistent: Rate
    abstained: Rate
    preferences: tuple[PreferencePart, ...]


def rate(hits: int, n: int, level: float) -> Rate:
    """A share with Wilson's interval."""
    return Rate(hits, n, hits / n, wilson(hits, n, level)) if n else Rate(hits, 0, None, None)


class QuestionCounts:
    """Takes outcomes of SESSE; others pass by."""

    def __init__(self) -> None:
        self._rows = 0
        self._empty = 0
        self._conflicts = 0
        self._libraries: Counter[str] = Counter()
        self._ties: Counter[str] = Counter()
        self._selected: Counter[str] = Counter()
        self._picks: Counter[tuple[str, str]] = Counter()
        self._right: Counter[str] = Counter()
        self._labelled: Counter[str] = Counter()

    def take(self, row: ReportRow, label: int) -> None:
        """Count one outcome."""
        found = row.notes.get("selected")
        if not isinstance(found, list):
            return
        selected = [str(each) for each in cast("list[object]", found)]
        self._rows += 1
        self._empty += not selected
        self._selected.update(selected)
        self._libraries[str(row.notes.get("library", ""))] += 1
        if row.notes.get("tie") is not None:
            self._ties[str(row.notes["tie"])] += 1
        conflicts = row.notes.get("position_conflicts", 0)
        self._conflicts += conflicts if isinstance(conflicts, int) else 0
        for vote in row.votes:
            if vote.cluster is None:
                continue
            self._picks[vote.cluster, vote.pick] += 1
            if vote.pick in ("A", "B") and label in (CODE["A"], CODE["B"]):
                self._labelled[vote.cluster] += 1
                self._right[vote.cluster] += CODE[vote.pick] == label

    def finish(self, level: float) -> Questions | None:
        """The counts as shares; None where no outcome is of SESSE."""
        if not self._rows:
            return None
        picks = self._picks
        names = sorted({cluster for cluster, _ in picks} | set(self._selected))
        asked = {name: sum(n for (of, _), n in picks.items() if of == name) for name in names}
        total = sum(asked.values())

        def said(pick: str) -> int:
            return sum(n for (_, what), n in picks.items() if what == pick)

        return Questions(
            rows=self._rows,
            libraries=tuple(sorted(self._libraries)),
            nothing_selected=rate(self._empty, self._rows, level),
            ties=dict(sorted(self._ties.items())),
            na=rate(said("na"), total, level),
            unread=rate(said("none"), total, level),
            position_conflicts=self._conflicts,
            clusters=tuple(
                ClusterPart(
                    cluster=name,
                    rows=rate(self._selected[name], self._rows, level),
                    votes=picks[name, "A"] + picks[name, "B"],
                    na=rate(picks[name, "na"], asked[name], level),
                    unread=rate(picks[name, "none"], asked[name], level),
                    right=rate(self._right[name], self._labelled[name], level),
                )
                for name in sorted(names, key=lambda name: (-self._selected[name], name))
            ),
        )


class PreferenceCounts:
    """Takes outcomes of the strategy `preferences`; others pass by."""

    def __init__(self) -> None:
        self._rows = 0
        self._abstained = 0
        self._consistent: Counter[bool] = Counter()
        self._asked: Counter[str] = Counter()
        self._same: Counter[str] = Counter()
        self._verdict: Counter[tuple[str, bool]] = Counter()
        self._label: Counter[tuple[str, bool]] = Counter()

    def take(self, row: ReportRow, label: int) -> None:
        """Count one outcome."""
        if not row.strategy.startswith(_PREFERENCES):
            return
        self._rows += 1
        self._abstained += row.why == "abstained"
        if row.consistent is not None:
            self._consistent[row.consistent] += 1
        for part in row.parts_read():
            self._asked[part.name] += 1
            if part.pick not in CODE:
                continue
            self._same[part.name] += 1
            if row.winner is not None:
                self._verdict[part.name, part.pick == row.winner] += 1
            if label != NONE:
                self._label[part.name, CODE[part.pick] == label] += 1

    def finish(self, level: float) -> Preferences | None:
        """The counts as shares; None where no outcome is of preferences."""
        if not self._rows:
            return None

        def of(counts: Counter[tuple[str, bool]], name: str) -> Rate:
            return rate(counts[name, True], counts[name, True] + counts[name, False], level)

        return Preferences(
            rows=self._rows,
            consistent=rate(self._consistent[True], self._consistent.total(), level),
            abstained=rate(self._abstained, self._rows, level),
            preferences=tuple(
                PreferencePart(
                    preference=name,
                    consistent=rate(self._same[name], self._asked[name], level),
                    with_verdict=of(self._verdict, name),
                    with_label=of(self._label, name),
                )
                for name in sorted(self._asked)
            ),
        )
