"""`dikast merge`: judged shards become one output with one manifest and one ledger."""

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from dikast import manifest as records
from dikast import shards, status
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError
from dikast.engine.run import RunReport
from dikast.merge import Merged, merge, named
from dikast.outputs import Output
from dikast.shards import PLAN_NAME, Plan


async def run(args: argparse.Namespace) -> int:
    """Merge the shards of a folder; 1 when something is missing, failed or stands twice."""
    if args.output == "-":
        raise ConfigError("-o -: the merged output is a file, with its manifest beside it")
    folder = Path(args.folder)
    plan = shards.read_plan(folder)
    merged = merge_into(
        plan, folder, Path(args.output), argv=args.argv, partial=args.partial, fresh=args.fresh
    )
    code = status_of(merged)
    for line in account(merged, plan, args.output, partial=args.partial):
        print(line, file=sys.stderr)
    if args.json:
        print(msgspec.json.encode(summary(merged, plan, args.output, code)).decode())
    return code


def merge_into(
    plan: Plan, folder: Path, target: Path, *, argv: list[str], partial: bool, fresh: bool
) -> Merged:
    """Merge, and write the manifest beside the output.

    Args:
        plan: of the shards.
        folder: where they are.
        target: the output.
        argv: the command line, for the manifest.
        partial: write an output although shards are missing.
        fresh: keep an output of another origin as OUT.old; else it is refused.

    Raises:
        ConfigError: the output is there and was not merged from this folder.
        InputError: a shard cannot be read, or is not of this plan.
        SinkError: the output or its manifest cannot be written.
    """
    clock = SystemClock()
    output = Output(str(target), argv=argv, clock=clock)
    inputs = [str(folder / PLAN_NAME)]
    if target.exists() and not is_merged(target, folder):
        if not fresh:
            raise ConfigError(
                f"{target}: is there and was not merged from {folder}; name another output, or "
                f"keep it as {target}.old with --fresh"
            )
        output.set_aside()
    started_s = clock.now()
    merged = merge(plan, folder, None)
    if not merged.complete and not partial:
        return merged
    merged = merge(plan, folder, target)
    seed = plan.choices.seed or 0
    output.begin(
        plan.spec, plan.spec_tree, plan.strategy, inputs=inputs, seed=seed,
        simulated=merged.simulated,
    )  # fmt: skip
    report = RunReport(
        ledger=merged.ledger,
        spec=plan.spec,
        strategy=plan.strategy,
        duration_s=clock.now() - started_s,
        requests_sent=0,
        stopped=None if merged.complete else "interrupted",
        message=None if merged.complete else "merged although shards are missing",
    )
    output.end(report, simulated=merged.simulated)
    return merged


def is_merged(target: Path, folder: Path) -> bool:
    """True when `target` was put together from the shards in `folder`."""
    manifest = records.read_manifest(target)
    if manifest is None or not manifest.runs:
        return False
    inputs = manifest.runs[-1].inputs
    return len(inputs) == 1 and Path(inputs[0]).resolve() == (folder / PLAN_NAME).resolve()


def status_of(merged: Merged) -> int:
    """0 when everything is there and nothing failed, else 1."""
    return status.FAILURES if not merged.complete or merged.ledger.failed_total else status.OK


def account(merged: Merged, plan: Plan, where: str, *, partial: bool) -> list[str]:
    """The ledger over all shards, and what is not as it should be."""
    ledger = merged.ledger
    simulated = " (simulated judges)" if merged.simulated else ""
    lines = [f"ledger of {where}, {len(plan.shards):,} shards{simulated}"]
    lines += [f"  {line}" for line in ledger.lines()]
    lines.append(
        f"  {ledger.calls:,} calls ({ledger.stored_calls:,} from the store), "
        f"{ledger.usage.input:,} tokens in, {ledger.usage.output:,} out, "
        f"${ledger.spent_usd:,.4f} spent by all runs on the shards"
    )
    if merged.missing:
        lines.append(f"missing: shards {named(merged.missing)}")
    if merged.twice:
        lines.append(f"in two shards, the first one stands: {named(merged.twice)}")
    if not merged.complete and not partial:
        lines.append(
            "nothing was written; judge what is missing, or write what is there: --partial"
        )
    return lines


def summary(merged: Merged, plan: Plan, where: str, code: int) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "status": code,
        "complete": merged.complete,
        "output": where,
        "spec": plan.spec,
        "strategy": plan.strategy,
        "simulated": merged.simulated,
        "shards": len(plan.shards),
        "missing": list(merged.missing),
        "twice": list(merged.twice),
        "ledger": {
            name: msgspec.to_builtins(getattr(merged.ledger, name))
            for name in merged.ledger.__struct_fields__
        },
        "adds_up": merged.ledger.adds_up(),
    }
