"""The cut: one reading of the input that says which rows belong to which shard.

Before the first pair, in `dikast shard` and in whatever makes its plan by itself. The plan depends
on nothing but input and settings, so that workers who make it at the same time make the same one.
What a plan is, and how a worker goes by it, is in `dikast.shards`. Judges nothing.
"""

import contextlib
import itertools
import math
import os
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from dikast import streams, wiring
from dikast.config import Settings
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.ids import IdTable
from dikast.engine.lines import is_plain_lines
from dikast.engine.model import BadRow
from dikast.engine.places import is_pipe
from dikast.engine.ranges import is_of_lines
from dikast.engine.sources import FileSource
from dikast.engine.spec import spec_hash, spec_tree
from dikast.settling import Choices
from dikast.shards import (
    BLOCK_BYTES,
    InputFile,
    Part,
    Plan,
    Shard,
    Taken,
    digest_of,
    path_of,
)

SHARDS_MAX = 100_000
_HEAD_BYTES = 1 << 16


async def make_plan(
    folder: Path,
    paths: Sequence[str],
    *,
    form: str | None,
    choices: Choices,
    settings: Settings,
    shards: int | None = None,
    rows: int | None = None,
    limit: int | None = None,
) -> Plan:
    """Read the input once and cut it.

    Args:
        folder: where the plan will be written; paths in it start from there.
        paths: input files.
        form: their format, or None to recognise it.
        choices: what the command line said, so that workers need not say it again.
        settings: what will judge; no key has to be there.
        shards: so many shards of equal size, or
        rows: shards of so many rows; with both, whichever makes more of them.
        limit: the most rows to read, or None.

    Raises:
        InputError: a file cannot be read, or holds no row.
        ConfigError: an input is no file, or a number is out of range.
    """
    for option, value in (("--shards", shards), ("--rows", rows)):
        if value is not None and value < 1:
            raise ConfigError(f"{option}: must be at least 1, not {value}")
    for path in paths:
        if path == "-" or streams.is_kafka(path) or is_pipe(path):
            raise ConfigError(f"{path}: only files can be cut into shards; write it to one first")
    scan = _Scan(list(paths), form or "auto")
    await scan.read(limit)
    if not scan.count:
        raise InputError("holds no row to judge", file=paths[0])
    wanted = max(shards or 1, math.ceil(scan.count / (rows or scan.count)))
    if wanted > SHARDS_MAX:
        raise ConfigError(f"that makes {wanted:,} shards; at most {SHARDS_MAX:,} are sensible")
    inputs = tuple(_fingerprint(path, folder, scan.forms[path]) for path in scan.paths)
    cuts = scan.cuts(wanted)
    strategy = wiring.build_strategy(settings)
    tree = spec_tree(strategy)
    return Plan(
        spec=spec_hash(tree),
        spec_tree=msgspec.to_builtins(tree),
        strategy=strategy.name,
        choices=_portable(choices, folder),
        inputs=inputs,
        rows=scan.count,
        bad_rows=scan.bad_rows,
        wanted=wanted,
        shards=tuple(_shards(scan, cuts, inputs, folder)),
        taken=tuple(scan.taken_across(cuts)),
    )


class _Scan:
    """What one pass over the input tells: the line of every row, and the ids used twice."""

    def __init__(self, paths: list[str], form: str) -> None:
        self.paths = paths
        self.forms = dict.fromkeys(paths, form)
        self.count = 0
        self.bad_rows = 0
        self.lines = [array("Q") for _ in paths]
        self._form = form
        self._ids = IdTable()
        self._twice: list[tuple[int, int, int, str]] = []

    async def read(self, limit: int | None) -> None:
        for number, path in enumerate(self.paths):
            if not is_of_lines(path):
                raise InputError(
                    "shards are cut from files of JSON lines or JSON; make one of it first with "
                    "dikast convert PAIRS -o pairs.jsonl",
                    file=path,
                )
            source = FileSource(path, format=self._form)
            async with contextlib.aclosing(source), contextlib.aclosing(source.batches()) as all_:
                async for batch in all_:
                    self.forms[path] = source.formats[path]
                    for row in batch:
                        if limit is not None and self.count >= limit:
                            return
                        self._enter(number, row.line, row.item)

    def _enter(self, number: int, line: int, item: Any) -> None:
        if isinstance(item, BadRow):
            self.bad_rows += 1
        elif (first := self._ids.add(item.id, self.count)) is not None:
            self._twice.append((first, number, self.count, item.id))
        self.lines[number].append(line)
        self.count += 1

    def place(self, row: int) -> tuple[int, int]:
        """File and line of row number `row` (from 0, over all files)."""
        for number, lines in enumerate(self.lines):
            if row < len(lines):
                return number, lines[row]
            row -= len(lines)
        raise IndexError(row)

    def cuts(self, wanted: int) -> list[int]:
        """First row of each shard, and the end. Pairs that stand in one line stay together."""
        out = [0]
        for shard in range(1, wanted):
            cut = shard * self.count // wanted
            while cut < self.count and self.place(cut) == self.place(cut - 1):
                cut += 1
            if out[-1] < cut < self.count:
                out.append(cut)
        return [*out, self.count]

    def taken_across(self, cuts: list[int]) -> list[Taken]:
        """Rows whose id stands first in another shard; within one shard the intake finds them."""
        out: list[Taken] = []
        for first, number, row, id_ in self._twice:
            shard = bisect_right(cuts, row) - 1
            if bisect_right(cuts, first) - 1 != shard:
                there, line = self.place(first)
                out.append(
                    Taken(
                        shard=shard,
                        file=number,
                        line=self.place(row)[1],
                        id=id_,
                        first=f"{self.paths[there]}:{line}",
                    )
                )
        return out


