"""What an output holds over all runs: earlier lines that a new outcome replaces are taken off."""

from pathlib import Path

import msgspec

from dikast.engine.events import PairDone, RunStarted
from dikast.engine.ledger import Held, Ledger
from dikast.engine.model import Failed, Outcome, Verdict
from dikast.manifest import Manifest, RunEntry, Spent, spent_by
from dikast.sinks import scan_output
from dikast.whole import WholeOutput, lines, machine

RUN = Ledger(judged=1, verdicts={"B single": 1})


def test_an_outcome_takes_the_place_of_a_failed_one_that_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "o.jsonl"
    written: list[Outcome] = [
        Verdict(id="p1", winner="A"),
        Failed(id="p2", reason="timeout", message="m"),
        Failed(id="p3", reason="timeout", message="m"),
    ]
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in written))
    whole = WholeOutput()
    whole.begin(scan_output(path, keep_failed=True))
    whole(RunStarted(spec="s", strategy="x"))
    whole(PairDone(outcome=Verdict(id="p2", winner="B"), duration_s=0.0))

    held = whole.held(RUN)

    assert whole.resumed
    assert held == Held(judged=2, verdicts={"A single": 1, "B single": 1}, failed={"timeout": 1})


def test_a_new_output_holds_this_run_and_one_nobody_reads_is_not_known() -> None:
    whole = WholeOutput()
    whole.begin(None)
    assert (whole.resumed, whole.held(RUN)) == (False, Held().plus(RUN))
    whole.begin(None, known=False)
    assert whole.held(RUN) is None
    assert machine(None, Spent()) is None


def test_the_money_of_all_runs_counts_killed_ones_with_their_bound() -> None:
    def entry(usd: float | None, most: float | None, ended: str | None = "t") -> RunEntry:
        ledger = None if usd is None else Ledger(spent_usd=usd)
        return RunEntry(
            status="running", started="t", ended=ended, ledger=ledger, spent_most_usd=most
        )

    def of(*runs: RunEntry) -> Spent | None:
        return spent_by(Manifest(output="o", spec="s", spec_tree={}, runs=runs, earlier_usd=0.5))

    assert of(entry(1.0, 1.2), entry(2.0, None)) == Spent(3.5, bound=False)
    assert of(entry(1.0, 1.2), entry(None, 0.25, None)) == Spent(1.75, bound=True)
    assert of(entry(None, 0.25)) == Spent(0.75, bound=False)
    assert of(entry(None, None, None)) is None
    assert spent_by(None) == Spent()
    told = lines(Held(), Spent(1.75, bound=True))
    assert told[-1] == "  at most $1.7500 spent by all runs on it"
