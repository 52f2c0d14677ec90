"""`dikast judge` as a user meets it: outcomes, resume, refusals, exit statuses."""

import fcntl
import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.tools import DEMO, Cli, child, manifest_of, pair, rows_of, write_rows

pytestmark = pytest.mark.realtime


def test_every_pair_gets_one_outcome_and_the_ledger_adds_up(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"

    ran = cli("judge", DEMO, "-o", out, "--judge", "simulated:careful", "--json")

    assert ran.code == 0
    ids = [row["id"] for row in rows_of(out)]
    assert len(ids) == len(set(ids)) == len(DEMO.read_bytes().splitlines())
    summary = ran.summary
    assert summary["complete"]
    assert summary["adds_up"]
    assert summary["ledger"]["input"] == len(ids)
    assert summary["ledger"]["not_run"] == 0
    assert summary["ledger"]["calls"] == 2 * len(ids)
    assert summary["simulated"]
    assert all(row["simulated"] for row in rows_of(out))
    assert "judged" in ran.err
    run = manifest_of(out)["runs"][-1]
    assert (run["status"], run["ledger"]["input"]) == ("complete", len(ids))


def test_the_same_command_again_judges_nothing_and_changes_nothing(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    words = ("judge", DEMO, "-o", out, "--judge", "simulated:careful", "--json", "--quiet")
    cli(*words)
    before = out.read_bytes()

    ran = cli(*words)

    assert ran.code == 0
    assert out.read_bytes() == before
    assert ran.summary["ledger"]["skipped"] == ran.summary["ledger"]["input"]
    assert ran.summary["requests_sent"] == 0
    assert [run["status"] for run in manifest_of(out)["runs"]] == ["complete", "complete"]
    assert ran.err == ""


def test_a_limit_reads_so_many_rows_and_the_next_run_takes_up_the_rest(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    words = ("judge", DEMO, "-o", out, "--judge", "simulated:careful", "--json")

    first = cli(*words, "--limit", 10)
    second = cli(*words, "--limit", 25)

    assert (first.code, second.code) == (0, 0)
    assert len(rows_of(out)) == 25
    assert second.summary["ledger"]["skipped"] == 10


def test_a_torn_last_line_is_repaired_and_judged_again_from_the_store(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    words = ("judge", DEMO, "-o", out, "--judge", "simulated:careful", "--json")
    cli(*words, "--limit", 20)
    whole = out.read_bytes()
    out.write_bytes(whole[:-40])

    ran = cli(*words, "--limit", 20)

    assert ran.code == 0
    assert out.read_bytes().startswith(whole[: whole[:-40].rindex(b"\n") + 1])
    assert len({row["id"] for row in rows_of(out)}) == len(rows_of(out)) == 20
    assert ran.summary["requests_sent"] == 0


def test_another_judge_is_refused_with_the_difference_named(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    cli("judge", DEMO, "-o", out, "--judge", "simulated:careful", "--limit", 5)
    before = out.read_bytes()

    ran = cli("judge", DEMO, "-o", out, "--judge", "simulated:sloppy", "--limit", 5)

    assert ran.code == 2
    assert ran.err.startswith(f"dikast: error: {out}: was produced by other settings: ")
    assert 'model: "careful" -> "sloppy"' in ran.err
    assert "--fresh" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert out.read_bytes() == before


def test_fresh_keeps_the_old_output(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    cli("judge", DEMO, "-o", out, "--judge", "simulated:careful", "--limit", 5)
    before = out.read_bytes()

    first = cli("judge", DEMO, "-o", out, "--judge", "simulated:sloppy", "--limit", 6, "--fresh")
    second = cli("judge", DEMO, "-o", out, "--judge", "simulated:sloppy", "--limit", 7, "--fresh")

    assert (first.code, second.code) == (0, 0)
    assert "out.jsonl.old" in first.err
    assert (tmp_path / "out.jsonl.old").read_bytes() == before
    assert len(rows_of(tmp_path / "out.jsonl.old2")) == 6
    assert len(rows_of(out)) == 7


def test_fresh_does_not_move_an_output_that_another_run_is_writing(
    cli: Cli, tmp_path: Path
) -> None:
    rows = write_rows(tmp_path / "pairs.jsonl", [pair(n) for n in range(3)])
    out = tmp_path / "out.jsonl"
    words = ("judge", rows, "-o", out, "--judge", "simulated:careful", "--fresh")
    assert cli(*words).code == 0
    before = out.read_bytes()

    with out.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused = cli(*words)

    assert (refused.code, "another process is writing this output" in refused.err) == (3, True)
    assert out.read_bytes() == before
    assert not (tmp_path / "out.jsonl.old").exists()
    assert cli(*words).code == 0
    assert (tmp_path / "out.jsonl.old").read_bytes() == before


def test_failed_pairs_exit_with_1_and_are_tried_again(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "pairs.jsonl", [pair(1), pair(2)])
    record = {"judge": "gpt", "template": "t", "order": "ab", "raw": '{"verdict": "A"}'}
    other = {**record, "order": "ba", "raw": '{"verdict": "B"}'}
    recorded = tmp_path / "recorded.jsonl"
    write_rows(recorded, [{"pair_id": "p1", **record}, {"pair_id": "p1", **other}])
    out = tmp_path / "out.jsonl"
    words = ("judge", pairs, "-o", out, "--judge", f"replay:{recorded}?t:gpt", "--json")

    first = cli(*words)

    assert first.code == 1
    assert first.summary["ledger"]["failed"] == {"missing": 1}
    assert manifest_of(out)["runs"][-1]["status"] == "failures"

    write_rows(
        recorded,
        [{"pair_id": id, **each} for id in ("p1", "p2") for each in (record, other)],
    )
    second = cli(*words)

    assert second.code == 0
    assert second.summary["ledger"]["skipped"] == 1
    assert {row["id"]: row["winner"] for row in rows_of(out)} == {"p1": "A", "p2": "A"}
    assert len(rows_of(out)) == 2


def test_bad_rows_and_duplicates_fail_alone(cli: Cli, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    rows = [json.dumps(pair(1)), "{broken", json.dumps(pair(1)), json.dumps(pair(2))]
    pairs.write_text("\n".join(rows) + "\n")
    out = tmp_path / "out.jsonl"

    ran = cli("judge", pairs, "-o", out, "--judge", "simulated:careful", "--json")

    assert ran.code == 1
    assert ran.summary["ledger"]["judged"] == 2
    assert ran.summary["ledger"]["failed"] == {"bad_row": 1, "duplicate_id": 1}
    assert ran.summary["adds_up"]


def test_a_bad_row_is_told_with_its_place_once(cli: Cli, tmp_path: Path) -> None:
    rows = tmp_path / "pairs.jsonl"
    rows.write_text(json.dumps(pair(1)) + "\nnot json\n")

    ran = cli("judge", rows, "-o", tmp_path / "out.jsonl", "--judge", "simulated:careful")

    assert ran.code == 1
    assert ran.err.count(f"{rows}:2") == 1


def test_standard_input_and_output_work_as_files(tmp_path: Path) -> None:
    process = child(
        "judge", "-", "-o", "-", "--judge", "simulated:careful", "--quiet", stdin=subprocess.PIPE
    )

    out, err = process.communicate(json.dumps(pair(1)) + "\n", timeout=30)

    assert (process.returncode, err) == (0, "")
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["p1"]


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    process = child("judge", DEMO, "-o", "-", "--judge", "simulated:careful", "--quiet")
    assert process.stdout is not None
    process.stdout.close()

    _, err = process.communicate(timeout=30)

    assert process.returncode in (3, 141)
    assert "Traceback" not in err


def test_ordered_output_is_in_input_order(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        '[providers.p]\nkind = "simulated"\nlatency_s = 0.01\nlatency_kind = "uniform"\n'
        'latency_spread = 1.0\n[judges.j]\nprovider = "p"\nmodel = "m"\n'
    )
    out = tmp_path / "out.jsonl"

    cli("judge", DEMO, "-o", out, "--config", config, "--ordered", "--limit", 60)

    assert [row["line"] for row in rows_of(out)] == list(range(1, 61))


def test_a_further_sink_gets_the_same_outcomes(cli: Cli, tmp_path: Path) -> None:
    out, more = tmp_path / "out.jsonl", tmp_path / "more.jsonl"

    ran = cli(
        "judge", DEMO, "-o", out, "--judge", "simulated:careful", "--limit", 9, "--sink", more
    )

    assert ran.code == 0
    assert out.read_bytes() == more.read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.jsonl", "--judge", "simulated:careful"), "none.jsonl: there is no such file"),
        ((DEMO, "--judge", "simulated:careful", "--format", "nope"), "nope"),
        ((DEMO, "--judge", "nobody:x"), "there is no provider 'nobody'"),
        ((DEMO, "--judge", "openai:gpt-4o-mini"), "OPENAI_API_KEY is not set"),
        ((DEMO, "--judge", "simulated:careful", "--template", "none"), "none"),
        ((DEMO, "--judge", "simulated:careful", "--sink", "pigeon:x"), "unknown kind"),
        ((DEMO,), "no judge was named"),
        ((DEMO, "--workers", "many"), "argument --workers"),
    ],
)
def test_what_cannot_work_is_one_sentence_and_status_2(
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[object, ...],
    said: str,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    ran = cli("judge", *words, "-o", tmp_path / "out.jsonl")

    assert ran.code == 2
    assert ran.err.splitlines()[-1].startswith("dikast: error: ")
    assert said in ran.err


def test_a_wrong_configuration_suggests_the_right_name(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text('[providers.openai]\nkind = "openai"\ntimeout_secs = 3\n')

    ran = cli("judge", DEMO, "-o", tmp_path / "out.jsonl", "--config", config)

    assert ran.code == 2
    assert ran.err == (
        f"dikast: error: {config}: providers.openai.timeout_secs: unknown field; "
        "did you mean timeout_s?\n"
    )


def test_a_budget_stops_the_run_and_a_larger_one_finishes_it(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        '[providers.p]\nkind = "simulated"\n[judges.j]\nprovider = "p"\nmodel = "m"\n'
        "max_tokens = 100\nprices = { input = 1.0, output = 10.0 }\n"
    )
    out = tmp_path / "out.jsonl"
    words = ("judge", DEMO, "-o", out, "--config", config, "--json", "--workers", 4)

    first = cli(*words, "--budget-usd", 0.05)

    assert first.code == 3
    assert first.summary["stopped"] == "budget"
    assert first.summary["ledger"]["spent_usd"] <= 0.05
    assert first.summary["adds_up"]
    assert 0 < first.summary["ledger"]["judged"] < len(DEMO.read_bytes().splitlines())
    assert "resume" in first.err

    second = cli(*words, "--budget-usd", 10)

    assert second.code == 0
    ids = [row["id"] for row in rows_of(out)]
    assert len(ids) == len(set(ids)) == len(DEMO.read_bytes().splitlines())


def test_the_debug_log_has_one_json_line_per_pair(cli: Cli, tmp_path: Path) -> None:
    ran = cli(
        "judge", DEMO, "-o", tmp_path / "o.jsonl", "--judge", "simulated:careful", "--limit", 7,
        "--log-level", "debug", "--log-format", "json",
    )  # fmt: skip

    lines = [json.loads(line) for line in ran.err.splitlines() if line.startswith("{")]
    assert len([line for line in lines if line["event"] == "pair_done"]) == 7
