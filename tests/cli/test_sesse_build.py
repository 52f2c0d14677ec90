"""`dikast sesse build` and `show` as a user meets them."""

import json
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.cli.tools import Cli, child, pair, stored_rows, write_rows

CONFIG = """
[providers.planted]
kind = "simulated"
seed = 5
accuracy = 0.95
concurrency_start = 64
{more}

[[providers.planted.criteria]]
name = "count"
condition = "the request asks for an exact number of items"
conclusion = "gives exactly the number that was asked for"
applies = 0.4
blind = 0.7

[[providers.planted.criteria]]
name = "code"
condition = "programming source is wanted by the user"
conclusion = "compiles and runs without mistakes"
applies = 0.35
blind = 0.7

[judges.j]
provider = "planted"
model = "planted-1"
"""


def config(folder: Path, more: str = "") -> Path:
    path = folder / "sesse.toml"
    path.write_text(CONFIG.format(more=more))
    return path


def labelled(folder: Path, count: int = 90) -> Path:
    rows = [pair(n, label="A" if n % 2 else "B", category=f"part{n % 3}") for n in range(count)]
    rows.append(pair(900))
    rows.append(pair(901, label="tie"))
    return write_rows(folder / "pairs.jsonl", rows)


def words(folder: Path, *more: object, with_config: Path | None = None) -> list[object]:
    return [
        *("sesse", "build", folder / "pairs.jsonl", "-o", folder / "lib.json"),
        *("--config", with_config or folder / "sesse.toml", "--embedder", "hash"),
        *("--clusters", 6, *more),
    ]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder with labelled pairs and a planted judge."""
    labelled(tmp_path)
    config(tmp_path)
    return tmp_path


def test_a_library_is_built_shown_and_the_same_again(cli: Cli, world: Path) -> None:
    first = cli(*words(world))
    assert first.code == 0, first.err
    for said in (
        "rows mined",
        "1 no label, 1 labelled a tie",
        "Wilson",
        "(simulated)",
        "turned away",
    ):
        assert said in first.out
    assert "dikast: holistic 90/90 | 90 calls (0 from the store)" in first.err
    assert "dikast: cluster 6/6\n" in first.err
    library = json.loads((world / "lib.json").read_text())
    assert {cluster["label"] for cluster in library["clusters"]} == {
        "the request asks for an exact number of items",
        "programming source is wanted by the user",
    }
    again = cli(*words(world, "--quiet", "--json"))
    assert again.code == 0
    assert again.err == ""
    assert again.summary["hash"] == library["hash"]
    assert all(bill["stored"] == bill["asked"] for bill in again.summary["bills"])
    shown = cli("sesse", "show", world / "lib.json", "--questions")
    assert shown.code == 0
    assert library["hash"] in shown.out
    for cluster in library["clusters"]:
        assert f"{cluster['cid']}: {cluster['label']}" in shown.out
    as_json = cli("sesse", "show", world / "lib.json", "--json")
    assert as_json.summary["hash"] == library["hash"]
    markdown = cli("sesse", "show", world / "lib.json", "--md")
    assert "| id | applies when |" in markdown.out


def test_a_dry_run_asks_nothing_and_its_numbers_come_true(cli: Cli, world: Path) -> None:
    before = cli(*words(world, "--dry-run", "--assume-accuracy", "0.5", "--json"))
    assert before.code == 0
    assert sorted(path.name for path in world.iterdir()) == ["pairs.jsonl", "sesse.toml"]
    assert {row["stage"]: row["calls"] for row in before.summary["rows"]} == {
        "holistic": 90,
        "draft": 45,
        "summarise": 6,
        "equivalence": 4,
        "resummarise": 0,
        "all": 145,
    }
    done = cli(*words(world, "--quiet", "--json")).summary
    errors, right = done["stats"]["errors"], done["stats"]["correct"]
    after = cli(*words(world, "--dry-run", "--json")).summary
    calls = {row["stage"]: row["calls"] for row in after["rows"]}
    assert f"{right / 90:.3f} (observed on 90 rows in the call store)" in after["notes"][1]
    assert calls["holistic"] == done["stats"]["calls"]["holistic"]
    assert calls["draft"] == done["stats"]["calls"]["draft"] == errors
    assert calls["summarise"] == done["stats"]["calls"]["summarise"]


def test_calibration_rows_are_kept_apart(cli: Cli, world: Path) -> None:
    done = cli(*words(world, "--split-dev", "0.7", "--stratify", "--quiet", "--json"))
    assert done.code == 0
    library = json.loads((world / "lib.json").read_text())
    kept = set(library["split"]["calibration_ids"])
    assert len(kept) == 27
    assert library["stats"]["rows"] == 63
    sources = {
        each["source_id"] for cluster in library["clusters"] for each in cluster["questions"]
    }
    assert not sources & kept


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--embedder", "nothing"), "there is no such embedder"),
        (("--embedder", "anthropic:x"), "--embedder anthropic:x"),
        (("--questions", "9"), "--questions: must lie between 1 and 5"),
        (("--merge-quantile", "nan"), "--merge-quantile"),
        (("--split-dev", "0"), "--split-dev 0"),
        (("--judge", "k"), "there is no such judge"),
        (("--format", "nonsense"), "nonsense"),
    ],
)
def test_bad_words_are_told_in_one_sentence(
    cli: Cli, world: Path, more: tuple[str, ...], said: str
) -> None:
    found = cli(*words(world, *more))
    assert found.code == 2
    assert said in found.err
    assert found.err.count("\n") == 1
    assert not (world / "dikast-calls.sqlite").exists()


def test_rows_without_labels_are_refused_before_anything_is_asked(cli: Cli, world: Path) -> None:
    write_rows(world / "pairs.jsonl", [pair(1), pair(2, label="tie")])
    found = cli(*words(world))
    assert found.code == 2
    assert "no row with a label A or B (1 no label, 1 labelled a tie)" in found.err


def test_calls_that_fail_give_no_library_and_the_next_run_heals_it(cli: Cli, world: Path) -> None:
    broken = config(world, "error_200_rate = 0.2\n")
    retry = "\n[run.retry]\nattempts = 1\n"
    broken.write_text(broken.read_text() + retry)
    found = cli(*words(world))
    assert found.code == 1
    assert "so no library was written" in found.err
    assert not (world / "lib.json").exists()
    config(world)
    healed = cli(*words(world, "--json", "--quiet")).summary
    assert healed["stats"]["judged"] == 90
    assert 0 < healed["bills"][0]["stored"] < 90


def test_a_damaged_library_is_not_shown(cli: Cli, world: Path) -> None:
    (world / "lib.json").write_text('{"clusters": [], "judge": 1}')
    found = cli("sesse", "show", world / "lib.json")
    assert found.code == 2
    assert "lib.json" in found.err
    assert "is no library, or a damaged one" in found.err


def test_another_model_may_draft_and_the_errors_stay_the_judges(cli: Cli, world: Path) -> None:
    both = world / "sesse.toml"
    both.write_text(both.read_text() + '\n[judges.k]\nprovider = "planted"\nmodel = "planted-2"\n')
    alone = cli(*words(world, "--judge", "j", "--json", "--quiet")).summary
    done = cli(*words(world, "--judge", "j", "--builder", "k", "--json", "--quiet")).summary
    library = json.loads((world / "lib.json").read_text())
    assert (library["judge"], library["builder"]) == ("planted-1", "planted-2")
    assert done["stats"]["errors"] == alone["stats"]["errors"]
    asked = {bill["stage"]: bill["stored"] == bill["asked"] for bill in done["bills"]}
    assert asked["holistic"]
    assert not asked["draft"]
    unclear = cli(*words(world))
    assert unclear.code == 2
    assert "name the judge with --judge: configured are j, k" in unclear.err


def test_a_budget_stops_the_build_and_more_money_finishes_it(cli: Cli, world: Path) -> None:
    priced = world / "sesse.toml"
    priced.write_text(priced.read_text() + "[judges.j.prices]\ninput = 1.0\noutput = 1.0\n")
    poor = cli(*words(world, "--budget-usd", "0.015", "--workers", "2"))
    assert poor.code == 3, poor.err
    assert "the same command resumes" in poor.err
    assert not (world / "lib.json").exists()
    paid = stored_rows(world / "dikast-calls.sqlite")
    assert 0 < paid < 90
    rich = cli(*words(world, "--budget-usd", "10", "--json", "--quiet")).summary
    assert rich["bills"][0]["stored"] == paid
    assert rich["bills"][0]["cost_usd"] > 0.015


@contextmanager
def embeddings(status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """An embeddings endpoint on loopback: its address, and the texts that it was sent."""
    texts: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            texts.extend(sent)
            rows = [
                {"index": at, "embedding": [float(text.count(each)) for each in "abcdefgio"]}
                for at, text in enumerate(sent)
            ]
            body = json.dumps({"data": rows}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", texts
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.realtime
def test_an_endpoint_embeds_each_text_once(cli: Cli, world: Path) -> None:
    with embeddings() as (url, texts):
        first = cli(*words(world, "--embedder", f"{url}:letters", "--json", "--quiet"))
        assert first.code == 0, first.err
        sent = len(texts)
        again = cli(*words(world, "--embedder", f"{url}:letters", "--json", "--quiet"))
    assert again.summary["hash"] == first.summary["hash"]
    assert len(texts) == sent == len(set(texts))
    assert sent >= first.summary["stats"]["questions"]
    assert json.loads((world / "lib.json").read_text())["embedder"] == f"letters@{url}"


@pytest.mark.realtime
@pytest.mark.parametrize(("status", "code"), [(404, 2), (401, 2), (503, 3)])
def test_an_endpoint_that_does_not_embed_is_told_in_one_sentence(
    cli: Cli, world: Path, status: int, code: int
) -> None:
    once = world / "sesse.toml"
    once.write_text(once.read_text() + "[run.retry]\nattempts = 1\n")
    with embeddings(status) as (url, _):
        found = cli(*words(world, "--embedder", f"{url}:letters", "--quiet"))
    assert found.code == code
    assert f"the embedder letters@{url} failed" in found.err
    assert found.err.count("\n") == 1
    assert not (world / "lib.json").exists()


@pytest.mark.realtime
def test_an_interrupted_build_says_so_and_resumes(cli: Cli, world: Path) -> None:
    whole = cli(*words(world, "--json", "--quiet", "--store", world / "whole.sqlite")).summary
    (world / "lib.json").unlink()
    config(world, "latency_s = 0.1")
    store = world / "dikast-calls.sqlite"
    process = child(*words(world, "--workers", 4))
    while process.poll() is None and stored_rows(store) < 10:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "SIGINT: beginning no further call" in err
    assert "the same command resumes" in err
    assert "Traceback" not in err
    assert not (world / "lib.json").exists()
    left = stored_rows(store)
    config(world)
    last = cli(*words(world, "--json", "--quiet")).summary
    assert last["hash"] == whole["hash"]
    assert last["bills"][0]["stored"] == left


# --- check --------------------------------------------------------------------------------------


@pytest.fixture
def recorded(cli: Cli, world: Path) -> Path:
    """The same folder with a library, `ref.json`, that knows its own canary figures."""
    assert cli(*words(world, "--quiet")).code == 0
    done = cli(*check(world, "lib.json", "--record", world / "ref.json"))
    assert done.code == 0, done.err
    assert re.search(r"dikast: canary 40/40 \| \d+ calls \(0 from the store\)", done.err)
    return world


def check(folder: Path, library: str, *more: object) -> list[object]:
    return [
        *("sesse", "check", folder / library, folder / "pairs.jsonl"),
        *("--config", folder / "sesse.toml", "--limit", 40, *more),
    ]


def test_a_library_fits_its_own_judge_and_the_store_pays(cli: Cli, recorded: Path) -> None:
    parent = json.loads((recorded / "lib.json").read_text())["hash"]
    child = json.loads((recorded / "ref.json").read_text())
    assert child["parent"] == parent
    assert child["stats"]["canary"]["rows"] == 40
    found = cli(*check(recorded, "ref.json"))
    assert found.code == 0
    assert "the library fits" in found.out
    assert "(40 from the store)" not in found.err
    assert "Wilson" in found.out
    bare = cli(*check(recorded, "lib.json"))
    assert bare.code == 0
    assert "little is known" in bare.out


def test_another_judge_is_warned_of_and_refused_when_it_answers_otherwise(
    cli: Cli, recorded: Path
) -> None:
    same = CONFIG.replace('"planted-1"', '"planted-1"\nmax_tokens = 512')
    (recorded / "sesse.toml").write_text(same.format(more=""))
    warned = cli(*check(recorded, "ref.json"))
    assert warned.code == 0
    assert "max_tokens 1024 -> 512" in warned.out
    assert "warning: another judge" in warned.out

    (recorded / "sesse.toml").write_text(same.format(more="garbage_rate = 0.4"))
    refused = cli(*check(recorded, "ref.json", "--json"))
    assert refused.code == 4
    assert "invalid votes out of bounds" in refused.summary["refused"]

    unknown = cli(*check(recorded, "lib.json", "--quiet"))
    assert unknown.code == 4
    assert "no figures to compare it with" in unknown.out

    record = cli(*check(recorded, "lib.json", "--record", recorded / "no.json"))
    assert record.code == 2
    assert "--record" in record.err
    assert not (recorded / "no.json").exists()


def test_other_rows_shift_the_routing_and_are_refused(cli: Cli, recorded: Path) -> None:
    rare = CONFIG.replace("applies = 0.4", "applies = 0.02")
    (recorded / "sesse.toml").write_text(rare.format(more=""))
    found = cli(*check(recorded, "ref.json", "--json", "--quiet"))
    assert found.code == 4
    assert "Tier 1 shift (PSI) out of bounds" in found.summary["refused"]
