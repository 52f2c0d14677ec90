"""`dikast sesse baselines`: a library held against simpler ways to spend the same calls."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dikast import status, wiring
from dikast.commands.reporting import drawn
from dikast.commands.sesse_common import judge_named, labelled_rows, say, settings_of
from dikast.commands.sesse_runs import Runs, outcomes_in
from dikast.engine.errors import ConfigError
from dikast.engine.model import Failed, Verdict
from dikast.extras import needs
from dikast.providers import TruthTable
from dikast.strategies import SesseConfig
from dikast.strategies.sesse.baselines import BASELINES, Baseline, make
from dikast.strategies.sesse.config import check_config
from dikast.strategies.sesse.library import load_library
from dikast.tables import Measure, P, Share, Table

if TYPE_CHECKING:
    from dikast.analysis.sesse_baselines import Judged, Line


async def run(args: argparse.Namespace) -> int:
    """Judge the pairs in every way, then compare."""
    with needs("analysis", "sesse baselines"):
        from dikast.analysis.sesse_baselines import lines

    library = load_library(args.library)
    settings, names = settings_of(args)
    config = SesseConfig(judge=names[0], library=args.library, depth=args.depth)
    check_config(config, library)
    if not 0 <= args.temperature <= 2:
        raise ConfigError(f"--temperature {args.temperature}: must lie between 0 and 2")
    rows = await labelled_rows(args.pairs, args.format, settings.run.limit)
    wanted = chosen(args.only)
    folder = Path(args.output)
    runs = Runs(
        args,
        settings,
        store=settings.run.store or folder / wiring.STORE_NAME,
        truth=TruthTable.from_pairs(rows.pairs),
        folder=folder,
    )
    judge = judge_named(settings, names[0])
    ways: dict[str, list[Judged]] = {}
    for name in wanted:
        strategy = make(
            name,
            judge,
            library,
            config,
            seed=settings.run.seed,
            calls=budget(ways),
            temperature=args.temperature,
        )
        ways[name] = _read(await runs.judge(name, strategy, rows.pairs))
    found = lines(ways)
    if args.json:
        plain: dict[str, Any] = {
            "library": library.hash,
            "judge": judge.name,
            "simulated": library.simulated,
            "left_out": rows.left_out,
            "failed": runs.failed,
            "lines": found,
        }
        print(msgspec.json.encode(plain).decode())
    else:
        print(drawn(table(found, rows.left_out, runs.failed)), end="")
    if runs.failed:
        say(args, f"{runs.failed:,} judgements failed and are missing; run it again")
    return status.FAILURES if runs.failed else status.OK


def chosen(only: list[str]) -> list[Baseline]:
    """Which ways, in a fixed order: SESSE first, for its calls are the budget of another.

    Raises:
        ConfigError: nothing to hold against, or self-consistency without SESSE.
    """
    wanted: list[Baseline] = [each for each in BASELINES if not only or each in only]
    if "sesse" not in wanted:
        wanted.insert(0, "sesse")
    if len(wanted) < 2:
        raise ConfigError("--only sesse: name at least one other way to hold it against")
    return wanted


def budget(ways: "dict[str, list[Judged]]") -> int:
    """How many calls SESSE makes for a pair, on average, at least 1."""
    rows = ways.get("sesse", [])
    return max(1, round(sum(each.calls for each in rows) / len(rows))) if rows else 1


def _read(path: Path) -> "list[Judged]":
    from dikast.analysis.sesse_baselines import Judged

    return [
        Judged(
            id=each.id,
            label=each.label,
            verdict=each.winner if isinstance(each, Verdict) else None,
            calls=each.calls,
        )
        for each in outcomes_in(path)
        if each.label is not None and not isinstance(each, Failed)
    ]


def table(found: "list[Line]", left_out: dict[str, int], failed: int) -> Table:
    """The comparison for people."""
    missing = ", ".join(f"{count:,} {why}" for why, count in left_out.items()) or "none"
    return Table(
        title="SESSE and simpler ways",
        columns=(
            *("way", "ties 0.5", "right of decided", "ties", "no verdict", "calls a pair"),
            *("SESSE minus it", "b/c", "p", "Holm p"),
        ),
        rows=tuple(
            (
                each.name,
                Share(each.half.value, each.half.interval),
                Share(each.decided.value),
                Share(each.ties / each.pairs),
                each.no_verdict,
                Measure(each.calls_mean, digits=1),
                Share(None)
                if each.difference is None
                else Share(each.difference.value, each.difference.interval, signed=True),
                "-" if each.test is None else f"{each.test.b}/{each.test.c}",
                P(None if each.test is None else each.test.exact_p),
                P(each.holm_p),
            )
            for each in found
        ),
        notes=(
            f"{found[0].pairs:,} labelled pairs that every way has an outcome for; rows left out: "
            f"{missing}; {failed:,} judgements failed",
            "ties 0.5: over all pairs, a tie one half, no verdict wrong, 95 % Wilson interval",
            "SESSE minus it: paired difference of that score, 95 % normal interval",
            "b: only SESSE right, c: only the other, of the pairs that both decide; exact "
            "McNemar p, and adjusted over all ways",
        ),
    )
