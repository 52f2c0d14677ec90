"""`dikast benchmark` from the command line: planted faults found, resumed, repeated, reviewed."""

import asyncio
import hashlib
import json
import signal
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from dikast.analysis.audit_rows import read_sample
from tests.cli.tools import Cli, Ran, answering, rows_of, write_rows
from tests.sim.chat_logs import FAULTS, HARD, Planted, chat_log, write_log

CONFIG = """
[providers.sim]
kind = "simulated_benchmark"
latency_s = {latency_s}
screen_error_rate = {screen_error_rate}
position_bias = {position_bias}
garbage_rate = {garbage_rate}

[providers.sim.skill]
big = 0.9
small = 0.3

[judges]
big = {{ provider = "sim", model = "big" }}
small = {{ provider = "sim", model = "small" }}
chooser = {{ provider = "sim", model = "chooser" }}
"""
NAMES = ("--judge", "chooser", "--strong", "big", "--weak", "small")
FILES = (
    *("1-format.jsonl", "2-privacy.jsonl", "3-duplicates.jsonl", "4-screen.jsonl"),
    *("5-answers.jsonl", "6-challenge.jsonl", "6-challenge-rejected.jsonl", "rejected.jsonl"),
    *("review.jsonl", "benchmark.json", "pairs.jsonl", "statistics.json"),
)


class Place:
    """A folder with a log of planted faults and a configuration."""

    def __init__(self, folder: Path, cli: Cli, rows: int = 200) -> None:
        self.folder = folder
        self.cli = cli
        self.out = folder / "out"
        self.log: list[Planted] = []
        self.logs = folder / "logs.jsonl"
        self.fill(rows)
        self.configure()

    def fill(self, rows: int, seed: int = 1) -> None:
        self.log = chat_log(rows, seed=seed)
        write_log(self.logs, self.log)

    def configure(self, **more: float) -> None:
        names = ("latency_s", "screen_error_rate", "position_bias", "garbage_rate")
        given = dict.fromkeys(names, 0) | more
        (self.folder / "c.toml").write_text(CONFIG.format(**given), "utf-8")

    def words(self, *more: object, out: Path | None = None) -> list[str]:
        where = ("-o", out or self.out, "--config", self.folder / "c.toml", "--quiet", "--json")
        return [str(each) for each in ("benchmark", "build", self.logs, *where, *NAMES, *more)]

    def build(self, *more: object, out: Path | None = None) -> Ran:
        return self.cli(*self.words(*more, out=out))

    def rows(self, name: str) -> list[dict[str, Any]]:
        return rows_of(self.out / name)

    def digests(self, out: Path) -> dict[str, str]:
        return {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in FILES}


@pytest.fixture
def place(tmp_path: Path, cli: Cli) -> Place:
    return Place(tmp_path, cli)


def found_in(place: Place) -> dict[str, set[int]]:
    """Lines of the log by what the build says of them: repairs and reasons."""
    found: dict[str, set[int]] = defaultdict(set)
    for row in place.rows("1-format.jsonl"):
        for kind in row.get("repairs", ()):
            found[kind].add(row["line"])
    for row in place.rows("rejected.jsonl"):
        found[row["reason"]].add(row["line"])
    return found


def scores(place: Place) -> dict[str, tuple[int, int, float, float]]:
    """Planted, found, recall and precision of every fault; printed as a table."""
    found = found_in(place)
    out: dict[str, tuple[int, int, float, float]] = {}
    for fault in FAULTS:
        planted = {line for line, each in enumerate(place.log, 1) if each.fault == fault}
        hits = len(planted & found[fault])
        recall = hits / len(planted) if planted else 1.0
        precision = hits / len(found[fault]) if found[fault] else 1.0
        out[fault] = (len(planted), len(found[fault]), recall, precision)
        print(f"{fault:20}{len(planted):5}{len(found[fault]):5}{recall:8.3f}{precision:8.3f}")
    return out


