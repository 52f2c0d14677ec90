"""The page on audits shows what its commands print, word for word."""

import random
import re
from pathlib import Path

import pytest

from tests.cli.tools import DEMO, Cli, rows_of, write_rows

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "audit.md"


def label(folder: Path) -> None:
    """What two people might have written: mostly the demo's own labels."""
    truth = {row["id"]: row["label"] for row in rows_of(DEMO)}
    rng = random.Random(3)
    rows = []
    for who, right in (("ana", 0.95), ("bo", 0.9)):
        for at, item in enumerate(rows_of(folder / "sample.jsonl")):
            fields = ("inclusion_probability", "stratum", "stratum_pairs")
            row = {"pair_id": item["id"], "annotator": who, **{name: item[name] for name in fields}}
            said = truth[item["id"]] if rng.random() < right else rng.choice(["A", "B", "tie"])
            shown = rng.choice(["ab", "ba"])
            timed = {"shown": shown, "duration_s": round(rng.uniform(5, 40), 1)}
            rows.append({**row, **timed, "label": said})
            if at % 8 == 0:
                rows.append({**row, **timed, "again": said, "repeat": 1})
    write_rows(folder / "labels.jsonl", rows)


def test_the_tables_of_the_page_are_what_its_commands_print(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.jsonl").write_bytes(DEMO.read_bytes())
    example = PAGE.read_text("utf-8").partition("## Example")[2]
    printed, shown = "", 0
    for kind, text in re.findall(r"```(sh|text)\n(.*?)```", example, flags=re.DOTALL):
        if kind == "text":
            assert text.strip() in printed
            shown += 1
            continue
        for line in text.splitlines():
            ran = cli(*line.removeprefix("dikast ").split())
            assert ran.code == 0, ran.err
            printed = ran.out
            if "audit sample" in line:
                label(tmp_path)
    assert shown == 2
