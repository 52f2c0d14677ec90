"""What is told and capped over all runs on one output: totals after a resume, and the money."""

import asyncio
import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import (
    DEMO,
    Cli,
    child,
    manifest_of,
    pair,
    rows_of,
    stored_rows,
    write_rows,
)

CONFIG = (
    '[providers.p]\nkind = "simulated"\nlatency_s = {latency_s}\n'
    '[judges.j]\nprovider = "p"\nmodel = "careful"\nmax_tokens = 100\n'
    "prices = {{ input = 1.0, output = 10.0 }}\n[run]\nworkers = 4\n"
)


def priced(folder: Path, latency_s: float = 0.0, more: str = "") -> Path:
    path = folder / "c.toml"
    path.write_text(CONFIG.format(latency_s=latency_s) + more)
    return path


def test_a_pair_that_failed_and_succeeds_now_is_counted_once(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "pairs.jsonl", [pair(1), pair(2), pair(3)])
    record = {"judge": "gpt", "template": "t", "order": "ab", "raw": '{"verdict": "A"}'}
    other = {**record, "order": "ba", "raw": '{"verdict": "B"}'}
    recorded = write_rows(
        tmp_path / "rec.jsonl", [{"pair_id": "p1", **record}, {"pair_id": "p1", **other}]
    )
    out = tmp_path / "out.jsonl"
    words = ("judge", pairs, "-o", out, "--judge", f"replay:{recorded}?t:gpt", "--json")

    first = cli(*words)

    assert first.summary["whole_output"]["failed"] == {"missing": 2}
    assert first.summary["whole_output"]["rows"] == 3
    assert "the whole output" not in first.err, "there is nothing to tell apart yet"

    write_rows(
        recorded, [{"pair_id": id, **each} for id in ("p1", "p2") for each in (record, other)]
    )
    second = cli(*words)

    assert second.summary["ledger"]["judged"] == 1
    whole = second.summary["whole_output"]
    assert (whole["rows"], whole["judged"], whole["verdicts"]) == (3, 2, {"A agree": 2})
    assert whole["failed"] == {"missing": 1}
    assert len(rows_of(out)) == 3
    told = second.err.partition("the whole output, earlier runs and this one\n")[2].splitlines()
    assert [line.split()[:2] for line in told[:4]] == [
        ["rows", "3"],
        ["judged", "2"],
        ["undecided", "0"],
        ["failed", "1"],
    ]


def test_a_failed_pair_that_was_not_tried_again_is_in_no_count_and_not_in_the_file(
    cli: Cli, tmp_path: Path
) -> None:
    pairs = write_rows(tmp_path / "pairs.jsonl", [pair(1), pair(2)])
    recorded = write_rows(tmp_path / "rec.jsonl", [])
    out = tmp_path / "out.jsonl"
    words = ("judge", pairs, "-o", out, "--judge", f"replay:{recorded}?t:gpt", "--json")
    record = {"judge": "gpt", "template": "t", "order": "ab", "raw": '{"verdict": "A"}'}
    write_rows(recorded, [{"pair_id": "other", **record}])
    assert cli(*words).summary["whole_output"]["failed"] == {"missing": 2}

    again = cli(*words, "--limit", 1)

    assert again.summary["whole_output"]["rows"] == len(rows_of(out)) == 1


def test_standard_output_holds_this_run(tmp_path: Path, cli: Cli) -> None:
    ran = cli("judge", DEMO, "-o", "-", "--judge", "simulated:careful", "--limit", 5)

    assert ran.code == 0
    assert len(ran.out.splitlines()) == 5
    assert "the whole output" not in ran.err


