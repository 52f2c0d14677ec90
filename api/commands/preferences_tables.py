"""The reports of `dikast preferences` as tables. Formats; computes nothing."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dikast.analysis.preferences_evaluation import Ablation, Ceiling, Measured, Transfer
from dikast.analysis.preferences_report import Arm, FitReport
from dikast.analysis.preferences_votes import Estimate
from dikast.tables import Cell, Measure, Share, Table

if TYPE_CHECKING:  # it needs scipy, which only the leaderboard pays for
    from dikast.analysis.ranking import Comparison, Ranking

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


def evaluation_tables(
    measured: Sequence[Measured],
    people: Sequence[Ceiling],
    moved: Sequence[Transfer],
    changed: Mapping[str, Sequence[Ablation]],
    between: Sequence[tuple[str, str, Estimate]],
    left_out: Mapping[str, Mapping[str, int]],
) -> list[Table]:
    """Accuracy and positions first; what people agree on; then what was asked for beside."""
    rows: list[tuple[Cell, ...]] = []
    for found in measured:
        for arm in found.arms:
            topic = found.topic or "none"
            rows.append((found.person, topic, arm.name, *arm_cells(arm), arm.accuracy.pairs))
    notes = [
        f"{path}: {counts['held_out']} held-out pairs; {counts['on_development']} on prompts of "
        "the fit left out"
        for path, counts in left_out.items()
    ]
    columns = ("person", "topic", "judged by", *ARM_COLUMNS, "pairs")
    tables = [Table("held-out labels", columns, tuple(rows), (*notes, TIES, INTERVALS))]
    tables.append(_positions_table(measured))
    agreement = tuple(
        (each.person, share(each.agreement), each.agreement.pairs, each.agreement.left_out)
        for each in people
    )
    note = "the mean over pairs of the share of others who took the same answer; ties left out"
    tables.append(
        Table(
            "agreement with other people", ("person", "agree", "pairs", "alone"), agreement, (note,)
        )
    )
    heads: tuple[str, ...]
    if moved:
        transfers: list[tuple[Cell, ...]] = [
            (
                each.person,
                each.entry or "all",
                each.topic,
                share(each.accuracy),
                share(each.gain, signed=True),
                each.accuracy.pairs,
            )
            for each in moved
        ]
        heads = ("person", "fitted on", "judging", "accuracy", "gain over plain", "pairs")
        tables.append(Table("across topics", heads, tuple(transfers), (INTERVALS,)))
    if changed:
        others: list[tuple[Cell, ...]] = [
            (
                person,
                each.labels,
                each.rule,
                share(each.accuracy),
                share(each.gain, signed=True),
                each.accuracy.pairs,
            )
            for person, found in changed.items()
            for each in found
        ]
        heads = ("person", "labels", "rule", "accuracy", "gain over plain", "pairs")
        note = "all rules on the same pairs, from the same votes"
        tables.append(Table("other choices", heads, tuple(others), (note, INTERVALS)))
    if between:
        pairs: list[tuple[Cell, ...]] = [
            (first, second, share(gain, signed=True), gain.pairs) for first, second, gain in between
        ]
        note = "accuracy of the first less that of the second, on pairs neither was fitted on"
        heads = ("first", "second", "difference", "pairs")
        tables.append(Table("profiles of one person", heads, tuple(pairs), (note,)))
    return tables


def _positions_table(measured: Sequence[Measured]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for found in measured:
        if found.topic != "all":
            continue
        for arm in found.arms:
            where = arm.positions
            rows.append(
                (
                    *(found.person, arm.name),
                    *(share(where.consistency_strict), share(where.consistency_lenient)),
                    share(where.position_bias, signed=True),
                    *(where.consistent, where.always_first, where.always_second),
                    where.level_or_missing,
                )
            )
    return Table(
        "order of the answers",
        (
            *("person", "judged by", "consistent, strict", "lenient", "bias"),
            *("same answer", "always first", "always second", "level or missing"),
        ),
        tuple(rows),
        (
            "strict: a pair with a level or missing order counts as inconsistent; lenient: it is "
            "left out",
            "bias: share of picks of the answer shown first less one half",
        ),
    )


def leaderboard_tables(
    rankings: "Mapping[str, Ranking]",
    compared: "Sequence[tuple[str, str, Comparison | None]]",
    battles: int,
    left_out: int,
) -> list[Table]:
    """The models with their rating under each profile, and how alike the orders are."""
    of = {name: {m.model: m for m in found.models} for name, found in rankings.items()}
    first = next(iter(rankings.values()))
    rows: list[tuple[Cell, ...]] = []
    for model in (each.model for each in first.models):
        row: list[Cell] = [model]
        for name in rankings:
            place = of[name][model]
            row += [place.rank, Measure(place.rating, place.interval, 0)]
        rows.append(tuple(row))
    heads = tuple(head for name in rankings for head in (f"{name}: rank", "rating"))
    notes = [
        f"{battles} pairs that were decided under every profile; {left_out} were not, and are left "
        "out everywhere",
        f"{first.prompts} prompts; ties and orders that disagree count half a win for each",
        f"rating: {first.scale}; [low, high]: 95 %, {first.models[0].interval.method}",
    ]
    tables = [Table("leaderboards", ("model", *heads), tuple(rows), tuple(notes))]
    alike: list[tuple[Cell, ...]] = [
        (
            *(a, b, found.models, Measure(found.kendall_tau_b, found.kendall_interval)),
            Measure(found.spearman, found.spearman_interval),
            Share(found.same_order),
        )
        for a, b, found in compared
        if found is not None
    ]
    if alike:
        heads = ("first", "second", "models", "Kendall tau-b", "Spearman rho", "same order")
        note = "same order: share of the pairs of models that both order alike"
        tables.append(Table("how alike", heads, tuple(alike), (note,)))
    return tables
