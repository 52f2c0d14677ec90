"""Shards back into one output, with one ledger that adds up over all of them.

The last station of a run that several workers shared. What each shard claims is checked against
the plan: its number of rows, its spec, and that no id stands in two places. Judges nothing.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dikast import manifest as records
from dikast import status, whole
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, InputError, SinkError
from dikast.engine.ids import IdTable
from dikast.engine.ledger import Held, Ledger, LedgerBook
from dikast.engine.model import Outcome
from dikast.engine.run import RunReport
from dikast.manifest import Spent
from dikast.outputs import Output
from dikast.shards import PLAN_NAME, Plan, Shard, ShardFiles

NAMED_MAX = 10
_BLOCK_BYTES = 1 << 20


class Merged(NamedTuple):
    """What the shards hold together. `missing` names shards without a whole output.

    `spent_is_bound`: a run on them was killed, and at most so much was spent.
    """

    ledger: Ledger
    missing: tuple[str, ...]
    twice: tuple[str, ...]
    simulated: bool
    spent_is_bound: bool = False

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

    def leave_unrun(self, rows: int) -> None:
        """Rows of the plan that have no outcome."""
        for _ in range(rows):
            self.book.enter()
        self.book.leave_unrun(max(rows, 0))


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
    spent = [_spent(ShardFiles(folder, shard.index)) for shard in plan.shards]
    ledger = tally.book.snapshot(sum(each.usd for each in spent))
    ledger = msgspec.structs.replace(ledger, input_complete=not tally.missing)
    return Merged(
        ledger,
        tuple(tally.missing),
        tuple(tally.twice),
        tally.simulated,
        any(each.bound for each in spent),
    )


def _lines(plan: Plan, folder: Path, tally: _Tally) -> Iterator[bytes]:
    """Every outcome that is there, also of shards that are not finished."""
    for shard in plan.shards:
        files = ShardFiles(folder, shard.index)
        finished = files.done.exists()
        path = files.done if finished else files.part
        count = 0
        if path.exists():
            try:
                with path.open("rb", buffering=_BLOCK_BYTES) as file:
                    for number, raw in enumerate(file, start=1):
                        if not raw.endswith(b"\n"):
                            break  # a write that was cut short, or is going on
                        count += 1
                        if tally.take(raw, number, path, shard.index):
                            yield raw
            except OSError as error:
                raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
        if not finished or count != shard.rows:
            tally.missing.append(_missing(shard, count, path if finished else None))
            tally.leave_unrun(shard.rows - count)


def _missing(shard: Shard, count: int, changed: Path | None) -> str:
    if changed is not None:
        return f"{shard.index} ({changed} has {count:,} outcomes for {shard.rows:,} rows)"
    return f"{shard.index} ({f'{count:,} of {shard.rows:,} rows' if count else 'not begun'})"


def _spent(files: ShardFiles) -> Spent:
    """What all runs on a shard have paid, after their manifests."""
    path = files.done if files.done.exists() else files.part
    return records.spent_by(records.read_manifest(path)) or Spent()


def named(what: tuple[str, ...]) -> str:
    """A few by name, the rest by number."""
    shown = ", ".join(what[:NAMED_MAX])
    return shown if len(what) <= NAMED_MAX else f"{shown} and {len(what) - NAMED_MAX:,} more"


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
        ConfigError: the output is there and was not merged from this folder, or is part of it.
        InputError: a shard cannot be read, or is not of this plan.
        SinkError: the output or its manifest cannot be written.
    """
    clock = SystemClock()
    output = Output(str(target), argv=argv, clock=clock)
    inputs = [str(folder / PLAN_NAME)]
    if _is_own(target, plan, folder):
        raise ConfigError(f"{target}: belongs to the shards that are merged; name another output")
    foreign = target.exists() and not is_merged(target, folder)
    if foreign and not fresh:
        raise ConfigError(
            f"{target}: is there and was not merged from {folder}; name another output, or keep it "
            f"as {target}.old with --fresh"
        )
    started_s = clock.now()
    merged = merge(plan, folder, None)
    if not merged.complete and not partial:
        return merged
    if foreign:
        output.set_aside()
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


def _is_own(target: Path, plan: Plan, folder: Path) -> bool:
    """True for what a merge reads, and for what judging its shards needs."""
    place = target.resolve()
    if place.parent != folder.resolve():
        return False
    names = {PLAN_NAME}
    for shard in plan.shards:
        files = ShardFiles(folder, shard.index)
        names.update(each.name for each in (files.done, files.part, files.store))
    return place.name in names


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
        f"{'at most ' if merged.spent_is_bound else ''}${ledger.spent_usd:,.4f} spent by all runs "
        "on the shards"
    )
    if merged.missing:
        lines.append(f"missing: shards {named(merged.missing)}")
    if merged.twice:
        lines.append(
            f"in two shards, the first one stands: {named(merged.twice)}; move away the shard that "
            "does not belong there and judge it again"
        )
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
        # The ledger is of all runs on the shards; the key is that of a run on one output.
        "whole_output": whole.machine(
            Held().plus(merged.ledger), Spent(merged.ledger.spent_usd, merged.spent_is_bound)
        ),
    }
