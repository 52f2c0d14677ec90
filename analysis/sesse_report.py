"""The whole report on a run of SESSE, from rows to one record that JSON can hold.

Last step of `dikast sesse evaluate` before it is drawn. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dikast.analysis.sesse_accuracy import (
    Headline,
    RiskCoverage,
    SubsetLine,
    headline,
    risk_coverage,
    subset_lines,
)
from dikast.analysis.sesse_compare import (
    BatchAgreement,
    DepthLine,
    TransferCell,
    batch_agreement,
    depth_lines,
    transfer_cell,
)
from dikast.analysis.sesse_rows import EvalRow
from dikast.analysis.sesse_rungs import Step, StepLine, step_lines
from dikast.analysis.sesse_sections import Leaderboard, leaderboard
from dikast.analysis.sesse_votes import (
    Health,
    Suspect,
    Taxonomy,
    Thresholds,
    VoteRates,
    health,
    suspects,
    taxonomy,
    vote_rates,
)

SUSPECTS_MAX = 50


class Source(msgspec.Struct, frozen=True):
    """What was read: the library's hash, the judge, the depth; how many rows are left out, why.

    `cached_share` is the share of the votes' input tokens that the provider's prefix cache
    served, None where no tokens were reported.
    """

    library: str
    judge: str
    depth: int | None
    spec: str
    simulated: bool
    left_out: dict[str, int]
    calls_per_row: float | None
    cached_share: float | None


class Report(msgspec.Struct, frozen=True):
    """All tables. `rates` is by level: "question", "cluster", "subset", "row"."""

    source: Source
    headline: Headline
    subsets: tuple[SubsetLine, ...]
    leaderboard: Leaderboard | None
    risk_coverage: RiskCoverage
    depth: tuple[DepthLine, ...]
    depth_chosen: int | None
    rates: dict[str, tuple[VoteRates, ...]]
    invalid_rate: float | None
    health: Health
    taxonomy: Taxonomy
    suspects: tuple[Suspect, ...]
    steps: tuple[StepLine, ...] = ()
    transfer: tuple[TransferCell, ...] = ()
    batch: BatchAgreement | None = None
    level: float = 0.95


class Run(msgspec.Struct, frozen=True):
    """A further run: of which library, by which judge."""

    library: str
    judge: str
    rows: tuple[EvalRow, ...]


def report_of(
    rows: Sequence[EvalRow],
    source: Source,
    *,
    by_depth: Mapping[int, Sequence[EvalRow]],
    steps: Sequence[Step] = (),
    others: Sequence[Run] = (),
    reference: Sequence[EvalRow] | None = None,
    thresholds: Thresholds | None = None,
    level: float = 0.95,
) -> Report:
    """Every table of a run.

    Args:
        rows: the run.
        source: where they come from.
        by_depth: the same pairs by replay at each depth; empty where that is not possible.
        steps: the parts of the outcomes: the vote, and each rung that was climbed.
        others: further runs for the matrix of libraries and judges.
        reference: the same pairs asked one question a call.
        thresholds: limits of the failure classes, frozen on other rows.
        level: of the intervals.
    """
    chosen = min(source.depth or max(by_depth), max(by_depth)) if by_depth else None
    asked = sum(len(row.votes) for row in rows)
    cells = [
        transfer_cell(run.library, run.judge, run.rows, level)
        for run in (Run(source.library, source.judge, tuple(rows)), *others)
    ]
    return Report(
        source=source,
        headline=headline(rows, level),
        subsets=tuple(subset_lines(rows, level)),
        leaderboard=leaderboard(rows),
        risk_coverage=risk_coverage(rows),
        depth=() if chosen is None else tuple(depth_lines(by_depth, chosen, level)),
        depth_chosen=chosen,
        rates={
            "question": tuple(vote_rates(rows, "question")),
            "cluster": tuple(vote_rates(rows, "cluster")),
            "subset": tuple(vote_rates(rows, "subset")),
            "row": tuple(vote_rates(rows, "row")),
        },
        invalid_rate=sum(row.count("none") for row in rows) / asked if asked else None,
        health=health(rows, level),
        taxonomy=taxonomy(rows, thresholds),
        suspects=tuple(suspects(rows, SUSPECTS_MAX)),
        steps=tuple(step_lines(steps, level)),
        transfer=tuple(cells) if others else (),
        batch=None if reference is None else batch_agreement(rows, reference, level=level),
        level=level,
    )


def plain(report: Report) -> dict[str, Any]:
    """The report as JSON-ready data."""
    found: dict[str, Any] = msgspec.to_builtins(report)
    return found