def test_a_total_budget_counts_what_earlier_runs_have_spent(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    words = ("judge", DEMO, "-o", out, "--config", priced(tmp_path), "--json")
    first = cli(*words, "--budget-total-usd", 0.05)
    assert first.code == 3
    spent = first.summary["ledger"]["spent_usd"]
    assert 0.03 < spent <= 0.05
    assert "total budget of $0.0500 is used up: $0.0000 spent by earlier runs" in first.err
    assert "a larger --budget-total-usd goes on" in first.err

    supervised = [cli(*words, "--budget-total-usd", 0.05) for _ in range(3)]

    assert {ran.code for ran in supervised} == {3}
    last = supervised[-1].summary
    assert last["whole_output"]["spent_usd"] <= 0.05
    assert f"${spent:,.2f}" in supervised[-1].err
    assert "--budget-total-usd goes on" in supervised[-1].err

    both = cli(*words, "--budget-total-usd", 0.2, "--budget-usd", 0.02)
    assert both.code == 3
    assert both.summary["ledger"]["spent_usd"] <= 0.02
    assert "with the whole budget again" in both.err

    done = cli(*words, "--budget-total-usd", 5)
    assert done.code == 0
    assert done.summary["whole_output"]["rows"] == len(rows_of(out)) == 249
    assert done.summary["whole_output"]["spent_usd"] == pytest.approx(
        sum(run["ledger"]["spent_usd"] for run in manifest_of(out)["runs"])
    )
    assert cli(*words, "--budget-total-usd", 0).code == 0, "nothing is left to pay for"


async def calls_are_stored(store: Path, count: int) -> None:
    async with asyncio.timeout(20):
        while stored_rows(store) < count:  # noqa: ASYNC110  nothing announces it
            await asyncio.sleep(0.005)


@pytest.mark.realtime
def test_a_killed_run_counts_with_what_it_had_noted(cli: Cli, tmp_path: Path) -> None:
    out, total = tmp_path / "out.jsonl", 0.1
    config = priced(tmp_path, latency_s=0.02)
    words = ("judge", DEMO, "-o", out, "--config", config, "--budget-total-usd", total)
    process = child(*words)
    asyncio.run(calls_are_stored(tmp_path / "dikast-calls.sqlite", 40))
    process.kill()
    process.communicate(timeout=20)
    entry: dict[str, Any] = manifest_of(out)["runs"][0]
    paid = stored_rows(tmp_path / "dikast-calls.sqlite")

    assert entry["status"] == "running"
    assert entry["spent_most_usd"] > paid * 0.0004, "a call costs more than that"

    ran = cli(*words, "--json")
    assert ran.code == 3
    whole = ran.summary["whole_output"]
    assert whole["spent_usd"] == pytest.approx(
        entry["spent_most_usd"] + ran.summary["ledger"]["spent_usd"]
    )
    assert whole["spent_usd"] <= total
    assert whole["spent_is_bound"] is True
    assert "at most $0.0" in ran.err


@pytest.mark.realtime
def test_a_run_that_was_killed_before_it_paid_anything_counts_as_nothing(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    process = child("judge", DEMO, "-o", out, "--config", priced(tmp_path, latency_s=60.0))
    manifest = tmp_path / "out.jsonl.manifest.json"

    async def begun() -> None:
        async with asyncio.timeout(20):
            while not manifest.exists():  # noqa: ASYNC110  nothing announces it
                await asyncio.sleep(0.005)

    asyncio.run(begun())
    process.kill()
    process.communicate(timeout=20)
    kept = json.loads(manifest.read_text())
    del kept["runs"][0]["simulated"]  # a simulated run would count as free anyway
    manifest.write_text(json.dumps(kept))

    ran = cli(
        "judge", DEMO, "-o", out, "--config", priced(tmp_path), "--budget-total-usd", 5, "--json"
    )

    assert ran.code == 0
    assert kept["runs"][0]["spent_most_usd"] < 0.1
    assert ran.summary["whole_output"]["spent_is_bound"] is True


def test_a_total_budget_is_refused_where_nobody_counts(cli: Cli, tmp_path: Path) -> None:
    config = priced(tmp_path)
    words = ("judge", DEMO, "--config", config, "--budget-total-usd", 1, "-o")
    for where in ("-", "kafka://127.0.0.1:1/t"):
        ran = cli(*words, where)
        assert ran.code == 2
        assert "counts what the manifest beside the output says" in ran.err
        assert len(ran.err.splitlines()) == 1

    out = tmp_path / "out.jsonl"
    assert cli(*words, out, "--limit", 3).code == 0
    manifest = tmp_path / "out.jsonl.manifest.json"
    before = out.read_bytes()
    kept = json.loads(manifest.read_text())
    del kept["runs"][0]["ledger"], kept["runs"][0]["spent_most_usd"], kept["runs"][0]["simulated"]
    manifest.write_text(json.dumps(kept))
    old = cli(*words, out)
    manifest.unlink()
    gone = cli(*words, out)

    assert old.code == gone.code == 2
    assert "was ended before it could say what it had spent" in old.err
    assert "it is missing, and the output holds outcomes" in gone.err
    assert out.read_bytes() == before
    assert cli(*words, out, "--fresh").code == 0


def test_a_total_budget_needs_prices_and_an_output_of_judge(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        '[providers.p]\nkind = "openai"\nbase_url = "http://127.0.0.1:1/v1"\n'
        '[judges.j]\nprovider = "p"\nmodel = "m"\n[run]\nbudget_total_usd = 1.0\n'
    )
    ran = cli("judge", DEMO, "-o", tmp_path / "out.jsonl", "--config", config)
    assert ran.code == 2
    assert "has no prices" in ran.err

    anchors = tmp_path / "a.json"
    assert cli("anchors", "init", DEMO, "-o", anchors, "--name", "n", "--size", 30).code == 0
    refused = cli("anchors", "run", anchors, "-o", tmp_path / "r.json", "--config", config)
    assert refused.code == 2
    assert "run.budget_total_usd counts the runs on one output of dikast judge" in refused.err


def test_anchors_that_go_along_are_paid_out_of_the_total(cli: Cli, tmp_path: Path) -> None:
    anchors, out = tmp_path / "a.json", tmp_path / "out.jsonl"
    assert cli("anchors", "init", DEMO, "-o", anchors, "--name", "n", "--size", 40).code == 0
    words = ("judge", DEMO, "-o", out, "--config", priced(tmp_path), "--anchors", anchors)
    few = cli(*words, "--budget-total-usd", 0.02)
    entry = manifest_of(out)["runs"][0]
    again = cli(*words, "--budget-total-usd", 0.03)
    both = [run["spent_most_usd"] for run in manifest_of(out)["runs"]]

    assert few.code == again.code == 3
    assert rows_of(out) == [], "the anchors come first, and the money ends there"
    assert 0.01 < entry["spent_most_usd"] <= 0.02
    assert f"${entry['spent_most_usd']:,.4f} spent by earlier runs" in again.err
    assert 0.02 < sum(both) <= 0.03


@pytest.mark.realtime
@pytest.mark.slow
def test_the_total_budget_is_one_for_all_processes_and_all_their_runs(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    config = priced(tmp_path, more="budget_total_usd = 0.1\n")
    words = ("judge", DEMO, "-o", out, "--config", config, "--processes", 2, "--json")
    runs = [cli(*words) for _ in range(3)]

    assert {ran.code for ran in runs} == {3}
    assert 0.06 < runs[-1].summary["ledger"]["spent_usd"] <= 0.1
    assert "the total budget is $0.1000" in runs[-1].err
    assert "a larger --budget-total-usd goes on" in runs[-1].err
    spent = [ran.summary["ledger"]["spent_usd"] for ran in runs]
    for ran, before, after in zip(runs, [0.0, *spent], spent, strict=False):
        assert f"${before:,.4f} spent by earlier runs" in ran.err
        assert f"${after - before:,.4f} by this one" in ran.err
    done = cli(*words, "--budget-total-usd", 5)
    assert done.code == 0
    assert done.summary["whole_output"]["rows"] == len(rows_of(out)) == 249
    assert done.summary["whole_output"]["spent_usd"] == done.summary["ledger"]["spent_usd"]

    plan = tmp_path / "out.jsonl.shards" / "plan.json"
    next(plan.parent.glob("shard-00000.jsonl*json")).unlink()  # it would be done already
    (plan.parent / "shard-00000.jsonl").unlink(missing_ok=True)
    alone = cli("judge", "--shard", plan, "--index", 0)
    assert alone.code == 2
    assert "--budget-total-usd does not go with --shard" in alone.err


@pytest.mark.parametrize("more", [(), ("--processes", 2), ("--fresh",)])
def test_an_input_that_is_not_there_leaves_nothing_behind(
    cli: Cli, tmp_path: Path, more: tuple[object, ...]
) -> None:
    strange = tmp_path / "strange.csv"
    strange.write_text("one,two\n1,2\n")
    for name in (tmp_path / "nothere.csv", tmp_path / "nothere*.csv", strange):
        ran = cli("judge", name, "-o", tmp_path / "o.jsonl", "--judge", "simulated:careful", *more)
        assert ran.code == 2, ran.err
        assert len(ran.err.splitlines()) == 1
        assert str(name) in ran.err
    assert list(tmp_path.iterdir()) == [strange]


def test_a_second_input_that_is_not_there_is_told_before_the_first_is_judged(
    cli: Cli, tmp_path: Path
) -> None:
    ran = cli(
        "judge", DEMO, tmp_path / "no.jsonl", "-o", tmp_path / "o.jsonl", "--judge",
        "simulated:careful",
    )  # fmt: skip

    assert ran.code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("held", [".lock", "shard-00000.part.jsonl"])
def test_fresh_moves_no_shards_that_another_run_works_on(
    cli: Cli, tmp_path: Path, held: str
) -> None:
    folder = tmp_path / "out.jsonl.shards"
    folder.mkdir()
    (tmp_path / "out.jsonl").write_text("")
    words = ("judge", DEMO, "-o", tmp_path / "out.jsonl", "--judge", "simulated:careful")
    with (folder / held).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ran = cli(*words, "--processes", 2, "--fresh")

    assert ran.code == 3
    assert f"{held}: another process is writing this output" in ran.err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out.jsonl", "out.jsonl.shards"]


def test_two_runs_do_not_share_a_folder_of_shards(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "out.jsonl.shards"
    folder.mkdir()
    words = ("judge", DEMO, "-o", tmp_path / "out.jsonl", "--judge", "simulated:careful")
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ran = cli(*words, "--processes", 2)

    assert ran.code == 3
    assert [each.name for each in folder.iterdir()] == [".lock"]
