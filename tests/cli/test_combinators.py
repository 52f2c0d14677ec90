"""The combinators' example files and presets run from the command line, and resume."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import DEMO, Cli

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CALLS = {
    "committee": (2, 6),
    "weighted": (0, 4),
    "repeat": (5, 5),
    "cascade": (2, 4),
    "early_stop": (2, 6),
    "early_stop_risk": (4, 15),
    "length_guard": (2, 2),
}


def outcomes(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.realtime
@pytest.mark.parametrize("name", sorted(CALLS))
def test_an_example_says_its_calls_judges_within_them_and_resumes_for_nothing(
    cli: Cli, tmp_path: Path, name: str
) -> None:
    config = EXAMPLES / f"{name}.toml"
    checked = cli("check", "--config", config, "--json")
    assert checked.code == 0
    fewest, most = CALLS[name]
    assert checked.summary["calls_per_pair"].items() >= {"min": fewest, "max": most}.items()
    text = f"{fewest} to {most}" if fewest != most else str(most)
    assert f"calls per pair: {text}" in cli("check", "--config", config).out

    out = tmp_path / "out.jsonl"
    words = ("judge", DEMO, "-o", out, "--config", config, "--limit", 60)
    assert cli(*words, "--json").code == 0
    rows = outcomes(out)
    assert len(rows) == 60
    assert all(fewest <= row["calls"] <= most for row in rows)
    if name != "length_guard":  # it has no members of its own
        assert all(
            sum(part.get("calls", 0) for part in row["parts"]) == row["calls"] for row in rows
        )
    assert all(row["strategy"].startswith(row_kind(name)) for row in rows)
    assert {row["kind"] for row in rows} <= {"verdict", "undecided"}

    again = cli(*words, "--json")
    assert again.code == 0
    assert outcomes(out) == rows


def row_kind(name: str) -> str:
    return {"weighted": "committee", "early_stop_risk": "early_stop"}.get(name, name) + "@"


@pytest.mark.realtime
@pytest.mark.parametrize(("preset", "most"), [("committee", 4), ("cascade", 4)])
def test_presets_ask_all_judges_that_are_named(
    cli: Cli, tmp_path: Path, preset: str, most: int
) -> None:
    out = tmp_path / "out.jsonl"
    judges = ("--judge", "simulated:sloppy", "--judge", "simulated:careful")
    ran = cli("judge", DEMO, "-o", out, "--strategy", preset, *judges, "--limit", 20, "--json")
    assert ran.code == 0
    rows = outcomes(out)
    assert len(rows) == 20
    assert max(row["calls"] for row in rows) == most
    assert rows[0]["strategy"].startswith(f"{preset}@")


def test_presets_that_need_several_judges_say_so(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    one = cli("judge", DEMO, "-o", out, "--strategy", "committee", "--judge", "simulated:coin")
    assert one.code == 2
    assert "the strategy committee needs at least two judges" in one.err
    judges = ("--judge", "simulated:sloppy", "--judge", "simulated:careful")
    two = cli("judge", DEMO, "-o", out, *judges)
    assert two.code == 2
    assert "--strategy committee or cascade" in two.err
