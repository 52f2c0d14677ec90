"""Shards: any cut of the input gives the outcomes of one run, and merging misses nothing."""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from dikast import wiring
from dikast.engine.ports import Sink
from tests.cli.tools import Cli, manifest_of, pair, rows_of, write_rows

JUDGE = ("--judge", "simulated:careful")


def digest(path: Path) -> str:
    """Of the outcomes, order aside, without what only tells who paid."""
    rows: list[dict[str, Any]] = rows_of(path)
    for row in rows:
        row.pop("stored_calls", None)
    lines = sorted(json.dumps(row, sort_keys=True) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def awkward(folder: Path) -> list[Path]:
    """Three inputs: lines with blanks and flaws, a packed one, an array; ids used again."""
    plain = folder / "plain.jsonl"
    text = "".join(json.dumps(pair(number)) + "\n\n" for number in range(40))
    plain.write_text(text + "no json\n" + json.dumps(pair(3)) + "\n" + json.dumps(pair(40)))
    packed = folder / "packed.jsonl.gz"
    rows = [pair(number) for number in (*range(41, 70), 7, 69)]
    packed.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    array = folder / "array.json"
    array.write_text(json.dumps([pair(number) for number in (*range(70, 95), 41)]))
    return [plain, packed, array]


@pytest.mark.parametrize("count", [1, 4])
def test_any_cut_gives_the_outcomes_of_one_run(cli: Cli, tmp_path: Path, count: int) -> None:
    inputs = awkward(tmp_path)
    whole = cli("judge", *inputs, "-o", tmp_path / "one.jsonl", *JUDGE, "--quiet")
    plan = cli("shard", *inputs, "-o", tmp_path / "plan", "--shards", count, *JUDGE, "--json")
    codes = {
        cli("judge", "--shard", tmp_path / "plan", "--index", index, "--quiet").code
        for index in range(plan.summary["shards"])
    }
    merged = cli("merge", tmp_path / "plan", "-o", tmp_path / "out.jsonl", "--json")

    assert plan.summary["rows"] == 100
    assert plan.summary["shards"] == count
    assert whole.code == merged.code == 1  # the flawed row and the ids used twice
    assert codes <= {0, 1}
    assert digest(tmp_path / "out.jsonl") == digest(tmp_path / "one.jsonl")
    ledger = merged.summary["ledger"]
    assert ledger["input"] == 100
    assert ledger["failed"] == {"bad_row": 1, "duplicate_id": 4}
    assert merged.summary["adds_up"] is True
    assert manifest_of(tmp_path / "out.jsonl")["runs"][-1]["ledger"]["input"] == 100


def test_a_missing_shard_is_named_and_nothing_is_written(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "in.jsonl", [pair(number) for number in range(30)])
    folder, out = tmp_path / "plan", tmp_path / "out.jsonl"
    cli("shard", pairs, "-o", folder, "--rows", 10, *JUDGE)
    cli("judge", "--shard", folder, "--index", 0)
    cli("judge", "--shard", folder, "--index", 2)

    refused = cli("merge", folder, "-o", out, "--json")
    partial = cli("merge", folder, "-o", tmp_path / "part.jsonl", "--partial")
    judged = cli("judge", "--shard", folder, "--index", 1)
    merged = cli("merge", folder, "-o", out)
    again = cli("merge", folder, "-o", out)

    assert refused.code == 1
    assert refused.summary["missing"] == ["1 (not begun)"]
    assert refused.summary["ledger"]["not_run"] == 10
    assert "missing: shards 1 (not begun)" in refused.err
    assert partial.code == 1
    assert len(rows_of(tmp_path / "part.jsonl")) == 20
    assert manifest_of(tmp_path / "part.jsonl")["runs"][-1]["status"] == "interrupted"
    assert judged.code == merged.code == again.code == 0
    assert len(rows_of(out)) == 30


def test_an_id_in_two_shards_is_told_and_written_once(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "in.jsonl", [pair(number) for number in range(4)])
    folder = tmp_path / "plan"
    cli("shard", pairs, "-o", folder, "--shards", 2, *JUDGE)
    for index in range(2):
        cli("judge", "--shard", folder, "--index", index)
    first, second = folder / "shard-00000.jsonl", folder / "shard-00001.jsonl"
    second.write_bytes(first.read_bytes())

    merged = cli("merge", folder, "-o", tmp_path / "out.jsonl", "--partial")

    assert merged.code == 1
    assert "in two shards, the first one stands: p0 (shards 0 and 1)" in merged.err
    assert len(rows_of(tmp_path / "out.jsonl")) == 2


def test_a_done_shard_is_not_judged_again_and_a_failed_pair_is(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "in.jsonl", [pair(number) for number in range(40)])
    config = tmp_path / "dikast.toml"
    text = (
        '[providers.p]\nkind = "simulated"\nerror_rate = {rate}\nlatency_s = 0.0\n'
        '[judges.j]\nprovider = "p"\nmodel = "careful"\n[run.retry]\nattempts = 1\n'
    )
    config.write_text(text.format(rate=0.3))
    folder = tmp_path / "plan"
    cli("shard", pairs, "-o", folder, "--shards", 1, "--config", config)
    failing = cli("judge", "--shard", folder, "--index", 0)
    config.write_text(text.format(rate=0.0))
    mended = cli("judge", "--shard", folder, "--index", 0, "--json")
    idle = cli("judge", "--shard", folder, "--index", 0)

    assert failing.code == 1
    assert mended.code == 0
    assert 0 < mended.summary["ledger"]["skipped"] < 40
    assert mended.summary["ledger"]["judged"] == 40 - mended.summary["ledger"]["skipped"]
    assert idle.code == 0
    assert "shard 0 is done already" in idle.err
    assert not (folder / "shard-00000.part.jsonl").exists()


def test_a_changed_input_and_other_settings_are_refused(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "in.jsonl", [pair(number) for number in range(10)])
    folder = tmp_path / "plan"
    cli("shard", pairs, "-o", folder, "--shards", 2, *JUDGE)
    other = cli("judge", "--shard", folder, "--index", 0, "--judge", "simulated:coin")
    outside = cli("judge", "--shard", folder, "--index", 2)
    again = cli("shard", pairs, "-o", folder, "--shards", 2, *JUDGE)
    another = cli("shard", pairs, "-o", folder, "--shards", 3, *JUDGE)
    text = pairs.read_text()
    pairs.write_text(text.replace("answer a 9", "answer z 9"))
    untouched = cli("judge", "--shard", folder, "--index", 0)
    changed = cli("judge", "--shard", folder, "--index", 1)

    assert other.code == 2
    assert "would not judge as the plan says" in other.err
    assert outside.code == 2
    assert "numbered 0 to 1" in outside.err
    assert again.code == 0
    assert another.code == 2
    assert "name another folder" in another.err
    assert untouched.code == 0, "its rows are what they were"
    assert changed.code == 2
    assert "was changed since the plan was made" in changed.err


def test_a_worker_that_another_one_overtook_while_it_began_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = write_rows(tmp_path / "in.jsonl", [pair(number) for number in range(10)])
    folder = tmp_path / "plan"
    cli("shard", pairs, "-o", folder, "--shards", 1, *JUDGE)
    cli("judge", "--shard", folder, "--index", 0)
    done, part = folder / "shard-00000.jsonl", folder / "shard-00000.part.jsonl"
    whole = done.read_bytes()
    done.unlink()
    open_sinks = wiring.open_sinks

    def overtaken(*args: Any, **more: Any) -> Sink:
        """Between looking and locking, the other one has judged four pairs and was drained."""
        part.write_bytes(b"".join(whole.splitlines(keepends=True)[:4]))
        return open_sinks(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(wiring, "open_sinks", overtaken)
        refused = cli("judge", "--shard", folder, "--index", 0)
    again = cli("judge", "--shard", folder, "--index", 0)

    assert refused.code == 3
    assert "another run has written it, start this one again" in refused.err
    assert again.code == 0
    assert [row["id"] for row in rows_of(done)] == [f"p{number}" for number in range(10)]


def test_a_shard_by_number_plans_by_itself(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "in.jsonl", [pair(number) for number in range(20)])
    folder = tmp_path / "parts"
    codes = [
        cli("judge", pairs, "-o", folder, "--shard", f"{index}/4", *JUDGE).code
        for index in range(4)
    ]
    merged = cli("merge", folder, "-o", tmp_path / "out.jsonl", "--json")

    assert codes == [0, 0, 0, 0]
    assert merged.code == 0
    assert merged.summary["shards"] == 4
    assert merged.summary["ledger"]["judged"] == 20


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("shard", "-", "-o", "d", "--shards", 2, *JUDGE), "only files can be cut"),
        (("shard", "in.jsonl", "-o", "d", *JUDGE), "--shards"),
        (("shard", "in.jsonl", "-o", "d", "--rows", 0, *JUDGE), "at least 1"),
        (("judge", "--shard", "nowhere", "--index", 0), "make a plan"),
        (("judge", "--shard", "nowhere"), "--index"),
        (("judge", "-o", "out.jsonl", *JUDGE), "name the pairs"),
        (("merge", "nowhere", "-o", "out.jsonl"), "make a plan"),
        (("judge", "in.jsonl", "-o", "-", "--processes", 2, *JUDGE), "need a file as output"),
        (("judge", "in.jsonl", "-o", "o", "--processes", 0, *JUDGE), "--processes"),
        (("judge", "in.jsonl", "-o", "o", "--on", "spark", *JUDGE), "write ray"),
        (("judge", "in.jsonl", "-o", "o", "--one-of", 0, *JUDGE), "--one-of"),
    ],
)
def test_what_cannot_work_is_told_in_one_sentence(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[Any, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "in.jsonl", [pair(number) for number in range(3)])
    ran = cli(*words)

    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") <= 2


def test_tables_and_folders_are_no_ranges_of_lines(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("id,question,response_a,response_b\n1,q,a,b\n")
    for path in (tmp_path / "pairs.csv", tmp_path):
        words = ("-o", tmp_path / "shards", "--shards", 2, "--judge", "simulated:careful")
        ran = cli("shard", path, *words)
        assert ran.code == 2
        assert "make one of it first with dikast convert" in ran.err


@pytest.mark.parametrize("how", ["processes", "shard", "I/N", "configured"])
def test_columns_that_a_plan_would_forget_are_refused(cli: Cli, tmp_path: Path, how: str) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", [pair(1) | {"best": "A"}])
    config = tmp_path / "columns.toml"
    config.write_text('[input.columns]\nlabel = "best"\n')
    out = tmp_path / "out"
    judge = ("--judge", "simulated:careful")
    words: dict[str, tuple[object, ...]] = {
        "processes": ("judge", rows, "-o", f"{out}.jsonl", "--processes", 2),
        "shard": ("shard", rows, "-o", out, "--shards", 1, "--config", config),
        "I/N": ("judge", rows, "-o", out, "--shard", "0/2"),
        "configured": ("judge", rows, "-o", f"{out}.jsonl", "--processes", 2, "--config", config),
    }
    said = () if "--config" in words[how] else ("--columns", "label=best")

    ran = cli(*words[how], *judge, *said)

    assert (ran.code, "dikast convert PAIRS --columns" in ran.err) == (2, True)
    assert not list(tmp_path.glob("out*/plan.json"))


def test_a_plan_that_was_edited_is_not_believed(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "in.jsonl", [pair(number) for number in range(20)])
    folder = tmp_path / "plan"
    cli("shard", pairs, "-o", folder, "--shards", 2, *JUDGE)
    plan = folder / "plan.json"
    good = plan.read_text()
    plan.write_text(good.replace('"rows": 10', '"rows": 9', 1))
    judged = cli("judge", "--shard", plan, "--index", 0)
    merged = cli("merge", folder, "-o", tmp_path / "out.jsonl")
    plan.write_text(good)

    assert plan.read_text().count('"rows": 10') == 2
    assert judged.code == merged.code == 2
    assert "was edited after it was made; make the plan anew" in judged.err
    assert cli("judge", "--shard", plan, "--index", 0).code == 0


def test_a_shard_that_lost_outcomes_is_judged_on_and_one_with_too_many_is_refused(
    cli: Cli, tmp_path: Path
) -> None:
    pairs = write_rows(tmp_path / "in.jsonl", [pair(number) for number in range(20)])
    folder, out = tmp_path / "plan", tmp_path / "out.jsonl"
    cli("shard", pairs, "-o", folder, "--shards", 2, *JUDGE)
    for index in range(2):
        cli("judge", "--shard", folder, "--index", index)
    done = folder / "shard-00000.jsonl"
    lines = done.read_text().splitlines(keepends=True)
    done.write_text("".join(lines[:4]) + lines[4][:20])
    less = cli("judge", "--shard", folder, "--index", 0)
    merged = cli("merge", folder, "-o", out)
    done.write_text("".join(lines) + (folder / "shard-00001.jsonl").read_text())
    more = cli("judge", "--shard", folder, "--index", 0)

    assert (less.code, merged.code) == (0, 0)
    assert "has 4 outcomes for 10 rows; the rest follows" in less.err
    assert len({row["id"] for row in rows_of(out)}) == len(rows_of(out)) == 20
    assert more.code == 2
    assert "has 20 outcomes for 10 rows; move it away" in more.err


def test_a_merge_that_writes_nothing_moves_nothing(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "in.jsonl", [pair(number) for number in range(20)])
    folder, out = tmp_path / "plan", tmp_path / "out.jsonl"
    cli("shard", pairs, "-o", folder, "--shards", 2, *JUDGE)
    cli("judge", "--shard", folder, "--index", 0)
    out.write_text("precious\n")
    missing = cli("merge", folder, "-o", out, "--fresh")
    own = cli("merge", folder, "-o", folder / "shard-00000.jsonl", "--fresh")

    assert missing.code == 1
    assert out.read_text() == "precious\n"
    assert own.code == 2
    assert "belongs to the shards that are merged" in own.err
    assert cli("judge", "--shard", folder, "--index", 1).code == 0
    assert cli("merge", folder, "-o", out, "--fresh").code == 0
    assert (tmp_path / "out.jsonl.old").read_text() == "precious\n"
    whole = out.read_bytes()
    assert cli("merge", folder, "-o", out, "--fresh").code == 0  # its own is no other's
    assert out.read_bytes() == whole
    assert not (tmp_path / "out.jsonl.old2").exists()
