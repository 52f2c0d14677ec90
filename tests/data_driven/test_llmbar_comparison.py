"""What docs/committees.md says of committees, measured weights and cascades on LLMBar is so."""

from pathlib import Path

import pytest

from bench.llmbar_committees import (
    ALONE,
    CASCADES,
    MEASURED,
    PLAIN,
    Comparison,
    adversarial,
    compare,
    half_of,
    table,
)
from bench.recorded import LLMBAR_PROMPTS, reference
from dikast.cli import main
from dikast.tables import render
from tests.sim.vloop import VirtualLoop

PAGE = Path(__file__).resolve().parents[2] / "docs" / "committees.md"
MOSTLY_WRONG = {"chatgpt", "chatgpt-0301", "llama2"}


@pytest.fixture(params=LLMBAR_PROMPTS)
def found(request: pytest.FixtureRequest, data: Path, tmp_path: Path) -> Comparison:
    return compare(data, request.param, tmp_path, VirtualLoop)


@pytest.mark.realtime
def test_the_comparison_is_what_the_page_says(found: Comparison, data: Path) -> None:
    known = reference(data, "llmbar_committee")["results"][found.kind]["Adversarial"]
    rows = found.rows
    n = known["committee:all_six"]["n"]
    assert {row.n for row in rows.values()} == {n}

    # The two that were computed independently of this project.
    right = {name: round(100 * sum(row.right) / n, 2) for name, row in rows.items()}
    assert right[PLAIN] == known["committee:all_six"]["correct"]
    assert right[ALONE] == known["gpt-4 (2023, Azure/OpenAI)"]["correct"]

    # The plain committee, and a cascade from a judge that is mostly wrong, lose to gpt-4 alone.
    for name in (PLAIN, "cascade chatgpt -> gpt-4"):
        interval = rows[name].gap_interval
        assert interval is not None
        assert interval.high < -0.1
        assert rows[name].p < 0.001

    # With measured weights the committee is not worse than gpt-4, and asks fewer than six.
    measured = rows[MEASURED]
    assert measured.gap_interval is not None
    assert measured.gap_interval.low > -0.01
    assert measured.gap >= 0
    assert measured.calls < rows[PLAIN].calls
    for weights in found.weights:
        assert {name for name, weight in weights.items() if weight == 0} >= MOSTLY_WRONG
        assert max(weights, key=lambda name: weights[name]) == "gpt-4"

    # Calls: two a judge and pair; a cascade asks gpt-4 for some pairs only.
    assert rows[ALONE].calls == 2 * n == rows[ALONE].best_calls
    assert rows[PLAIN].calls == 12 * n
    for name in CASCADES:
        assert rows[name].calls == 2 * n + rows[name].best_calls
        assert rows[name].best_calls < 2 * n

    # And the page holds these very tables.
    assert render(table(found), "md") in PAGE.read_text(encoding="utf-8")


@pytest.mark.realtime
def test_the_page_shows_what_the_command_prints(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "120")  # notes are wrapped at the terminal's width
    compare(data, "Vanilla", tmp_path, VirtualLoop)
    capsys.readouterr()
    assert main(["weights", str(tmp_path / "Vanilla-0.jsonl"), "-o", str(tmp_path / "w.json")]) == 0
    # The hash knows from which folder the records came; all before it must be as printed.
    printed, _, _ = capsys.readouterr().out.rpartition("  hash ")
    assert "gpt-4" in printed
    assert printed in PAGE.read_text(encoding="utf-8")


def test_no_question_is_on_both_sides_of_the_split(data: Path) -> None:
    pairs = adversarial(data)
    sides = {pair.question: set[int]() for pair in pairs}
    for pair in pairs:
        sides[pair.question].add(half_of(pair))
    assert all(len(each) == 1 for each in sides.values())
    share = sum(half_of(pair) for pair in pairs) / len(pairs)
    assert 0.4 < share < 0.6
