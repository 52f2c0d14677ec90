"""Agreement, kappas and position bias of recorded judges: the commands print what was published.

The expected figures were computed independently of this project.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.tools import Cli
from tests.data_driven.outcome_files import Row, both_orders, by_id, rows, verdict_rows
from tests.data_driven.outcome_files import write_outcomes as write

pytestmark = pytest.mark.realtime

DRAWS = ("--draws", 100, "--json")


@pytest.fixture
def reference(data: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data / "reference_figures_dev.json").read_text("utf-8"))
    return found


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capfd)


def percent(number: dict[str, Any]) -> float:
    return round(100 * float(number["value"]), 2)


def judged(data: Path, folder: Path, judges: str, pairs: dict[str, Row]) -> dict[str, Path]:
    """One outcome file for each judge of a recorded set, by the judge's name."""
    by_judge: dict[str, list[Row]] = defaultdict(list)
    for row in rows(data / "judge_outputs" / f"{judges}.jsonl.gz"):
        by_judge[row["judge"]].append(row)
    return {
        judge: write(folder / f"{judge.split()[0]}.jsonl", verdict_rows(mine, pairs))
        for judge, mine in by_judge.items()
    }


def test_pandalm_agreement_equals_the_published(
    cli: Cli, data: Path, reference: dict[str, Any], tmp_path: Path
) -> None:
    labels = data / "pairs" / "pandalm.jsonl.gz"
    files = judged(data, tmp_path, "pandalm", by_id(labels))
    ran = cli("agree", *files.values(), "--labels", labels, "--missing", "wrong", *DRAWS)
    found, expected = ran.summary, reference["pandalm"]

    assert ran.code == 0
    people = found["people"]
    assert people["coefficients"]["fleiss"]["value"] == pytest.approx(expected["fleiss"], abs=1e-4)
    assert people["coefficients"]["krippendorff_nominal"]["value"] == pytest.approx(
        expected["krippendorff"], abs=1e-4
    )
    assert people["no_majority"] == expected["no_majority"]
    for pair in people["annotator_pairs"]:
        name = f"{pair['first'][-1]}-{pair['second'][-1]}"
        assert percent(pair["agreement"]) == expected["pairwise"][name]["agreement"]
        assert pair["kappa"]["value"] == pytest.approx(
            expected["pairwise"][name]["kappa"], abs=1e-4
        )
    for each in found["with_labels"]:
        wanted = expected[each["rater"]]
        assert each["labelled"] == wanted["n"]
        assert percent(each["accuracy"]["three-way"]) == wanted["accuracy"]
        assert percent(each["macro_precision"]) == wanted["macro_precision"]
        assert percent(each["macro_recall"]) == wanted["macro_recall"]
        assert percent(each["macro_f1"]) == wanted["macro_f1"]
        assert each["kappa"]["value"] == pytest.approx(wanted["kappa"], abs=1e-4)


def test_pandalm_judges_agree_with_each_person_as_published(
    cli: Cli, data: Path, reference: dict[str, Any], tmp_path: Path
) -> None:
    labels = data / "pairs" / "pandalm.jsonl.gz"
    files = judged(data, tmp_path, "pandalm", by_id(labels))
    for number in range(3):
        one = ("--annotators", f"annotator{number + 1}")
        ran = cli("agree", *files.values(), "--labels", labels, "--missing", "wrong", *one, *DRAWS)
        for each in ran.summary["with_votes"]:
            wanted = reference["pandalm"][each["rater"]]["agree_with_each"][number]
            assert percent(each["agreement"]) == wanted


