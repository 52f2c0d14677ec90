"""`dikast judge --anchors`: the state in the manifest, the gate, the correction of scores."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import DEMO, Cli, manifest_of, pair, rows_of, write_rows

pytestmark = pytest.mark.realtime
JUDGES = Path(__file__).with_name("judges.toml")
SCORE = ("--config", str(JUDGES), "--judge", "careful", "--strategy", "score")


class Scene:
    """A set of anchors, a baseline, and pairs to judge."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        self.cli = cli
        self.anchors = folder / "anchors.json"
        self.baseline = folder / "baseline.json"
        self.pairs = write_rows(folder / "pairs.jsonl", [pair(n) for n in range(30)])
        self.out = folder / "out.jsonl"
        words = ("anchors", "init", DEMO, "-o", self.anchors, "--name", "demo", "--size", 40)
        assert cli(*words).code == 0
        assert cli("anchors", "run", self.anchors, "-o", self.baseline, *SCORE).code == 0

    def shifted(self, by: float) -> Path:
        """A baseline in which every score was greater by so much: the judge has become stricter."""
        found = json.loads(self.baseline.read_text("utf-8"))
        for each in found["items"]:
            each["scores"] = {name: score + by for name, score in each["scores"].items()}
        path = self.baseline.with_name("shifted.json")
        path.write_text(json.dumps(found), "utf-8")
        return path

    def judge(self, *words: object, strategy: tuple[object, ...] = SCORE) -> Any:
        return self.cli("judge", self.pairs, "-o", self.out, *strategy, *words, "--json")

    def with_anchors(self, baseline: Path, *words: object) -> Any:
        return self.judge("--anchors", self.anchors, "--baseline", baseline, *words)

    @property
    def state(self) -> dict[str, Any]:
        """What the manifest says of the anchors of the last run."""
        found: dict[str, Any] = manifest_of(self.out)["runs"][-1]["anchors"]
        return found


@pytest.fixture
def scene(cli: Cli, tmp_path: Path) -> Scene:
    return Scene(cli, tmp_path)


def test_anchors_in_control_go_along_and_are_in_the_manifest(scene: Scene) -> None:
    ran = scene.with_anchors(scene.baseline, "--anchors-gate")

    assert ran.code == 0
    assert "40 judged" in ran.err
    assert "in control" in ran.err
    assert scene.state["check"]["in_control"]
    assert scene.state["anchors"]["name"] == "demo"
    assert scene.state["correction"] is None
    assert ran.summary["anchors"] == scene.state
    assert len(rows_of(scene.out)) == 30
    assert all("raw_scores" not in row for row in rows_of(scene.out))
    run = scene.out.with_name("out.jsonl.anchors.json")
    assert scene.cli("anchors", "check", run, "--baseline", scene.baseline).code == 0


def test_anchors_out_of_control_stop_a_run_with_a_gate_before_a_pair_is_judged(
    scene: Scene,
) -> None:
    ran = scene.with_anchors(scene.shifted(2.0), "--anchors-gate")

    assert ran.code == 4
    assert "no pair was judged" in ran.err
    assert rows_of(scene.out) == []
    run = manifest_of(scene.out)["runs"][-1]
    assert (run["status"], run["stop_reason"]) == ("stopped", "gate")
    assert not run["anchors"]["check"]["in_control"]


def test_without_a_gate_they_are_told_and_the_run_goes_on(scene: Scene) -> None:
    ran = scene.with_anchors(scene.shifted(2.0))

    assert ran.code == 0
    assert "OUT OF CONTROL" in ran.err
    assert len(rows_of(scene.out)) == 30
    assert not scene.state["check"]["in_control"]


@pytest.mark.parametrize("method", ["affine", "isotonic"])
def test_scores_are_corrected_only_when_asked_and_the_raw_ones_are_kept(
    scene: Scene, method: str
) -> None:
    assert scene.judge().code == 0
    plain = {row["id"]: row for row in rows_of(scene.out)}

    ran = scene.with_anchors(scene.shifted(1.5), "--correction", method, "--fresh")

    assert ran.code == 0
    correction = scene.state["correction"]
    assert correction["id"].startswith(f"{method}@")
    rows = rows_of(scene.out)
    assert len(rows) == 30
    for row in rows:
        assert row["raw_scores"] == plain[row["id"]]["scores"]
        assert row["winner"] == plain[row["id"]]["winner"]
        assert row["correction"] == correction["id"]
        if method == "affine":
            expected = {name: score + 1.5 for name, score in row["raw_scores"].items()}
            assert row["scores"] == pytest.approx(expected, abs=1e-5)


