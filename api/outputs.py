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
from dikast.engine.errors import SpecMismatchError
from dikast.engine.ports import Clock
from dikast.engine.run import RunReport
from dikast.manifest import Manifest, RunEntry, Status
from dikast.sinks import OutputScan, scan_output

_DIFFERENCES_SHOWN = 3


class Output:
    """One JSONL output with its manifest; standard output ("-") and a topic have no manifest.

    Args:
        where: path of the output, the address of a topic, or "-".
        argv: the command line, recorded without secrets.
        clock: stamps the manifest.
    """

    def __init__(self, where: str, *, argv: Sequence[str] = (), clock: Clock) -> None:
        self.where = where
        self.path = None if where == "-" or streams.is_kafka(where) else Path(where)
        self._argv = records.without_secrets(argv)
        self._clock = clock
        self._manifest: Manifest | None = None
        self.notes: tuple[str, ...] = ()

    def set_aside(self) -> Path | None:
        """Rename an existing output (and its manifest) so that a new one can start; its new name.

        Source of `--fresh`: what was paid for is kept.
        """
        if self.path is None or not self.path.exists():
            return None
        number = 1
        while True:
            suffix = ".old" if number == 1 else f".old{number}"
            kept = self.path.with_name(self.path.name + suffix)
            if not kept.exists():
                break
            number += 1
        old_manifest = records.manifest_path(self.path)
        self.path.rename(kept)
        if old_manifest.exists():
            old_manifest.rename(records.manifest_path(kept))
        return kept

    def resume(self, spec: str, tree: Mapping[str, Any]) -> OutputScan | None:
        """What an earlier run has done, if its spec is this one's.

        Raises:
            InputError: the file is no output of dikast.
            SpecMismatchError: another spec produced it; the message names the difference.
        """
        if self.path is None:
            return None
        scan = scan_output(self.path)
        self._manifest = records.read_manifest(self.path)
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
            self._manifest = None

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
            inputs=tuple(inputs),
            seed=seed,
            simulated=simulated,
            versions=records.versions(),
        )
        before = () if self._manifest is None else self._manifest.runs
        self._manifest = Manifest(
            output=self.path.name,
            spec=spec,
            spec_tree=msgspec.to_builtins(tree),
            strategy=strategy,
            runs=(*before, entry),
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

    def end_with_error(self, message: str) -> None:
        """Write that the run ended with an error before it could give account."""
        self._end(status="error", message=message)

    def _end(self, **changes: Any) -> None:
        if self.path is None or self._manifest is None:
            return
        *before, entry = self._manifest.runs
        entry = msgspec.structs.replace(entry, ended=self._clock.stamp(), **changes)
        self._manifest = msgspec.structs.replace(self._manifest, runs=(*before, entry))
        records.write_manifest(self.path, self._manifest)

    def __repr__(self) -> str:
        return f"Output({self.where!r})"


def _status(report: RunReport) -> Status:
    if report.stopped is not None:
        return "interrupted" if report.stopped == "interrupted" else "stopped"
    if not report.ledger.adds_up():
        return "error"
    return "failures" if report.ledger.failed_total else "complete"
