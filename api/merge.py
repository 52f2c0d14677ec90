"""Shards back into one output, with one ledger that adds up over all of them.

The last station of a run that several workers shared. What each shard claims is checked against
the plan: its number of rows, its spec, and that no id stands in two places. Judges nothing.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from dikast import manifest as records
from dikast.engine.errors import InputError, SinkError
from dikast.engine.ids import IdTable
from dikast.engine.ledger import Ledger, LedgerBook
from dikast.engine.model import Outcome
from dikast.shards import Plan, Shard, ShardFiles

NAMED_MAX = 10
_BLOCK_BYTES = 1 << 20


class Merged(NamedTuple):
    """What the shards hold together. `missing` names shards without a whole output."""

    ledger: Ledger
    missing: tuple[str, ...]
    twice: tuple[str, ...]
    simulated: bool

    @property
    def complete(self) -> bool:
        """True when every shard is there, no id stands twice and the ledger adds up."""
        return not self.missing and not self.twice and self.ledger.adds_up()


class _Tally:
    """The ledger, the ids and the lines, shard after shard."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.book = LedgerBook()
        self.missing: list[str] = []
        self.twice: list[str] = []
        self.simulated = False
        self._ids = IdTable()
        self._decode = msgspec.json.Decoder(Outcome).decode

    def take(self, raw: bytes, number: int, path: Path, shard: int) -> bool:
        """Book one line; False when its id was there before, and it is left out."""
        try:
            outcome = self._decode(raw)
        except msgspec.DecodeError as error:
            raise InputError(
                f"is no outcome written by dikast ({error}); move the shard away and judge it "
                "again",
                file=str(path),
                line=number,
            ) from error
        if outcome.spec and outcome.spec != self.plan.spec:
            raise InputError(
                f"has the spec {outcome.spec}, the plan {self.plan.spec}; move the shard away and "
                "judge it again",
                file=str(path),
                line=number,
            )
        first = self._ids.add(outcome.id, shard)
        if first is not None:
            self.twice.append(f"{outcome.id} (shards {first} and {shard})")
            return False
        self.simulated = self.simulated or outcome.simulated
        self.book.enter()
        self.book.book(outcome)
        return True


def merge(plan: Plan, folder: Path, target: Path | None) -> Merged:
    """Read every shard; write their outcomes to `target`, whole or not at all.

    Args:
        plan: of the shards.
        folder: where they are.
        target: the output, replaced when the last line is written; None only counts.

    Raises:
        InputError: a shard cannot be read, or is not of this plan.
        SinkError: the output cannot be written.
    """
    tally = _Tally(plan)
    if target is None:
        for _ in _lines(plan, folder, tally):
            pass
    else:
        draft = target.with_name(f"{target.name}.{os.getpid()}.tmp")
        try:
            with draft.open("wb", buffering=_BLOCK_BYTES) as file:
                file.writelines(_lines(plan, folder, tally))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except OSError as error:
            raise SinkError(f"{target}: cannot be written: {error.strerror}") from error
        finally:
            draft.unlink(missing_ok=True)
    spent = sum(_spent_usd(ShardFiles(folder, shard.index)) for shard in plan.shards)
    ledger = tally.book.snapshot(spent)
    ledger = msgspec.structs.replace(ledger, input_complete=not tally.missing)
    return Merged(ledger, tuple(tally.missing), tuple(tally.twice), tally.simulated)


def _lines(plan: Plan, folder: Path, tally: _Tally) -> Iterator[bytes]:
    for shard in plan.shards:
        files = ShardFiles(folder, shard.index)
        if not files.done.exists():
            tally.missing.append(_missing(shard, files))
            _not_run(tally.book, shard.rows)
            continue
        count = 0
        try:
            with files.done.open("rb", buffering=_BLOCK_BYTES) as file:
                for number, raw in enumerate(file, start=1):
                    count += 1
                    if tally.take(raw, number, files.done, shard.index):
                        yield raw
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=str(files.done)) from error
        if count != shard.rows:
            tally.missing.append(
                f"{shard.index} ({count:,} outcomes of {shard.rows:,} rows: {files.done} was "
                "changed by hand)"
            )
            _not_run(tally.book, shard.rows - count)


def _not_run(book: LedgerBook, rows: int) -> None:
    for _ in range(rows):
        book.enter()
    book.leave_unrun(max(rows, 0))


def _missing(shard: Shard, files: ShardFiles) -> str:
    if not files.part.exists():
        return f"{shard.index} (not begun)"
    with files.part.open("rb") as file:
        lines = sum(block.count(b"\n") for block in iter(lambda: file.read(_BLOCK_BYTES), b""))
    return f"{shard.index} ({lines:,} of {shard.rows:,} rows so far)"


def _spent_usd(files: ShardFiles) -> float:
    """What all runs on a shard have paid, after their manifests."""
    path = files.done if files.done.exists() else files.part
    manifest = records.read_manifest(path)
    if manifest is None:
        return 0.0
    return sum(run.ledger.spent_usd for run in manifest.runs if run.ledger is not None)


def named(what: tuple[str, ...]) -> str:
    """A few by name, the rest by number."""
    shown = ", ".join(what[:NAMED_MAX])
    return shown if len(what) <= NAMED_MAX else f"{shown} and {len(what) - NAMED_MAX:,} more"
