"""`dikast audit` from outcomes to a gate: what is drawn, what is counted, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import Cli, child, pair, rows_of, write_rows
from tests.unit.analysis.test_ratings import outcome

pytestmark = pytest.mark.realtime


def judged(folder: Path, n: int = 200) -> tuple[Path, Path]:
    """Outcomes of two models and their pairs; every seventh verdict is wrong (labels say A)."""
    rows = [
        outcome(
            f"p{k}",
            "B" if k % 7 == 0 else "A",
            model_a="new",
            model_b="old",
            category="x" if k % 2 else "y",
            confidence=0.5 if k % 14 == 0 else 0.9,
            meta={"question_id": k // 2},
        )
        for k in range(n)
    ]
    rows += [outcome("u", None), {"kind": "failed", "id": "f", "reason": "timeout", "message": ""}]
    names = [row["id"] for row in rows]
    pairs = [{**pair(k), "id": name, "model_a": "new"} for k, name in enumerate(names)]
    return write_rows(folder / "run.jsonl", rows), write_rows(folder / "pairs.jsonl", pairs)


def labelled(
    folder: Path, sample: Path, label: Any = "A", who: str = "ana", **more: Any
) -> list[dict[str, Any]]:
    fields = ("inclusion_probability", "stratum", "stratum_pairs")
    return [
        {
            "pair_id": row["id"],
            "annotator": who,
            "label": label(row) if callable(label) else label,
            **{name: row[name] for name in fields if name in row},
            **more,
        }
        for row in rows_of(sample)
    ]


def drawn(cli: Cli, folder: Path, *words: object) -> tuple[Path, Path]:
    run, pairs = judged(folder)
    sample = folder / "sample.jsonl"
    ran = cli("audit", "sample", run, "--pairs", pairs, "-o", sample, *words)
    assert ran.code == 0, ran.err
    return run, sample


def test_a_sample_shows_answers_and_hides_who_wrote_them(cli: Cli, tmp_path: Path) -> None:
    run, pairs = judged(tmp_path)
    sample = tmp_path / "sample.jsonl"
    ran = cli("audit", "sample", run, "--pairs", pairs, "-n", 40, "-o", sample, "--json")
    assert ran.code == 0
    assert (ran.summary["pairs"], ran.summary["drawn"]) == (200, 40)
    assert ran.summary["missing"] == {"failed: timeout": 1, "undecided: unparsed": 1}
    rows = rows_of(sample)
    assert len(rows) == 40
    assert all(row["response_a"].startswith("answer a") for row in rows)
    assert "new" not in sample.read_text()
    again = cli("audit", "sample", run, "--pairs", pairs, "-n", 40, "-o", sample)
    assert again.code == 2
    assert "name another file" in again.err


def test_pairs_come_from_the_manifest_when_none_are_named(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "pairs.jsonl", [pair(k, label="A") for k in range(6)])
    run = tmp_path / "run.jsonl"
    assert cli("judge", pairs, "-o", run, "--judge", "simulated:careful", "--quiet").code == 0
    sample = tmp_path / "sample.jsonl"
    assert cli("audit", "sample", run, "-o", sample, "--how", "uniform").code == 0
    assert len(rows_of(sample)) >= 5


def test_agreement_is_weighted_back_to_all_pairs(cli: Cli, tmp_path: Path) -> None:
    """The sample takes more of the doubtful pairs; the report must not be fooled by that."""
    run, sample = drawn(cli, tmp_path, "-n", 120, "--how", "uncertainty")
    labels = write_rows(tmp_path / "labels.jsonl", labelled(tmp_path, sample))
    ran = cli("audit", "report", run, labels, "--json")
    assert ran.code == 0, ran.err
    report = ran.summary
    truth = sum(k % 7 != 0 for k in range(200)) / 200
    said = {row["id"]: row.get("winner") for row in rows_of(run)}
    plain = sum(said[row["id"]] == "A" for row in rows_of(sample)) / 120
    # Strata are by winner, so the weighted share is exact here, and the plain one is not.
    assert report["agreement"]["three-way"]["value"] == pytest.approx(truth)
    assert abs(plain - truth) > 0.02
    new, old = report["win_rates"]
    assert (new["name"], old["name"]) == ("new", "old")
    assert new["rate"]["predicted"] == pytest.approx(truth)
    assert old["rate"]["predicted"] == pytest.approx(1 - truth)
    assert old["rate"]["value"] == pytest.approx(0.0)
    assert new["rate"]["value"] == pytest.approx(1.0)
    assert "alike" in new["rate"]["why"]
    assert report["missing"] == {"undecided: unparsed": 1, "failed: timeout": 1}
    assert report["accuracy"]["interval"]["low"] < truth < report["accuracy"]["interval"]["high"]


def test_the_gate_has_its_own_status(cli: Cli, tmp_path: Path) -> None:
    run, sample = drawn(cli, tmp_path, "-n", 60)
    labels = write_rows(tmp_path / "labels.jsonl", labelled(tmp_path, sample))
    low = cli("audit", "report", run, labels, "--min-agreement", 0.7)
    assert low.code == 0
    assert "passed" in low.out
    high = cli("audit", "report", run, labels, "--min-agreement", 0.95)
    assert high.code == 4
    assert "below --min-agreement 95.0%" in high.err
    assert "FAILED" in high.out
    markdown = cli("audit", "report", run, labels, "--md").out
    assert "| agreement, three-way |" in markdown


def test_unanswered_and_split_pairs_are_counted(cli: Cli, tmp_path: Path) -> None:
    run, sample = drawn(cli, tmp_path, "-n", 50, "--how", "uniform")
    ana = labelled(tmp_path, sample)
    for row in ana[:5]:
        row.pop("label")
        row["skipped"] = True
    bo = labelled(tmp_path, sample, lambda row: "B" if int(row["id"][1:]) % 3 == 0 else "A", "bo")
    rows = [*ana, *bo[5:30], {**ana[20], "pair_id": "stranger"}, {**ana[20], "pair_id": "u"}]
    labels = write_rows(tmp_path / "labels.jsonl", rows)
    report = cli("audit", "report", run, labels, "--json", "--label-rule", "majority").summary
    split = sum(row["label"] == "B" for row in bo[5:30])
    assert split
    assert report["labelled"] == 45 - split
    assert report["unlabelled"] == 5 + split
    assert report["skipped"] == 5
    notes = " ".join(report["notes"])
    assert "1 labelled pairs are in no outcome" in notes
    assert "1 labelled pairs have no verdict" in notes
    assert f"{split} labelled pairs have votes but no label" in notes
    assert report["people"]["comparisons"]["n"] == 25
    assert report["people"]["comparisons"]["value"] == pytest.approx(1 - split / 25)


def test_who_does_not_answer_does_not_tilt_the_totals(cli: Cli, tmp_path: Path) -> None:
    """Most items of one stratum are skipped: the answers left there stand for all of it."""
    run, sample = drawn(cli, tmp_path, "-n", 80, "--by", "winner")
    said = {row["id"]: row.get("winner") for row in rows_of(run)}
    rows = labelled(tmp_path, sample)
    doubtful = [row for row in rows if said[row["pair_id"]] == "B"]
    for row in doubtful[2:]:
        row.pop("label")
        row["skipped"] = True
    labels = write_rows(tmp_path / "labels.jsonl", rows)
    report = cli("audit", "report", run, labels, "--json").summary
    truth = sum(winner == "A" for winner in said.values()) / 200
    assert report["labelled"] == 80 - len(doubtful) + 2
    assert report["agreement"]["three-way"]["value"] == pytest.approx(truth)
    assert report["pass_rate"]["apparent"] == pytest.approx(truth)


def test_annotators_are_held_against_themselves(cli: Cli, tmp_path: Path) -> None:
    run, sample = drawn(cli, tmp_path, "-n", 20)
    rows = labelled(tmp_path, sample, shown="ba")
    repeats = [
        {**{k: v for k, v in row.items() if k != "label"}, "again": again, "repeat": 1}
        for row, again in zip(rows[:4], ["A", "A", "A", "tie"], strict=True)
    ]
    labels = write_rows(tmp_path / "labels.jsonl", [*rows, *repeats])
    ana = cli("audit", "report", run, labels, "--json").summary["annotators"][0]
    assert (ana["self_agreement"]["n"], ana["self_agreement"]["value"]) == (4, 0.75)
    assert (ana["decided"], ana["left"]["n"], ana["left"]["value"]) == (20, 23, 0.0)
    # A repeat is no second vote, here or for `dikast agree`.
    agree = cli("agree", run, "--labels", labels, "--json").summary
    assert agree["people"]["votes"] == 20


def test_who_outranks_the_judge_is_named(cli: Cli, tmp_path: Path) -> None:
    run, sample = drawn(cli, tmp_path, "-n", 20)
    labels = write_rows(tmp_path / "labels.jsonl", labelled(tmp_path, sample))
    models = [
        {"model": name, "rating": rating, "interval": {"low": rating - 20, "high": rating + 20}}
        for name, rating in (("new", 1200), ("old", 900), ("judge-1", 1000))
    ]
    ranking = tmp_path / "rank.json"
    ranking.write_text(json.dumps({"models": models}))
    words = ("audit", "report", run, labels, "--json", "--ranking", ranking)
    last = cli(*words, "--judge-model", "judge-1").summary["checks"][-1]
    assert last["result"] == "no"
    assert last["why"].startswith("new rank above")
    assert "does not name the judge" in cli(*words).summary["checks"][-1]["why"]


def test_labels_without_probabilities_are_taken_as_even_and_said(cli: Cli, tmp_path: Path) -> None:
    run, _ = judged(tmp_path)
    labels = write_rows(tmp_path / "l.jsonl", [{"id": f"p{k}", "label": "A"} for k in range(50)])
    report = cli("audit", "report", run, labels, "--json").summary
    assert report["labelled"] == 50
    assert any("no inclusion probability" in note for note in report["notes"])


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"pair_id": "p1", "annotator": "a", "decision": "keep"}, "keep or drop"),
        ({"pair_id": "p1", "annotator": "a"}, "holds no label"),
        ({"pair_id": "p1", "label": "C"}, "label"),
        ({"label": "A"}, "is no label"),
        ({"pair_id": "p1", "label": "A", "inclusion_probability": 0}, "above 0"),
        ({"pair_id": "zzz", "label": "A"}, "are these labels of this run"),
        ({"pair_id": "u", "label": "A"}, "no labelled pair has a verdict"),
    ],
)
def test_poor_labels_get_one_sentence(
    cli: Cli, tmp_path: Path, row: dict[str, Any], sentence: str
) -> None:
    run, _ = judged(tmp_path, 10)
    ran = cli("audit", "report", run, write_rows(tmp_path / "labels.jsonl", [row]))
    assert ran.code == 2
    assert ran.err.startswith("dikast: error: ")
    assert sentence in ran.err


def test_poor_words_get_one_sentence(cli: Cli, tmp_path: Path) -> None:
    run, pairs = judged(tmp_path, 10)
    bare = write_rows(tmp_path / "bare.jsonl", [outcome("p1")])
    empty = write_rows(tmp_path / "empty.jsonl", [outcome("p1", None)])
    other = write_rows(tmp_path / "other.jsonl", [pair(99)])
    new = tmp_path / "new.jsonl"
    twice = write_rows(tmp_path / "twice.jsonl", [{"id": "x"}, {"id": "x"}])
    for words, sentence in (
        (("sample", run, "-o", new, "--pairs", other), "10 of 10 drawn pairs are not in"),
        (("sample", run, "-o", new), "give --pairs"),
        (("sample", empty, "-o", new, "--pairs", pairs), "no outcome has a verdict"),
        (("sample", bare, "-o", new, "--pairs", pairs, "--how", "uncertainty"), "how sure"),
        (("sample", run, "-o", tmp_path / "no" / "x", "--pairs", pairs), "cannot be written"),
        (("sample", run, "-o", new, "-n", 0), "at least one pair"),
        (("serve", twice, "-o", new), "repeats the id"),
        (("serve", pairs, "-o", new, "--host", "0.0.0.0", "--no-token"), "anyone on the network"),
        (("serve", run, "-o", new), "have no answers to show"),
        (("report", run, pairs), "holds no label"),
        (("report", run, pairs, "--ranking", run), "is no JSON of dikast rank"),
        (("report", run, pairs, "--min-agreement", 2), "between 0 and 1"),
        ((), "required: STEP"),
    ):
        ran = cli("audit", *words)
        assert ran.code == 2, words
        assert sentence in ran.err, (words, ran.err)


def test_an_interrupt_ends_serving_well(tmp_path: Path) -> None:
    sample = write_rows(tmp_path / "s.jsonl", [pair(1)])
    process = child("audit", "serve", sample, "-o", tmp_path / "labels.jsonl")
    assert process.stdout is not None
    url = process.stdout.readline()
    assert "#token=" in url
    process.send_signal(2)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "0 decisions of 0 annotators" in err


def test_a_judge_is_measured_by_what_two_people_manage(cli: Cli, tmp_path: Path) -> None:
    """Two people agree on four pairs in five; a judge that is always with one of them is not
    below them, and one that is with nobody on every third pair is."""
    run, sample = drawn(cli, tmp_path, "-n", 200)
    said = {row["id"]: row.get("winner") for row in rows_of(run)}
    number = {row["id"]: int(row["id"][1:]) for row in rows_of(sample)}

    def other(row: dict[str, Any]) -> str:
        return "tie" if number[row["id"]] % 5 == 0 else str(said[row["id"]])

    def wrong(row: dict[str, Any]) -> str:
        return "tie" if number[row["id"]] % 3 == 0 else str(said[row["id"]])

    def answer(first: Any, second: Any) -> dict[str, Any]:
        rows = labelled(tmp_path, sample, first) + labelled(tmp_path, sample, second, "bo")
        labels = write_rows(tmp_path / "labels.jsonl", rows)
        found: dict[str, Any] = cli("audit", "report", run, labels, "--json").summary
        return found

    close = answer(lambda row: said[row["id"]], other)
    assert close["checks"][2]["result"] == "yes"
    assert close["against_people"]["people"]["value"] == pytest.approx(0.8)
    assert close["against_people"]["judge"]["value"] == pytest.approx(0.9)
    far = answer(wrong, wrong)
    assert far["checks"][2]["result"] == "no"
    assert far["against_people"]["people"]["value"] == pytest.approx(1.0)


def test_labels_of_two_samples_are_not_mixed(cli: Cli, tmp_path: Path) -> None:
    run, sample = drawn(cli, tmp_path, "-n", 40, "--how", "uniform")
    other = tmp_path / "other.jsonl"
    pairs = tmp_path / "pairs.jsonl"
    assert (
        cli("audit", "sample", run, "--pairs", pairs, "-o", other, "-n", 60, "--seed", 5).code == 0
    )
    rows = labelled(tmp_path, sample) + labelled(tmp_path, other)
    ran = cli("audit", "report", run, write_rows(tmp_path / "labels.jsonl", rows))
    assert ran.code == 2
    assert "one sample at a time" in ran.err


def test_pairs_judged_after_the_draw_are_said(cli: Cli, tmp_path: Path) -> None:
    run, sample = drawn(cli, tmp_path, "-n", 40, "--how", "uniform")
    labels = write_rows(tmp_path / "labels.jsonl", labelled(tmp_path, sample))
    with run.open("a") as file:
        file.writelines(json.dumps(outcome(f"late{k}", "B")) + "\n" for k in range(7))
    report = cli("audit", "report", run, labels, "--json").summary
    assert any(note.startswith("7 pairs are in strata without") for note in report["notes"])
