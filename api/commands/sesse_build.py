"""`dikast sesse build`: labelled pairs in, a library of criteria out, resumable at any point."""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dikast import status, wiring
from dikast.commands.reporting import drawn
from dikast.commands.sesse_common import (
    judge_named,
    labelled_rows,
    say,
    settings_of,
)
from dikast.commands.sesse_embedder import build_embedder
from dikast.config import Settings
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, RunStopped, StoreError
from dikast.engine.model import Call, Completion, Judge, Pair
from dikast.engine.ports import CallStore
from dikast.engine.run import Engine
from dikast.engine.store import open_store
from dikast.extras import see_installed
from dikast.progress import StageProgress
from dikast.providers import TruthTable
from dikast.signals import on_signals
from dikast.strategies.sesse.bills import Built
from dikast.strategies.sesse.formulas import Sizes, expected_sizes, merged_max
from dikast.strategies.sesse.holistic import Holistic
from dikast.strategies.sesse.library import BuildParams, Library, Split, save_library
from dikast.strategies.sesse.split import fingerprint, split_rows
from dikast.strategies.sesse.stages import StageStop
from dikast.tables import Share, Table

ASSUMED_ACCURACY = 0.8
_FAILURES_SHOWN = 5
_THEMES_A_ROW = 5


async def run(args: argparse.Namespace) -> int:
    """Mine and write, or only say what that would ask."""
    params = params_of(args)
    settings, names = settings_of(args, args.builder)
    params = msgspec.structs.replace(params, seed=settings.run.seed)
    rows = await labelled_rows(args.pairs, args.format, settings.run.limit)
    mine, calibration, split = split_rows(
        rows.pairs, share=args.split_dev, seed=params.seed, stratify=args.stratify
    )
    store = wiring.store_path(settings, Path(args.output))
    judge = judge_named(settings, names[0])
    if args.dry_run:
        return await _dry_run(args, params, judge, mine, calibration, store)
    see_installed("sesse", "dikast sesse build", "numpy", "scipy")
    clock = SystemClock()
    embedder = build_embedder(args.embedder, settings, clock=clock)
    progress = StageProgress(clock, quiet=args.quiet)
    engine = wiring.build_engine(
        settings,
        store=store,
        clock=clock,
        truth=TruthTable.from_pairs(rows.pairs),
        observers=(progress.counts,),
    )
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(embedder.aclose)
        await stack.enter_async_context(engine)
        await stack.enter_async_context(progress.drawn(engine))
        built = await _build(
            args,
            settings,
            engine,
            _Parts(judge, judge_named(settings, names[-1]), embedder, params, progress),
            mine,
            split,
            fingerprint(rows.pairs),
        )
    if built.library is None:
        return _tell_failures(args, built)
    library = msgspec.structs.replace(
        built.library, stats={**built.library.stats, "left_out": rows.left_out}
    )
    found = save_library(library, args.output)
    _tell(args, library, built, found)
    return status.FAILURES if built.failures else status.OK


class _Parts:
    """What a build is made of."""

    def __init__(
        self,
        judge: Judge,
        drafter: Judge,
        embedder: Any,
        params: BuildParams,
        progress: StageProgress,
    ) -> None:
        self.judge = judge
        self.drafter = drafter
        self.embedder = embedder
        self.params = params
        self.progress = progress


async def _build(
    args: argparse.Namespace,
    settings: Settings,
    engine: Engine,
    parts: _Parts,
    mine: Sequence[Pair],
    split: Split,
    print_of_rows: str,
) -> Built:
    # numpy and scipy are imported here and not at the top: other commands must not pay for them.
    from dikast.strategies.sesse.build import LibraryBuilder
    from dikast.strategies.sesse.embedding import StoredEmbedder
    from dikast.strategies.sesse.workdir import Workdir

    stop = StageStop()
    stored = StoredEmbedder(
        parts.embedder,
        engine.store,
        on_done=lambda done, total: parts.progress("embed", done, total),
    )
    builder = LibraryBuilder(
        parts.judge,
        parts.drafter,
        stored,
        parts.params,
        asker=engine.asker,
        workdir=Workdir(Path(args.work_dir or f"{args.output}.work")),
        workers=settings.run.workers,
        stop=stop,
        on_progress=parts.progress,
        failures_max=args.allow_failures,
    )
    work = asyncio.ensure_future(builder.run(mine, split=split, fingerprint=print_of_rows))
    with on_signals(_on_signal(args, stop, work)):
        try:
            return await work
        except RunStopped as stopped:
            hint = "" if stopped.reason == "auth" else "; the same command resumes"
            raise RunStopped(stopped.reason, stopped.message + hint) from stopped
        except asyncio.CancelledError:
            if stop.message is None:
                raise
            raise RunStopped("interrupted", f"{stop.message}; the same command resumes") from None


