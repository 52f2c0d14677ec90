"""`dikast report`: the same numbers as the other commands, on one page, whatever the outcomes."""

import base64
import hashlib
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import Cli, write_rows

pytestmark = pytest.mark.realtime

MODELS = ("heron", "otter", "lynx")


def verdict(number: int, winner: str, **more: Any) -> dict[str, Any]:
    """An outcome of `swap`; a tie is a disagreement of the orders."""
    split = winner == "tie"
    picks = ("A", "B") if split else (winner, winner)
    return {
        "kind": "verdict",
        "id": f"p{number}",
        "winner": winner,
        "basis": "disagree" if split else "agree",
        "marks": {"votes": 2, "margin": 0.0} if split else {"votes": 2},
        "votes": [
            {"judge": "careful", "order": order, "pick": pick}
            for order, pick in zip(("ab", "ba"), picks, strict=True)
        ],
        "strategy": "swap@1",
        "spec": "0" * 16,
        "label": ("A", "B", "A")[number % 3],
        "model_a": MODELS[number % 3],
        "model_b": MODELS[(number + 1) % 3],
        "meta": {"question_id": number // 2},
        "cost_usd": 0.25,
        "calls": 2,
        **more,
    }


def usual() -> list[dict[str, Any]]:
    """Thirty verdicts, one undecided pair and one failed."""
    rows = [verdict(k, ("A", "B", "tie", "A", "A")[k % 5]) for k in range(30)]
    rows.append({"kind": "undecided", "id": "p30", "why": "unparsed", "label": "A"})
    rows.append(
        {"kind": "failed", "id": "p31", "reason": "timeout", "message": "no answer in 60 s"}
    )
    return rows


def pairs(count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"p{k}", "question": f"q {k // 2}", "response_a": "a " * (k % 7 + 1),
         "response_b": "b " * (k % 3 + 1), **more}
        for k in range(count)
    ]  # fmt: skip


def data_of(page: str) -> dict[str, Any]:
    """What the page's script reads."""
    block = page.partition('id="pairs-data">')[2].partition("</script>")[0]
    found: dict[str, Any] = json.loads(block)
    return found


def shown(page: str, run: str = "out") -> dict[str, set[str]]:
    """Ids in the browser by kind."""
    found: dict[str, set[str]] = {}
    for pair in data_of(page)["pairs"]:
        for kind in pair["sampled"] if pair["run"] == run else ():
            found.setdefault(kind, set()).add(pair["id"])
    return found


