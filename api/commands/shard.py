"""`dikast shard`: the input is read once and cut; nothing is judged and no key is needed."""

import argparse
from pathlib import Path

import msgspec

from dikast import cutting, shard_job, shards, status
from dikast.engine.errors import ConfigError


async def run(args: argparse.Namespace) -> int:
    """Write the plan and say what to do with it."""
    if (args.shards is None) == (args.rows is None):
        raise ConfigError("say either how many shards (--shards) or how many rows in each (--rows)")
    folder = Path(args.output)
    choices, settings = shard_job.planned(args)
    plan = await cutting.make_plan(
        folder,
        args.pairs,
        form=args.format or settings.input.format,
        choices=choices,
        settings=settings,
        shards=args.shards,
        rows=args.rows,
        limit=args.limit,
    )
    path = shards.write_plan(folder, plan)
    sizes = [shard.rows for shard in plan.shards]
    if args.json:
        told = {
            "plan": str(path),
            "spec": plan.spec,
            "rows": plan.rows,
            "bad_rows": plan.bad_rows,
            "ids_used_in_two_shards": len(plan.taken),
            "shards": len(sizes),
        }
        print(msgspec.json.encode(told).decode())
        return status.OK
    size = f"{min(sizes):,}" if min(sizes) == max(sizes) else f"{min(sizes):,} to {max(sizes):,}"
    print(f"{path}: {plan.rows:,} rows in {len(sizes):,} shards of {size}, spec {plan.spec}")
    if plan.bad_rows:
        print(f"  {plan.bad_rows:,} rows are no pairs; they will be told as failed (bad_row)")
    if plan.taken:
        print(f"  {len(plan.taken):,} rows use an id that an earlier shard has (duplicate_id)")
    print(f"judge each:    dikast judge --shard {path} --index 0    (to {len(sizes) - 1})")
    print(f"put together:  dikast merge {folder} -o OUT.jsonl")
    return status.OK
