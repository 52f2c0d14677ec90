"""Single answers from the command line: scored, resumed, ordered, and refused by a comparison."""

import statistics
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import Cli, rows_of, write_rows

pytestmark = pytest.mark.realtime
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def item(number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"i{number}", "question": f"q {number}", "response": f"r {number}", **more}


def test_items_are_scored_counted_ordered_and_resumed(cli: Cli, tmp_path: Path) -> None:
    items = write_rows(tmp_path / "items.jsonl", [item(n, model="m", grade=n) for n in range(40)])
    out = tmp_path / "out.jsonl"
    words = ("judge", items, "-o", out, "--judge", "simulated:careful", "--strategy", "score")
    assert cli(*words, "--ordered", "--limit", 15, "--quiet").code == 0
    first = rows_of(out)
    ran = cli(*words, "--ordered", "--json")
    assert ran.code == 0
    ledger = ran.summary["ledger"]
    assert ran.summary["adds_up"]
    assert (ledger["input"], ledger["skipped"]) == (40, 15)
    assert ledger["verdicts"] == {"scored": ledger["judged"]}
    assert f"scored {ledger['judged']}" in ran.err
    rows = rows_of(out)
    assert rows[:15] == first
    assert [row["id"] for row in rows] == [f"i{n}" for n in range(40)]
    assert {row["kind"] for row in rows} == {"scored"}
    assert all(0 <= row["scores"]["total"] <= 1 and row["calls"] == 1 for row in rows)
    assert (rows[7]["model"], rows[7]["grade"]) == ("m", 7.0)


def test_a_comparison_refuses_items_one_by_one_and_pays_nothing(cli: Cli, tmp_path: Path) -> None:
    items = write_rows(tmp_path / "items.jsonl", [item(n) for n in range(3)])
    out = tmp_path / "out.jsonl"
    ran = cli("judge", items, "-o", out, "--judge", "simulated:careful", "--json")
    assert ran.code == 1
    assert ran.summary["ledger"]["failed"] == {"bad_row": 3}
    assert ran.summary["requests_sent"] == 0
    says = "holds a single answer, and the strategy swap@1 compares two; score it with"
    assert all(says in row["message"] for row in rows_of(out))
    assert f"{items}:1: holds" in rows_of(out)[0]["message"]


def test_items_and_pairs_may_share_a_run_of_scores(cli: Cli, tmp_path: Path) -> None:
    items = write_rows(tmp_path / "items.jsonl", [item(n) for n in range(3)])
    pairs = write_rows(
        tmp_path / "pairs.jsonl",
        [{"id": "p", "question": "q 1", "response_a": "r 1", "response_b": "x"}],
    )
    out = tmp_path / "out.jsonl"
    ran = cli(
        *("judge", items, pairs, "-o", out, "--judge", "simulated:careful"),
        *("--strategy", "score", "--json"),
    )
    assert ran.code == 0
    kinds = sorted(row["kind"] for row in rows_of(out))
    assert kinds == ["scored", "scored", "scored", "verdict"]
    # The answer that both hold is asked once.
    assert ran.summary["requests_sent"] == 4


def test_items_are_converted_to_items(cli: Cli, tmp_path: Path) -> None:
    items = write_rows(tmp_path / "items.jsonl", [{"prompt": "q", "output": "r", "model": "m"}])
    out = tmp_path / "own.jsonl"
    assert cli("convert", items, "-o", out).code == 0
    (row,) = rows_of(out)
    assert (row["question"], row["response"], row["model"]) == ("q", "r", "m")
    assert cli("convert", out, "-o", tmp_path / "again.jsonl").code == 0
    assert rows_of(tmp_path / "again.jsonl") == [row]


def test_the_example_scores_each_item_three_times_and_takes_the_median(
    cli: Cli, tmp_path: Path
) -> None:
    items = write_rows(tmp_path / "items.jsonl", [item(n) for n in range(30)])
    out = tmp_path / "out.jsonl"
    ran = cli("judge", items, "-o", out, "--config", EXAMPLES / "items.toml", "--json")
    assert ran.code == 0
    apart = 0
    for row in rows_of(out):
        totals = [part["scores"]["total"] for part in row["parts"]]
        assert row["scores"]["total"] == statistics.median(totals)
        assert row["calls"] == 3
        apart += len(set(totals)) > 1
    assert apart > 5
