"""How many rows an input has, where that is cheap to know; only the progress bar asks."""

import os
from collections.abc import Sequence
from pathlib import Path

_COUNT_BYTES_MAX = 1 << 30
_BLOCK_BYTES = 1 << 20


def count_rows(paths: Sequence[str], limit: int | None = None) -> int | None:
    """Lines in plain JSONL files of at most 1 GiB together; None where it is not known.

    A format that makes several pairs of one row, a JSON array, a packed file and stdin have no
    cheap total, so none is claimed.
    """
    total = 0
    size = 0
    for path in paths:
        file = Path(path)
        if path == "-" or file.suffix not in (".jsonl", ".ndjson") or not file.is_file():
            return None
        size += os.path.getsize(file)
        if size > _COUNT_BYTES_MAX:
            return None
        total += _lines_in(file)
    return total if limit is None else min(total, limit)


def _lines_in(file: Path) -> int:
    lines = 0
    last = b"\n"
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK_BYTES):
            lines += block.count(b"\n")
            last = block[-1:]
    return lines + (last != b"\n")