def _shards(scan: _Scan, cuts: list[int], inputs: Sequence[InputFile], folder: Path) -> list[Shard]:
    """Every shard with its parts; plain files get byte offsets and digests of their own."""
    out: list[Shard] = []
    starts: dict[int, dict[int, int]] = {}
    for index, (begin, end) in enumerate(itertools.pairwise(cuts)):
        parts: list[Part] = []
        offset = 0
        for number, lines in enumerate(scan.lines):
            low, high = max(begin - offset, 0), min(end - offset, len(lines))
            offset += len(lines)
            if low < high:
                parts.append(Part(file=number, first=lines[low], last=lines[high - 1]))
                starts.setdefault(number, {}).update({lines[low]: 0, lines[high - 1] + 1: 0})
        out.append(Shard(index=index, rows=end - begin, parts=tuple(parts)))
    for number, wanted in starts.items():
        if inputs[number].plain:
            _find_lines(path_of(folder, inputs[number]), wanted)
    return [
        msgspec.structs.replace(
            shard, parts=tuple(_with_bytes(part, inputs, starts, folder) for part in shard.parts)
        )
        for shard in out
    ]


def _with_bytes(
    part: Part, inputs: Sequence[InputFile], starts: dict[int, dict[int, int]], folder: Path
) -> Part:
    file = inputs[part.file]
    if not file.plain:
        return part
    start, end = starts[part.file][part.first], starts[part.file][part.last + 1]
    digest = digest_of(path_of(folder, file), start, end)
    return msgspec.structs.replace(part, start=start, end=end, sha256=digest)


def _find_lines(path: Path, wanted: dict[int, int]) -> None:
    """Fill in at which byte each wanted line (from 1) begins; one past the last is the end."""
    todo = sorted(wanted)
    line, at = 1, 0
    with path.open("rb", buffering=0) as file:
        while todo and todo[0] == line:
            wanted[todo.pop(0)] = at
        while todo and (block := file.read(BLOCK_BYTES)):
            found = block.count(b"\n")
            if line + found < todo[0]:
                line, at = line + found, at + len(block)
                continue
            place = 0
            while todo and (newline := block.find(b"\n", place)) >= 0:
                line, place = line + 1, newline + 1
                if line == todo[0]:
                    wanted[todo.pop(0)] = at + place
            line, at = line + block.count(b"\n", place), at + len(block)
    for missing in todo:
        wanted[missing] = at


def _fingerprint(path: str, folder: Path, form: str) -> InputFile:
    file = Path(path)
    with file.open("rb") as opened:
        plain = is_plain_lines(opened.read(_HEAD_BYTES))
    return InputFile(
        path=os.path.relpath(file.resolve(), folder.resolve()),
        name=path,
        form=form,
        bytes=file.stat().st_size,
        sha256=digest_of(file, 0, None),
        plain=plain,
    )


def _portable(choices: Choices, folder: Path) -> Choices:
    """The choices that decide a verdict, their path told from the plan's folder."""
    config = choices.config
    if config is not None:
        config = os.path.relpath(Path(config).resolve(), folder.resolve())
    return Choices(
        config=config,
        judges=choices.judges,
        strategy=choices.strategy,
        template=choices.template,
        seed=choices.seed,
    )
