"""`dikast compare`: two runs or a history of runs, side by side and pair by pair.

Reads outcome files and the manifests beside them, hands columns to `dikast.analysis.compare`,
draws what comes back.
"""

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dikast import status
from dikast.commands.reporting import (
    cluster_notes,
    counted,
    intervals_row,
    load,
    measure,
    missing_notes,
    options_of,
    share,
    show,
)
from dikast.engine.errors import InputError
from dikast.engine.model import Record
from dikast.extras import needs
from dikast.manifest import manifest_path, read_manifest, spec_differences
from dikast.tables import P, Table

if TYPE_CHECKING:
    from dikast.analysis.compare import CompareReport, Paired

_DIFFERENCES_MAX = 12


class AnchorState(Record, frozen=True):
    """What a run's manifest says of the anchors that went along. `in_control` is None where there
    was no baseline to hold them against."""

    run: str
    anchors: str
    judged: str | None
    items: int
    verdicts: int
    in_control: bool | None
    correction: str | None


class Settings(Record, frozen=True):
    """How the settings of a run differ from those of the first."""

    run: str
    started: str | None
    status: str | None
    differences: tuple[str, ...]


async def run(args: argparse.Namespace) -> int:
    """Print the report; exit status 0."""
    if len(args.outcomes) < 2:
        raise InputError("one run cannot be compared; give two outcome files or more")
    with needs("analysis", "dikast compare"):
        from dikast.analysis.compare import compare
    ratings = load(args)
    report = compare(ratings, options_of(args))
    if not any(each.shared for each in report.paired):
        raise InputError(
            "the runs have no pair in common, so nothing can be compared: "
            + ", ".join(args.outcomes)
            + "; give outcomes of the same pairs"
        )
    names = [each.name for each in ratings.runs]
    settings = _settings(args.outcomes, names)
    anchors = _anchors(args.outcomes, names)
    whole = {
        **msgspec.structs.asdict(report),
        "settings": settings,
        "anchors": anchors,
    }
    sys.stdout.write(show(args, whole, tables(report, settings, anchors)))
    return status.OK


def _settings(paths: list[str], names: list[str]) -> list[Settings]:
    """From the manifests; a file without one is passed over."""
    found: list[Settings] = []
    first: object = None
    for path, name in zip(paths, names, strict=True):
        manifest = read_manifest(Path(path))
        if manifest is None:
            continue
        last = manifest.runs[-1] if manifest.runs else None
        differences = [] if first is None else spec_differences(first, manifest.spec_tree)
        first = manifest.spec_tree if first is None else first
        found.append(
            Settings(
                run=name,
                started=last.started if last else None,
                status=last.status if last else None,
                differences=tuple(differences),
            )
        )
    return found


class _Check(msgspec.Struct):
    in_control: bool | None = None


class _Correction(msgspec.Struct):
    id: str = ""


class _State(msgspec.Struct):
    anchors: dict[str, Any] = {}
    judged: str | None = None
    items: int = 0
    verdicts: int = 0
    check: _Check | None = None
    correction: _Correction | None = None


class _Entry(msgspec.Struct):
    anchors: _State | None = None


class _Runs(msgspec.Struct):
    runs: list[_Entry] = []


def _anchors(paths: list[str], names: list[str]) -> list[AnchorState]:
    """The state of the anchors after the last run on each output that had any."""
    found: list[AnchorState] = []
    for path, name in zip(paths, names, strict=True):
        runs = _Runs()
        with contextlib.suppress(OSError, msgspec.DecodeError):
            runs = msgspec.json.decode(manifest_path(Path(path)).read_bytes(), type=_Runs)
        states = [entry.anchors for entry in runs.runs if entry.anchors is not None]
        if states:
            state = states[-1]
            found.append(
                AnchorState(
                    run=name,
                    anchors=str(state.anchors.get("name", "")),
                    judged=state.judged,
                    items=state.items,
                    verdicts=state.verdicts,
                    in_control=None if state.check is None else state.check.in_control,
                    correction=None if state.correction is None else state.correction.id,
                )
            )
    return found


# -- tables -----------------------------------------------------------------------------------


def tables(
    report: "CompareReport", settings: list[Settings], anchors: list[AnchorState]
) -> list[Table]:
    """The report as people read it."""
    made = [
        _overview(report),
        *_runs(report),
        *_paired(report.paired),
        _changes(report.paired),
    ]
    if any(each.accuracy is not None for each in report.paired):
        made.append(_accuracy(report))
    if any(each.scores for each in report.paired):
        made.append(_scores(report.paired))
    if settings:
        made.append(_differences(settings))
    if anchors:
        made.append(_anchor_table(anchors))
    return made


def _overview(report: "CompareReport") -> Table:
    return Table(
        "Runs compared",
        ("what", "value"),
        (
            ("pairs in any run", counted(report.pairs)),
            ("pairs with a label", counted(report.labelled)),
            ("prompts (clusters)", counted(report.clusters)),
            intervals_row(report),
        ),
        (
            *missing_notes(report),
            *cluster_notes(report),
        ),
    )