def check_counts(place: Place, report: dict[str, Any]) -> None:
    """Nothing is lost: every line is kept or turned away once, and the files say the same."""
    assert report["adds_up"] is True
    assert report["rows"] == len(place.log) == report["kept"] + report["rejected"]
    rejected = place.rows("rejected.jsonl")
    assert len(rejected) == report["rejected"]
    pairs = place.rows("pairs.jsonl")
    assert (
        len(pairs) == report["kept"] == len(json.loads((place.out / "benchmark.json").read_bytes()))
    )
    names = [row["id"] for row in (*rejected, *pairs)]
    assert len(names) == len(set(names)) == len(place.log)


def check_scores(measured: dict[str, tuple[int, int, float, float]]) -> None:
    for fault, (planted, _, recall, precision) in measured.items():
        assert planted > 0
        assert precision >= 0.9, fault
        assert recall >= (0.7 if fault in HARD else 0.95), fault


def test_planted_faults_are_found_and_the_counts_add_up(place: Place) -> None:
    place.fill(600)
    ran = place.build()
    assert ran.code == 0, ran.err
    check_counts(place, ran.summary)
    check_scores(scores(place))
    easy = [
        line
        for line, each in enumerate(place.log, 1)
        if each.fault in HARD and not each.hard and line not in found_in(place)[each.fault]
    ]
    assert easy == []
    decoys = {line for line, each in enumerate(place.log, 1) if each.decoy}
    turned_away = {row["line"] for row in place.rows("rejected.jsonl")}
    assert decoys
    assert decoys & turned_away == set()


@pytest.mark.slow
def test_five_thousand_dialogues_with_a_screener_that_errs(place: Place) -> None:
    place.fill(5000, seed=2)
    place.configure(screen_error_rate=0.03)
    ran = place.build()
    assert ran.code == 0, ran.err
    check_counts(place, ran.summary)
    measured = scores(place)
    # The screener calls one in thirty sound prompts unclear, and passes one in thirty faults.
    screened = {"unclear", "redundant", "low_quality", "too_easy", "other_topic"}
    screened |= {"no_difference", "weak_better"}
    check_scores({name: each for name, each in measured.items() if name not in screened})
    for name in screened:
        assert measured[name][2] >= 0.9
    sound = sum(each.fault is None for each in place.log)
    assert 0 < len(found_in(place)["unclear"]) - measured["unclear"][0] < 0.06 * sound


def test_a_dry_run_says_the_calls_of_each_stage_and_asks_and_writes_nothing(place: Place) -> None:
    calls = {each["stage"]: each["calls"] for each in place.build("--dry-run").summary["calls"]}
    assert not place.out.exists()
    report = place.build().summary
    stages = {each["stage"]: each for each in report["stages"]}
    assert calls["screen"] == stages["screen"]["entered"]
    assert calls["answers"] == 2 * stages["screen"]["entered"]
    asked = sum(
        stages[name]["entered"] * each
        for name, each in (("screen", 1), ("answers", 2), ("challenge", 2))
    )
    assert report["run"]["calls"] == asked <= sum(calls.values())


def test_a_rerun_comes_from_the_store_and_gives_the_same_files(place: Place) -> None:
    first = place.build().summary
    before = place.digests(place.out)
    second = place.build().summary
    assert place.digests(place.out) == before
    assert second["run"]["stored_calls"] == second["run"]["calls"] == first["run"]["calls"]
    other = place.folder / "other"
    assert place.build("--workers", 3, "--no-store", out=other).code == 0
    assert place.digests(other) == before


