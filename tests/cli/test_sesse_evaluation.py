"""`dikast sesse tune`, `evaluate` and `baselines` from end to end, over a planted judge."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dikast.strategies import load_library
from dikast.strategies.sesse.library import save_library
from tests.cli.tools import Cli, rows_of, write_rows
from tests.unit.strategies.sesse_worlds import library_of, planted, question

pytestmark = pytest.mark.realtime

GOOD = planted("substance", applies=0.7, skill=0.85, blind=0.4)
BAD = planted("bluster", applies=0.7, skill=0.25)
CONFIG = """
[providers.p]
kind = "simulated"
requests_per_min = 6000000
accuracy = 0.9
consistency = 1.0
{more}
{criteria}
[judges.j]
provider = "p"
model = "m"
"""


def config_at(path: Path, more: str = "") -> Path:
    criteria = "".join(
        "[[providers.p.criteria]]\n"
        + "".join(
            f"{name} = {json.dumps(value)}\n"
            for name, value in msgspec.to_builtins(each).items()
            if value is not None
        )
        for each in (GOOD, BAD)
    )
    path.write_text(CONFIG.format(criteria=criteria, more=more), "utf-8")
    return path


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder with labelled pairs, a configuration and an untuned library."""
    config_at(tmp_path / "c.toml")
    write_rows(
        tmp_path / "pairs.jsonl",
        [
            {
                "id": f"p{number}",
                "question": f"question {number}",
                "response_a": f"one answer to {number}",
                "response_b": f"another answer, to {number}",
                "label": "A" if number % 2 else "B",
                "category": "even" if number % 4 < 2 else "odd",
            }
            for number in range(240)
        ],
    )
    found = {
        "good": [question(GOOD, n, source_id=f"p{n}") for n in range(4)],
        "bad": [question(BAD, n, source_id=f"p{20 + n}") for n in range(3)],
    }
    save_library(library_of(found, {"good": GOOD, "bad": BAD}), tmp_path / "lib.json")
    return tmp_path


def tuned(cli: Cli, world: Path, *more: str) -> dict[str, Any]:
    ran = cli(
        *("sesse", "tune", world / "lib.json", world / "pairs.jsonl", "-o", world / "tuned.json"),
        *("--config", world / "c.toml", "--quiet", "--json", *more),
    )
    assert ran.code == 0, ran.err
    return ran.summary


def test_tuning_drops_the_harmful_questions_and_writes_a_child(cli: Cli, world: Path) -> None:
    summary = tuned(cli, world, "--no-self-fix")
    before, after = load_library(world / "lib.json"), load_library(world / "tuned.json")
    assert summary["parent"] == after.parent == before.hash
    assert summary["hash"] == after.hash
    assert [cluster.cid for cluster in after.clusters] == ["good"]
    assert set(summary["dropped"].values()) == {"no better than chance"}
    assert after.depth == summary["depth"]
    assert all(each.weight > 1 for each in after.clusters[0].questions)
    assert [point["depth"] for point in summary["curve"]] == [1, 2, 3, 4]
    assert summary["rows"] == 240


def test_tuning_from_files_asks_nobody_and_comes_to_the_same(cli: Cli, world: Path) -> None:
    first = tuned(cli, world)
    work = world / "tuned.json.work"
    # No configuration and no judge: there is nobody who could be asked.
    ran = cli(
        *("sesse", "tune", world / "lib.json", "-o", world / "again.json", "--json"),
        *("--votes", work / "votes.jsonl", "--holistic", work / "holistic.jsonl"),
        *("--self-fix", work / "self-fix.jsonl"),
    )
    assert ran.code == 0, ran.err
    assert ran.summary["hash"] == first["hash"]


def test_a_tuned_library_is_shown_to_people_with_what_it_rests_on(cli: Cli, world: Path) -> None:
    ran = cli(
        *("sesse", "tune", world / "lib.json", world / "pairs.jsonl", "-o", world / "tuned.json"),
        *("--config", world / "c.toml"),
    )
    assert "240 labelled rows; left out: none" in ran.out
    assert "chosen" in ran.out
    assert "no rows were kept apart" in ran.err
    assert "dikast: holistic 240/240 | 240 calls (0 from the store)" in ran.err
    assert "dikast: self-fix 7/7 | " in ran.err