def page_of(cli: Cli, folder: Path, rows: list[dict[str, Any]], *words: object) -> str:
    """The page on these outcomes; free of numbers that are none."""
    out = write_rows(folder / "out.jsonl", rows)
    ran = cli("report", out, "-o", folder / "report.html", *words)
    assert ran.code == 0, ran.err
    assert ran.out == ""
    assert not list(folder.glob("*.tmp"))
    page = (folder / "report.html").read_text("utf-8")
    visible = re.sub(r"<script.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)
    assert re.search(r"\b(nan|NaN|inf|None|undefined)\b", visible) is None
    return page


def test_json_holds_the_numbers_of_the_other_commands(cli: Cli, tmp_path: Path) -> None:
    out = write_rows(tmp_path / "out.jsonl", usual())
    texts = write_rows(tmp_path / "pairs.jsonl", pairs(32))
    words = (out, "--draws", 200, "--seed", 3, "--json")
    found = cli("report", *words, "--pairs", texts).summary

    assert found["agreement"] == cli("agree", *words).summary
    assert found["bias"] == cli("bias", *words, "--pairs", texts).summary
    ranking = cli("rank", out, "--seed", 3, "--json").summary
    for ours, theirs in zip(found["ranking"]["models"], ranking["models"], strict=True):
        assert {name: ours[name] for name in theirs} == theirs
    for name in ("battles", "prompts", "ties", "left_out", "clustered_by", "win_matrix"):
        assert found["ranking"][name] == ranking[name]


def test_page_json_and_markdown_say_the_same(cli: Cli, tmp_path: Path) -> None:
    page = page_of(cli, tmp_path, usual())
    out = tmp_path / "out.jsonl"
    found = cli("report", out, "--json").summary
    markdown = cli("report", out, "--md").out

    shares = found["verdicts"][0]
    assert (shares["verdicts"], shares["a"]["n"]) == (30, 30)
    assert shares["a"]["value"] == pytest.approx(18 / 30)
    assert shares["no_verdict"] == {"failed: timeout": 1, "undecided: unparsed": 1}
    assert shares["cost_usd"] == pytest.approx(7.5)
    accuracy = found["agreement"]["with_labels"][0]["accuracy"]["three-way"]
    low, high = accuracy["interval"]["low"], accuracy["interval"]["high"]
    text = f"{accuracy['value']:.1%}".replace("%", " %") + f" [{low * 100:.1f}, {high * 100:.1f}]"
    for each in (page, markdown):
        assert text in each
        assert "60.0 % [" in each
        assert "failed: timeout: 1" in each


def test_the_page_carries_all_it_needs_and_allows_nothing_else(cli: Cli, tmp_path: Path) -> None:
    page = page_of(cli, tmp_path, usual())

    assert re.search(r"https?://", page) is None
    assert re.search(r'(src|href)="(?!#)', page) is None
    assert re.search(r' (on\w+|style)="', page) is None
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        text = re.findall(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        assert len(text) == 1
        digest = base64.b64encode(hashlib.sha256(text[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy[1]


def test_confusion_counts_labels_against_verdicts(cli: Cli, tmp_path: Path) -> None:
    rows = [verdict(k, "A", label="A") for k in range(4)]
    rows += [verdict(k, "tie", label="B") for k in range(4, 7)]
    rows.append({"kind": "undecided", "id": "p7", "why": "refused", "label": "B"})
    found = cli("report", write_rows(tmp_path / "out.jsonl", rows), "--json").summary

    (matrix,) = found["confusion"]
    assert matrix["counts"] == [[4, 0, 0, 0], [0, 0, 0, 0], [0, 3, 0, 1]]
    assert matrix["n"] == 8


def test_the_calibration_curve_is_of_the_confidence_at_hand(cli: Cli, tmp_path: Path) -> None:
    rows = [verdict(k, "A", label="A" if k % 4 else "B", confidence=0.75) for k in range(40)]
    rows += [verdict(k, "B", label=None, confidence=0.1) for k in range(40, 45)]
    found = cli("report", write_rows(tmp_path / "out.jsonl", rows), "--json").summary

    (curve,) = found["calibration"]
    assert (curve["number"], curve["n"], curve["left_out"]) == (
        "confidence", 40, {"without a label": 5},
    )  # fmt: skip
    assert curve["ece"] == pytest.approx(0.0)
    assert curve["brier"]["value"] == pytest.approx(0.75 * 0.25)
    (one,) = curve["bins"]
    assert (one["low"], one["agreed"]["value"], one["agreed"]["n"]) == (0.7, 0.75, 40)


def test_the_sample_is_bounded_and_does_not_depend_on_the_order_of_lines(
    cli: Cli, tmp_path: Path
) -> None:
    rows = [verdict(k, ("A", "tie")[k % 2], label=None) for k in range(200)]
    first = page_of(cli, tmp_path, rows, "--sample", 7)
    counts = cli("report", tmp_path / "out.jsonl", "--sample", 7, "--json").summary
    random.Random(5).shuffle(rows)
    second = page_of(cli, tmp_path, rows, "--sample", 7)

    assert shown(first) == shown(second)
    assert {kind: len(ids) for kind, ids in shown(first).items()} == {
        "orders disagree": 7, "uncontested": 7,
    }  # fmt: skip
    assert [(each["kind"], each["total"], each["shown"]) for each in counts["contested"]] == [
        ("orders disagree", 100, 7), ("uncontested", 100, 7),
    ]  # fmt: skip
    again = cli("report", tmp_path / "out.jsonl", "--sample", 7, "--json").summary
    assert again["agreement"] == counts["agreement"]
    assert again["bias"] == counts["bias"]


def test_a_pair_counts_once_and_not_as_failed_where_it_was_judged_later(
    cli: Cli, tmp_path: Path
) -> None:
    failed = {"kind": "failed", "id": "p1", "reason": "timeout", "message": "slow"}
    rows = [failed, verdict(0, "A"), verdict(1, "tie"), {**failed, "id": "p2"}, verdict(0, "tie")]
    page = page_of(cli, tmp_path, rows)
    found = cli("report", tmp_path / "out.jsonl", "--json").summary

    assert shown(page)["failed"] == {"p2"}
    assert {pair["id"]: pair["result"] for pair in data_of(page)["pairs"]} == {
        "p0": "A (agree)", "p1": "tie (disagree)", "p2": "failed: timeout",
    }  # fmt: skip
    totals = {each["kind"]: each["total"] for each in found["contested"]}
    assert (totals["failed"], totals["orders disagree"], totals["uncontested"]) == (1, 1, 1)
    shares = found["verdicts"][0]
    assert (shares["outcomes"], shares["verdicts"], shares["repeated_lines"]) == (3, 2, 2)
    assert shares["no_verdict"] == {"failed: timeout": 1}


def test_labels_of_a_file_decide_what_is_against_the_label(cli: Cli, tmp_path: Path) -> None:
    labels = write_rows(tmp_path / "l.jsonl", [{"pair_id": "p1", "label": "B", "annotator": "x"}])
    rows = [verdict(k, "A", label="A") for k in range(3)]
    page = page_of(cli, tmp_path, rows, "--labels", labels)

    assert shown(page)["against the label"] == {"p1"}


def test_long_texts_are_cut_and_the_page_stays_below_three_megabytes(
    cli: Cli, tmp_path: Path
) -> None:
    rows = [verdict(k, ("A", "tie")[k % 2]) for k in range(160)]
    texts = write_rows(tmp_path / "pairs.jsonl", [
        {**each, "response_a": "\u20ac<" * 3_500} for each in pairs(160)
    ])  # fmt: skip
    page = page_of(cli, tmp_path, rows, "--pairs", texts, "--sample", 500)
    counts = cli("report", tmp_path / "out.jsonl", "--pairs", texts, "--sample", 500, "--json")

    assert len(page.encode()) < 3_000_000
    entry = data_of(page)["pairs"][0]
    assert entry["response_a"].endswith("[cut: the first 6,000 of 7,000 characters]")
    by_kind = {each["kind"]: each for each in counts.summary["contested"]}
    assert by_kind["orders disagree"]["total"] == 80
    assert 0 < by_kind["orders disagree"]["shown"] < 80


def test_two_runs_are_told_apart(cli: Cli, tmp_path: Path) -> None:
    one = write_rows(tmp_path / "one.jsonl", [verdict(k, "A") for k in range(12)])
    two = write_rows(tmp_path / "two.jsonl", [verdict(k, "tie") for k in range(12)])
    ran = cli("report", one, two, "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")

    assert ran.code == 0
    assert set(shown(page, "one")) == {"against the label", "uncontested"}
    assert len(shown(page, "two")["orders disagree"]) == 12
    assert "Between judges, on identical pairs" in page


def test_sesse_and_preferences_have_sections_of_their_own(cli: Cli, tmp_path: Path) -> None:
    question = {"judge": "j", "order": "ab"}
    sesse = [
        verdict(k, "A", label="A", strategy="sesse@1", votes=[
            {**question, "pick": "A", "cluster": "c1"},
            {**question, "pick": ("B", "na", "none")[k % 3], "cluster": "c2"},
        ], notes={"library": "feed", "selected": ["c1", "c2"], "na": 1})
        for k in range(9)
    ]  # fmt: skip
    parts = [
        {"name": "brief", "pick": "A"},
        {"name": "exact", "pick": "none", "why": "disagreement"},
    ]
    tastes = [
        verdict(k, "A", label="A", strategy="preferences@1", parts=parts, consistent=k > 0)
        for k in range(5)
    ]
    of_sesse = page_of(cli, tmp_path, sesse)
    found = cli("report", tmp_path / "out.jsonl", "--json").summary["sesse"]["out"]
    page = page_of(cli, tmp_path, tastes)
    mine = cli("report", tmp_path / "out.jsonl", "--json").summary["preferences"]["out"]

    assert [vote["cluster"] for vote in data_of(of_sesse)["pairs"][0]["votes"]] == ["c1", "c2"]
    by_cluster = {each["cluster"]: each for each in found["clusters"]}
    assert (by_cluster["c1"]["right"]["hits"], by_cluster["c1"]["right"]["n"]) == (9, 9)
    assert (by_cluster["c2"]["votes"], by_cluster["c2"]["na"]["hits"]) == (3, 3)
    assert by_cluster["c2"]["right"]["share"] == 0.0
    assert found["unread"]["hits"] == 3
    assert [each["consistent"]["share"] for each in mine["preferences"]] == [1.0, 0.0]
    assert (mine["consistent"]["hits"], mine["consistent"]["n"]) == (4, 5)
    assert '<section id="preferences"' in page


@pytest.mark.parametrize(
    ("name", "rows", "sentences"),
    [
        ("empty file", [], ("The outcome files hold no outcome", "no manifest lies beside it")),
        (
            "all failed",
            [
                {"kind": "failed", "id": f"p{k}", "reason": "auth", "message": "no"}
                for k in range(3)
            ],
            ("do not name two models", "No pair has a label", "failed: auth: 3"),
        ),
        (
            "all undecided, labelled",
            [{"kind": "undecided", "id": "p", "why": "unparsed", "label": "A"}],
            ("No labelled verdict, so nothing", "undecided: unparsed: 1"),
        ),
        ("one pair", [verdict(0, "A")], ("100.0 %",)),
        (
            "one model",
            [verdict(k, "A", model_a="heron", model_b="heron") for k in range(5)],
            ("do not name two models",),
        ),
        (
            "no labels, no confidence, one order",
            [
                verdict(k, "A", label=None, marks=None, votes=[{"judge": "j", "pick": "A"}])
                for k in range(5)
            ],
            ("No pair has a label", "no judge was asked in both orders"),
        ),
        (
            "single answers",
            [
                {"kind": "scored", "id": f"i{k}", "scores": {"clarity": k % 5 + 1, "total": 3.5}}
                for k in range(10)
            ],
            ("Scores: do they collapse?", "clarity"),
        ),
    ],
)
def test_whatever_is_missing_is_explained(
    cli: Cli, tmp_path: Path, name: str, rows: list[dict[str, Any]], sentences: tuple[str, ...]
) -> None:
    page = page_of(cli, tmp_path, rows)
    markdown = cli("report", tmp_path / "out.jsonl", "--md")
    plain = cli("report", tmp_path / "out.jsonl", "--json")

    for sentence in sentences:
        assert sentence in page, name
        assert sentence in markdown.out, name
    assert re.search(r"\b(NaN|Infinity)\b", plain.out) is None
    assert plain.summary["format"] == 1


def test_names_from_outside_are_no_markup(cli: Cli, tmp_path: Path) -> None:
    name = "<img src=x>|\n# Fake heading\u202e"
    rows = [verdict(k, "A", model_a=name, category=name) for k in range(6)]
    out = tmp_path / "out.jsonl"
    page = page_of(cli, tmp_path, rows)
    markdown = cli("report", out, "--md")
    assert "<img" not in page
    assert "&lt;img src=x&gt;" in page
    assert markdown.code == 0
    assert "\n# Fake" not in markdown.out
    assert "\\<img src=x>" in markdown.out
    assert " <img" not in markdown.out
    assert "\u202e" not in page + markdown.out


def test_a_lone_surrogate_in_an_answer_is_shown_as_what_it_is_not(cli: Cli, tmp_path: Path) -> None:
    texts = tmp_path / "pairs.jsonl"
    # As an escape, which is how one may stand in a file of JSON.
    texts.write_text(
        r'{"id": "p0", "question": "q", "response_a": "x\ud800y", "response_b": "b"}', "utf-8"
    )
    page = page_of(cli, tmp_path, [verdict(0, "A")], "--pairs", texts)

    assert data_of(page)["pairs"][0]["response_a"] == "x\ufffdy"


def test_scores_have_a_histogram_of_each_dimension(cli: Cli, tmp_path: Path) -> None:
    rows = [
        {"kind": "scored", "id": f"i{k}", "scores": {"clarity": 1 + (k > 2), "total": 3.5}}
        for k in range(10)
    ]
    page = page_of(cli, tmp_path, rows)

    assert "out: clarity, n 10" in page
    assert "<title>1: 3</title>" in page
    assert "<title>2: 7</title>" in page
    assert len(shown(page)["scored"]) == 10


def test_the_ledger_and_the_settings_come_from_the_manifest(cli: Cli, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "pairs.jsonl", pairs(6, label="A", model_a="m1", model_b="m2"))
    out = tmp_path / "out.jsonl"
    assert cli("judge", source, "--judge", "simulated:careful", "-o", out, "--quiet").code == 0
    assert cli("report", out, "-o", tmp_path / "r.html", "--pairs", source).code == 0
    page = (tmp_path / "r.html").read_text("utf-8")

    assert "<td>complete</td>" in page
    assert "pairwise-en@1" in page
    assert "6 of 6 outcomes are simulated" in page
    manifest = tmp_path / "out.jsonl.manifest.json"
    assert json.loads(manifest.read_text("utf-8"))["spec"] in page
    found = cli("report", out, "--json").summary
    assert found["sources"][0]["manifest"]["runs"][0]["ledger"]["judged"] == 6


def test_bad_words_get_one_sentence(cli: Cli, tmp_path: Path) -> None:
    out = write_rows(tmp_path / "out.jsonl", [verdict(0, "A")])
    before = out.read_bytes()
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"kind": "verdict", "id"', "utf-8")
    for words, part in (
        ((out,), "-o report.html"),
        ((out, "-o", out), "is read by the same command and would be overwritten"),
        ((out, "-o", tmp_path), "is a folder"),
        ((out, "-o", tmp_path / "no" / "r.html"), "cannot be written"),
        ((out, "-o", tmp_path / "r.html", "--sample", "501"), "between 0 and 500"),
        (
            (out, "-o", tmp_path / "r.html", "--pairs", tmp_path / "none.jsonl"),
            "there is no such file",
        ),
        ((broken, "-o", tmp_path / "r.html"), "is not an outcome"),
    ):
        ran = cli("report", *words)
        assert (ran.code, ran.out) == (2, "")
        assert part in ran.err
        assert ran.err.count("\n") == 1
    assert out.read_bytes() == before
    assert not list(tmp_path.glob("*.tmp"))