def test_the_benchmark_is_clean_in_the_order_of_the_topics_and_can_be_judged(place: Place) -> None:
    place.build()
    linted = place.cli("benchmark", "lint", place.out / "benchmark.json", "--json")
    assert (linted.code, linted.summary["findings"]) == (0, [])
    topics = [
        dialogue[0]["topic"].removeprefix("sense_bmk:")
        for dialogue in json.loads((place.out / "benchmark.json").read_bytes())
    ]
    order = ["Code", "Writing", "Translation", "Math", "QA", "NLU", "Role", "Logic"]
    assert topics == sorted(topics, key=order.index)
    assert set(topics) == set(order)
    judged = place.cli(
        *("judge", place.out / "pairs.jsonl", "-o", place.folder / "o.jsonl"),
        *("--config", place.folder / "c.toml", "--judge", "chooser", "--quiet"),
    )
    assert judged.code == 0
    sides = {row["id"]: row["meta"]["strong"] for row in place.rows("pairs.jsonl")}
    winners = {row["id"]: row["winner"] for row in rows_of(place.folder / "o.jsonl")}
    assert winners == sides
    assert 0.3 < list(sides.values()).count("A") / len(sides) < 0.7


def test_the_review_queue_hides_who_wrote_what_and_says_how_it_was_drawn(place: Place) -> None:
    place.build("--review-kept", 4, "--review-rejected", 3)
    queue = place.rows("review.jsonl")
    # What the labelling page reads.
    assert [each.id for each in read_sample(place.out / "review.jsonl")] == [r["id"] for r in queue]
    sizes: dict[str, int] = defaultdict(int)
    for row in queue:
        assert row.keys() & {"model_a", "model_b", "strong", "meta"} == set()
        assert row["response_a"]
        assert row["response_b"]
        sizes[row["stratum"]] += 1
        drawn = 4 if row["stratum"].startswith("kept/") else 3
        share = min(1.0, drawn / row["stratum_pairs"])
        assert row.get("inclusion_probability", 1.0) == pytest.approx(share)
        wanted = "keep or drop" if row["stratum"].startswith("kept/") else "which is better"
        assert row.get("ask", "which is better") == wanted
    assert {sizes[f"rejected/{why}"] for why in ("no_difference", "weak_better")} == {3}
    assert all(size <= 4 for size in sizes.values())
    kept = [row for row in place.rows("6-challenge.jsonl") if row["topic"] == "Math"]
    math = next(row for row in queue if row["stratum"] == "kept/Math")
    assert math["stratum_pairs"] == len(kept)


