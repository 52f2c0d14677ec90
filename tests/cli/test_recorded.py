"""Recorded judges through the command line itself: `dikast judge --strategy swap` on real pairs."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.recorded import labelled_pairs, rows
from dikast.engine.model import Outcome, Undecided, Verdict
from tests.data_driven.test_recorded_judges import (
    TEMPLATES,
    Picks,
    figures,
    position_figures,
    position_rows,
)

JUDGED = Verdict | Undecided
COMPARISONS = (
    *("CoT", "Metrics", "Metrics_Reference", "Reference", "Swap", "Swap_CoT"),
    *("Vanilla", "Vanilla_1shot", "Vanilla_2shot", "Vanilla_NoRules"),
)

CONFIG = """
[providers.recorded]
kind = "replay"
paths = [{paths}]
template = {template}

[judges.recorded]
provider = "recorded"
model = {model}
by_pair = true
"""


def judge(
    folder: Path, pairs: Path, records: Path, template: str, model: str, reader: str
) -> dict[str, tuple[Picks, JUDGED]]:
    """Run the command; the picks in both orders and the outcome, by pair id."""
    config = CONFIG.format(
        paths=json.dumps(str(records)), template=json.dumps(template), model=json.dumps(model)
    )
    (folder / "dikast.toml").write_text(config)
    output = folder / "out.jsonl"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "dikast", "judge", str(pairs), "-o", str(output)),
            *("--config", str(folder / "dikast.toml"), "--strategy", "swap", "--no-store"),
            *("--judge", "recorded", "--template", str(TEMPLATES / f"{reader}.toml")),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    decode = msgspec.json.Decoder(Outcome).decode
    judged: dict[str, tuple[Picks, JUDGED]] = {}
    for line in output.read_bytes().split(b"\n"):
        if line:
            outcome = decode(line)
            assert isinstance(outcome, Verdict | Undecided)
            picks = {v.order: None if v.pick == "none" else v.pick for v in outcome.votes}
            judged[outcome.id] = ((picks["ab"], picks["ba"]), outcome)
    return judged


@pytest.mark.slow
@pytest.mark.parametrize("template", COMPARISONS)
def test_gpt4_on_llmbar_gives_the_published_figures(
    data: Path, tmp_path: Path, template: str
) -> None:
    model = "gpt-4 (2023, Azure/OpenAI)"
    source = data / "pairs" / "llmbar.jsonl.gz"
    records = data / "judge_outputs" / "llmbar__gpt_4.jsonl.gz"
    judged = judge(tmp_path, source, records, f"llmbar/{template}", model, "llmbar-comparison")
    pairs, subsets = labelled_pairs(data, "llmbar")
    reference = json.loads((data / "reference_figures_dev.json").read_text(encoding="utf-8"))
    expected = next(
        entry["subsets"]
        for entry in reference["llmbar"]["table"]
        if (entry["set"], entry["judge"], entry["template"]) == ("llmbar", model, template)
    )
    groups: dict[str, list[Any]] = defaultdict(list)
    for pair_id, result in judged.items():
        groups[subsets[pair_id]].append(result)
    assert groups.keys() == expected.keys()
    for subset, group in groups.items():
        got = figures(group, pairs)
        assert got == {key: expected[subset][key] for key in got}, subset


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "bench", "template", "reader"),
    [
        ("mtbench_pb__gpt-4-0613", "MTBench", "positionbias/MTBench-3opt", "mtbench-marker"),
        ("devbench_pb__gpt-4-0613", "DevBench", "positionbias/DevBench-2opt", "devbench-choice"),
    ],
)
def test_gpt4_on_the_position_bias_sets_is_as_consistent_as_published(
    data: Path, tmp_path: Path, file: str, bench: str, template: str, reader: str
) -> None:
    records = data / "judge_outputs" / f"{file}.jsonl.gz"
    ((model, repeat), recorded), *others = position_rows(list(rows(records))).items()
    assert not others
    ids = dict.fromkeys(row["pair_id"] for row in recorded)
    source = tmp_path / "pairs.jsonl"
    # The judge's words were recorded; the answers' texts play no part in reading them.
    source.write_text(
        "".join(
            json.dumps({"id": pair_id, "question": "q", "response_a": "a", "response_b": "b"})
            + "\n"
            for pair_id in ids
        )
    )
    judged = judge(tmp_path, source, records, template, model, reader)
    reference = json.loads((data / "reference_figures_dev.json").read_text(encoding="utf-8"))
    expected = next(
        row
        for row in reference["position_bias"]["rows"]
        if (row["bench"], row["judge"], row["repeat"]) == (bench, model, repeat)
    )
    got = position_figures(judged)
    assert got == {key: expected[key] for key in got}
