"""`dikast convert`: any known input format to dikast's own JSONL, bad rows named."""

import argparse
import contextlib
import sys
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

import msgspec

from dikast import status, wiring
from dikast.engine.errors import InputError
from dikast.engine.files import whole_file
from dikast.engine.model import BadRow, Row


async def run(args: argparse.Namespace) -> int:
    """Convert; exit status 1 when some rows were no pairs."""
    source = wiring.open_source(args.pairs, args.format)
    encode = msgspec.json.Encoder().encode
    good = bad = 0
    with _target(args.output) as target:
        try:
            async for batch in source.batches():
                for row in batch:
                    if args.limit is not None and good + bad >= args.limit:
                        break
                    if isinstance(row.item, BadRow):
                        bad += 1
                        print(f"dikast: bad row: {place(row)}", file=sys.stderr)
                        continue
                    target.write(encode(row.item) + b"\n")
                    good += 1
                else:
                    continue
                break
        finally:
            await source.aclose()
    print(f"dikast: {good:,} pairs converted, {bad:,} bad rows", file=sys.stderr)
    return status.FAILURES if bad else status.OK


def place(row: Row) -> str:
    """file:line:field: what is wrong."""
    assert isinstance(row.item, BadRow)
    where = [row.file or "input", str(row.line)]
    if row.item.field:
        where.append(row.item.field)
    return f"{':'.join(where)}: {row.item.message}"


@contextlib.contextmanager
def _target(where: str) -> Generator[BinaryIO, None, None]:
    """The output, put in place only when it is whole; "-" is standard output."""
    if where == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with whole_file(Path(where)) as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=where) from error
