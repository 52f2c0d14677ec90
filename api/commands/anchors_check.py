"""`dikast anchors check`: a run beside the baseline; status 4 when the judge has changed."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from dikast import status, tables
from dikast.analysis.drift import Drift, Judged, Measure, agreement, check_drift
from dikast.analysis.intervals import Interval, wilson
from dikast.analysis.tolerance import Tolerance
from dikast.commands.anchors_files import (
    AnchorItem,
    AnchorRun,
    agreement_warning,
    check_comparable,
    read_run,
)
from dikast.commands.reporting import drawn
from dikast.config import AnchorSettings, load_settings


async def check(args: argparse.Namespace) -> int:
    """Compare, print, and say by the status whether the judge is in control."""
    limits = _limits(args)
    run, baseline = read_run(args.run), read_run(args.baseline)
    check_comparable(baseline, run, args.baseline, args.run)
    found = compare(baseline, run, limits)
    if args.json:
        print(msgspec.json.encode(machine(found, baseline, run)).decode())
    else:
        print("\n".join(lines(found, baseline, run)))
    return status.OK if found.in_control else status.GATE


def _limits(args: argparse.Namespace) -> Tolerance:
    settings = load_settings(Path(args.config)).anchors if args.config else AnchorSettings()
    said = {
        name: value
        for name in Tolerance.__struct_fields__
        if (value := getattr(args, name)) is not None
    }
    return msgspec.structs.replace(settings, **said).tolerance()


def compare(baseline: AnchorRun, run: AnchorRun, limits: Tolerance) -> Drift:
    """The drift from one run to another on the same set."""
    return check_drift(_judged(baseline.items), _judged(run.items), limits)


def _judged(items: Sequence[AnchorItem]) -> list[Judged]:
    return [
        Judged(
            id=each.id,
            winner=each.winner,
            again=each.again,
            scores=each.scores,
            label=each.label,
            why=None if each.kind == "verdict" else f"{each.kind}: {each.why}",
        )
        for each in items
    ]


def standing(run: AnchorRun, limits: Tolerance) -> list[str]:
    """What one run says by itself: the judge's noise, and how far it agrees with the labels."""
    found: list[str] = []
    if (noise := noise_of(run)) is not None:
        changed, count, interval = noise
        share = tables.text_of(tables.Share(changed / count, interval))
        found.append(f"judged twice: {changed} of {count} verdicts changed by themselves, {share}")
    seen = agreement(_judged(run.items))
    if seen is None:
        return [*found, "no anchor has a label: nothing is known of the judge's agreement"]
    share = tables.text_of(
        tables.Share(seen.agreed / seen.items if seen.items else None, seen.interval)
    )
    left_out = f" ({seen.left_out} without a verdict left out)" if seen.left_out else ""
    found.append(f"agreement with labels: {seen.agreed} of {seen.items}, {share}{left_out}")
    said = agreement_warning(seen.agreed, seen.items, seen.interval, limits)
    return found if said is None else [*found, f"warning: {said}"]


def noise_of(run: AnchorRun) -> tuple[int, int, Interval] | None:
    """Verdicts that changed between two judgements of one run, of how many; None if judged once."""
    twice = [each for each in run.items if each.winner is not None and each.again is not None]
    if not twice:
        return None
    changed = sum(each.winner != each.again for each in twice)
    return changed, len(twice), wilson(changed, len(twice))


def facts_of(run: AnchorRun) -> dict[str, Any]:
    """The same for machines."""
    noise = noise_of(run)
    return {
        "noise": (
            None
            if noise is None
            else {
                "changed": noise[0],
                "items": noise[1],
                "interval": msgspec.to_builtins(noise[2]),
            }
        ),
        "agreement": msgspec.to_builtins(agreement(_judged(run.items))),
    }


def warning(found: Drift) -> str | None:
    """The sentence for a judge that agrees too little with the labels; None when all is well."""
    seen = found.agreement
    if seen is None:
        return None
    return agreement_warning(seen.agreed, seen.items, seen.interval, found.tolerance)


def conclusion(found: Drift) -> str:
    """One sentence."""
    if found.in_control:
        return "in control: nothing moved beyond chance and beyond what is tolerated"
    moved = ", ".join(each.name for each in found.alarms)
    return f"OUT OF CONTROL: {moved}"


def lines(found: Drift, baseline: AnchorRun, run: AnchorRun) -> list[str]:
    """The report for a terminal."""
    made_up = ", simulated judges" if run.simulated or baseline.simulated else ""
    table = tables.Table(
        title=f"Anchors {run.anchors}{made_up}",
        columns=("measure", "items", "baseline", "today", "change", "tolerated", "p", ""),
        rows=tuple(_row(each) for each in found.measures),
        notes=(
            f"today: judged {run.judged}; baseline: judged {baseline.judged}; spec {run.spec}",
            *_notes(found, run),
        ),
    )
    out = [drawn(table).rstrip("\n"), "", conclusion(found)]
    if (said := warning(found)) is not None:
        out.append(f"warning: {said}")
    return out


def _row(each: Measure) -> tuple[tables.Cell, ...]:
    units = each.name.startswith("mean ")
    value = tables.Measure if units else tables.Share
    signed = each.before is not None
    return (
        each.name,
        each.items,
        value(each.before),
        value(each.after),
        value(each.change, each.interval, signed=signed),
        value(each.limit),
        tables.P(each.p_holm),
        "OUT" if each.out_of_control else "ok",
    )


def _notes(found: Drift, run: AnchorRun) -> list[str]:
    notes = [
        f"{found.common} of {found.items} anchors have a verdict in both runs and are compared; "
        f"without one: baseline {_reasons(found.missing_before)}; "
        f"today {_reasons(found.missing_after)}",
        "intervals: 95 %; p: permutation and exact tests, after Holm; OUT needs p <= "
        f"{found.tolerance.alpha:g} and a change beyond what is tolerated (changed verdicts: an "
        "interval wholly beyond it; missing ones: the share itself)",
        "in the win share a tie counts half; with labels a tie agrees with a tie only",
    ]
    if run.stored_calls:
        notes.append(f"{run.stored_calls} answers came from a call store: not today's judge")
    if found.agreement is not None:
        seen = found.agreement
        share = tables.Share(seen.agreed / seen.items if seen.items else None, seen.interval)
        notes.append(
            f"agreement with labels today: {tables.text_of(share)} of {seen.items}; "
            f"{seen.left_out} labelled anchors without a verdict left out"
        )
    return notes


def _reasons(counts: dict[str, int]) -> str:
    told = ", ".join(f"{count} {why}" for why, count in sorted(counts.items()))
    return told or "none"


def machine(found: Drift, baseline: AnchorRun, run: AnchorRun) -> dict[str, Any]:
    """What `--json` prints, and what a manifest keeps."""
    return {
        "in_control": found.in_control,
        "capable": found.capable,
        "warning": warning(found),
        "anchors": msgspec.to_builtins(run.anchors),
        "baseline_judged": baseline.judged,
        "judged": run.judged,
        "spec": run.spec,
        "simulated": run.simulated or baseline.simulated,
        "items": found.items,
        "common": found.common,
        "missing_before": found.missing_before,
        "missing_after": found.missing_after,
        "tolerance": {name: getattr(found.tolerance, name) for name in Tolerance.__struct_fields__},
        "measures": [
            {name: msgspec.to_builtins(getattr(each, name)) for name in each.__struct_fields__}
            for each in found.measures
        ],
        "agreement": msgspec.to_builtins(found.agreement),
    }