def _on_signal(
    args: argparse.Namespace, stop: StageStop, work: "asyncio.Future[Built]"
) -> Callable[[int, signal.Signals], None]:
    """The first signal waits for what is in the air, the second cancels it."""

    def handle(count: int, which: signal.Signals) -> None:
        if count == 1:
            say(args, f"{which.name}: beginning no further call (again to cancel those in flight)")
            stop.drain(f"interrupted by {which.name}")
        else:
            work.cancel()

    return handle


def params_of(args: argparse.Namespace) -> BuildParams:
    """The parameters of the command line, checked.

    Raises:
        ConfigError: one is out of range.
    """
    for option, value, least, most in (
        ("questions", args.questions, 1, 5),
        ("clusters", args.clusters, 1, 1000),
        ("per-cluster", args.per_cluster, 1, 100),
        ("trim-pct", args.trim_pct, 0, 50),
        ("merge-quantile", args.merge_quantile, 0, 1),
        ("allow-failures", args.allow_failures, 0, 10**9),
        ("assume-accuracy", args.assume_accuracy or 0, 0, 1),
    ):
        if not least <= value <= most:
            raise ConfigError(f"--{option}: must lie between {least} and {most}, not at {value}")
    return BuildParams(
        q=args.questions,
        k=args.clusters,
        n_max=args.per_cluster,
        trim_pct=args.trim_pct,
        merge_quantile=args.merge_quantile,
    )


# --- before anything is paid --------------------------------------------------------------------


async def _dry_run(
    args: argparse.Namespace,
    params: BuildParams,
    judge: Judge,
    mine: Sequence[Pair],
    calibration: Sequence[Pair],
    store: str | Path | None,
) -> int:
    """Print the calls of every stage by the formulas."""
    accuracy, basis = args.assume_accuracy, "assumed"
    if accuracy is None:
        seen, right = await _observed(judge, params.seed, mine, store)
        accuracy = right / seen if seen else ASSUMED_ACCURACY
        basis = f"observed on {seen:,} rows in the call store" if seen else "assumed"
    sizes = expected_sizes(len(mine), accuracy, params)
    table = plan_table(sizes, accuracy, basis, params, len(calibration))
    print(drawn(table, "json" if args.json else "terminal"), end="")
    return status.OK


def plan_table(
    sizes: Sizes, accuracy: float, basis: str, params: BuildParams, calibration: int
) -> Table:
    """What a build of these sizes asks."""
    calls = sizes.calls()
    most = merged_max(sizes)
    formula = {
        "holistic": "D",
        "draft": "E",
        "summarise": "k",
        "equivalence": "2 P",
        "resummarise": f"k_m (0 to {most})",
    }
    tuning = calibration * (1 + _THEMES_A_ROW * params.n_max)
    rows = [(stage, formula[stage], count) for stage, count in calls.items()]
    rows.append(("all", f"and up to {most} more", sum(calls.values())))
    return Table(
        title="calls of sesse build (dry run, nothing was asked)",
        columns=("stage", "formula", "calls"),
        rows=tuple(rows),
        notes=(
            f"D = {sizes.rows:,} rows to mine; {calibration:,} rows are kept for calibration",
            f"E = {sizes.errors:,} expected errors at an accuracy of {accuracy:.3f} ({basis})",
            f"M = {sizes.questions:,} questions at most ({params.q} an error); gates let in fewer",
            f"k = {sizes.clusters} clusters, P = {sizes.candidates} pairs of labels asked about",
            f"{sizes.embeddings():,} texts to embed; unreadable answers are asked for once more",
            *(
                (
                    f"tuning on the calibration rows then asks about {tuning:,} calls, where "
                    f"{_THEMES_A_ROW} themes hold for a row",
                )
                if calibration
                else ()
            ),
        ),
    )


class _NotStoredError(Exception):
    """The store does not hold this answer."""


async def _observed(
    judge: Judge, seed: int, mine: Sequence[Pair], where: str | Path | None
) -> tuple[int, int]:
    """Rows whose holistic judgement is in the store, and how many of them are right."""
    if where is None or not os.path.isfile(str(where).removeprefix("sqlite:")):  # noqa: ASYNC240
        return 0, 0
    try:
        store = open_store(where)
    except StoreError as error:
        raise ConfigError(f"call store {error}") from error
    assert store is not None
    holistic = Holistic(judge, seed=seed)
    ask = _from_store(store)
    seen = right = 0
    try:
        for pair in mine:
            with contextlib.suppress(_NotStoredError):
                judged = await holistic.judge(pair, ask)
                seen += 1
                right += judged.correct
    finally:
        await store.aclose()
    return seen, right