@pytest.mark.parametrize("turn", [1, 2])
def test_mtbench_human_agreement_equals_the_published_in_both_setups(
    cli: Cli, data: Path, reference: dict[str, Any], tmp_path: Path, turn: int
) -> None:
    pairs = by_id(data / "pairs" / "mtbench_human.jsonl.gz")
    mine = {id: row for id, row in pairs.items() if row["turn"] == turn}
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(json.dumps(row) + "\n" for row in mine.values()), "utf-8")
    records = rows(data / "judge_outputs" / "mtbench_gpt4_pair.jsonl.gz")
    out = write(
        tmp_path / "out.jsonl", verdict_rows((r for r in records if r["pair_id"] in mine), mine)
    )
    ran = cli("agree", out, "--labels", labels, "--annotators", "expert_*", *DRAWS)
    found = ran.summary
    people, judge = found["people"], found["with_votes"][0]
    for setup, ending in (("S1_with_ties", ""), ("S2_no_ties", "_no_ties")):
        wanted = reference["mtbench"][f"turn{turn}_{setup}"]
        for numbers, agreement in ((people, "comparisons"), (judge, "agreement")):
            expected = wanted["human_human" if numbers is people else "gpt4_human"]
            assert numbers[agreement + ending]["n"] == expected["n"]
            assert percent(numbers[agreement + ending]) == expected["agreement"]
            assert numbers["kappa" + ending]["value"] == pytest.approx(expected["kappa"], abs=1e-4)
    assert found["clustered"] is True


def test_mtbench_gpt4_against_the_plurality_equals_the_published(
    cli: Cli, data: Path, reference: dict[str, Any], tmp_path: Path
) -> None:
    labels = data / "pairs" / "mtbench_human.jsonl.gz"
    pairs = by_id(labels)
    records = rows(data / "judge_outputs" / "mtbench_gpt4_pair.jsonl.gz")
    out = write(
        tmp_path / "out.jsonl", verdict_rows((r for r in records if r["pair_id"] in pairs), pairs)
    )
    ran = cli("agree", out, "--labels", labels, "--label-rule", "plurality", *DRAWS)
    found, expected = ran.summary, reference["mtbench"]
    judge = found["with_labels"][0]
    assert judge["labelled"] == expected["gpt4_vs_human_plurality"]["n"]
    assert (
        percent(judge["accuracy"]["three-way"]) == expected["gpt4_vs_human_plurality"]["agreement"]
    )
    assert judge["kappa"]["value"] == pytest.approx(
        expected["gpt4_vs_human_plurality"]["kappa"], abs=1e-4
    )
    no_ties = judge["accuracy"]["no-ties"]
    assert no_ties["n"] == expected["gpt4_vs_human_plurality_nontie"]["n"]
    assert percent(no_ties) == expected["gpt4_vs_human_plurality_nontie"]["agreement"]
    people = found["people"]
    assert (people["votes"], people["annotators"], people["pairs"]) == (
        expected["votes"], expected["annotators"], expected["pairs"],
    )  # fmt: skip
    assert people["pairs_with_two_votes"] == expected["pairs_with_2plus_votes"]
    assert people["coefficients"]["krippendorff_nominal"]["value"] == pytest.approx(
        expected["krippendorff_all_votes"], abs=1e-4
    )


def test_llmfao_agreement_equals_the_published(
    cli: Cli, data: Path, reference: dict[str, Any], tmp_path: Path
) -> None:
    files = judged(data, tmp_path, "llmfao", by_id(data / "pairs" / "llmfao.jsonl.gz"))
    labels = data / "rankings" / "llmfao_human_battles.jsonl.gz"
    ran = cli("agree", *files.values(), "--labels", labels, *DRAWS)
    found, expected = ran.summary, reference["llmfao"]
    people = found["people"]
    assert people["comparisons"]["n"] == expected["human_human"]["comparisons"]
    assert percent(people["comparisons"]) == expected["human_human"]["agreement"]
    assert people["coefficients"]["krippendorff_nominal"]["value"] == pytest.approx(
        expected["human_human"]["krippendorff"], abs=1e-4
    )
    assert (people["votes"], people["annotators"], people["pairs"]) == (
        expected["battles"], expected["workers"], expected["pairs"],
    )  # fmt: skip
    for each in found["with_votes"]:
        for ending, wanted in (
            ("", expected[f"{each['rater']}_vs_votes"]),
            ("_no_ties", expected[f"{each['rater']}_vs_votes_nontie"]),
        ):
            assert each["agreement" + ending]["n"] == wanted["n"]
            assert percent(each["agreement" + ending]) == wanted["agreement"]
            assert each["kappa" + ending]["value"] == pytest.approx(wanted["kappa"], abs=1e-4)