def test_the_whole_way_tune_judge_evaluate(cli: Cli, world: Path) -> None:
    tuned(cli, world)
    config = (world / "c.toml").read_text("utf-8")
    strategy = '[strategy]\nkind = "sesse"\njudge = "j"\nlibrary = "tuned.json"\ndepth = 4\n'
    (world / "run.toml").write_text(config + strategy, "utf-8")
    judged = cli(
        *("judge", world / "pairs.jsonl", "-o", world / "out.jsonl"),
        *("--config", world / "run.toml", "--quiet"),
    )
    assert judged.code == 0, judged.err
    outcome = rows_of(world / "out.jsonl")[0]
    assert outcome["simulated"]
    assert outcome["notes"]["library"] == load_library(world / "tuned.json").hash[:16]
    again = cli(
        *("judge", world / "pairs.jsonl", "-o", world / "again.jsonl", "--json"),
        *("--config", world / "run.toml", "--quiet", "--store", world / "dikast-calls.sqlite"),
    )
    assert again.summary["requests_sent"] == 0
    ran = cli(
        *("sesse", "evaluate", world / "out.jsonl", "--json", "--html", world / "page.html"),
        *("--holistic", world / "tuned.json.work" / "holistic.jsonl"),
        *("--library", world / "tuned.json", "--transfer", world / "again.jsonl"),
        *("--reference", world / "again.jsonl"),
        *("--pairs", world / "pairs.jsonl", "--embedder", "hash"),
    )
    assert ran.code == 0, ran.err
    report = ran.summary
    figures = report["headline"]
    assert figures["rows"] == 240
    decided = figures["sesse"]["n"]
    assert decided + figures["ties"] == 240
    assert figures["paired"] == decided
    hits = sum(
        row["winner"] == row["label"] for row in rows_of(world / "out.jsonl") if "winner" in row
    )
    assert figures["sesse"]["hits"] == hits
    assert {line["subset"] for line in report["subsets"]} == {"even", "odd"}
    deepest = max(len(each.questions) for each in load_library(world / "tuned.json").clusters)
    assert [line["depth"] for line in report["depth"]] == list(range(1, deepest + 1))
    assert report["depth"][-1]["half"]["value"] == pytest.approx(figures["half"]["value"])
    assert report["batch"]["kappa"]["value"] == 1.0
    assert len(report["transfer"]) == 2
    assert report["taxonomy"]["thresholds"]["cosine"] is not None
    assert report["source"]["simulated"]
    page = (world / "page.html").read_text("utf-8")
    assert "The judge is simulated" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_thresholds_frozen_on_other_rows_are_used(cli: Cli, world: Path) -> None:
    tuned(cli, world)
    votes = world / "tuned.json.work" / "votes.jsonl"
    frozen = world / "dev.json"
    frozen.write_text(
        json.dumps(
            {"taxonomy": {"thresholds": {"cosine": 0.9, "na_share": 0.5, "entropy_bits": 0.8}}}
        ),
        "utf-8",
    )
    ran = cli("sesse", "evaluate", votes, "--json", "--thresholds", frozen)
    assert ran.summary["taxonomy"]["thresholds"]["entropy_bits"] == 0.8
    bad = cli("sesse", "evaluate", votes, "--thresholds", world / "pairs.jsonl")
    assert bad.code == 2
    assert "is no report of sesse evaluate" in bad.err


def test_names_from_files_cannot_write_into_the_page(cli: Cli, world: Path) -> None:
    tuned(cli, world)
    rows = rows_of(world / "tuned.json.work" / "votes.jsonl")
    for row in rows:
        row["category"] = "<script>alert(1)</script>"
    write_rows(world / "odd.jsonl", rows)
    ran = cli("sesse", "evaluate", world / "odd.jsonl", "--html", world / "page.html")
    assert ran.code == 0, ran.err
    assert "<script>" not in (world / "page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no labelled row"),
        ('{"kind": "verdict", "id": "x"}\n', "is not an outcome written by dikast"),
        (
            '{"kind": "verdict", "id": "x", "winner": "A", "label": "A"}\n',
            "not an outcome of the strategy sesse",
        ),
    ],
)
def test_what_is_no_log_of_votes_is_one_clear_sentence(
    cli: Cli, world: Path, text: str, words: str
) -> None:
    (world / "odd.jsonl").write_text(text, "utf-8")
    ran = cli("sesse", "evaluate", world / "odd.jsonl")
    assert ran.code == 2
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_baselines_run_in_one_harness_at_the_budget_of_sesse(cli: Cli, world: Path) -> None:
    words = ("sesse", "baselines", world / "lib.json", world / "pairs.jsonl", "--quiet", "--json")
    ran = cli(*words, "-o", world / "ways", "--config", world / "c.toml", "--limit", "24")
    assert ran.code == 0, ran.err
    lines = {line["name"]: line for line in ran.summary["lines"]}
    assert list(lines) == [
        *("sesse", "hybrid", "holistic", "direct", "self-consistency", "rubric", "random"),
        "labels",
    ]
    assert all(line["pairs"] == 24 for line in lines.values())
    budget = lines["sesse"]["calls_mean"]
    assert lines["self-consistency"]["calls_mean"] == round(budget)
    assert [lines[name]["calls_mean"] for name in ("holistic", "direct", "labels")] == [1, 1, 1]
    assert lines["rubric"]["calls_mean"] == 10
    assert lines["rubric"]["ties"] == 24  # the planted judge knows none of them
    assert lines["sesse"]["test"] is None
    assert lines["holistic"]["test"] is not None


def test_baselines_can_be_chosen_and_need_something_to_compare(cli: Cli, world: Path) -> None:
    words = ("sesse", "baselines", world / "lib.json", world / "pairs.jsonl", "--quiet")
    more = ("-o", world / "ways", "--config", world / "c.toml", "--limit", "10")
    assert cli(*words, *more, "--only", "sesse").code == 2
    ran = cli(*words, *more, "--only", "direct")
    assert ran.code == 0, ran.err
    assert "direct" in ran.out
    assert "holistic" not in ran.out


def test_calls_that_fail_are_told_and_leave_status_1(cli: Cli, world: Path) -> None:
    config_at(world / "c.toml", "error_rate = 0.1\n")
    (world / "c.toml").write_text(
        (world / "c.toml").read_text("utf-8") + "\n[run.retry]\nattempts = 1\n", "utf-8"
    )
    ran = cli(
        *("sesse", "tune", world / "lib.json", world / "pairs.jsonl", "-o", world / "t.json"),
        *("--config", world / "c.toml", "--keep-all", "--limit", "24"),
    )
    assert ran.code == 1, ran.err
    assert "pairs failed and are missing" in ran.err
    assert "failed: transient" in ran.out
    assert load_library(world / "t.json").parent is not None
