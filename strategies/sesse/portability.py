"""Does a library fit this judge and these rows? Figures of a canary run against a reference.

After a small run of stage 5. A library is mined from one judge's errors; with another judge, or on
other rows, its questions may not apply, not be answerable or be routed wrongly, and the figures
here show that without labels. Pure: outcomes in, figures and findings out.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from dikast.engine.model import Outcome, Record, Undecided, Verdict, Winner
from dikast.strategies.sesse.library import Library

PSI_MAX = 0.2
"""Population stability index above which routing counts as shifted (the usual rule of thumb)."""
INVALID_MAX = 0.01
"""Share of votes that could not be read above which a judge does not keep to the format."""
SHIFT_MAX = 0.1
"""How far the shares of ties, of NA and of right answers may move."""
NONE = "(none)"
"""Stands among the clusters for rows to which none applied."""


class RowCount(Record, frozen=True):
    """One row of a canary run, counted."""

    tie: bool
    decided: bool
    na: int
    invalid: int
    votes: int
    selected: tuple[str, ...]
    label: Winner | None = None
    score: float = 0.0


class Canary(Record, frozen=True):
    """The figures of a canary run, as they are kept in a library.

    `asked` counts questions, of which `na` and `invalid`; `selected` counts how often Tier 1 chose
    each cluster. `score` sums 1 for a right verdict and one half for a tie over `labelled` rows.
    """

    judge: str
    judge_params: dict[str, Any]
    depth: int
    rows: int
    ties: int
    undecided: int
    asked: int
    na: int
    invalid: int
    selected: dict[str, int]
    labelled: int = 0
    score: float = 0.0
    ids_sha: str = ""


class Finding(Record, frozen=True):
    """One gate: what it looks at, the two figures, the limit, and whether it failed."""

    name: str
    reference: float | None
    found: float
    limit: str
    failed: bool
    note: str = ""


def count_row(outcome: Outcome) -> RowCount | None:
    """One outcome of the strategy `sesse`, counted; None where no answer could be had."""
    if not isinstance(outcome, Verdict | Undecided):
        return None
    notes = outcome.notes
    votes = [vote for vote in outcome.votes if vote.question is not None]
    winner = outcome.winner if isinstance(outcome, Verdict) else None
    right = 1.0 if winner == outcome.label else 0.5 if winner == "tie" else 0.0
    return RowCount(
        tie=winner == "tie",
        decided=winner is not None,
        na=sum(vote.pick == "na" for vote in votes),
        invalid=sum(vote.pick == "none" for vote in votes),
        votes=len(votes),
        selected=tuple(notes.get("selected", ())),
        label=outcome.label,
        score=right if outcome.label is not None else 0.0,
    )


def canary_of(
    rows: Iterable[RowCount],
    *,
    judge: str,
    judge_params: dict[str, Any],
    depth: int,
    ids_sha: str,
) -> Canary:
    """The figures over all rows."""
    every = list(rows)
    selected: dict[str, int] = {}
    for row in every:
        for cid in row.selected or (NONE,):
            selected[cid] = selected.get(cid, 0) + 1
    labelled = [row for row in every if row.label is not None]
    return Canary(
        judge=judge,
        judge_params=judge_params,
        depth=depth,
        rows=len(every),
        ties=sum(row.tie for row in every),
        undecided=sum(not row.decided for row in every),
        asked=sum(row.votes for row in every),
        na=sum(row.na for row in every),
        invalid=sum(row.invalid for row in every),
        selected=dict(sorted(selected.items())),
        labelled=len(labelled),
        score=math.fsum(row.score for row in labelled),
        ids_sha=ids_sha,
    )


def differences(library: Library, judge: str, params: Mapping[str, Any]) -> list[str]:
    """In what this judge is not the one that the library was mined from, in words."""
    found = [] if judge == library.judge else [f"model {library.judge} -> {judge}"]
    for name in sorted(library.judge_params.keys() | params.keys()):
        then, now = library.judge_params.get(name), params.get(name)
        if then != now:
            found.append(f"{name} {then} -> {now}")
    return found


def psi(reference: Mapping[str, int], found: Mapping[str, int]) -> float:
    """Population stability index of two counts over the same names; 0 for equal shares.

    The sum of (p - q) ln(p / q) over all names, each count raised by one half so that a name that
    one side lacks stays finite.
    """
    names = reference.keys() | found.keys()
    if not names:
        return 0.0
    one = {name: reference.get(name, 0) + 0.5 for name in names}
    other = {name: found.get(name, 0) + 0.5 for name in names}
    total, other_total = sum(one.values()), sum(other.values())
    return math.fsum(
        (other[name] / other_total - one[name] / total)
        * math.log((other[name] / other_total) / (one[name] / total))
        for name in names
    )


def psi_by_chance(reference: Mapping[str, int], found: Mapping[str, int]) -> float:
    """What `psi` comes to on average when nothing has moved, for counts of this size.

    Source: for two samples of one distribution the index times N M / (N + M) follows a chi-square
    distribution with one degree of freedom less than names (Yurdakul and Naranjo 2020, Journal of
    Risk Model Validation 14).
    """
    names = len(reference.keys() | found.keys())
    one, other = sum(reference.values()), sum(found.values())
    return (names - 1) * (1 / one + 1 / other) if one and other and names else 0.0


def compare(reference: Canary | None, found: Canary) -> list[Finding]:
    """Every gate that can be looked at; without a reference, only that of readability."""
    invalid = _share(found.invalid, found.asked)
    out = [
        Finding(
            name="invalid votes",
            reference=None if reference is None else _share(reference.invalid, reference.asked),
            found=invalid,
            limit=f"at most {INVALID_MAX:.0%}",
            failed=invalid > INVALID_MAX,
            note=f"of {found.asked:,} questions asked",
        )
    ]
    if reference is None:
        return out
    index = psi(reference.selected, found.selected)
    chance = psi_by_chance(reference.selected, found.selected)
    out += [
        _shift("ties", (reference.ties, reference.rows), (found.ties, found.rows), "rows"),
        _shift("NA votes", (reference.na, reference.asked), (found.na, found.asked), "questions"),
        Finding(
            name="Tier 1 shift (PSI)",
            reference=0.0,
            found=index,
            limit=f"at most {PSI_MAX:g}",
            failed=index > PSI_MAX,
            note=f"about {chance:.2f} by chance alone with so few rows",
        ),
    ]
    if reference.labelled and found.labelled:
        then, now = (_share(each.score, each.labelled) for each in (reference, found))
        out.append(
            Finding(
                name="right (ties one half)",
                reference=then,
                found=now,
                limit=f"at most {SHIFT_MAX:.0%} lower",
                failed=then - now > SHIFT_MAX,
                note=f"of {found.labelled:,} labelled rows",
            )
        )
    return out


def _shift(name: str, then: tuple[int, int], now: tuple[int, int], unit: str) -> Finding:
    one, other = _share(*then), _share(*now)
    return Finding(
        name=name,
        reference=one,
        found=other,
        limit=f"within {SHIFT_MAX:.0%}",
        failed=abs(other - one) > SHIFT_MAX,
        note=f"of {now[1]:,} {unit}",
    )


def _share(hits: float, n: int) -> float:
    return hits / n if n else 0.0
