"""`dikast weights` from the command line: judge, measure, judge again with what was measured."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dikast.engine.model import Pair
from tests.cli.tools import Cli, manifest_of, rows_of, write_rows

pytestmark = pytest.mark.realtime
JUDGES = {"good": 0.9, "fair": 0.7, "poor": 0.3}


def labelled(n: int) -> list[dict[str, Any]]:
    return [
        {"id": f"p{k}", "question": f"q{k}", "response_a": f"a{k}", "response_b": f"b{k}"}
        | {"label": "AB"[k % 2]}
        for k in range(n)
    ]


def configured(folder: Path, name: str, rule: str) -> Path:
    """Judges whose recorded words are right as often as JUDGES says, in both orders."""
    pairs = [Pair(**each) for each in labelled(100)]
    records = []
    for judge, share in JUDGES.items():
        for number, pair in enumerate(pairs):
            # 37 is prime to 100: another set of pairs for each judge, the same share of all.
            right = (number * 37 + len(judge) * 11) % 100 < 100 * share
            for order in ("ab", "ba"):
                said = pair.label if right else ("B" if pair.label == "A" else "A")
                shown = said if order == "ab" else ("B" if said == "A" else "A")
                records.append(
                    {"pair_id": pair.id, "judge": judge, "template": "t", "order": order}
                    | {"raw": json.dumps({"verdict": shown})}
                )
    write_rows(folder / "records.jsonl", records)
    judges = "".join(f'[judges.{judge}]\nprovider = "old"\nmodel = "{judge}"\n' for judge in JUDGES)
    path = folder / name
    path.write_text(
        f'[providers.old]\nkind = "replay"\npaths = ["records.jsonl"]\ntemplate = "t"\n{judges}'
        f'[strategy]\nkind = "committee"\njudges = {json.dumps(list(JUDGES))}\n{rule}\n'
    )
    return path


def test_a_committee_judges_is_measured_and_judges_again_by_weight(
    cli: Cli, tmp_path: Path
) -> None:
    pairs = write_rows(tmp_path / "pairs.jsonl", labelled(100))
    plain = configured(tmp_path, "plain.toml", 'rule = "majority"')
    first, weights = tmp_path / "first.jsonl", tmp_path / "weights.json"
    assert cli("judge", pairs, "-o", first, "--config", plain).code == 0

    said = cli("weights", first, "-o", weights)
    assert said.code == 0
    assert said.err == ""
    assert "measured on 100 pairs with a label A or B; left out: none" in said.out
    assert "without a vote: poor" in said.out
    assert "90.0 % [82.6, 94.5]" in said.out
    found = json.loads(weights.read_text())
    counts = {each["name"]: (each["right"], each["wrong"]) for each in found["members"]}
    assert counts == {"good": (90, 10), "fair": (70, 30), "poor": (30, 70)}
    assert found["specs"] == [rows_of(first)[0]["spec"]]

    weighted = configured(tmp_path, "weighted.toml", 'rule = "weighted"\nweights = "weights.json"')
    checked = cli("check", "--config", weighted, "--json").summary
    assert checked["calls_per_pair"] == {"min": 4, "expected": 4.0, "max": 4}
    assert [each["name"] for each in checked["tree"]["members"]] == ["good", "fair"]
    second = tmp_path / "second.jsonl"
    assert cli("judge", pairs, "-o", second, "--config", weighted).code == 0
    outcomes = rows_of(second)
    # The heavier of two decides alone, so the committee is exactly as good as it.
    assert sum(each["winner"] == each["label"] for each in outcomes) == 90
    assert found["hash"] in json.dumps(manifest_of(second))

    # Another measurement is another spec: the old output is not mixed with it.
    assert cli("weights", first, "-o", weights, "--labels", pairs).code == 0
    assert cli("judge", pairs, "-o", second, "--config", weighted).code == 0
    half = write_rows(tmp_path / "half.jsonl", labelled(50))
    assert cli("weights", first, "-o", weights, "--labels", half).code == 0
    refused = cli("judge", pairs, "-o", second, "--config", weighted)
    assert refused.code == 2
    assert "weights" in refused.err


def test_outputs_of_single_judges_measure_the_same(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "pairs.jsonl", labelled(100))
    config = configured(tmp_path, "dikast.toml", 'rule = "majority"')
    together, alone = tmp_path / "all.jsonl", []
    assert cli("judge", pairs, "-o", together, "--config", config).code == 0
    for judge in JUDGES:
        alone.append(tmp_path / f"{judge}.jsonl")
        words = ("judge", pairs, "-o", alone[-1], "--config", config, "--judge", judge)
        assert cli(*words, "--strategy", "swap").code == 0
    one = cli("weights", together, "-o", tmp_path / "one.json", "--json").summary
    many = cli("weights", *alone, "-o", tmp_path / "many.json", "--json").summary
    assert one["members"] == many["members"]
    assert one["left_out"] == {}
    twice = cli("weights", alone[0], alone[0], "-o", tmp_path / "twice.json")
    assert twice.code == 2
    assert "'good' has judged pair 'p0' before, in another file" in twice.err
    assert not (tmp_path / "twice.json").exists()


def test_what_cannot_be_measured_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "pairs.jsonl", [each | {"label": None} for each in labelled(10)])
    config = configured(tmp_path, "dikast.toml", 'rule = "majority"')
    out = tmp_path / "out.jsonl"
    assert cli("judge", pairs, "-o", out, "--config", config).code == 0
    unlabelled = cli("weights", out, "-o", tmp_path / "w.json")
    assert unlabelled.code == 2
    assert "no pair can be measured (no label: 10)" in unlabelled.err
    nothing = cli("weights", tmp_path / "none.jsonl", "-o", tmp_path / "w.json")
    assert nothing.code == 2
    assert "none.jsonl: cannot be read" in nothing.err
    wrong = cli("weights", pairs, "-o", tmp_path / "w.json")
    assert wrong.code == 2
    assert "line 1: is not an outcome" in wrong.err
    missing = configured(tmp_path, "missing.toml", 'rule = "weighted"\nweights = "none.json"')
    assert "none.json: cannot be read" in cli("check", "--config", missing).err


def test_judges_no_better_than_a_coin_get_no_vote_and_the_command_says_so(
    cli: Cli, tmp_path: Path
) -> None:
    outcomes = [
        {"kind": "verdict", "id": f"p{k}", "winner": "A", "label": "AB"[k % 2]}
        | {"strategy": "committee@1", "parts": [{"name": "coin", "pick": "A"}]}
        for k in range(10)
    ]
    said = cli("weights", write_rows(tmp_path / "out.jsonl", outcomes), "-o", tmp_path / "w.json")
    assert said.code == 0
    assert "nobody has a vote: a committee with this file is refused" in said.out
    judges = configured(tmp_path, "coin.toml", 'rule = "weighted"\nweights = "w.json"')
    judges.write_text(judges.read_text().replace('judges = ["good", "fair", "poor"]', ""))
    with judges.open("a") as file:
        file.write(
            'members = [{ name = "coin", strategy = { kind = "pairwise", judge = "good" } }]'
        )
    refused = cli("check", "--config", judges)
    assert refused.code == 2
    assert "so none has a vote" in refused.err


def test_without_the_statistics_packages_the_command_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['numpy'] = None\n"
        "from dikast.cli import main\n"
        f"sys.exit(main(['weights', 'x', '-o', {str(tmp_path / 'w.json')!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'dikast[analysis]'" in done.stderr
