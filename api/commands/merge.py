"""`dikast merge`: judged shards become one output with one manifest and one ledger."""

import argparse
import sys
from pathlib import Path

import msgspec

from dikast import shards
from dikast.engine.errors import ConfigError
from dikast.merge import account, merge_into, status_of, summary
from dikast.preflight import see_merged_name


async def run(args: argparse.Namespace) -> int:
    """Merge the shards of a folder; 1 when something is missing, failed or stands twice."""
    if args.output == "-":
        raise ConfigError("-o -: the merged output is a file, with its manifest beside it")
    see_merged_name(args.output)
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
