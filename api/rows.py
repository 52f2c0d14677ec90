"""How many rows an input has, where that is cheap to know; only the progress bar asks."""

import os
from collections.abc import Sequence
from pathlib import Path

from dikast.engine.arrowrows import parquet_rows
from dikast.engine.errors import InputError
from dikast.engine.places import STDIN, is_remote, places

_COUNT_BYTES_MAX = 1 << 30
_BLOCK_BYTES = 1 << 20


def count_rows(
    paths: Sequence[str], limit: int | None = None, split: str | None = None
) -> int | None:
    """Lines in plain JSONL files (of at most 1 GiB together) and rows in Parquet files.

    None where it is not known: a JSON array, CSV, a packed file, stdin and what is at an address
    have no cheap total, so none is claimed. Neither has a format that makes several pairs of one
    row, whose total is too low.
    """
    if any(path == STDIN or is_remote(path) for path in paths):
        return None
    try:
        files = [Path(place.path) for path in paths for place in places(path, split)]
    except InputError:
        return None  # reading it says what is wrong
    total = 0
    size = 0
    for file in files:
        if file.suffix == ".parquet":
            rows = _rows_of_table(file)
            if rows is None:
                return None
            total += rows
            continue
        if file.suffix not in (".jsonl", ".ndjson") or not file.is_file():
            return None
        size += os.path.getsize(file)
        if size > _COUNT_BYTES_MAX:
            return None
        total += _lines_in(file)
    return total if limit is None else min(total, limit)


def _rows_of_table(file: Path) -> int | None:
    """What the table says of itself; None where it cannot be opened, which reading will tell."""
    try:
        with file.open("rb") as opened:
            return parquet_rows(opened)
    except (ImportError, ValueError, OSError):
        return None


def _lines_in(file: Path) -> int:
    lines = 0
    last = b"\n"
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK_BYTES):
            lines += block.count(b"\n")
            last = block[-1:]
    return lines + (last != b"\n")
