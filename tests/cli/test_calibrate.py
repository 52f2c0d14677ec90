"""`dikast calibrate` and `check --rates`, as a user meets them: from an output to a file and on."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import DEMO, Cli, Ran, rows_of, write_rows

pytestmark = pytest.mark.realtime
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def judged(cli: Cli, tmp_path: Path) -> Path:
    out = tmp_path / "repeat.jsonl"
    config = EXAMPLES / "repeat.toml"
    assert cli("judge", DEMO, "-o", out, "--config", config, "--quiet").code == 0
    return out


def labels_for(out: Path, path: Path) -> Path:
    """People who mostly agree with sure verdicts, and with the others as with a coin."""
    rng = random.Random(5)
    rows: list[dict[str, Any]] = []
    for row in rows_of(out):
        other = {"A": "B", "B": "A"}.get(row["winner"], "A")
        agree = rng.random() < (0.9 if row["confidence"] == 1 else 0.45)
        rows.append({"pair_id": row["id"], "label": row["winner"] if agree else other})
    return write_rows(path, rows)


def calibrate(cli: Cli, *words: object) -> Ran:
    return cli("calibrate", *words, "--date", "2026-01-02")


def test_the_example_is_fitted_judged_and_abstains(cli: Cli, tmp_path: Path) -> None:
    out = judged(cli, tmp_path)
    labels = labels_for(out, tmp_path / "labels.jsonl")
    shutil.copy(EXAMPLES / "calibrated.toml", tmp_path / "calibrated.toml")
    made = tmp_path / "calibration.json"
    ran = calibrate(cli, out, "--labels", labels, "-o", made)
    assert ran.code == 0
    assert "isotonic map of confidence, repeat@1" in ran.out
    assert "(simulated judges)" in ran.out
    assert "a tie agrees with a tie only" in ran.out
    found = json.loads(made.read_text("utf-8"))
    assert found["fitted_on"] + sum(found["left_out"].values()) == len(rows_of(out))
    assert found["after"]["brier"] < found["before"]["brier"]
    assert found["date"] == "2026-01-02"

    config = tmp_path / "calibrated.toml"
    config.write_text(config.read_text("utf-8").replace("below = 0.3", "below = 0.6"), "utf-8")
    checked = cli("check", "--offline", "--config", config)
    assert "needs the calibration calibration.json" in checked.out
    verdicts = tmp_path / "verdicts.jsonl"
    assert cli("judge", DEMO, "-o", verdicts, "--config", config, "--json").code == 0
    before = {row["id"]: row for row in rows_of(out)}
    kinds: set[tuple[str, bool]] = set()
    for row in rows_of(verdicts):
        old = before[row["id"]]
        kinds.add((row["kind"], old.get("confidence") == 1))
        if row["kind"] == "verdict":
            assert (row["winner"], row["raw_confidence"]) == (old["winner"], old["confidence"])
            assert row["confidence"] >= 0.6
        elif old["kind"] == "verdict":
            assert row["why"] == "abstained"
    assert kinds == {("verdict", True), ("undecided", False)}


def test_the_map_of_another_strategy_is_refused_before_anything_is_paid(
    cli: Cli, tmp_path: Path
) -> None:
    out = judged(cli, tmp_path)
    made = tmp_path / "calibration.json"
    labels = labels_for(out, tmp_path / "labels.jsonl")
    assert calibrate(cli, out, "--labels", labels, "-o", made, "--method", "platt").code == 0
    config = tmp_path / "other.toml"
    text = (EXAMPLES / "calibrated.toml").read_text("utf-8")
    config.write_text(text.replace("n = 5", "n = 3"), "utf-8")
    ran = cli("judge", DEMO, "-o", tmp_path / "v.jsonl", "--config", config)
    assert ran.code == 2
    assert "was fitted on outcomes of repeat@1 with spec" in ran.err
    allowed = text.replace("n = 5", "n = 3").replace(
        "abstain_below", "allow_other_spec = true\nabstain_below"
    )
    config.write_text(allowed, "utf-8")
    words = ("judge", DEMO, "-o", tmp_path / "v.jsonl", "--config", config, "--limit", 5)
    assert cli(*words, "--quiet").code == 0


def test_the_outcomes_own_labels_serve_and_the_summary_is_the_file(
    cli: Cli, tmp_path: Path
) -> None:
    out, made = judged(cli, tmp_path), tmp_path / "cal.json"
    ran = calibrate(cli, out, "-o", made, "--raw", "margin", "--json")
    assert ran.code == 0
    assert ran.summary["raw"] == "margin"
    assert ran.summary["agreement"]["low"] < ran.summary["agreement"]["share"]
    stored = json.loads(made.read_text("utf-8"))
    assert {name: ran.summary[name] for name in stored} == stored


def test_what_is_no_ground_for_a_map_is_said_in_a_sentence(cli: Cli, tmp_path: Path) -> None:
    out, made = judged(cli, tmp_path), tmp_path / "cal.json"
    rows = rows_of(out)
    few = write_rows(tmp_path / "few.jsonl", rows[:20])
    same = write_rows(tmp_path / "same.jsonl", [{**row, "confidence": 1.0} for row in rows])
    right = write_rows(tmp_path / "right.jsonl", [{**row, "label": row["winner"]} for row in rows])
    mixed = write_rows(tmp_path / "mixed.jsonl", [*rows, {**rows[0], "id": "x", "spec": "other"}])
    for path, says in (
        (few, "20 labelled verdicts with a confidence are too few, 30 are needed"),
        (same, "have the same raw confidence, 1, so it tells nothing apart"),
        (right, "labelled verdicts agrees with people, so there is nothing to tell apart"),
        (mixed, "outcomes of one strategy are needed, these are of: repeat@1"),
        (DEMO, "is not an outcome written by dikast"),
        (tmp_path / "none.jsonl", "cannot be read"),
    ):
        ran = calibrate(cli, path, "-o", made, "--raw", "confidence")
        assert (ran.code, says in ran.err) == (2, True), ran.err
        assert len(ran.err.splitlines()) == 1
    assert not made.exists()
    folds = calibrate(cli, out, "-o", made, "--folds", 1)
    assert (folds.code, "--folds: must lie between 2 and" in folds.err) == (2, True)
    lead = calibrate(cli, out, "-o", made, "--raw", "lead")
    assert "0 labelled verdicts" in lead.err


def test_rates_are_measured_in_an_output_and_said(cli: Cli, tmp_path: Path) -> None:
    out, config = tmp_path / "out.jsonl", EXAMPLES / "cascade.toml"
    assert cli("judge", DEMO, "-o", out, "--config", config, "--quiet").code == 0
    words = ("check", "--offline", "--config", config, "--rates", out)
    ran = cli(*words)
    assert ran.code == 0
    rows = rows_of(out)
    mean = sum(row["calls"] for row in rows) / len(rows)
    assert f"measured on {len(rows)} outcomes" in ran.out
    assert f"of this very strategy: {mean:.2f} on average" in ran.out
    summary = cli(*words, "--json").summary
    # The rung's own share was measured, so what is expected is what was seen.
    assert summary["calls_per_pair"]["expected"] == pytest.approx(mean, abs=1e-3)
    ties = sum(row["kind"] == "verdict" and row["winner"] == "tie" for row in rows)
    verdicts = sum(row["kind"] == "verdict" for row in rows)
    assert summary["rates"]["tie"] == pytest.approx(ties / verdicts)
    assumed = cli("check", "--offline", "--config", config)
    assert "(assumed; measure them with --rates OUT.jsonl)" in assumed.out
    empty = tmp_path / "empty.jsonl"
    empty.write_text("", "utf-8")
    assert "holds no outcome to measure" in cli(*words[:-1], empty).err
    assert "is not an outcome written by dikast judge" in cli(*words[:-1], DEMO).err
