"""`dikast agree`, `bias`, `compare`: what they print, on good files, poor files and none."""

import builtins
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import Cli, write_rows
from tests.unit.analysis.test_ratings import outcome

pytestmark = pytest.mark.realtime

REPORTS = ("agree", "bias", "compare")


def run_file(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    return write_rows(folder / f"{name}.jsonl", rows)


def good(folder: Path, name: str = "run", shift: int = 0, n: int = 40) -> Path:
    """A run in both orders with labels, some disagreement and one pair of each kind of trouble."""
    rows = [
        outcome(
            f"p{k}",
            "A" if (k + shift) % 3 else "B",
            f"ab:{'A' if (k + shift) % 3 else 'B'} ba:{'A' if k % 5 else 'B'}",
            label="A" if k % 4 else "tie",
            category="math" if k % 2 else "prose",
            model_a="gpt-4",
            model_b="claude-2",
            meta={"question_id": k // 2},
            basis="agree" if k % 5 else "disagree",
            scores={"A.total": 7.0 + k % 2, "B.total": 6.0 + shift},
        )
        for k in range(n)
    ]
    rows.append(outcome("u", None, "ab:none ba:A", label="A"))
    rows.append({"kind": "failed", "id": "f", "reason": "timeout", "message": "", "label": "B"})
    return run_file(folder, name, rows)


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for each in value.values():
            yield from numbers(each)
    elif isinstance(value, list):
        for each in value:
            yield from numbers(each)
    elif isinstance(value, float):
        yield value


def files_for(command: str, *files: Path) -> tuple[Path, ...]:
    return files * 2 if command == "compare" and len(files) == 1 else files


def test_agree_counts_what_was_left_out_and_why(cli: Cli, tmp_path: Path) -> None:
    ran = cli("agree", good(tmp_path), "--json")
    found = ran.summary["with_labels"][0]
    assert ran.code == 0
    assert (found["labelled"], found["unjudged"]) == (42, 2)
    assert ran.summary["missing"] == {"run": {"undecided: unparsed": 1, "failed: timeout": 1}}
    hits = sum(1 for k in range(40) if k % 4 and k % 3)
    assert found["accuracy"]["three-way"]["n"] == 40
    assert found["accuracy"]["three-way"]["value"] == pytest.approx(hits / 40)
    assert found["accuracy"]["decided"]["n"] == 30
    interval = found["accuracy"]["decided"]["interval"]
    assert interval["low"] < found["accuracy"]["decided"]["value"] < interval["high"]
    assert set(found["by_category"]) == {"math", "prose"}
    table = cli("agree", good(tmp_path)).out
    assert "run: no verdict: failed: timeout: 1" in table
    assert "three-way: tie is a verdict like A and B" in table


def test_a_missing_verdict_is_wrong_only_when_asked(cli: Cli, tmp_path: Path) -> None:
    path = good(tmp_path)
    out = cli("agree", path, "--json").summary["with_labels"][0]["accuracy"]
    wrong = cli("agree", path, "--json", "--missing", "wrong").summary["with_labels"][0]["accuracy"]
    for rule in ("three-way", "half", "decided"):
        assert wrong[rule]["n"] == out[rule]["n"] + 2
        assert wrong[rule]["value"] * wrong[rule]["n"] == pytest.approx(
            out[rule]["value"] * out[rule]["n"]
        )


def test_two_judges_are_tested_on_identical_pairs_only(cli: Cli, tmp_path: Path) -> None:
    one, two = good(tmp_path, "one"), good(tmp_path, "two", shift=1, n=30)
    found = cli("agree", one, two, "--json", "--tie-rule", "decided").summary["between"][0]
    decided = [k for k in range(30) if k % 4]
    first = {k for k in decided if k % 3}
    second = {k for k in decided if (k + 1) % 3}
    assert found["agreement"]["n"] == 30
    assert (found["test"]["b"], found["test"]["c"]) == (len(first - second), len(second - first))
    assert found["difference"]["n"] == len(decided)
    assert found["holm_p"] == found["test"]["mid_p"]


def test_without_ties_both_judges_must_have_decided(cli: Cli, tmp_path: Path) -> None:
    one = run_file(
        tmp_path, "one", [outcome(f"p{k}", "tie" if k < 3 else "A", label="A") for k in range(10)]
    )
    two = run_file(
        tmp_path, "two", [outcome(f"p{k}", "tie" if k > 7 else "B", label="A") for k in range(10)]
    )
    found = cli("agree", one, two, "--json", "--tie-rule", "no-ties").summary["between"][0]
    assert (found["difference"]["n"], found["test"]["b"], found["test"]["c"]) == (5, 5, 0)


def test_a_run_that_moves_to_a_leans_to_a(cli: Cli, tmp_path: Path) -> None:
    before = run_file(tmp_path, "one", [outcome(f"p{k}", "B") for k in range(20)])
    after = run_file(
        tmp_path,
        "two",
        [
            outcome(f"p{k}", "tie" if w == "t" else w)
            for k, w in enumerate(5 * "A" + 4 * "t" + 11 * "B")
        ],
    )
    found = cli("compare", before, after, "--json").summary["paired"][0]
    assert found["lean"]["value"] == pytest.approx((5 + 4 / 2) / 20)
    assert found["tie_share"]["value"] == pytest.approx(4 / 20)
    assert found["lean_p"] < 0.01
    assert found["changes"]["B to A"] == 5


def test_judges_of_one_committee_are_told_apart(cli: Cli, tmp_path: Path) -> None:
    rows = [
        outcome(f"p{k}", "A", f"x/ab:A y/ab:{'A' if k % 2 else 'B'}", label="A") for k in range(20)
    ]
    found = cli("agree", run_file(tmp_path, "run", rows), "--json").summary
    accuracy = {
        each["rater"]: each["accuracy"]["three-way"]["value"] for each in found["with_labels"]
    }
    assert accuracy == {"run": 1.0, "x": 1.0, "y": 0.5}
    assert found["among_raters"]["fleiss"]["n"] == 20


def test_labels_of_people_may_be_given_alone(cli: Cli, tmp_path: Path) -> None:
    labels = write_rows(
        tmp_path / "labels.jsonl",
        [
            {"pair_id": f"p{k}", "annotator": who, "label": "A" if (k + at) % 3 else "B"}
            for k in range(15)
            for at, who in enumerate(("ann", "bob"))
        ],
    )
    found = cli("agree", "--labels", labels, "--json").summary
    people = found["people"]
    assert (people["annotators"], people["votes"]) == (2, 30)
    assert people["comparisons"]["value"] == pytest.approx(5 / 15)
    assert people["annotator_pairs"][0]["first"] == "ann"
    assert found["with_labels"] == []


@pytest.mark.parametrize("command", REPORTS)
@pytest.mark.parametrize(
    "name", ["empty", "all ties", "one pair", "all failed", "one prompt", "no labels", "one class"]
)
@pytest.mark.parametrize("shape", ["--json", "--md", None])
def test_poor_input_is_explained_and_never_a_traceback_or_an_infinite_number(
    cli: Cli, tmp_path: Path, command: str, name: str, shape: str | None
) -> None:
    rows: dict[str, list[dict[str, Any]]] = {
        "empty": [],
        "all ties": [outcome(f"p{k}", "tie", "ab:tie ba:tie", label="tie") for k in range(8)],
        "one pair": [outcome("p", "A", "ab:A ba:A", label="A")],
        "all failed": [
            {"kind": "failed", "id": f"p{k}", "reason": "auth", "message": "", "label": "A"}
            for k in range(4)
        ],
        "one prompt": [
            outcome(f"p{k}", "A", "ab:A ba:B", label="A", meta={"question_id": 1}) for k in range(8)
        ],
        "no labels": [outcome(f"p{k}", "A" if k % 2 else "B", "ab:A") for k in range(8)],
        "one class": [outcome(f"p{k}", "A", "ab:A ba:A", label="A") for k in range(8)],
    }
    files = [run_file(tmp_path, "one", rows[name])]
    if command == "compare":
        files.append(run_file(tmp_path, "two", rows[name]))
    ran = cli(command, *files, *([shape] if shape else []))
    if name == "empty":
        assert ran.code == 2
        assert "there is nothing to report on" in ran.err
        return
    assert ran.code == 0
    assert ran.err == ""
    assert not {"nan", "inf", "None"} & set(ran.out.replace("[", " ").replace(",", " ").split())
    if shape == "--json":
        assert all(math.isfinite(number) for number in numbers(json.loads(ran.out)))
    elif name == "no labels" and command == "agree":
        assert "no pair has a label" in ran.out


@pytest.mark.parametrize("command", REPORTS)
def test_a_wrong_file_is_one_sentence_with_its_line(cli: Cli, tmp_path: Path, command: str) -> None:
    path = good(tmp_path)
    path.write_text(path.read_text("utf-8") + '{"id": "x"}\n', "utf-8")
    other = good(tmp_path, "other")
    ran = cli(command, path, other)
    assert ran.code == 2
    assert ran.err.startswith(f"dikast: error: {path}, line 43: is not an outcome")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["agree"], "nothing to compare"),
        (["agree", "{run}", "--labels", "{empty}"], "holds no label"),
        (["agree", "{run}", "--labels", "{labels}", "--annotators", "z*"], "holds no label of"),
        (["agree", "{run}", "{run}"], "is given twice"),
        (["agree", "{run}", "--level", "95"], "between 0.5 and 1"),
        (["agree", "{run}", "--draws", "x"], "invalid"),
        (["compare", "{run}"], "one run cannot be compared"),
        (["bias", "{run}", "--family", "gpt"], "JUDGE=FAMILY"),
        (["bias", "{run}", "--injection", "{labels}"], "dikast check --injection"),
        (["bias", "{run}", "--injection", "nowhere.json"], "cannot be read"),
        (["bias", "{run}", "--pairs", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_wrong_words_are_one_sentence(
    cli: Cli, tmp_path: Path, words: list[str], says: str
) -> None:
    labels = write_rows(tmp_path / "labels.jsonl", [{"id": "p1", "annotator": "a", "label": "A"}])
    (tmp_path / "empty.jsonl").write_text("")
    places = {"run": good(tmp_path), "labels": labels, "empty": tmp_path / "empty.jsonl"}
    ran = cli(*(word.format(**places) for word in words))
    assert ran.code == 2
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1


def test_bias_with_pairs_sees_length_and_clusters_by_question(cli: Cli, tmp_path: Path) -> None:
    rows = [outcome(f"p{k}", "A" if k % 4 else "B", "ab:A ba:B") for k in range(40)]
    run = run_file(tmp_path, "run", rows)
    pairs = write_rows(
        tmp_path / "pairs.jsonl",
        [
            {
                "id": f"p{k}",
                "question": f"q{k // 4}",
                "response_a": "word " * (20 + k % 7),
                "response_b": "word " * (10 + k % 3),
            }
            for k in range(40)
        ],
    )
    found = cli("bias", run, "--pairs", pairs, "--json").summary
    assert (found["texts"], found["clusters"]) == (40, 10)
    assert found["text"][0]["longer_wins"]["value"] == pytest.approx(0.75)
    assert found["position"][0]["bias"]["value"] == 0.5
    assert [line.partition(":")[0] for line in found["absent"]] == [
        "own family", "scores", "noise", "injection",
    ]  # fmt: skip


def test_compare_says_what_changed_and_what_the_manifests_know(cli: Cli, tmp_path: Path) -> None:
    one, two = good(tmp_path, "one"), good(tmp_path, "two", shift=1)
    for path, seed, control in ((one, 1, True), (two, 2, False)):
        state = {"anchors": {"name": "set", "version": 1}, "items": 9, "verdicts": 9,
                 "judged": "2026-01-01", "check": {"in_control": control}}  # fmt: skip
        manifest = {
            "output": path.name,
            "spec": "s",
            "spec_tree": {"seed": seed},
            "runs": [{"status": "complete", "started": "2026-01-01", "anchors": state}],
        }
        path.with_name(path.name + ".manifest.json").write_text(json.dumps(manifest), "utf-8")
    found = cli("compare", one, two, "--json").summary
    step = found["paired"][0]
    changed = [k for k in range(40) if bool(k % 3) != bool((k + 1) % 3)]
    assert (step["shared"], step["judged"]) == (42, 40)
    assert step["same"]["value"] == pytest.approx(1 - len(changed) / 40)
    assert sum(step["changes"].values()) == len(changed)
    assert [(each["dimension"], each["shift"]["value"]) for each in step["scores"]] == [
        ("total", 0.5)
    ]
    assert [each["in_control"] for each in found["anchors"]] == [True, False]
    assert found["settings"][1]["differences"] == ["seed: 1 -> 2"]
    table = cli("compare", one, two).out
    assert "out of control" in table
    assert "two: seed: 1 -> 2" in table


def test_runs_without_a_common_pair_are_not_compared(cli: Cli, tmp_path: Path) -> None:
    one, two = good(tmp_path, "one"), tmp_path / "two.jsonl"
    two.write_text("", "utf-8")
    ran = cli("compare", one, two)
    assert ran.code == 2
    assert "no pair in common" in ran.err
    assert ran.out == ""


def test_a_history_is_compared_with_its_first_and_step_by_step(cli: Cli, tmp_path: Path) -> None:
    files = [good(tmp_path, name, shift) for shift, name in enumerate("abc")]
    found = cli("compare", *files, "--json").summary["paired"]
    assert [(each["first"], each["second"]) for each in found] == [
        ("a", "b"), ("a", "c"), ("b", "c"),
    ]  # fmt: skip


def test_without_numpy_one_sentence_says_what_to_install(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "dikast.analysis.agreement":
            raise ModuleNotFoundError("No module named 'numpy'", name="numpy")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    ran = cli("agree", good(tmp_path))
    assert ran.code == 2
    assert "needs the package numpy" in ran.err
    assert "pip install 'dikast[analysis]'" in ran.err


def test_the_same_seed_prints_the_same_report(cli: Cli, tmp_path: Path) -> None:
    path = good(tmp_path)
    one, two = (cli("agree", path, "--json", "--seed", "3").out for _ in range(2))
    assert one == two


def test_reports_read_pairs_under_other_names_as_judge_does(cli: Cli, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("uid,prompt,x,y,m1,m2\n" + "".join(
        f"p{n},q{n},{'long ' * (n + 1)},short,heron,{'otter' if n % 2 else 'lynx'}\n"
        for n in range(12)
    ))  # fmt: skip
    names = "id=uid,question=prompt,response_a=x,response_b=y,model_a=m1,model_b=m2"
    rows = [outcome(f"p{n}", "A" if n % 3 else "B", "ab:A ba:A", label="A") for n in range(12)]
    run = run_file(tmp_path, "run", rows)

    unnamed = cli("bias", run, "--pairs", pairs)
    bias = cli("bias", run, "--pairs", pairs, "--columns", names, "--json")
    rank = cli("rank", run, "--pairs", pairs, "--columns", names)
    wrong = cli("rank", run, "--pairs", pairs, "--columns", "gpt=x")

    assert (unnamed.code, "--columns question=NAME" in unnamed.err) == (2, True)
    assert (bias.code, json.loads(bias.out)["texts"]) == (0, 12)
    assert (rank.code, "12 battles of 3 models" in rank.out) == (0, True)
    assert (wrong.code, "there is no field 'gpt'" in wrong.err) == (2, True)
