"""A library from real pairs, LLMBar and JudgeBench, with a judge whose criteria are known."""

import json
from pathlib import Path
from typing import Any

import pytest

from dikast.cli import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Any:
    """The command line; its `--json` object."""

    def command(*words: object) -> dict[str, Any]:
        capfd.readouterr()
        assert main([*map(str, words)]) == 0, capfd.readouterr().err
        found: dict[str, Any] = json.loads(capfd.readouterr().out)
        return found

    return command


@pytest.mark.parametrize("name", ["llmbar", "judgebench"])
def test_the_criteria_come_back_from_real_pairs(
    run: Any, data: Path, tmp_path: Path, name: str
) -> None:
    pairs = data / "pairs" / f"{name}.jsonl.gz"
    words = (
        *("sesse", "build", pairs, "-o", tmp_path / "lib.json", "--quiet", "--json"),
        *("--config", ROOT / "examples" / "sesse-build.toml", "--split-dev", "0.7", "--stratify"),
    )
    done = run(*words, "--embedder", "hash")
    stats = done["stats"]
    rows = 197 if name == "llmbar" else 310
    assert stats["rows"] == pytest.approx(0.7 * rows, abs=6)
    assert stats["calls"] == stats["formula"]
    library = json.loads((tmp_path / "lib.json").read_text())
    assert len(library["split"]["calibration_ids"]) == rows - stats["rows"]
    labels = [cluster["label"] for cluster in library["clusters"]]
    assert sorted(labels) == [
        "the request asks for an exact number of items",
        "the request asks for program code",
        "the request sets a limit on the length",
    ]
    again = run(*words, "--embedder", "hash")
    assert again["hash"] == done["hash"]
    assert all(bill["stored"] == bill["asked"] for bill in again["bills"])