def test_a_correction_is_part_of_the_spec_and_uses_no_stored_answers(scene: Scene) -> None:
    assert scene.judge().code == 0
    refused = scene.with_anchors(scene.baseline, "--correction", "affine")
    assert refused.code == 2
    assert 'strategy.kind: "score" -> "corrected"' in refused.err

    ran = scene.with_anchors(scene.baseline, "--correction", "affine", "--fresh")
    assert ran.summary["ledger"]["stored_calls"] == 0
    again = scene.with_anchors(scene.baseline, "--correction", "affine")
    assert again.code == 0
    assert again.summary["ledger"]["skipped"] == 30
    ran = scene.with_anchors(scene.baseline, "--fresh")
    assert ran.summary["ledger"]["stored_calls"] == 60


def test_the_configuration_says_the_same_with_paths_of_its_own(
    scene: Scene, tmp_path: Path
) -> None:
    config = tmp_path / "sub" / "c.toml"
    config.parent.mkdir()
    config.write_text(
        JUDGES.read_text("utf-8")
        + '[anchors]\nset = "../anchors.json"\nbaseline = "../shifted.json"\ngate = true\n'
        "max_shift_sd = 50.0\nmax_ks = 1.0\n"
    )
    scene.shifted(2.0)
    assert scene.judge("--config", config).code == 0
    config.write_text(config.read_text().replace("50.0", "0.1"))
    assert scene.judge("--config", config).code == 4


def test_anchors_count_against_the_budget(scene: Scene, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        '[providers.p]\nkind = "simulated"\nrequests_per_min = 6000000\n'
        '[judges.j]\nprovider = "p"\nmodel = "m"\n'
        "prices = { input = 10.0, output = 10.0 }\n"
    )
    judge = ("--config", config, "--strategy", "score")
    ran = scene.judge("--anchors", scene.anchors, strategy=judge)
    assert ran.code == 0
    spent = scene.state["spent_usd"]
    assert 0 < spent < ran.summary["ledger"]["spent_usd"]

    little = ("--budget-usd", 1.5 * spent, "--fresh", "--no-store")
    ran = scene.judge("--anchors", scene.anchors, *little, strategy=judge)
    assert ran.code == 3
    assert ran.summary["ledger"]["spent_usd"] <= 1.5 * spent

    less = ("--budget-usd", 0.5 * spent, "--fresh", "--no-store")
    ran = scene.judge("--anchors", scene.anchors, *less, strategy=judge)
    assert ran.code == 3
    assert "is no measurement" in ran.err
    run = manifest_of(scene.out)["runs"][-1]
    assert (run["status"], run["stop_reason"]) == ("stopped", "budget")


def test_without_a_baseline_the_agreement_with_the_labels_is_told(scene: Scene) -> None:
    ran = scene.judge("--anchors", scene.anchors)
    assert ran.code == 0
    assert "agreement with labels: " in ran.err
    assert scene.state["check"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--anchors-gate",), "need anchors"),
        (("--correction", "affine"), "need anchors"),
        (("--anchors", "ANCHORS", "--correction", "affine"), "something to compare with"),
        (("--anchors", "ANCHORS", "--anchors-gate"), "something to compare with"),
        (("--anchors", "ANCHORS", "--baseline", "ANCHORS"), "is not a run on anchors"),
        (("--anchors", "BASELINE"), "is not an anchor set"),
        (("--anchors", "none.json"), "none.json: cannot be read"),
    ],
)
def test_what_cannot_work_is_refused_before_a_call(
    scene: Scene, words: tuple[str, ...], message: str
) -> None:
    files = {"ANCHORS": scene.anchors, "BASELINE": scene.baseline}
    ran = scene.judge(*(files.get(word, word) for word in words))
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not scene.out.exists()


def test_a_baseline_of_other_settings_is_refused_by_name(scene: Scene) -> None:
    coin = (*SCORE[:2], "--judge", "coin", "--strategy", "score")
    ran = scene.judge("--anchors", scene.anchors, "--baseline", scene.baseline, strategy=coin)
    assert ran.code == 2
    assert 'strategy.judge.name: "careful" -> "coin"' in ran.err


def test_verdicts_without_scores_cannot_be_corrected(scene: Scene) -> None:
    swap = SCORE[:4]
    base = scene.baseline.with_name("swap.json")
    assert scene.cli("anchors", "run", scene.anchors, "-o", base, *swap).code == 0
    words = ("--anchors", scene.anchors, "--baseline", base, "--correction", "affine")
    ran = scene.judge(*words, strategy=swap)
    assert ran.code == 2
    assert "affine needs 10 scores of a dimension in both runs, and there are 0" in ran.err
