"""The reports of `dikast preferences` as tables. Formats; computes nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from dikast.analysis.preferences_report import Arm, FitReport
from dikast.analysis.preferences_votes import Estimate
from dikast.tables import Cell, Share, Table

TIES = (
    "accuracy: mean over both orders of a pair; a level vote counts ½, an order without a "
    "readable verdict is left out; pairs the person called a tie are in no figure"
)
INTERVALS = "intervals: 95 %, resampling prompts"


def share(estimate: Estimate | None, *, signed: bool = False) -> Share:
    """An estimate as a cell."""
    if estimate is None:
        return Share(None)
    return Share(estimate.value, estimate.interval, signed)


ARM_COLUMNS = ("accuracy", "gain over plain", "both right", "consistent", "bias")


def arm_cells(arm: Arm) -> tuple[Share, ...]:
    """The cells of one arm, for `ARM_COLUMNS`."""
    return (
        share(arm.accuracy),
        share(arm.gain, signed=True),
        Share(arm.both_right.value),
        Share(arm.positions.consistency_strict.value),
        Share(arm.positions.position_bias.value, signed=True),
    )


def fit_tables(
    people: Mapping[str, Any],
    reports: Mapping[str, Mapping[str, FitReport]],
    skipped: Sequence[tuple[str, str, str]],
    bad_rows: Sequence[str],
) -> list[Table]:
    """One table for each entry, and one for those who got none."""
    tables: list[Table] = []
    for person, account in people.items():
        for topic, report in reports[person].items():
            where = f"{person}, topic {topic}" if topic else person
            tables.append(_entry_table(where, account, report))
    if skipped:
        rows = tuple((person, topic or "all", why) for person, topic, why in skipped)
        tables.append(Table("without a profile", ("person", "topic", "why"), rows))
    if bad_rows:
        shown = tuple((each,) for each in bad_rows[:20])
        notes = (f"{len(bad_rows)} rows are no pairs; the first {len(shown)} are shown",)
        tables.append(Table("rows that were left out", ("row",), shown, notes))
    return tables


def _entry_table(where: str, account: Mapping[str, Any], report: FitReport) -> Table:
    left = account["left_out"]
    rows: list[tuple[Cell, ...]] = [
        (arm.name, *arm_cells(arm), arm.accuracy.pairs) for arm in report.arms
    ]
    verdict = "the preferences" if report.use == "preferences" else "the plain judge"
    notes = [
        f"{verdict} will judge: {report.why}",
        f"{report.pairs} development pairs on {report.prompts} prompts; every figure is on pairs "
        "whose prompt the judge had no choice of (leave-one-out, nested choice)",
        f"labels left out: {left['ties']} ties, {left['identical']} on two identical answers, "
        f"{left['repeated']} repeated, "
        f"{len(left['contradictory'])} pairs with contradictory labels",
        f"unreadable verdicts: {report.unread:.1%}",
        TIES,
        INTERVALS,
    ]
    if report.chosen:
        how = "all subsets compared" if report.exact else "greedy search"
        notes.insert(
            1,
            f"{report.chosen} of {report.candidates} preferences chosen ({how}, "
            f"{report.tied_best_sets} best sets)",
        )
    if left["contradictory"]:
        shown = ", ".join(left["contradictory"][:5])
        notes.append(f"contradictory: {shown}{', ...' if left['contradictory'][5:] else ''}")
    if report.shuffled_p is not None and report.shuffles:
        p = "<0.001" if report.shuffled_p < 0.001 else f"{report.shuffled_p:.3f}"
        notes.insert(
            2,
            f"p = {p}: how often shuffled labels ({report.shuffles} times) do as well as this "
            "person's own",
        )
    return Table(
        f"{where}: profile version {account['version']}",
        ("judged by", *ARM_COLUMNS, "pairs"),
        tuple(rows),
        tuple(notes),
    )