def test_what_people_drop_leaves_the_benchmark_and_the_filter_is_checked(place: Place) -> None:
    whole = place.build().summary["kept"]
    strong = {row["id"]: row["strong"] for row in place.rows("6-challenge-rejected.jsonl")}
    labels: list[dict[str, Any]] = []
    kept: list[str] = []
    away: list[str] = []
    for row in place.rows("review.jsonl"):
        (kept if row.get("ask") == "keep or drop" else away).append(row["id"])
    for number, name in enumerate(kept[:9]):
        # The first three by all, the next three level (which drops), the last three kept.
        said = [("drop", "drop"), ("keep", "drop"), ("keep", "keep")][number // 3]
        labels += [
            {"pair_id": name, "annotator": who, "decision": each}
            for who, each in zip(("ann", "bob"), said, strict=True)
        ]
    # Ann changes her mind on one of the first three: her last word counts, bob's makes it level.
    labels.append({"pair_id": kept[0], "annotator": "ann", "decision": "keep"})
    labels += [{"pair_id": name, "annotator": "ann", "label": strong[name]} for name in away[:4]]
    labels += [{"pair_id": name, "annotator": "ann", "label": "tie"} for name in away[4:6]]
    path = write_rows(place.folder / "labels.jsonl", labels)
    ran = place.build("--labels", path)
    assert ran.code == 0, ran.err
    report = ran.summary
    assert report["kept"] == whole - 6
    assert report["review"]["decided"] == 9
    assert report["review"]["dropped"] == 6
    rates = report["review"]["strong_better_among_rejected"]
    assert sum(each["hits"] for each in rates) == 4
    assert sum(each["of"] for each in rates) == 6
    check_counts(place, report)


def test_a_biased_or_unreadable_judge_keeps_nothing_and_says_why(place: Place) -> None:
    place.configure(position_bias=20.0)
    report = place.build(out=place.folder / "biased").summary
    challenge = next(each for each in report["stages"] if each["stage"] == "challenge")
    assert challenge["rejected"] == {"orders_disagree": challenge["entered"]}
    place.configure(garbage_rate=1.0)
    report = place.build(out=place.folder / "garbage").summary
    screen = next(each for each in report["stages"] if each["stage"] == "screen")
    assert screen["rejected"] == {"screen_unparsed": screen["entered"]}
    assert report["adds_up"] is True
    assert report["benchmark"][-1]["dialogues"] == 0


@pytest.mark.realtime
@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (400, {"code": 1}, "failed_bad_request"),
        (429, {"code": 3, "body": "insufficient_quota"}, "quota"),
    ],
)
def test_calls_that_fail_are_counted_and_a_run_that_must_stop_writes_no_benchmark(
    place: Place, status: int, code: dict[str, Any], told: str
) -> None:
    place.fill(40)
    body = {"error": {"message": "no", "code": code.get("body", "bad")}}
    with answering(status, body) as url:
        text = (place.folder / "c.toml").read_text("utf-8")
        more = f'[providers.far]\nkind = "openai"\nbase_url = "{url}"\napi_key_env = ""\n'
        text = text.replace('big = { provider = "sim"', 'big = { provider = "far"')
        (place.folder / "c.toml").write_text(more + text, "utf-8")
        ran = place.build()
    assert ran.code == code["code"]
    if status == 400:
        answers = next(each for each in ran.summary["stages"] if each["stage"] == "answers")
        assert answers["rejected"] == {told: answers["entered"]}
        check_counts(place, ran.summary)
    else:
        assert told in ran.err
        assert "the same command resumes" in ran.err
        assert not (place.out / "benchmark.json").exists()
    place.configure()
    again = place.build().summary
    assert again["kept"] > 0
    assert again["run"]["stored_calls"] > 0


def test_personal_data_is_masked_when_asked_and_reaches_no_other_file(place: Place) -> None:
    row = {"messages": [{"role": "user", "content": "Write a letter to jane@corp.com {topic=QA}"}]}
    write_rows(place.logs, [row])
    assert place.build().summary["kept"] == 0
    hidden = [name for name in FILES if name != "1-format.jsonl"]
    for name in (*hidden, "dikast-calls.sqlite"):
        assert b"jane@" not in (place.out / name).read_bytes()
    masked = place.build("--personal", "mask").summary
    assert masked["kept"] == 1
    assert "[EMAIL]" in (place.out / "benchmark.json").read_text("utf-8")
    for name in (*hidden, "dikast-calls.sqlite"):
        assert b"jane@" not in (place.out / name).read_bytes()
        assert (place.out / name).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--weak", "big"), "big cannot be both"),
        (("--similarity", "0"), "--similarity: must be above 0"),
        (("--review-kept", "-1"), "--review-kept: must be at least 0"),
        (("--labels", "none.jsonl"), "none.jsonl: cannot be read"),
        (("--judge", "replay:c.toml:m"), "recorded answers (replay)"),
        (("--judge", "nobody"), "there is no such judge"),
    ],
)
def test_bad_words_get_one_sentence_and_status_2(
    place: Place, words: tuple[str, ...], message: str
) -> None:
    ran = place.build(*words)
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert not place.out.exists()


def test_missing_logs_and_missing_models_are_named(place: Place) -> None:
    base = ("-o", place.out, "--config", place.folder / "c.toml")
    ran = place.cli("benchmark", "build", place.folder / "no.jsonl", *base, *NAMES)
    assert (ran.code, "no.jsonl: there is no such file" in ran.err) == (2, True)
    (place.folder / "empty.jsonl").touch()
    ran = place.cli("benchmark", "build", place.folder / "empty.jsonl", *base, *NAMES)
    assert (ran.code, "there is no row in it" in ran.err) == (2, True)
    ran = place.cli("benchmark", "build", place.logs, *base, "--judge", "chooser")
    assert (ran.code, "--strong: say which model" in ran.err) == (2, True)


