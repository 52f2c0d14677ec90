"""`--strategy score` and the example of a rubric of one's own, as a user meets them."""

from pathlib import Path

import pytest

from tests.cli.tools import DEMO, Cli, pair, rows_of, write_rows

pytestmark = pytest.mark.realtime
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_preset_writes_scores_of_every_dimension_and_side(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    words = ("judge", DEMO, "-o", out, "--judge", "simulated:careful", "--strategy", "score")

    ran = cli(*words, "--json")

    assert ran.code == 0
    rows = rows_of(out)
    assert len(rows) == len(DEMO.read_bytes().splitlines())
    assert ran.summary["adds_up"]
    names = ("accuracy", "completeness", "safety", "clarity", "total")
    for row in rows:
        assert list(row["scores"]) == [f"{side}.{name}" for side in "AB" for name in names]
        lead = row["scores"]["A.total"] - row["scores"]["B.total"]
        assert row["winner"] == ("A" if lead > 0 else "B" if lead < 0 else "tie")


def test_the_example_decides_by_expected_grades_and_counts_key_points(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    pairs = write_rows(
        tmp_path / "pairs.jsonl",
        [pair(n, key_points=["one", "two"]) for n in range(20)] + [pair(n) for n in range(20, 30)],
    )

    ran = cli("judge", pairs, "-o", out, "--config", EXAMPLES / "score.toml", "--json")

    assert ran.code == 0
    judged = [row for row in rows_of(out) if row["kind"] == "verdict"]
    assert len(judged) > 25
    for row in judged:
        assert row["votes"][0]["decided_by"] == "logprobs"
        assert ("A.key_points" in row["scores"]) == (int(row["id"][1:]) < 20)
    assert any(row["scores"]["A.solves"] % 1 for row in judged)


def test_check_tells_the_calls_and_a_wrong_rubric(cli: Cli, tmp_path: Path) -> None:
    ran = cli("check", "--config", EXAMPLES / "score.toml")
    assert ran.code == 0
    assert "calls per pair: 2 to 4" in ran.out
    text = (EXAMPLES / "score.toml").read_text("utf-8")
    config = tmp_path / "own.toml"
    config.write_text(text.replace("rubrics/support-reply.toml", "generl-en"), "utf-8")
    ran = cli("check", "--config", config)
    assert ran.code != 0
    assert "did you mean 'general-en'" in ran.err + ran.out
