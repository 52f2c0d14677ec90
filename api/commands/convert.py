"""`dikast convert`: pairs, answers and outcomes from any kind of file to any other.

Pairs and answers come out as dikast's own, whatever format they were in; outcomes stay outcomes,
so that a run's output can become a table and a table an output again. Bad rows are named.
"""

import argparse
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from dikast import sinks, status, wiring
from dikast.config import InputSettings, with_input
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.lines import Flaw
from dikast.engine.model import BadRow, Item, Outcome, Pair, Row
from dikast.engine.places import STDIN, is_pipe
from dikast.engine.sources import FileSource
from dikast.engine.tables import (
    ITEM_COLUMNS,
    OUTCOME_TABLE,
    PAIR_COLUMNS,
    Shape,
    is_outcome,
    outcome_of,
)

_OUTCOMES = "outcomes"
_LOOK_AT_ROWS = 20


class Place(msgspec.Struct, frozen=True):
    """One row of what comes out, with where it came from."""

    record: Pair | Item | Outcome | BadRow
    file: str
    line: int


async def run(args: argparse.Namespace) -> int:
    """Convert; exit status 1 when some rows were not what they should be."""
    sinks.kind_of(args.output)  # a name that says nothing is refused before anything is read
    how = with_input(InputSettings(), args.format, args.split, args.columns)
    rows, what = await _rows(args.pairs, how)
    good = bad = 0
    target = _Target(args.output, what)
    with target:
        try:
            async for row in rows:
                if args.limit is not None and good + bad >= args.limit:
                    break
                if isinstance(row.record, BadRow):
                    bad += 1
                    print(f"dikast: bad row: {place(row)}", file=sys.stderr)
                else:
                    target.add(row)
                    good += 1
        finally:
            await rows.aclose()  # type: ignore[attr-defined]  # a generator
    print(f"dikast: {good:,} {what} converted, {bad:,} bad rows", file=sys.stderr)
    return status.FAILURES if bad else status.OK


def place(row: Place) -> str:
    """file:line:field: what is wrong."""
    assert isinstance(row.record, BadRow)
    where = [row.file or "input", str(row.line)]
    if row.record.field:
        where.append(row.record.field)
    return f"{':'.join(where)}: {row.record.message}"


async def _rows(paths: list[str], how: InputSettings) -> tuple[AsyncIterator[Place], str]:
    """The rows, and what they are called. Outcomes are recognised, on stdin they have to be named.

    Raises:
        InputError: the input cannot be read.
        ConfigError: see `wiring.open_source`.
    """
    if how.format == _OUTCOMES or (how.format is None and await _are_outcomes(paths, how)):
        if how.columns:
            raise ConfigError("--columns: outcomes have their own columns already")
        return _outcomes(FileSource(paths, split=how.split)), "outcomes"
    source = wiring.open_source(paths, how)

    async def subjects() -> AsyncIterator[Place]:
        try:
            async for batch in source.batches():
                for row in batch:
                    yield _place_of(row)
        finally:
            await source.aclose()

    return subjects(), "pairs"


def _place_of(row: Row) -> Place:
    return Place(row.item, row.file, row.line)


async def _are_outcomes(paths: list[str], how: InputSettings) -> bool:
    if paths[0] == STDIN or paths[0].startswith("kafka://") or is_pipe(paths[0]):
        return False  # what is looked at here could not be read again
    source = FileSource(paths[:1], split=how.split)
    batches = source.objects()
    try:
        async for batch in batches:
            if objs := [each for _, _, each in batch[:_LOOK_AT_ROWS] if isinstance(each, dict)]:
                return sum(map(is_outcome, objs)) * 2 > len(objs)
        return False
    finally:
        await batches.aclose()  # type: ignore[attr-defined]  # a generator
        await source.aclose()


async def _outcomes(source: FileSource) -> AsyncIterator[Place]:
    try:
        async for batch in source.objects():
            for file, line, value in batch:
                yield Place(_outcome(value), file, line)
    finally:
        await source.aclose()


def _outcome(value: Any) -> Outcome | BadRow:
    if isinstance(value, Flaw):
        return BadRow(message=value.message)
    if not is_outcome(value):
        return BadRow(message="is not an outcome written by dikast judge")
    try:
        return outcome_of(value)
    except msgspec.ValidationError as error:
        what = str(error).replace("`", "")
        return BadRow(message=f"is not an outcome written by dikast judge: {what}")


class _Target:
    """The output; opened with the first record, which decides the columns of a table."""

    def __init__(self, where: str, what: str) -> None:
        self._where = where
        self._mixes = sinks.kind_of(where) in (".jsonl", ".ndjson", ".json")
        self._empty = OUTCOME_TABLE if what == _OUTCOMES else PAIR_COLUMNS
        self._first: type | None = None
        self._stack = contextlib.ExitStack()
        self._writer: sinks.RecordWriter | None = None

    def __enter__(self) -> "_Target":
        return self

    def __exit__(self, *error: Any) -> None:
        if self._writer is None and error[0] is None:
            self._open(self._empty)
        self._stack.__exit__(*error)

    def add(self, row: Place) -> None:
        """Write one record.

        Raises:
            InputError: it cannot be written, or does not go into one table with the others.
        """
        kind = type(row.record)
        if self._writer is None:
            self._first = kind
            table = {Pair: PAIR_COLUMNS, Item: ITEM_COLUMNS}
            self._writer = self._open(table.get(kind, OUTCOME_TABLE))
        elif kind is not self._first and not self._mixes and kind in (Pair, Item):
            raise InputError(
                "pairs and single answers do not go into one table; split the input, or convert "
                "it to JSONL",
                file=row.file,
                line=row.line,
            )
        self._writer.add(row.record)

    def _open(self, columns: dict[str, Shape]) -> sinks.RecordWriter:
        return self._stack.enter_context(sinks.open_records(self._where, columns))