def test_the_report_for_people_says_what_it_counted(place: Place) -> None:
    words = [word for word in place.words() if word != "--json"]
    ran = place.cli(*words)
    assert "200 rows read = " in ran.out
    assert "the counts add up" in ran.out
    assert "Wilson, 95 %" in ran.out
    assert "### Stages" in place.cli(*words, "--md").out


async def start(place: Place) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dikast", *place.words("--workers", 8)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@pytest.mark.realtime
@pytest.mark.slow
async def test_a_killed_build_goes_on_and_ends_with_the_same_files(place: Place) -> None:
    place.configure(latency_s=0.01)
    child = await start(place)
    async with asyncio.timeout(60):
        # Nothing announces that the answers were begun: the artefact of the screening is there.
        while not (place.out / "4-screen.jsonl").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)
    child.send_signal(signal.SIGKILL)
    await child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert not (place.out / "benchmark.json").exists()
    child = await start(place)
    out, err = await child.communicate()
    assert child.returncode == 0, err.decode()
    run = json.loads(out)["run"]
    assert 100 < run["stored_calls"] < run["calls"]
    place.configure()
    fresh = place.folder / "fresh"
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dikast", *place.words(out=fresh), stdout=asyncio.subprocess.DEVNULL
    )
    assert await other.wait() == 0
    assert place.digests(fresh) == place.digests(place.out)


# --- lint ---------------------------------------------------------------------------------------


def turn(speaker: str, text: str, **more: Any) -> dict[str, Any]:
    return {"from": speaker, "content": [{"type": "text", "value": text}], **more}


FILE = [
    [turn("Human", "What is a prime number?", topic="sense_bmk:Math")],
    [turn("Human", "Name a river.", topic="sense_bmk:QA"), turn("Assistant", "The Nile.")],
    [turn("Human", "One line.\\nTwo lines.", topic="QA")],
    [turn("Human", "Sort a list in Python.", topic="sense_bmk:Cooking")],
    [turn("Human", "What is a prime number ?", topic="sense_bmk:Math")],
    [turn("Robot", "Hello", topic="sense_bmk:QA")],
    [turn("Human", "Mail me at jane@corp.com please.", topic="sense_bmk:Writing", mood="calm")],
]


def linted(cli: Cli, path: Path, *words: object) -> Ran:
    return cli("benchmark", "lint", path, *words)


