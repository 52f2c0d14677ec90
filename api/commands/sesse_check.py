"""`dikast sesse check`: a few canary rows, to see whether a library fits a judge and its pairs."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from dikast import status, wiring
from dikast.commands.reporting import drawn
from dikast.commands.sesse_common import (
    judge_named,
    rows_of,
    say,
    settings_of,
)
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Judge, Outcome, Pair
from dikast.extras import see_installed
from dikast.progress import StageProgress
from dikast.providers import TruthTable
from dikast.strategies import SesseConfig
from dikast.strategies.pairwise import judge_spec
from dikast.strategies.sesse.config import depth_of
from dikast.strategies.sesse.library import Library, ids_sha, load_library, save_library
from dikast.strategies.sesse.plan import Plan
from dikast.strategies.sesse.portability import (
    Canary,
    Finding,
    RowCount,
    canary_of,
    compare,
    count_row,
    differences,
)
from dikast.strategies.sesse.prompts import holistic_template
from dikast.strategies.sesse.stages import Failure, in_order
from dikast.strategies.sesse.strategy import Sesse
from dikast.strategies.sesse.tier_prompts import tier_prompts
from dikast.tables import Cell, Measure, Share, Table

CANARY_ROWS = 100


async def run(args: argparse.Namespace) -> int:
    """Judge the canary rows, compare, tell; exit status 4 when a gate fails."""
    see_installed("sesse", "dikast sesse check", "numpy", "scipy")
    library = load_library(args.library)
    settings, names = settings_of(args)
    judge = judge_named(settings, names[0])
    params: dict[str, Any] = judge_spec(judge)["params"]
    differs = differences(library, judge.model, params)
    if args.record is not None and differs:
        raise ConfigError(
            f"--record: the reference must come from the judge that the library was mined from; "
            f"this one differs ({'; '.join(differs)})"
        )
    pairs = await _canaries(args)
    depth = depth_of(SesseConfig(judge=judge.name, library=args.library), library)
    outcomes, failures = await _judged(args, settings, judge, library, pairs)
    rows = [counted for each in outcomes if (counted := count_row(each)) is not None]
    found = canary_of(
        rows,
        judge=judge.model,
        judge_params=params,
        depth=depth,
        ids_sha=ids_sha([pair.id for pair in pairs]),
    )
    reference, why_none = _reference(library, depth)
    findings = compare(reference, found)
    refused = _refused(findings, differs, reference)
    sources = {each.source_id for cluster in library.clusters for each in cluster.questions}
    known = sum(pair.id in sources for pair in pairs)
    _tell(args, known, found, rows, findings, differs, why_none, refused, failures)
    if args.record is not None and not refused and not failures:
        _record(args, library, found)
    if refused:
        return status.GATE
    return status.FAILURES if failures else status.OK


async def _canaries(args: argparse.Namespace) -> list[Pair]:
    """The first rows, each id once.

    Raises:
        ConfigError: there is none.
    """
    limit = CANARY_ROWS if args.limit is None else args.limit
    pairs, _ = await rows_of(args.pairs, args.format, limit)
    once = list({pair.id: pair for pair in pairs}.values())
    if not once:
        raise ConfigError(f"{', '.join(args.pairs)}: no row that is a pair")
    return once


async def _judged(
    args: argparse.Namespace, settings: Any, judge: Judge, library: Library, pairs: Sequence[Pair]
) -> tuple[list[Outcome], list[Failure]]:
    config = SesseConfig(judge=judge.name, library=args.library)
    plan = Plan(judge, library, tier_prompts(), holistic_template(), config, seed=settings.run.seed)
    strategy = Sesse(plan)
    clock = SystemClock()
    progress = StageProgress(clock, quiet=args.quiet)
    engine = wiring.build_engine(
        settings,
        store=wiring.store_path(settings, Path(args.library)),
        clock=clock,
        truth=TruthTable.from_pairs(pairs),
        observers=(progress.counts,),
    )
    outcomes: list[Outcome] = []
    failures: list[Failure] = []
    async with engine, progress.drawn(engine):
        progress("canary", 0, len(pairs))
        ask = engine.asker()

        async def one(pair: Pair) -> Outcome | Failure:
            try:
                outcome = await strategy.judge(pair, ask)
            except ProviderError as error:
                return Failure(id=pair.id, kind=error.kind, message=error.message)
            return msgspec.structs.replace(outcome, label=pair.label)

        async for each in in_order(pairs, one, workers=settings.run.workers):
            if isinstance(each, Failure):
                failures.append(each)
            else:
                outcomes.append(each)
            progress("canary", len(outcomes) + len(failures), len(pairs), ask)
    return outcomes, failures


def _reference(library: Library, depth: int) -> tuple[Canary | None, str]:
    """The library's own canary figures, or why they cannot be used."""
    kept = library.stats.get("canary")
    if kept is None:
        return None, (
            "the library has no canary figures to compare with; make them with its own judge and "
            "--record NEW_LIB"
        )
    reference = msgspec.convert(kept, Canary)
    if reference.depth != depth:
        return None, (
            f"the library's canary figures are of depth {reference.depth}, and it is asked at "
            f"depth {depth}; record them anew"
        )
    return reference, ""


