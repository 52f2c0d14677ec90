"""Reports on recorded judges: confusion gives the published accuracy, real texts fit in."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import Cli
from tests.data_driven.outcome_files import Row, by_id, rows, verdict_rows, write_outcomes

pytestmark = pytest.mark.realtime


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capfd)


def test_pandalm_confusion_gives_the_published_accuracy(
    cli: Cli, data: Path, tmp_path: Path
) -> None:
    published = json.loads((data / "reference_figures_dev.json").read_text("utf-8"))["pandalm"]
    pairs = data / "pairs" / "pandalm.jsonl.gz"
    by_judge: dict[str, list[Row]] = defaultdict(list)
    for row in rows(data / "judge_outputs" / "pandalm.jsonl.gz"):
        by_judge[row["judge"]].append(row)
    known = by_id(pairs)
    files = [
        write_outcomes(tmp_path / f"{judge.split()[0]}.jsonl", verdict_rows(mine, known))
        for judge, mine in by_judge.items()
    ]
    words = (*files, "--labels", pairs, "--pairs", pairs, "--draws", 100)
    found: dict[str, Any] = cli("report", *words, "--json").summary
    assert cli("report", *words, "-o", tmp_path / "r.html").code == 0

    assert len(found["confusion"]) == len(files)
    for each in found["confusion"]:
        right = sum(each["counts"][place][place] for place in range(3))
        assert each["n"] == sum(map(sum, each["counts"]))
        assert round(100 * right / each["n"], 2) == published[each["judge"]]["accuracy"]
    page = (tmp_path / "r.html").read_text("utf-8")
    assert len(page.encode()) < 3_000_000
    block = json.loads(page.partition('id="pairs-data">')[2].partition("</script>")[0])
    shown = [pair for pair in block["pairs"] if pair["id"] in known]
    assert len(shown) == len(block["pairs"]) >= 100
    for pair in shown:
        assert pair["response_a"] == known[pair["id"]]["response_a"][:6_000]