POSITION = [
    ("MTBench", "mtbench_pb_repetition"), ("DevBench", "devbench_pb_repetition"),
    ("MTBench", "mtbench_pb__gemini-pro"), ("MTBench", "mtbench_pb__gpt-3.5-turbo-1106"),
    ("MTBench", "mtbench_pb__gpt-4-0613"), ("DevBench", "devbench_pb__claude-3-haiku-20240307"),
    ("DevBench", "devbench_pb__gemini-pro"), ("DevBench", "devbench_pb__gpt-3.5-turbo-0125"),
    ("DevBench", "devbench_pb__gpt-3.5-turbo-1106"), ("DevBench", "devbench_pb__gpt-4-0613"),
]  # fmt: skip


@pytest.mark.parametrize(("bench", "file"), POSITION)
def test_position_figures_equal_the_published(
    cli: Cli, data: Path, reference: dict[str, Any], tmp_path: Path, bench: str, file: str
) -> None:
    groups: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows(data / "judge_outputs" / f"{file}.jsonl.gz"):
        groups[row["judge"], row["repeat"]].append(row)
    files = {
        f"{judge}-{repeat}": write(
            tmp_path / f"{judge}-{repeat}.jsonl",
            both_orders([{**row, "judge": f"{judge}-{repeat}"} for row in mine]),
        )
        for (judge, repeat), mine in groups.items()
    }
    found = {
        each["judge"]: each for each in cli("bias", *files.values(), *DRAWS).summary["position"]
    }
    expected = {
        f"{row['judge']}-{row['repeat']}": row
        for row in reference["position_bias"]["rows"]
        if row["bench"] == bench
    }
    assert found.keys() == files.keys()
    for name, each in found.items():
        wanted = expected[name]
        votes = (each["votes_asked"], each["votes_read"])
        assert votes == (wanted["judgments"], wanted["extracted"])
        assert each["readable"] == wanted["pairs"]
        assert 2 * each["consistent"] == wanted["consistent"]
        assert each["leans_first"] == wanted["primacy_pairs"]
        assert each["leans_second"] == wanted["recency_pairs"]
        of_extracted = 100 * 2 * each["consistent"] / each["votes_read"]
        assert round(of_extracted, 2) == wanted["consistency_of_extracted"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llmbar", "llmbar_case", "llmbar_human"])
def test_llmbar_figures_of_both_orders_equal_the_published(
    cli: Cli, data: Path, reference: dict[str, Any], tmp_path: Path, name: str
) -> None:
    """Accuracy, right in both, position agreement and kappa of the orders, wherever all is read;
    of unread answers the published figures make wrong ones."""
    pairs = by_id(data / "pairs" / f"{name}.jsonl.gz")
    groups: dict[str, list[Row]] = defaultdict(list)
    for path in sorted((data / "judge_outputs").glob(f"{name}__*.jsonl.gz")):
        for row in rows(path):
            template = row["template"].removeprefix("llmbar/")
            key = "|".join((row["judge"], template, pairs[row["pair_id"]]["subset"]))
            groups[key].append({**row, "judge": key})
    whole = {
        key: mine
        for key, mine in groups.items()
        if all(row["verdict"] for row in mine)
        and len(mine) == 2 * len({row["pair_id"] for row in mine})
    }
    expected = {
        "|".join((each["judge"], each["template"], subset)): figures
        for each in reference["llmbar"]["table"]
        if each["set"] == name
        for subset, figures in each["subsets"].items()
    }
    lines = [
        msgspec.structs.replace(outcome, label=pairs[outcome.id]["label"], id=f"{at} {outcome.id}")
        for at, mine in enumerate(whole.values())
        for outcome in both_orders(mine)
    ]
    out = write(tmp_path / "out.jsonl", lines)
    found = {each["judge"]: each for each in cli("bias", out, *DRAWS).summary["position"]}
    compared = found.keys() & expected.keys()
    assert len(compared) >= 10
    for key in compared:
        each, wanted = found[key], expected[key]
        assert each["asked"] == wanted["n"]
        assert percent(each["accuracy_mean"]) == wanted["acc_avg"]
        assert percent(each["accuracy_both"]) == wanted["acc_both"]
        assert percent(each["strict"]) == wanted["position_agreement"]
        if each["kappa"]["value"] is not None:
            assert each["kappa"]["value"] == pytest.approx(wanted["kappa_orders"], abs=1e-4)


@pytest.mark.parametrize("bench", ["MTBench", "DevBench"])
def test_repeated_judges_are_as_steady_as_published(
    cli: Cli, data: Path, reference: dict[str, Any], tmp_path: Path, bench: str
) -> None:
    by_judge: dict[str, list[Row]] = defaultdict(list)
    for row in rows(data / "judge_outputs" / f"{bench.lower()}_pb_repetition.jsonl.gz"):
        by_judge[row["judge"]].append(row)
    files = [
        write(tmp_path / f"{judge}.jsonl", both_orders(mine)) for judge, mine in by_judge.items()
    ]
    found = {each["judge"]: each for each in cli("bias", *files, *DRAWS).summary["noise"]}
    expected = [row for row in reference["repeat_stability"] if row["bench"] == bench]
    assert len(found) == len(expected)
    for row in expected:
        noise = found[row["judge"]]
        assert noise["cells"] == row["n"]
        assert noise["modal_share"]["value"] == pytest.approx(row["mean_modal_share"], abs=1e-4)
        assert percent(noise["unanimous"]) == row["all_three_equal"]


@pytest.mark.parametrize("template", ["Vanilla", "CoT", "Metrics_Reference"])
def test_llmbar_committee_kappas_and_tie_rules_equal_the_published(
    cli: Cli, data: Path, reference: dict[str, Any], tmp_path: Path, template: str
) -> None:
    pairs = by_id(data / "pairs" / "llmbar.jsonl.gz")
    files: dict[str, list[Row]] = defaultdict(list)
    for name in ("chatgpt", "chatgpt_0301", "falcon", "gpt_4", "llama2", "palm2"):
        for row in rows(data / "judge_outputs" / f"llmbar__{name}.jsonl.gz"):
            natural = pairs[row["pair_id"]]["subset"] == "Natural"
            if row["template"] == f"llmbar/{template}" and natural:
                files[row["judge"]].append(row)
    expected = reference["llmbar_committee"]["results"][template]["Natural"]
    made = {}
    for judge, mine in files.items():
        # The published committee takes an unread answer for "does not agree": a tie of the orders.
        read = [{**row, "verdict": row["verdict"] or "tie"} for row in mine]
        labelled = [
            {**json.loads(line), "label": pairs[json.loads(line)["id"]]["label"]}
            for line in write(tmp_path / "draft", both_orders(read)).read_text("utf-8").splitlines()
        ]
        path = tmp_path / f"{judge.replace('/', '-')}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in labelled), "utf-8")
        made[path.name.removesuffix(".jsonl")] = (judge, path)
    found = cli("agree", *(path for _, path in made.values()), *DRAWS).summary
    for each in found["with_labels"]:
        wanted = expected[made[each["rater"]][0]]
        assert each["labelled"] == wanted["n"]
        assert percent(each["accuracy"]["decided"]) == wanted["correct"]
        assert percent(each["accuracy"]["half"]) == wanted["tie_half"]
    for each in found["between"]:
        names = sorted((made[each["first"]][0], made[each["second"]][0]))
        wanted = expected["pairwise_kappa"][" | ".join(names)]
        assert each["kappa"]["value"] == pytest.approx(wanted, abs=1e-4)