def _runs(report: "CompareReport") -> list[Table]:
    counts = Table(
        "Each run by itself",
        ("run", "outcomes", "verdicts", "undecided", "failed", "calls", "US dollars"),
        tuple(
            (
                each.run,
                each.outcomes,
                each.verdicts,
                each.undecided,
                each.failed,
                each.calls,
                f"{each.cost_usd:.4f}",
            )
            for each in report.runs
        ),
        tuple(
            f"{each.run}: {each.simulated:,} outcomes are simulated"
            for each in report.runs
            if each.simulated
        ),
    )
    shares = Table(
        "Verdicts of each run",
        ("run", "A wins", "tie", "B wins", "labelled", "accuracy", "both orders", "consistent"),
        tuple(
            (
                each.run,
                share(each.a_wins),
                share(each.ties),
                share(each.b_wins),
                each.accuracy.n,
                share(each.accuracy),
                each.consistency.n,
                share(each.consistency),
            )
            for each in report.runs
        ),
        (
            f"accuracy by tie rule {report.tie_rule}; consistent: both orders agree, or both say "
            "tie (Wilson interval)",
        ),
    )
    return [counts, shares]


def _paired(paired: "tuple[Paired, ...]") -> list[Table]:
    counts = Table(
        "Pair by pair",
        ("from", "to", "in both", "judged in both", "lost", "gained", "same verdict", "kappa"),
        tuple(
            (
                each.first,
                each.second,
                each.shared,
                each.judged,
                each.lost,
                each.gained,
                share(each.same),
                measure(each.kappa),
            )
            for each in paired
        ),
        ("lost: a verdict in the first only; gained: in the second only",),
    )
    drift = Table(
        "Drift of the verdicts, on the pairs judged in both",
        ("from", "to", "n", "lean to A", "p", "ties"),
        tuple(
            (
                each.first,
                each.second,
                each.judged,
                share(each.lean, signed=True),
                P(each.lean_p),
                share(each.tie_share, signed=True),
            )
            for each in paired
        ),
        (
            "lean to A: change of response_a's mean result (win 1, tie 1/2), p by turning the sign "
            "of whole prompts; ties: change of their share",
        ),
    )
    return [counts, drift]


def _changes(paired: "tuple[Paired, ...]") -> Table:
    names = tuple(paired[0].changes)
    return Table(
        "Verdicts that changed",
        ("from", "to", "n", *names),
        tuple(
            (each.first, each.second, each.judged, *(each.changes[name] for name in names))
            for each in paired
        ),
    )


def _accuracy(report: "CompareReport") -> Table:
    return Table(
        f"Agreement with the labels (tie rule {report.tie_rule})",
        (
            *("from", "to", "n", "only the later right", "only the earlier", "change"),
            *("exact p", "mid-p", "Holm", "detectable"),
        ),
        tuple(
            (
                each.first,
                each.second,
                0 if found.difference is None else found.difference.n,
                0 if found.test is None else found.test.b,
                0 if found.test is None else found.test.c,
                share(found.difference, signed=True),
                P(None if found.test is None else found.test.exact_p),
                P(None if found.test is None else found.test.mid_p),
                P(found.holm_p),
                "-" if found.detectable is None else f"{found.detectable:.1%}",
            )
            for each in report.paired
            if (found := each.accuracy) is not None
        ),
        (
            "McNemar on identical labelled pairs; Holm: mid-p adjusted for all rows; detectable: "
            "the smallest change that n pairs can show (power 0.8)",
        ),
    )


def _scores(paired: "tuple[Paired, ...]") -> Table:
    return Table(
        "Scores, second minus first",
        ("from", "to", "dimension", "n", "shift"),
        tuple(
            (
                each.first,
                each.second,
                part.dimension,
                part.shift.n,
                measure(part.shift, signed=True),
            )
            for each in paired
            for part in each.scores
        ),
        ("a pair's score is the mean of its two answers' scores",),
    )


def _differences(settings: list[Settings]) -> Table:
    rows = [
        (each.run, each.started, each.status, f"{len(each.differences):,}") for each in settings
    ]
    notes = [
        f"{each.run}: {line}" for each in settings for line in each.differences[:_DIFFERENCES_MAX]
    ]
    more = sum(max(0, len(each.differences) - _DIFFERENCES_MAX) for each in settings)
    if more:
        notes.append(f"{more:,} further differences are in --json")
    return Table(
        "Settings, from the manifests",
        ("run", "last started", "status", "differences from the first"),
        tuple(rows),
        tuple(notes),
    )


def _anchor_table(anchors: list[AnchorState]) -> Table:
    said = {True: "in control", False: "out of control", None: "no baseline"}
    return Table(
        "Anchors, from the manifests",
        ("run", "anchors", "judged", "items", "verdicts", "state", "correction"),
        tuple(
            (
                each.run,
                each.anchors,
                each.judged,
                each.items,
                each.verdicts,
                said[each.in_control],
                each.correction or "none",
            )
            for each in anchors
        ),
    )