def _from_store(store: CallStore) -> Any:
    async def ask(call: Call) -> Completion:
        found = store.get(call.key())
        if found is None:
            raise _NotStoredError
        return found

    return ask


# --- what came of it ----------------------------------------------------------------------------


def _tell_failures(args: argparse.Namespace, built: Built) -> int:
    """No library: too many calls failed."""
    for failure in built.failures[:_FAILURES_SHOWN]:
        say(args, f"{failure.kind}: {failure.id}: {' '.join(failure.message.split())[:200]}")
    print(
        f"dikast: {len(built.failures):,} calls failed up to the stage {built.stage}, so no "
        "library was written; the same command asks only those again, --allow-failures N does "
        "without them",
        file=sys.stderr,
    )
    if args.json:
        print(msgspec.json.encode({"status": status.FAILURES, "built": built}).decode())
    return status.FAILURES


def _tell(args: argparse.Namespace, library: Library, built: Built, found: str) -> None:
    if args.json:
        plain = {
            "library": str(args.output),
            "hash": found,
            "simulated": library.simulated,
            "stats": library.stats,
            "bills": built.bills,
            "failures": built.failures,
        }
        print(msgspec.json.encode(plain).decode())
        return
    tables = [*figures(library), _bill_table(built)]
    print(drawn(tables), end="")
    print(
        f"{args.output}: library {found[:16]}, {library.question_count} questions in "
        f"{len(library.clusters)} clusters; dikast sesse show {args.output}"
    )


def figures(library: Library) -> list[Table]:
    """What was mined, and the silhouettes, for `build` and `show`."""
    from dikast.analysis.intervals import wilson

    stats = library.stats
    judged, correct = int(stats["judged"]), int(stats["correct"])
    out = [
        Table(
            title=f"mined from {library.judge}{' (simulated)' if library.simulated else ''}",
            columns=("figure", "value"),
            rows=(
                ("rows mined", stats["rows"]),
                ("judged right", Share(stats["accuracy"], wilson(correct, judged))),
                ("errors to learn from", stats["errors"]),
                ("unreadable or refused (wrong, not mined)", stats["invalid"]),
                ("questions drafted", stats["drafted"]),
                ("questions let in", stats["questions"]),
                *((f"turned away: {why}", count) for why, count in stats["rejected"].items()),
                ("clusters", stats["k"]),
                ("clusters with the label of another", stats["same_label"]),
                ("pairs of labels asked about", stats["candidates"]),
                ("called equivalent in both orders", stats["equivalent"]),
                ("clusters after merging", stats["k_after"]),
            ),
            notes=_notes(library),
        )
    ]
    by_k: dict[str, float] = stats["silhouette_by_k"]
    if by_k:
        best, places = stats["silhouette_best_k"], sorted(map(int, by_k))
        out.append(
            Table(
                title="mean silhouette (cosine) by number of clusters",
                columns=("k", "silhouette", ""),
                rows=tuple((k, by_k[str(k)], "highest" if k == best else "") for k in places),
                notes=(
                    f"used: k = {stats['k']}, silhouette {stats['silhouette']:.3f}; k is not "
                    "chosen by this table",
                ),
            )
        )
    return out


def _notes(library: Library) -> tuple[str, ...]:
    stats = library.stats
    left_out = stats.get("left_out", {})
    failed = int(stats["rows"]) - int(stats["judged"])
    notes = [
        f"accuracy on {stats['judged']:,} judged rows, 95 % Wilson interval; no ties in the labels",
        "rows left out: "
        + (", ".join(f"{count:,} {why}" for why, count in left_out.items()) or "none"),
    ]
    if failed:
        notes.append(f"{failed:,} rows are missing because their call failed")
    if stats.get("labels_unread"):
        notes.append(f"{stats['labels_unread']} labels could not be read; the medoid's is used")
    if library.split.calibration_ids:
        notes.append(f"{len(library.split.calibration_ids):,} rows kept apart for calibration")
    return tuple(notes)


def _bill_table(built: Built) -> Table:
    return Table(
        title="calls",
        columns=("stage", "by formula", "asked again", "had", "from the store", "failed", "USD"),
        rows=tuple(
            (
                bill.stage,
                bill.expected,
                bill.retried,
                bill.asked,
                bill.stored,
                bill.failed,
                f"{bill.cost_usd:.4f}",
            )
            for bill in built.bills
        ),
        notes=("USD: price of the answers, bought now or before",),
    )
