"""What a scan says that an output holds: one count an id, whatever was written before."""

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dikast.engine.ledger import Held, Ledger, LedgerBook
from dikast.engine.model import Failed, Outcome, Scored, Undecided, Verdict
from dikast.sinks import JsonlSink, scan_output
from dikast.sinks.holdings import CODE_MASK, Holdings, OutcomeLine


def write(path: Path, outcomes: list[Outcome]) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in outcomes))
    return path


def failed(id: str, reason: str = "timeout") -> Failed:
    return Failed(id=id, reason=reason, message="m")


def any_outcome(rng: random.Random, id: str) -> Outcome:
    choices: list[Outcome] = [
        Verdict(id=id, winner=rng.choice(["A", "B", "tie"]), basis="agree"),
        Verdict(id=id, winner="A"),
        Scored(id=id, scores={"total": 1.0}),
        Undecided(id=id, why=rng.choice(["unparsed", "refused"])),
        failed(id, rng.choice(["timeout", "bad_row"])),
    ]
    return rng.choice(choices)


@pytest.mark.parametrize("keep_failed", [False, True])
def test_a_scan_counts_as_a_ledger_of_the_last_outcomes_would(
    tmp_path: Path, keep_failed: bool
) -> None:
    rng = random.Random(3)
    written = [any_outcome(rng, f"p{rng.randrange(60)}") for _ in range(300)]
    last = {each.id: each for each in written}
    scan = scan_output(write(tmp_path / "o.jsonl", written), keep_failed=keep_failed)
    book = LedgerBook()
    for each in last.values():
        if keep_failed or not isinstance(each, Failed):
            book.book(each)

    assert scan is not None
    assert scan.held() == Held().plus(book.snapshot())
    assert scan.held().rows == len(last) - (0 if keep_failed else scan.retry)


def test_a_failed_pair_that_succeeds_is_counted_once(tmp_path: Path) -> None:
    verdict = Verdict(id="p1", winner="A", basis="agree")
    path = write(tmp_path / "o.jsonl", [verdict, failed("p2"), failed("p3")])
    dropped, kept = scan_output(path), scan_output(path, keep_failed=True)
    assert dropped is not None
    assert kept is not None
    run = Ledger(judged=1, verdicts={"B agree": 1})
    for scan in (dropped, kept):
        scan.replaced("p2")
        scan.replaced("p2")  # handed out twice: still one
        scan.replaced("p9")

    assert dropped.held().plus(run) == Held(judged=2, verdicts={"A agree": 1, "B agree": 1})
    assert kept.held().plus(run) == Held(
        judged=2, verdicts={"A agree": 1, "B agree": 1}, failed={"timeout": 1}
    )
    assert kept.held().plus(run).rows == 3


async def test_failed_lines_that_are_kept_stay_in_the_file_until_there_is_a_later_one(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "o.jsonl", [failed("p1"), failed("p2"), failed("in:7", "bad_row")])
    before = path.read_bytes()
    scan = scan_output(path, keep_failed=True)
    assert scan is not None
    assert (scan.done, scan.retry, scan.stale_lines) == (0, 3, 0)
    assert not scan.is_done("p1")
    sink = JsonlSink(path, resume=scan)
    await sink.write(Verdict(id="p1", winner="B"))
    await sink.aclose()
    assert path.read_bytes().startswith(before)

    again = scan_output(path, keep_failed=True)
    assert again is not None
    assert again.stale_lines == 1
    await JsonlSink(path, resume=again).aclose()
    rows: list[dict[str, Any]] = [
        msgspec.json.decode(each) for each in path.read_bytes().splitlines()
    ]
    assert [(each["id"], each["kind"]) for each in rows] == [
        ("p2", "failed"),
        ("in:7", "failed"),
        ("p1", "verdict"),
    ]


def test_words_that_dikast_does_not_write_cost_no_memory_and_no_count() -> None:
    holdings = Holdings()
    codes = set[int]()
    for number in range(1000):
        code = holdings.code_of(OutcomeLine(kind="failed", id="x", reason=f"r{number}"))
        codes.add(code)
        holdings.enter(code)
    verdict = holdings.code_of(OutcomeLine(kind="verdict", id="x", winner="A", basis="new"))
    holdings.enter(verdict)

    assert max(codes) <= CODE_MASK
    assert sum(holdings.held().failed.values()) == 1000
    assert holdings.held().failed["other"] == 1000 - len(codes) + 1
    assert holdings.held().verdicts == {"other": 1}


def test_the_lines_for_people_say_what_is_held() -> None:
    held = Held(judged=2, verdicts={"A agree": 2}, failed={"timeout": 1200})

    assert held.lines() == [
        "rows       1,202",
        "judged         2  A agree 2",
        "undecided      0",
        "failed     1,200  timeout 1,200",
    ]
