"""Published rankings and independent reference figures, reproduced by `dikast rank` on real data.

The data lies beside the repository and is not part of it; without it these tests are skipped.
"""

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dikast.analysis.ranking import BattleLog, BattleReader, RankSettings, rank
from tests.cli.conftest import cli as cli
from tests.cli.tools import Cli

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not there"),
]
BATTLES = DATA / "rankings" / "llmfao_human_battles.jsonl.gz"


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "reference_figures_dev.json").read_text("utf-8"))
    return found


@pytest.mark.parametrize("name", ["food", "simple"])
def test_the_golden_rankings_of_evalica_are_matched(cli: Cli, name: str) -> None:
    golden: dict[str, dict[str, float]] = defaultdict(dict)
    with (DATA / "rankings" / f"evalica_{name}_golden.csv").open() as file:
        for row in csv.DictReader(file):
            golden[row["algorithm"]][row["item"]] = float(row["score"])
    path = DATA / "rankings" / f"evalica_{name}.csv"

    report = cli("rank", path, "--ridge", "0", "--elo", "--json").summary
    with_ties = cli("rank", path, "--ridge", "1e-9", "--model", "davidson", "--json").summary

    models = [each["model"] for each in report["models"]]
    strengths = {each["model"]: 10 ** (each["rating"] / 400) for each in report["models"]}
    total = sum(strengths.values())
    assert {model: strengths[model] / total for model in models} == pytest.approx(
        golden["bradley_terry"], abs=1e-6
    )
    assert {each["model"]: each["elo"] for each in report["models"]} == pytest.approx(
        golden["elo"], abs=1e-6
    )
    points, met = np.array(report["win_matrix"]), np.array(report["met_matrix"])
    assert dict(zip(models, points.sum(axis=1), strict=True)) == pytest.approx(golden["counting"])
    rates = np.nanmean(np.where(met > 0, points / np.maximum(met, 1), np.nan), axis=1)
    assert dict(zip(models, rates, strict=True)) == pytest.approx(
        golden["average_win_rate"], abs=1e-6
    )
    # Newman's iteration with ties has Davidson's likelihood; its scores are known up to a factor
    # and settled to a relative step of 1e-6.
    logs = {model: np.log(score) for model, score in golden["newman"].items()}
    mean = sum(logs.values()) / len(logs)
    ours = {
        each["model"]: (each["rating"] - 1000) * np.log(10) / 400 for each in with_ties["models"]
    }
    assert ours == pytest.approx({model: log - mean for model, log in logs.items()}, abs=5e-4)


def test_llmfao_ratings_and_intervals_are_the_reference_figures(
    cli: Cli, figures: dict[str, Any]
) -> None:
    reference = {each["model"]: each for each in figures["llmfao"]["bt_top"]}

    report = cli(
        "rank", BATTLES, "--cluster", "pair_id", "--ridge", "1e-6", "--interval", "bootstrap",
        "--draws", "400", "--json",
    ).summary  # fmt: skip

    assert report["battles"] == figures["llmfao"]["battles"]
    assert report["prompts"] == figures["llmfao"]["pairs"]
    assert report["judges"] == figures["llmfao"]["workers"]
    ours = {each["model"]: each for each in report["models"]}
    assert len(ours) == figures["llmfao"]["models"]
    assert {name: round(each["rating"], 1) for name, each in ours.items()} == pytest.approx(
        {name: each["rating"] for name, each in reference.items()}, abs=0.11
    )
    widths = np.array(
        [
            (each["interval"]["high"] - each["interval"]["low"])
            / (reference[name]["ci95"][1] - reference[name]["ci95"][0])
            for name, each in ours.items()
        ]
    )
    assert 0.95 < float(np.median(widths)) < 1.1
    assert 0.75 < widths.min() < widths.max() < 1.35


def test_llmfao_rankings_by_judges_correlate_as_in_the_reference_figures(
    cli: Cli, figures: dict[str, Any], tmp_path: Path
) -> None:
    judges = ("gpt-3.5-turbo", "gpt-4")
    outputs, pairs = DATA / "judge_outputs" / "llmfao.jsonl.gz", DATA / "pairs" / "llmfao.jsonl.gz"
    saved = {"human": tmp_path / "human.json"}
    saved["human"].write_text(cli("rank", BATTLES, "--ridge", "1e-6", "--json").out)
    for judge in judges:
        saved[judge] = tmp_path / f"{judge}.json"
        ran = cli(
            "rank", outputs, "--pairs", pairs, "--judge", judge, "--ridge", "1e-6", "--json",
            "--against", saved["human"],
        )  # fmt: skip
        saved[judge].write_text(ran.out)
        comparison = ran.summary["comparison"]
        assert comparison["models"] == 59
        assert ran.summary["battles"] == 1074
        assert comparison["spearman"] == pytest.approx(
            figures["llmfao"]["rank_correlation"][f"human vs {judge}"], abs=2e-4
        )
    between = cli(
        "rank", outputs, "--pairs", pairs, "--judge", "gpt-3.5*", "--ridge", "1e-6", "--json",
        "--against", saved["gpt-4"],
    ).summary["comparison"]  # fmt: skip
    assert between["spearman"] == pytest.approx(
        figures["llmfao"]["rank_correlation"]["gpt-3.5-turbo vs gpt-4"], abs=2e-4
    )


def test_the_two_orders_of_recorded_judges_are_one_battle() -> None:
    log = BattleLog()
    BattleReader(log).read(DATA / "judge_outputs" / "mtbench_pb__gpt-4-0613.jsonl.gz")
    battles = log.finish()

    report = rank(battles, RankSettings(model="rao-kupper")).report

    assert (report.battles, report.orders_merged, report.single_order) == (1140, 1140, 0)
    assert report.disagreements == 206
    assert report.prompts == 38
    assert report.models[0].model == "gpt-4"


def test_people_of_unequal_reliability_are_weighed_on_real_votes(cli: Cli) -> None:
    report = cli("rank", BATTLES, "--weights", "dawid-skene", "--json").summary

    assert report["battles"] == 1074
    assert report["judges"] == 124
    weights = [each["weight"] for each in report["judge_weights"]]
    assert 0 <= min(weights) < 0.3 < 0.7 < max(weights) <= 1
