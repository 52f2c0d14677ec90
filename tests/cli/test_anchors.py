"""`dikast anchors init|run|check`: what is frozen, what is compared, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from dikast.commands.anchors_init import quotas
from tests.cli.tools import DEMO, Cli, Ran, pair, write_rows

pytestmark = pytest.mark.realtime
JUDGES = Path(__file__).with_name("judges.toml")
JUDGE = ("--config", JUDGES, "--judge", "careful")


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def change(path: Path, **fields: object) -> Path:
    """A copy of a JSON file with some fields exchanged."""
    copy = path.with_name(f"changed-{path.name}")
    copy.write_text(json.dumps({**read(path), **fields}), "utf-8")
    return copy


@pytest.fixture
def anchors(cli: Cli, tmp_path: Path) -> Path:
    """Forty of the shipped pairs."""
    path = tmp_path / "anchors.json"
    ran = cli("anchors", "init", DEMO, "-o", path, "--name", "demo", "--size", 40)
    assert ran.code == 0
    return path


def judge(cli: Cli, anchors: Path, name: str, *words: object) -> Path:
    path = anchors.with_name(name)
    assert cli("anchors", "run", anchors, "-o", path, *(words or JUDGE)).code == 0
    return path


def check(cli: Cli, run: Path, baseline: Path, *words: object) -> Ran:
    return cli("anchors", "check", run, "--baseline", baseline, *words)


# --- init ---------------------------------------------------------------------------------------


def test_the_choice_is_balanced_seeded_and_blind_to_the_order_of_the_input(
    cli: Cli, tmp_path: Path
) -> None:
    rows = [pair(n, label="A" if n % 4 else "B", category="c") for n in range(80)]
    one = write_rows(tmp_path / "one.jsonl", rows)
    two = write_rows(tmp_path / "two.jsonl", rows[::-1])
    made = {}
    for name, source, seed in (("a", one, 0), ("b", two, 0), ("c", one, 1)):
        out = tmp_path / f"{name}.json"
        words = ("--name", "n", "--size", 20, "--seed", seed)
        assert cli("anchors", "init", source, "-o", out, *words).code == 0
        made[name] = read(out)
    assert made["a"]["pairs"] == made["b"]["pairs"]
    assert made["a"]["hash"] == made["b"]["hash"] != made["c"]["hash"]
    labels = [each["label"] for each in made["a"]["pairs"]]
    assert (labels.count("A"), labels.count("B")) == (15, 5)


def test_quotas_add_up_and_stay_within_one_of_the_exact_share() -> None:
    counts = {("A", "x"): 7, ("B", "x"): 5, ("tie", ""): 1, ("", ""): 90}
    for size in range(104):
        found = quotas(counts, size)
        assert sum(found.values()) == size
        assert all(abs(found[each] - size * counts[each] / 103) < 1 for each in counts)
        assert all(found[each] <= counts[each] for each in counts)


def test_other_items_need_a_new_version_and_the_old_one_is_kept(cli: Cli, anchors: Path) -> None:
    old = anchors.read_bytes()
    words = ("anchors", "init", DEMO, "-o", anchors, "--name", "demo", "--size", 40)

    again = cli(*words)
    assert again.code == 0
    assert "nothing has changed" in again.out
    assert anchors.read_bytes() == old

    refused = cli(*words, "--seed", 9)
    assert refused.code == 2
    assert "--bump to make version 2" in refused.err
    assert anchors.read_bytes() == old

    bumped = cli(*words, "--seed", 9, "--bump")
    assert bumped.code == 0
    assert read(anchors)["version"] == 2
    assert json.loads(anchors.with_name("anchors.v1.json").read_bytes()) == json.loads(old)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--size", 0), "--size: must be at least 1"),
        (("--size", 1000), "the input holds only 249 pairs"),
    ],
)
def test_a_size_that_cannot_be_had_is_refused(
    cli: Cli, tmp_path: Path, words: tuple[object, ...], message: str
) -> None:
    ran = cli("anchors", "init", DEMO, "-o", tmp_path / "a.json", "--name", "n", *words)
    assert ran.code == 2
    assert message in ran.err
    assert list(tmp_path.iterdir()) == []


def test_an_id_that_stands_twice_is_refused_with_its_place(cli: Cli, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", [pair(1), pair(2), pair(1)])
    ran = cli("anchors", "init", source, "-o", tmp_path / "a.json", "--name", "n")
    assert ran.code == 2
    assert "line 3" in ran.err
    assert "'p1' stands twice" in ran.err


def test_rows_that_are_no_pairs_are_counted(cli: Cli, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", [pair(1), {"id": "x"}, pair(2)])
    ran = cli("anchors", "init", source, "-o", tmp_path / "a.json", "--name", "n", "--json")
    assert ran.code == 0
    assert (ran.summary["items"], ran.summary["bad_rows"]) == (2, 1)


# --- run ----------------------------------------------------------------------------------------


def test_a_set_whose_items_were_changed_is_refused(cli: Cli, anchors: Path) -> None:
    pairs = read(anchors)["pairs"]
    pairs[0]["response_a"] += " And more."
    ran = cli("anchors", "run", change(anchors, pairs=pairs), "-o", "x.json", *JUDGE)
    assert ran.code == 2
    assert "its items are not those of its hash" in ran.err


def test_a_set_written_by_hand_in_toml_is_judged(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'kind = "anchor_set"\nname = "own"\nversion = 3\n'
        '[[pairs]]\nid = "1"\nquestion = "q"\nresponse_a = "a"\nresponse_b = "b"\nlabel = "A"\n'
    )
    run = judge(cli, path, "run.json")
    assert read(run)["anchors"]["version"] == 3
    assert len(read(run)["anchors"]["hash"]) == 16
    assert [each["id"] for each in read(run)["items"]] == ["1"]


def test_anchors_are_asked_anew_unless_a_store_is_named(
    cli: Cli, anchors: Path, tmp_path: Path
) -> None:
    words = ("anchors", "run", anchors, "-o", tmp_path / "r.json", *JUDGE, "--json")
    assert [cli(*words).summary["stored_calls"] for _ in range(2)] == [0, 0]
    assert not list(tmp_path.glob("*.sqlite"))

    kept = ("--store", tmp_path / "calls.sqlite")
    assert [cli(*words, *kept).summary["stored_calls"] for _ in range(2)] == [0, 80]
    run = tmp_path / "r.json"
    assert "80 answers came from a call store" in check(cli, run, run).out


def test_a_failed_anchor_is_told_by_the_status_and_kept_as_failed(
    cli: Cli, anchors: Path, tmp_path: Path
) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        '[providers.p]\nkind = "simulated"\nrequests_per_min = 6000000\nerror_rate = 0.5\n'
        '[judges.j]\nprovider = "p"\nmodel = "m"\n[run.retry]\nattempts = 1\n'
    )
    out = tmp_path / "r.json"
    ran = cli("anchors", "run", anchors, "-o", out, "--config", config, "--json")
    assert ran.code == 1
    failed = [each for each in read(out)["items"] if each["kind"] == "failed"]
    assert len(failed) == ran.summary["outcomes"]["failed (transient)"] > 0
    assert all("winner" not in each for each in failed)
    assert len(read(out)["items"]) == 40


def test_a_baseline_can_be_judged_twice(cli: Cli, anchors: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    words = ("anchors", "run", anchors, "-o", out, *JUDGE, "--twice")
    ran = cli(*words, "--json")
    assert ran.code == 0
    assert (ran.summary["calls"], ran.summary["stored_calls"]) == (160, 0)
    noise = ran.summary["noise"]
    assert (noise["items"], noise["changed"], noise["interval"]["low"]) == (40, 0, 0.0)
    found = check(cli, judge(cli, anchors, "today.json"), out, "--json").summary
    assert "changes beyond noise" in [each["name"] for each in found["measures"]]
    refused = cli(*words, "--store", tmp_path / "s.sqlite")
    assert refused.code == 2
    assert "--twice asks anew what --store would answer" in refused.err


def test_half_a_run_is_no_measurement(cli: Cli, anchors: Path, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        '[providers.p]\nkind = "simulated"\nrequests_per_min = 6000000\n'
        '[judges.j]\nprovider = "p"\nmodel = "m"\n'
        "prices = { input = 1000.0, output = 1000.0 }\n[run]\nworkers = 1\n"
    )
    out = tmp_path / "r.json"
    ran = cli("anchors", "run", anchors, "-o", out, "--config", config, "--budget-usd", 5)
    assert ran.code == 3
    assert "of 40 anchors were judged, which is no measurement" in ran.err
    assert not out.exists()


# --- check --------------------------------------------------------------------------------------


def test_the_same_judge_is_in_control(cli: Cli, anchors: Path) -> None:
    base, run = judge(cli, anchors, "base.json"), judge(cli, anchors, "run.json")

    ran = check(cli, run, base, "--json")

    assert ran.code == 0
    assert ran.summary["in_control"]
    assert ran.summary["common"] == ran.summary["items"] == 40
    people = check(cli, run, base)
    for words in ("in control", "40 of 40 anchors", "after Holm", "simulated judges"):
        assert words in people.out


def test_a_judge_that_answers_otherwise_is_out_of_control(cli: Cli, anchors: Path) -> None:
    base = judge(cli, anchors, "base.json", *JUDGE, "--strategy", "score")
    items = read(base)["items"]
    for each in items:
        each["scores"] = {name: 0.7 * score for name, score in each["scores"].items()}
    moved = change(base, items=items)

    ran = check(cli, moved, base, "--json")

    assert ran.code == 4
    alarms = {each["name"] for each in ran.summary["measures"] if each["out_of_control"]}
    names = ("accuracy", "completeness", "safety", "clarity", "total")
    assert alarms == {f"{what} {name}" for what in ("mean", "distribution") for name in names}
    assert "OUT OF CONTROL: mean accuracy" in check(cli, moved, base).out
    patient = ("--max-shift-sd", 5, "--max-ks", 1)
    assert check(cli, moved, base, *patient).code == 0


def test_limits_come_from_the_configuration_and_the_command_line_above_it(
    cli: Cli, anchors: Path, tmp_path: Path
) -> None:
    base = judge(cli, anchors, "base.json")
    items = read(base)["items"]
    for each in items[:8]:
        each.pop("winner")
        each |= {"kind": "undecided", "why": "unparsed"}
    lost = change(base, items=items)
    config = tmp_path / "c.toml"
    config.write_text("[anchors]\nmax_missing = 0.5\n")

    assert check(cli, lost, base).code == 4
    assert check(cli, lost, base, "--config", config).code == 0
    assert check(cli, lost, base, "--config", config, "--max-missing", 0.1).code == 4
    config.write_text("[anchors]\nmax_missing = 5\n")
    assert check(cli, lost, base, "--config", config).code == 2


def test_the_warning_names_agreement_and_bar(cli: Cli, anchors: Path) -> None:
    base = judge(cli, anchors, "base.json")
    said = check(cli, base, base, "--min-agreement", 0.99).out
    assert "below the bar of 99%" in said
    assert "warning" not in check(cli, base, base, "--min-agreement", 0).out


def test_other_settings_or_another_set_cannot_be_compared(
    cli: Cli, anchors: Path, tmp_path: Path
) -> None:
    base = judge(cli, anchors, "base.json")
    other = judge(cli, anchors, "other.json", "--config", JUDGES, "--judge", "coin")
    ran = check(cli, other, base)
    assert ran.code == 2
    assert "the settings are not those of the baseline" in ran.err
    assert 'strategy.inner.judge.name: "careful" -> "coin"' in ran.err

    second = tmp_path / "second.json"
    assert cli("anchors", "init", DEMO, "-o", second, "--name", "two", "--size", 30).code == 0
    ran = check(cli, judge(cli, second, "run2.json"), base)
    assert ran.code == 2
    assert "two version 1" in ran.err
    assert "demo version 1" in ran.err


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "anchor_set"}', "\xff"])
def test_a_file_that_is_no_run_is_one_sentence(cli: Cli, tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(text.encode("latin-1"))
    ran = check(cli, path, path)
    assert ran.code == 2
    assert "is not a run on anchors" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("anchors", "run", "ANCHORS", "-o", "r.json", *JUDGE),
        ("anchors", "check", "r.json", "--baseline", "r.json"),
        ("judge", DEMO, "-o", "o.jsonl", *JUDGE, "--anchors", "ANCHORS"),
        ("check", *JUDGE, "--injection"),
    ],
    ids=lambda words: " ".join(map(str, words[:2])),
)
def test_without_the_statistics_packages_the_remedy_is_named_before_a_call(
    cli: Cli, anchors: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[object, ...]
) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    monkeypatch.setattr("dikast.extras.import_module", absent)
    monkeypatch.chdir(anchors.parent)
    ran = cli(*(anchors if word == "ANCHORS" else word for word in words))
    assert ran.code == 2
    assert "pip install 'dikast[analysis]'" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert sorted(path.name for path in anchors.parent.iterdir()) == ["anchors.json"]


def test_an_action_that_is_missing_or_unknown_is_one_sentence(cli: Cli) -> None:
    for words in ((), ("chek",)):
        ran = cli("anchors", *words)
        assert ran.code == 2
        assert len(ran.err.splitlines()) == 1


# --- files edited by hand -------------------------------------------------------------------------


def test_a_run_that_was_cut_or_edited_is_refused_with_the_remedy(cli: Cli, anchors: Path) -> None:
    run = judge(cli, anchors, "run.json")
    items = read(run)["items"]
    for edited, said in (
        (items[1:], "has other items than the baseline"),
        ([*items, items[0]], "an item is there twice"),
        ([{**items[0], "winner": None}, *items[1:]], "does not say who won"),
    ):
        ran = check(cli, change(run, items=edited), run)
        assert ran.code == 2
        assert said in ran.err
        assert "judge anew with: dikast anchors run" in ran.err


def test_a_set_or_a_run_of_another_format_is_refused(cli: Cli, anchors: Path) -> None:
    run = judge(cli, anchors, "run.json")
    old = change(anchors, format=9)
    for ran in (
        cli("anchors", "run", old, "-o", anchors.with_name("x.json"), *JUDGE),
        check(cli, change(run, format=9), run),
    ):
        assert ran.code == 2
        assert "is of format 9, and this version reads 1" in ran.err
