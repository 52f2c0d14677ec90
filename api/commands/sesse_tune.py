"""`dikast sesse tune`: a library and calibration rows in, a better library out.

One run at full depth, one holistic run, one call a question on its own source row; then replay.
With `--votes` the first two are read from files and no judge is asked.
"""

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import msgspec

from dikast import status, wiring
from dikast.commands.reporting import drawn
from dikast.commands.sesse_common import labelled_rows, say, settings_of
from dikast.commands.sesse_runs import Runs, outcomes_in, verdicts_in
from dikast.config import Settings
from dikast.engine.errors import ConfigError
from dikast.engine.model import Pair
from dikast.extras import needs
from dikast.providers import TruthTable
from dikast.strategies import Pairwise, SesseConfig
from dikast.strategies.sesse.library import Library, load_library, save_library
from dikast.strategies.sesse.plan import Plan
from dikast.strategies.sesse.prompts import holistic_template
from dikast.strategies.sesse.replay import logged
from dikast.strategies.sesse.selffix import SelfFix, fixes, sources_of
from dikast.strategies.sesse.strategy import Sesse
from dikast.strategies.sesse.tier_prompts import tier_prompts
from dikast.strategies.sesse.tune import NEVER, Tuned, tune
from dikast.strategies.sesse.weights import Gate
from dikast.tables import Measure, Share, Table

_SHOWN = 12


async def run(args: argparse.Namespace) -> int:
    """Judge what is missing, tune, write, tell."""
    with needs("analysis", "sesse tune"):  # before the runs are paid for
        import_module("dikast.analysis.intervals")
    gate = _gate(args)
    library = load_library(args.library)
    failed = 0
    if args.votes is not None:
        votes, holistic, fixed = args.votes, args.holistic, args.self_fix
    else:
        votes, holistic, fixed, failed = await _judge(args, library)
    rows, left_out = logged(outcomes_in(votes), verdicts_in(holistic), str(votes))
    tuned = tune(
        library,
        rows,
        fixes=fixes(outcomes_in(fixed)) if fixed is not None else None,
        gate=gate,
        weighted=args.weights,
        mute=not args.no_mute,
    )
    found = save_library(tuned.library, args.output)
    _tell(args, library, tuned, left_out, found)
    if failed:
        say(args, f"{failed:,} pairs failed and are missing; the same command tries them again")
    return status.FAILURES if failed else status.OK


def _gate(args: argparse.Namespace) -> Gate | None:
    if args.keep_all:
        return None
    for option, value in (("non-na-min", args.non_na_min), ("accuracy-above", args.accuracy_above)):
        if not 0 <= value <= 1:
            raise ConfigError(f"--{option} {value}: must lie between 0 and 1")
    if args.asked_min < 1:
        raise ConfigError(f"--asked-min {args.asked_min}: must be at least 1")
    return Gate(
        asked_min=args.asked_min,
        non_na_min=args.non_na_min,
        accuracy_above=args.accuracy_above,
        self_fix=not args.keep_unfixed,
    )


async def _judge(args: argparse.Namespace, library: Library) -> tuple[Path, Path, Path | None, int]:
    """The three runs; files of votes, of holistic verdicts and of the self-fix votes."""
    if not args.pairs:
        raise ConfigError("name labelled pairs to tune on, or the votes of a run with --votes")
    settings, names = settings_of(args)
    rows = await labelled_rows(args.pairs, args.format, settings.run.limit)
    calibration = calibration_rows(args, library, rows.pairs)
    config = SesseConfig(judge=names[0], library=args.library, depth=library.params.n_max)
    plan = plan_of(settings, config, library)
    runs = Runs(
        args,
        settings,
        store=wiring.store_path(settings, Path(args.output)),
        truth=TruthTable.from_pairs(rows.pairs),
        folder=Path(args.work_dir or f"{args.output}.work"),
    )
    votes = await runs.judge("votes", Sesse(plan), calibration)
    whole = Pairwise(plan.judge, holistic_template(), seed=plan.seed)
    holistic = await runs.judge("holistic", whole, calibration)
    fixed: Path | None = None
    sources = sources_of(library)
    if not args.no_self_fix and (own := [each for each in rows.pairs if each.id in sources]):
        fixed = await runs.judge("self-fix", SelfFix(plan), own)
    return votes, holistic, fixed, runs.failed