def test_every_finding_has_its_line_and_field(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "b.json"
    path.write_text(json.dumps(FILE, indent=2), "utf-8")
    ran = linted(cli, path, "--json")
    assert ran.code == 1
    found = {(each["dialogue"], each["kind"]): each for each in ran.summary["findings"]}
    assert set(found) == {
        (2, "trailing_assistant"),
        (3, "literal_escapes"),
        (3, "topic_spelling"),
        (4, "unknown_topic"),
        (5, "near_duplicate"),
        (6, "unknown_speaker"),
        (6, "unknown_role"),
        (7, "personal_email"),
        (7, "unknown_key"),
    }
    lines = path.read_text("utf-8").splitlines()
    for each in found.values():
        if each["field"]:
            assert f'"{each["field"]}"' in lines[each["line"] - 1], each
    assert "Cooking" in lines[found[4, "unknown_topic"]["line"] - 1]
    assert found[2, "trailing_assistant"]["turn"] == 2
    text = linted(cli, path).out
    line = found[4, "unknown_topic"]["line"]
    assert f"{path}:{line}: dialogue 4, turn 1, topic: " in text
    assert "jane" not in text


def test_a_fixed_copy_has_no_findings_and_says_what_it_left_out(tmp_path: Path, cli: Cli) -> None:
    path, copy = tmp_path / "b.json", tmp_path / "fixed.json"
    path.write_text(json.dumps(FILE), "utf-8")
    ran = linted(cli, path, "--fix", "-o", copy, "--json")
    assert ran.code == 1
    assert ran.summary["left_out_of_copy"] == 3
    again = linted(cli, copy, "--json")
    assert (again.code, again.summary["dialogues"]) == (0, 4)
    fixed = json.loads(copy.read_bytes())
    assert [len(each) for each in fixed] == [1, 1, 1, 1]
    assert fixed[2][0]["content"][0]["value"] == "One line.\nTwo lines."
    assert fixed[3][0]["content"][0]["value"] == "Mail me at [EMAIL] please."
    assert [each[0]["topic"] for each in fixed[:2]] == ["sense_bmk:Math", "sense_bmk:QA"]


def test_a_file_where_all_can_be_put_right_ends_well_with_fix_only(
    tmp_path: Path, cli: Cli
) -> None:
    path = write_rows(tmp_path / "b.jsonl", [])
    path.write_text("".join(json.dumps(each) + "\n" for each in FILE[:3]), "utf-8")
    ran = linted(cli, path, "--json")
    assert ran.code == 1
    assert [each["line"] for each in ran.summary["findings"]] == [2, 3, 3]
    assert linted(cli, path, "--fix", "-o", tmp_path / "c.json").code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "there is no dialogue in it"),
        ("", "there is no dialogue in it"),
        ("[[{]]", "line 1: is not JSON"),
        ('[\n[{"from": "Human"}],\n[{"from" "x"}]]', "line 3: is not JSON"),
    ],
)
def test_a_file_that_is_no_json_is_named_with_the_line(
    tmp_path: Path, cli: Cli, text: str, message: str
) -> None:
    path = tmp_path / "b.json"
    path.write_text(text, "utf-8")
    ran = linted(cli, path)
    assert ran.code == 2
    assert message in ran.err


def test_fix_needs_a_copy_of_another_name(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "b.json"
    path.write_text(json.dumps(FILE), "utf-8")
    assert linted(cli, path, "--fix").code == 2
    assert linted(cli, path, "-o", tmp_path / "c.json").code == 2
    ran = linted(cli, path, "--fix", "-o", path)
    assert (ran.code, "is the file itself" in ran.err) == (2, True)


ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "benchmark"
PAGE = (ROOT / "docs" / "benchmark.md").read_text("utf-8")


def test_the_page_shows_what_the_example_prints(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    chats = Path("examples/benchmark/chats.jsonl")
    given = ("--config", "examples/benchmark.toml", *NAMES, "--quiet")
    words = ("benchmark", "build", chats, "-o", tmp_path / "bench-out", *given)
    dry = cli(*words, "--dry-run")
    assert dry.out.strip() in PAGE
    ran = cli(*words, "--md")
    assert ran.code == 0, ran.err
    assert ran.out.replace(f"{tmp_path}/", "").strip() in PAGE
    for line in (tmp_path / "bench-out" / "rejected.jsonl").read_text("utf-8").splitlines():
        assert line in PAGE
    assert EXAMPLE.is_dir()


def test_the_page_shows_what_a_lint_prints(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLE)
    ran = cli("benchmark", "lint", "faulty.json")
    assert ran.code == 1
    assert ran.out.strip() in PAGE
    fixed = cli("benchmark", "lint", "faulty.json", "--fix", "-o", tmp_path / "fixed.json")
    assert fixed.code == 1
    assert cli("benchmark", "lint", tmp_path / "fixed.json").code == 0


def test_every_reason_that_can_be_counted_is_on_the_page() -> None:
    named = {*FAULTS, "unclear_roles", "nothing_asked", "no_turns", "not_text", "orders_disagree"}
    missing = [reason for reason in named if f"`{reason}`" not in PAGE]
    assert missing == []
