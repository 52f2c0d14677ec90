"""The output of a run and the manifest beside it: resumed, refused, set aside, accounted for.

Stands between the command and the sink. The output file is the truth about what is done; the
manifest tells what produced it. Nothing is deleted: `--fresh` renames.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dikast import manifest as records
from dikast import streams
from dikast.engine.errors import ConfigError, InputError, SpecMismatchError
from dikast.engine.places import shown
from dikast.engine.ports import Clock
from dikast.engine.run import RunReport
from dikast.manifest import Manifest, RunEntry, Spent, Status
from dikast.sinks import OutputScan, journal_of, refuse_if_written, scan_output

_DIFFERENCES_SHOWN = 3
STREAM_NAME = "topic"


class Output:
    """One output (JSONL, or a table with its journal) with its manifest.

    Standard output ("-") and a topic have no manifest.

    Args:
        where: path of the output, the address of a topic, or "-".
        argv: the command line, recorded without secrets.
        clock: stamps the manifest.
    """

    def __init__(self, where: str, *, argv: Sequence[str] = (), clock: Clock) -> None:
        self.where = where
        self.path = None if where == "-" or streams.is_kafka(where) else Path(where)
        # A topic is nowhere on this machine: what goes with it is kept in the working folder.
        self.kept_beside = Path(STREAM_NAME) if streams.is_kafka(where) else self.path
        self._rows = None if self.path is None else journal_of(self.path)
        self._argv = records.without_secrets([shown(word) for word in argv])
        self._clock = clock
        self._manifest: Manifest | None = None
        self._earlier_usd = 0.0
        self._spent_before: Spent | None = None if self.path is None else Spent()
        self.notes: tuple[str, ...] = ()

    def set_aside(self) -> Path | None:
        """Rename an existing output (and its manifest) so that a new one can start; its new name.

        Source of `--fresh`: what was paid for is kept.

        Raises:
            SinkError: another process is writing it; its rows would end in the renamed file.
        """
        if self.path is None or self._rows is None:
            return None
        there = [each for each in dict.fromkeys((self._rows, self.path)) if each.exists()]
        if not there:
            return None
        for each in there:
            refuse_if_written(each)
        number = 1
        while True:
            suffix = ".old" if number == 1 else f".old{number}"
            kept = self._rows.with_name(self._rows.name + suffix)
            places = {each: each.with_name(each.name + suffix) for each in there}
            if not any(each.exists() for each in places.values()):
                break
            number += 1
        old_manifest = records.manifest_path(self.path)
        for old, new in places.items():
            old.rename(new)
        if old_manifest.exists():
            old_manifest.rename(records.manifest_path(self.path.with_name(self.path.name + suffix)))
        return kept

    def resume(
        self, spec: str, tree: Mapping[str, Any], *, keep_failed: bool = False
    ) -> OutputScan | None:
        """What an earlier run has done, if its spec is this one's.

        Args:
            spec: of this run.
            tree: what it is the hash of.
            keep_failed: failed lines stay, as the input may not hand their rows out again.

        Raises:
            InputError: the file is no output of dikast.
            SpecMismatchError: another spec produced it; the message names the difference.
        """
        if self.path is None or self._rows is None:
            return None
        scan = scan_output(self._rows, keep_failed=keep_failed)
        if scan is None and self._rows != self.path and self.path.exists():
            raise InputError(
                f"is there without its journal {self._rows}, so it cannot be resumed; make the "
                f"journal of it (dikast convert {self.path} -o {self._rows}), name another output, "
                "or start anew with --fresh",
                file=str(self.path),
            )
        self._manifest = records.read_manifest(self.path)
        self._spent_before = records.spent_by(self._manifest)
        if scan is not None and self._manifest is None:
            self._spent_before = None
        if scan is None:
            self._forget_other(spec)
            return None
        others = [each for each in scan.specs if each != spec]
        if others:
            raise SpecMismatchError(self._mismatch(others[0], spec, tree))
        self._forget_other(spec)
        return scan

    def _forget_other(self, spec: str) -> None:
        """A manifest of another spec without rows in the output says nothing about this run."""
        if self._manifest is not None and self._manifest.spec != spec:
            self._earlier_usd = 0.0 if self._spent_before is None else self._spent_before.usd
            self._manifest = None

    def spent_before(self) -> Spent | None:
        """What the runs before this one have spent on the output; None when nobody knows."""
        return self._spent_before

    def spent(self, this_run_usd: float) -> Spent | None:
        """The same with what this run has spent."""
        before = self._spent_before
        return None if before is None else before._replace(usd=before.usd + this_run_usd)

    def spent_before_usd(self, option: str = "--budget-total-usd") -> float:
        """What a budget for all runs has to start from.

        Raises:
            ConfigError: nobody knows.
        """
        if self._spent_before is not None:
            return self._spent_before.usd
        if self.path is None:
            raise no_manifest(self.where, option)
        where = records.manifest_path(self.path)
        why = "a run in it was ended before it could say what it had spent"
        if self._manifest is None:
            why = "it is missing, and the output holds outcomes"
        raise ConfigError(
            f"{option} counts from {where}, and {why}; use --budget-usd, or start anew with --fresh"
        )

    def note_spending(self, usd: float) -> None:
        """Write that this run may have spent so much; it counts when the run is killed.

        Raises:
            SinkError: the manifest cannot be written.
        """
        self._change(spent_most_usd=usd)

    def _mismatch(self, old_spec: str, spec: str, tree: Mapping[str, Any]) -> str:
        remedy = "use the old settings, name another output, or start anew with --fresh"
        if self._manifest is None or self._manifest.spec != old_spec:
            why = (
                f"spec {old_spec} there, {spec} here; its manifest is missing, so the difference "
                "cannot be named"
            )
            return f"{self.where}: was produced by other settings ({why}); {remedy}"
        plain = msgspec.to_builtins(tree)
        found = records.spec_differences(self._manifest.spec_tree, plain)
        shown = "; ".join(found[:_DIFFERENCES_SHOWN])
        more = len(found) - _DIFFERENCES_SHOWN
        rest = f"; and {more} more" if more > 0 else ""
        return f"{self.where}: was produced by other settings: {shown}{rest}; {remedy}"

    def begin(
        self,
        spec: str,
        tree: Mapping[str, Any],
        strategy: str,
        *,
        inputs: Sequence[str],
        seed: int,
        simulated: bool,
    ) -> None:
        """Write the manifest of a run that starts now.

        Raises:
            SinkError: it cannot be written.
        """
        if self.path is None:
            return
        entry = RunEntry(
            status="running",
            started=self._clock.stamp(),
            argv=self._argv,
            inputs=records.without_secrets([shown(each) for each in inputs]),
            seed=seed,
            simulated=simulated,
            spent_most_usd=0.0,
            versions=records.versions(),
        )
        before = () if self._manifest is None else self._manifest.runs
        self._manifest = Manifest(
            output=self.path.name,
            spec=spec,
            spec_tree=msgspec.to_builtins(tree),
            strategy=strategy,
            runs=(*before, entry),
            earlier_usd=(
                self._earlier_usd if self._manifest is None else self._manifest.earlier_usd
            ),
        )
        records.write_manifest(self.path, self._manifest)

    def end(self, report: RunReport, *, simulated: bool, notes: Sequence[str] = ()) -> None:
        """Write how the run ended; `notes` say what a reader of the outcomes ought to know.

        Raises:
            SinkError: the manifest cannot be written.
        """
        self.notes = tuple(notes)
        self._end(
            status=_status(report),
            stop_reason=report.stopped,
            message=report.message,
            duration_s=round(report.duration_s, 3),
            ledger=report.ledger,
            simulated=simulated,
            notes=self.notes,
        )

    def end_with_error(self, message: str, *, spent_usd: float) -> None:
        """Write that the run ended with an error before it could give account."""
        self._end(status="error", message=message, spent_most_usd=spent_usd)

    def end_stopped(self, reason: str, message: str, *, spent_usd: float) -> None:
        """Write that the run was stopped before it had taken in a pair."""
        status: Status = "interrupted" if reason == "interrupted" else "stopped"
        self._end(status=status, stop_reason=reason, message=message, spent_most_usd=spent_usd)

    def note_anchors(self, state: Mapping[str, Any]) -> None:
        """Write the state of the anchors into the entry of the run that is under way.

        Raises:
            SinkError: the manifest cannot be written.
        """
        self._change(anchors=dict(state))

    def _end(self, **changes: Any) -> None:
        self._change(ended=self._clock.stamp(), **changes)

    def _change(self, **changes: Any) -> None:
        if self.path is None or self._manifest is None:
            return
        *before, entry = self._manifest.runs
        entry = msgspec.structs.replace(entry, **changes)
        self._manifest = msgspec.structs.replace(self._manifest, runs=(*before, entry))
        records.write_manifest(self.path, self._manifest)

    def __repr__(self) -> str:
        return f"Output({self.where!r})"


def no_manifest(where: str, option: str) -> ConfigError:
    """The refusal of a budget for all runs where nothing is kept beside the output."""
    return ConfigError(
        f"{option} counts what the manifest beside the output says, and "
        f"{'standard output' if where == '-' else where} has none; name a file as output, or cap "
        "this run with --budget-usd"
    )


def _status(report: RunReport) -> Status:
    if report.stopped is not None:
        return "interrupted" if report.stopped == "interrupted" else "stopped"
    if not report.ledger.adds_up():
        return "error"
    return "failures" if report.ledger.failed_total else "complete"