def calibration_rows(
    args: argparse.Namespace, library: Library, pairs: Sequence[Pair]
) -> Sequence[Pair]:
    """The rows kept apart when the library was built; all of them where none were."""
    kept = set(library.split.calibration_ids)
    found = [each for each in pairs if each.id in kept]
    if found:
        return found
    if kept:
        say(args, "none of the rows that were kept apart for calibration are here; using all")
    else:
        say(
            args,
            "no rows were kept apart when the library was built (--split-dev), so depth and "
            "threshold are chosen on rows that it may have been mined from, and look too good",
        )
    return pairs


def plan_of(settings: Settings, config: SesseConfig, library: Library) -> Plan:
    """What is asked, of the judge that the configuration names."""
    judge = wiring.judges_in(settings)[config.judge]
    return Plan(judge, library, tier_prompts(), holistic_template(), config, seed=settings.run.seed)


def _tell(
    args: argparse.Namespace,
    library: Library,
    tuned: Tuned,
    left_out: dict[str, int],
    found: str,
) -> None:
    if args.json:
        plain = {
            "library": str(args.output),
            "hash": found,
            "parent": tuned.library.parent,
            "depth": tuned.library.depth,
            "hybrid_threshold": tuned.library.hybrid_threshold,
            "rows": tuned.curve[0].rows,
            "left_out": left_out,
            "curve": tuned.curve,
            "thresholds": tuned.thresholds,
            "dropped": tuned.dropped,
            "effects": tuned.effects,
        }
        print(msgspec.json.encode(plain).decode())
        return
    print(drawn(tables(library, tuned, left_out)), end="")
    print(f"{args.output}: library {found[:16]}, child of {(tuned.library.parent or '')[:16]}")


def tables(library: Library, tuned: Tuned, left_out: dict[str, int]) -> list[Table]:
    """What tuning found, for people."""
    with needs("analysis", "sesse tune"):
        from dikast.analysis.intervals import normal

    rows = tuned.curve[0].rows
    missing = ", ".join(f"{count:,} {why}" for why, count in left_out.items()) or "none"
    depth = Table(
        title="depth, by replay of one run at full depth",
        columns=("depth", "score", "right of decided", "ties", "NA", "questions", ""),
        rows=tuple(
            (
                point.depth,
                Share(point.score, normal(point.score, point.score_se)),
                Share(point.non_tie_accuracy),
                Share(point.ties / point.rows),
                Share(point.na_rate),
                Measure(point.calls, digits=1),
                "chosen" if point.depth == tuned.library.depth else "",
            )
            for point in tuned.curve
        ),
        notes=(
            f"{rows:,} labelled rows; left out: {missing}",
            "score: accuracy with a tie counted one half, 95 % normal interval",
            "chosen: the smallest depth within half a standard error of the best score",
        ),
    )
    return [depth, _questions(library, tuned), _threshold(tuned)]


def _questions(library: Library, tuned: Tuned) -> Table:
    reasons = tuned.library.stats["tune"]["dropped"]
    weights = [each.weight for cluster in tuned.library.clusters for each in cluster.questions]
    quiet = [each for each in tuned.library.clusters if each.muted]
    return Table(
        title="questions and clusters",
        columns=("figure", "value"),
        rows=(
            ("questions before", library.question_count),
            *((f"dropped: {why}", count) for why, count in sorted(reasons.items())),
            ("questions kept", tuned.library.question_count),
            ("lowest weight", Measure(min(weights), digits=2)),
            ("highest weight", Measure(max(weights), digits=2)),
            ("clusters before", len(library.clusters)),
            ("clusters kept", len(tuned.library.clusters)),
            *(
                (
                    f"muted {'everywhere' if each.muted is True else 'in part'}: {each.cid}",
                    each.label[:60],
                )
                for each in quiet
            ),
        ),
        notes=(
            "weight: log((h + 2) / (m - h + 2)) of h right votes in m, its own source row left out",
            "muted: its majorities are wrong more often than a fair coin's (one-sided p < 0.025)",
        ),
    )


def _threshold(tuned: Tuned) -> Table:
    chosen = tuned.library.hybrid_threshold
    shown = [
        point
        for at, point in enumerate(tuned.thresholds)
        if point.threshold == chosen or at % max(1, len(tuned.thresholds) // _SHOWN) == 0
    ]
    return Table(
        title="hybrid: SESSE overrides the holistic verdict from this margin on",
        columns=("margin", "right", "overridden", ""),
        rows=tuple(
            (
                "never" if point.threshold == NEVER else f"{point.threshold:.3f}",
                Share(point.accuracy),
                point.overridden,
                "chosen" if point.threshold == chosen else "",
            )
            for point in shown
        ),
        notes=(
            f"{tuned.thresholds[0].rows if tuned.thresholds else 0:,} rows that have a holistic "
            "verdict; the best of them chosen, so it looks a little too good",
        ),
    )
