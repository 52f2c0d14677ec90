"""`dikast rank`: what it prints of good battles, and what it says to bad ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from dikast import Pair
from tests.cli.tools import Cli, pair, rows_of, write_rows

pytestmark = pytest.mark.realtime


def verdict(number: int, a: str, b: str, winner: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "verdict", "id": f"p{number}", "winner": winner, "basis": "agree",
        "model_a": a, "model_b": b, "strategy": "swap@1",
        "votes": [{"judge": "j", "order": "ab", "pick": winner}], **more,
    }  # fmt: skip


@pytest.fixture
def outcomes(tmp_path: Path) -> Path:
    rows = [
        verdict(n, a, b, winner, meta={"prompt_id": n % 12})
        for n, (a, b, winner) in enumerate(
            [("ant", "bee", "A"), ("bee", "cat", "A"), ("ant", "cat", "A"), ("cat", "ant", "A"),
             ("bee", "ant", "A"), ("cat", "bee", "tie")] * 8
        )
    ]  # fmt: skip
    rows.append({**verdict(90, "ant", "bee", "tie"), "basis": "disagree", "meta": {"prompt_id": 1}})
    rows.append(
        {"kind": "undecided", "id": "p91", "why": "unparsed", "model_a": "ant", "model_b": "bee"}
    )
    rows.append(
        {
            "kind": "failed",
            "id": "p92",
            "reason": "timeout",
            "message": "m",
            "model_a": "ant",
            "model_b": "bee",
        }
    )
    rows.append(verdict(93, "ant", "ant", "A", meta={"prompt_id": 1}))
    return write_rows(tmp_path / "out.jsonl", rows)


def test_the_table_says_what_it_was_computed_on(cli: Cli, outcomes: Path) -> None:
    ran = cli("rank", outcomes)

    assert ran.code == 0
    for words in (
        "Ranking: Bradley-Terry",
        "49 battles of 3 models before 1 judge on 12 prompts",
        "the prompt is the row's prompt_id",
        "8 ties and 1 pair whose two orders disagree: half a win for each",
        "1 undecided: unparsed, 1 failed: timeout, 1 a model against itself",
        "400 / ln 10 points a logit, mean 1000",
        "95%, sandwich by prompt",
        "Only 12 prompts",
    ):  # fmt: skip
        assert words in " ".join(ran.out.split()), words
    first = next(line for line in ran.out.splitlines() if " ant " in line)
    assert first.split()[:2] == ["2", "ant"]


def test_json_has_every_number_and_is_finite(cli: Cli, outcomes: Path) -> None:
    ran = cli(
        "rank",
        outcomes,
        "--json",
        "--elo",
        "--next",
        "6",
        "--interval",
        "bootstrap",
        "--draws",
        "50",
    )

    assert ran.code == 0
    report = json.loads(ran.out, parse_constant=lambda word: pytest.fail(word))
    assert [each["model"] for each in report["models"]] == ["bee", "ant", "cat"]
    assert sum(each["rating"] for each in report["models"]) == pytest.approx(3000)
    assert report["left_out"] == {
        "a model against itself": 1, "undecided: unparsed": 1, "failed: timeout": 1,
    }  # fmt: skip
    assert sum(each["battles"] for each in report["next"]) == 6
    assert all("elo" in each for each in report["models"])
    assert (
        report["models"][0]["interval"]["method"]
        == "bootstrap by prompt, expanded percentile, 50 draws"
    )
    assert report["win_matrix"][0][1] + report["win_matrix"][1][0] == report["met_matrix"][0][1]


def test_markdown_is_a_table(cli: Cli, outcomes: Path) -> None:
    ran = cli("rank", outcomes, "--md", "--matrix", "--model", "davidson")

    assert ran.code == 0
    assert "| rank | model | rating | places |" in ran.out
    assert "### Win rates" in ran.out
    assert "modelled (tie parameter" in ran.out


def test_a_saved_ranking_agrees_with_itself(cli: Cli, outcomes: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    saved.write_text(cli("rank", outcomes, "--json").out)
    reference = tmp_path / "reference.csv"
    reference.write_text("model,rating\nbee,1\nant,2\ncat,3\nowl,4\n")

    same = cli("rank", outcomes, "--against", saved, "--json").summary["comparison"]
    other = cli("rank", outcomes, "--against", reference)

    assert same["kendall_tau_b"] == pytest.approx(1)
    assert same["disagree"] == 0
    assert "-1.000" in other.out
    assert "only in the reference (1), so left out: owl" in other.out


def test_judges_have_rankings_of_their_own_or_weights(cli: Cli, tmp_path: Path) -> None:
    rows = []
    for n in range(60):
        truth = ("A", "B")[n % 3 == 0]
        for judge, said in (("kind", truth), ("good", truth), ("coin", ("A", "B")[n % 2])):
            rows.append(
                {"id": f"{n}:{judge}", "pair_id": f"p{n}", "judge": judge, "prompt": n % 20,
                 "model_a": "ant", "model_b": "bee", "winner": said}
            )  # fmt: skip
    path = write_rows(tmp_path / "votes.jsonl", rows)

    by_judge = cli("rank", path, "--by", "judge", "--json").summary["by"]
    agreement = cli("rank", path, "--weights", "agreement", "--json").summary["judge_weights"]
    hidden = cli("rank", path, "--weights", "dawid-skene", "--json").summary

    assert set(by_judge) == {"kind", "good", "coin"}
    assert by_judge["coin"]["ranking"]["battles"] == 60
    weights = {each["judge"]: each["weight"] for each in agreement}
    assert weights["kind"] == pytest.approx(weights["good"])
    assert weights["kind"] > 3 * weights["coin"]
    assert hidden["battles"] == 60
    accuracy = {each["judge"]: each["accuracy"] for each in hidden["judge_weights"]}
    assert accuracy["kind"] > 0.9 > 0.7 > accuracy["coin"]


def test_topics_have_rankings_of_their_own(cli: Cli, outcomes: Path, tmp_path: Path) -> None:
    rows = [
        {**row, "category": "maths" if row["id"] < "p3" else "prose"} for row in rows_of(outcomes)
    ]
    path = write_rows(tmp_path / "topics.jsonl", rows)

    parts = cli("rank", path, "--by", "category", "--json").summary["by"]
    shown = cli("rank", path, "--by", "category")
    missing = cli("rank", outcomes, "--by", "category")

    assert sum(each["ranking"]["battles"] for each in parts.values()) == 49
    assert set(parts) == {"maths", "prose"}
    assert "A ranking for each category" in shown.out
    assert missing.code == 2
    assert "line 1, field 'category': is absent, but --by names it" in missing.err


def test_the_pairs_tell_models_prompts_and_lengths(cli: Cli, tmp_path: Path) -> None:
    pairs = [
        pair(n, model_a="ant", model_b="bee", response_a="long " * (20 if n % 2 else 1))
        for n in range(40)
    ]
    source = write_rows(tmp_path / "pairs.jsonl", pairs)
    out = tmp_path / "out.jsonl"
    assert cli("judge", source, "-o", out, "--judge", "simulated:careful", "--quiet").code == 0
    bare = [
        {name: value for name, value in row.items() if not name.startswith("model_")}
        for row in rows_of(out)
    ]
    stripped = write_rows(tmp_path / "stripped.jsonl", bare)

    without = cli("rank", stripped)
    with_pairs = cli("rank", stripped, "--pairs", source, "--control", "length", "--json")

    assert without.code == 2
    assert "40 without model names" in without.err
    report = with_pairs.summary
    assert report["clustered_by"] == {"question of the pair": 40}
    assert report["effects"][0]["name"] == "length"
    assert all(0 < each["controlled_win_rate"] < 1 for each in report["models"])
    assert any("simulated judges" in note for note in report["input_notes"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--ties", "drop", "--model", "davidson"], "nothing to model"),
        (["--control", "style"], "name the judged pairs with --pairs"),
        (["--next", "0"], "at least 1"),
        (["--level", "95"], "between 0 and 1"),
        (["--ridge", "-1"], "0 or a small positive number"),
        (["--ridge", "nan"], "0 or a small positive number"),
        (["--weights", "agreement"], "no pair was decided by two"),
        (["--weights", "dawid-skene"], "several judges"),
        (["--weights", "agreement", "--by", "judge"], "choose one"),
        (["--cluster", "meta.topic"], "line 1, field 'meta.topic': is absent"),
        (["--against", "none.csv"], "none.csv: cannot be read"),
        (["--use", "label"], "without a label"),
        (["--judge", "nobody*"], "before other judges"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    cli: Cli, outcomes: Path, words: list[str], sentence: str
) -> None:
    ran = cli("rank", outcomes, *words)

    assert ran.code == 2
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1
    assert sentence in ran.err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it holds no rows"),
        ('{"kind": "verdict", "id": "p", "winner": "A"}\n', "1 without model names"),
        ('{"model_a": "a", "model_b": "b", "winner": "C"}\n', "line 1, field 'winner': a label is"),
        ('{"model_a": "a", "model_b": "b", "winner": {"x": 1}}\n', "field 'winner'"),
        ('{"model_a": "a", "model_b": "b", "win', "line 1: is not a row of battles"),
        ('{"model_a": "a", "model_b": "a", "winner": "A"}\n', "1 a model against itself"),
        ('{"model_a": "a", "model_b": "b", "winner": null}\n', "1 without a winner"),
    ],
)
def test_an_input_without_battles_is_explained(
    cli: Cli, tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(text)

    ran = cli("rank", path)

    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert sentence in ran.err


def test_csv_is_read_and_a_bad_cell_is_named(cli: Cli, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text("left,right,winner\nant,bee,left\nbee,ant,left\nant,bee,tie\nant,bee,ant\n")
    bad.write_text("model_a,model_b,winner\nant,bee,A\nant,bee,perhaps\n")

    assert cli("rank", good, "--json").summary["battles"] == 4
    ran = cli("rank", bad)

    assert ran.code == 2
    assert "bad.csv, line 3, field 'winner'" in ran.err


def test_separation_and_groups_are_shown(cli: Cli, tmp_path: Path) -> None:
    rows = [verdict(n, "ant", "bee", "A") for n in range(5)]
    rows += [verdict(n + 5, "cat", "dog", "A" if n else "B") for n in range(3)]
    ran = cli("rank", write_rows(tmp_path / "out.jsonl", rows))

    assert ran.code == 0
    assert "group" in ran.out
    assert "2 groups that never met" in " ".join(ran.out.split())
    assert "inf" not in ran.out.replace("information", "")
    assert "nan" not in ran.out


def test_following_a_finished_run_prints_its_ranking_and_ends(cli: Cli, tmp_path: Path) -> None:
    pairs = [pair(n, model_a="ant", model_b="bee") for n in range(30)]
    source, out = write_rows(tmp_path / "pairs.jsonl", pairs), tmp_path / "out.jsonl"
    assert cli("judge", source, "-o", out, "--judge", "simulated:careful", "--quiet").code == 0

    ran = cli("rank", out, "--follow", "--every-s", "0.01", "--json")

    assert ran.code == 0
    last = json.loads(ran.out.splitlines()[-1])
    assert last["battles"] == 30
    assert {each["model"] for each in last["models"]} == {"ant", "bee"}


ROOT = Path(__file__).resolve().parents[2]
SHOWN = [
    block.strip()
    for block in (ROOT / "docs" / "ranking.md").read_text("utf-8").split("```")[1::2]
    if block.startswith("\n$ dikast rank")
]


@pytest.mark.parametrize("block", SHOWN)
def test_the_page_shows_what_the_command_prints(
    cli: Cli, block: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, output = block.split("\n", 1)
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "110")

    ran = cli(*command.split()[2:])

    assert ran.code == 0
    assert ran.out.strip() == output.strip()


async def test_the_program_on_the_page_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "ranking.md").read_text("utf-8")
    program = page.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    exec(program, names)
    pairs = [
        Pair(
            id=str(n), question=str(n), response_a="x", response_b="y", model_a="ant", model_b="bee"
        )
        for n in range(3)
    ]

    await names["main"](pairs)

    assert capsys.readouterr().out.splitlines()[-1].count("LiveRow") == 2