def _refused(
    findings: Sequence[Finding], differs: Sequence[str], reference: Canary | None
) -> list[str]:
    """Why the library must not be used so; empty where nothing speaks against it."""
    out = [f"{each.name} out of bounds" for each in findings if each.failed]
    if differs and reference is None:
        out.append("another judge, and no figures to compare it with")
    return out


def _record(args: argparse.Namespace, library: Library, found: Canary) -> None:
    child = msgspec.structs.replace(
        library,
        stats={**library.stats, "canary": msgspec.to_builtins(found)},
        parent=library.hash,
    )
    wrote = save_library(child, args.record)
    say(args, f"{args.record}: library {wrote[:16]}, with the canary figures of {found.rows} rows")


def _tell(
    args: argparse.Namespace,
    known: int,
    found: Canary,
    rows: Sequence[RowCount],
    findings: Sequence[Finding],
    differs: Sequence[str],
    why_none: str,
    refused: Sequence[str],
    failures: Sequence[Failure],
) -> None:
    if args.json:
        plain = {
            "refused": refused,
            "judge_differs": differs,
            "canary": found,
            "findings": findings,
            "no_reference": why_none or None,
            "failures": failures,
        }
        print(msgspec.json.encode(plain).decode())
        return
    tables = [_rates(found, rows, known, len(failures)), _gates(findings, differs, why_none)]
    print(drawn(tables), end="")
    if refused:
        print(f"refused: {'; '.join(refused)}")
    elif differs:
        print("warning: another judge than the library was mined from, within all bounds")
    elif why_none:
        print("nothing speaks against the library; without reference figures little is known")
    else:
        print("the library fits")


def _rates(found: Canary, rows: Sequence[RowCount], known: int, failed: int) -> Table:
    from dikast.analysis.intervals import cluster_bootstrap, wilson

    def of_questions(hits: Sequence[int]) -> Share:
        asked = [row.votes for row in rows]
        total = sum(asked)
        interval = cluster_bootstrap(
            list(zip(hits, asked, strict=True)), lambda sums: sums[:, 0] / sums[:, 1], seed=0
        )
        return Share(sum(hits) / total if total else None, interval)

    lines: list[tuple[Cell, ...]] = [
        ("ties", Share(_part(found.ties, found.rows), wilson(found.ties, found.rows)), "rows"),
        (
            "no readable verdict",
            Share(_part(found.undecided, found.rows), wilson(found.undecided, found.rows)),
            "rows",
        ),
        ("NA votes", of_questions([row.na for row in rows]), "questions"),
        ("invalid votes", of_questions([row.invalid for row in rows]), "questions"),
        ("questions asked per row", Measure(found.asked / max(1, found.rows), digits=1), "rows"),
    ]
    if found.labelled:
        share = Share(found.score / found.labelled, wilson(found.score, found.labelled))
        lines.append(("right (ties one half)", share, "labelled rows"))
    return Table(
        title=f"canary rows with {found.judge} at depth {found.depth}",
        columns=("figure", "value", "share of"),
        rows=tuple(lines),
        notes=(
            f"{found.rows:,} rows, {found.asked:,} questions, {found.labelled:,} labelled; "
            f"{failed:,} rows failed and are left out",
            "95 % intervals: Wilson over rows; NA and invalid by bootstrap over rows",
            f"{known:,} of them are the source of a question in the library; canary rows should "
            "be others",
        ),
    )


def _part(hits: int, n: int) -> float | None:
    return hits / n if n else None


def _gates(findings: Sequence[Finding], differs: Sequence[str], why_none: str) -> Table:
    rows = tuple(
        (
            each.name,
            None if each.reference is None else each.reference,
            each.found,
            each.limit,
            "FAILED" if each.failed else "ok",
            each.note,
        )
        for each in findings
    )
    notes = [f"judge differs from the library's: {'; '.join(differs)}"] if differs else []
    return Table(
        title="gates",
        columns=("gate", "reference", "found", "limit", "", "computed on"),
        rows=rows,
        notes=(*notes, *((why_none,) if why_none else ())),
    )
