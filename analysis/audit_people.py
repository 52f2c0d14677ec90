"""The annotators of an audit: how often each agrees with themselves, and whether a side is liked.

Part of the audit report. Repeated items were shown with the sides exchanged, so agreeing with
oneself means deciding by what the answers say.
"""

import msgspec

from dikast.analysis.audit_rows import LabelEntry
from dikast.analysis.counting import Number
from dikast.analysis.intervals import wilson


class Annotator(msgspec.Struct, frozen=True):
    """One annotator, or all together (`name` is "all" then).

    `self_agreement` is on items shown twice and decided twice; `left` is the share of decided
    comparisons (no tie) that chose the left answer, near a half where sides do not matter.
    """

    name: str
    decided: int
    ties: int
    skipped: int
    self_agreement: Number
    left: Number
    median_duration_s: float | None


def annotators_of(entries: list[LabelEntry], level: float) -> tuple[Annotator, ...]:
    """One row for each annotator in order of names, and one for all where there are several."""
    names = sorted({each.annotator for each in entries})
    rows = [
        _one(name, [each for each in entries if each.annotator == name], level) for name in names
    ]
    if len(names) > 1:
        rows.append(_one("all", entries, level))
    return tuple(rows)


def _one(name: str, entries: list[LabelEntry], level: float) -> Annotator:
    first = {
        (each.annotator, each.pair_id): each.label or each.decision
        for each in entries
        if not each.repeat
    }
    pairs = [
        (first.get((each.annotator, each.pair_id)), each.again) for each in entries if each.repeat
    ]
    both = [(one, two) for one, two in pairs if one is not None and two is not None]
    sided = [
        (value == "A") == (each.shown == "ab")
        for each in entries
        if (value := each.label or each.again) in ("A", "B")
    ]
    durations = sorted(each.duration_s for each in entries if each.duration_s is not None)
    return Annotator(
        name=name,
        decided=sum(value is not None for value in first.values()),
        ties=sum(value == "tie" for value in first.values()),
        skipped=sum(each.skipped and not each.repeat for each in entries),
        self_agreement=_number(sum(one == two for one, two in both), len(both), level),
        left=_number(sum(sided), len(sided), level),
        median_duration_s=durations[len(durations) // 2] if durations else None,
    )


def _number(hits: int, n: int, level: float) -> Number:
    return Number(n, hits / n, wilson(hits, n, level)) if n else Number(0, None)
