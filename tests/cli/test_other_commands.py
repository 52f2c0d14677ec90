"""`dikast --help`, `convert`, `demo`, `simulate`: what they print and how they end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.tools import Cli, child, pair, rows_of, write_rows

pytestmark = pytest.mark.realtime

_HEAVY = (
    "aiohttp", "msgspec", "structlog", "rich", "orjson", "uvloop", "sqlite3", "zstandard",
    "dikast.wiring", "dikast.engine.run",
)  # fmt: skip


@pytest.mark.parametrize("words", [["--help"], ["judge", "--help"], ["--version"], []])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    script = (
        "import sys; from dikast.cli import main; code = main(sys.argv[1:]); "
        "print(); print([name for name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True
    )

    loaded = set(ran.stdout.splitlines()[-1].strip("[]").replace("'", "").split(", "))
    assert "dikast.cli" in loaded
    assert loaded.isdisjoint(_HEAVY)


def test_importing_dikast_imports_nothing_heavy_and_offers_every_name() -> None:
    script = (
        "import sys, dikast; print([n for n in sys.modules]); "
        "[getattr(dikast, n) for n in dikast.__all__]; print(dir(dikast) == sorted(dikast.__all__))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    first, last = ran.stdout.splitlines()
    assert not any(f"'{name}'" in first for name in _HEAVY)
    assert last == "True"


def test_an_unknown_command_is_one_sentence(cli: Cli) -> None:
    ran = cli("juge")

    assert ran.code == 2
    assert ran.err.startswith("dikast: error: ")
    assert len(ran.err.splitlines()) == 1


def test_convert_writes_own_pairs_and_names_bad_rows(cli: Cli, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"prompt": "q", "chosen": "good", "rejected": "bad"},
        {"prompt": "q", "chosen": "good", "rejected": 3},
        {"prompt": "q2", "chosen": "good", "rejected": "bad"},
    ]
    source = write_rows(tmp_path / "in.jsonl", rows)
    out = tmp_path / "out.jsonl"

    ran = cli("convert", source, "-o", out)

    assert ran.code == 1
    assert [row["question"] for row in rows_of(out)] == ["q", "q2"]
    assert f"dikast: bad row: {source}:2:" in ran.err
    assert "2 pairs converted, 1 bad rows" in ran.err
    again = cli("convert", out)
    assert again.code == 0
    assert [json.loads(line) for line in again.out.splitlines()] == rows_of(out)


def test_convert_leaves_no_half_output_behind(cli: Cli, tmp_path: Path) -> None:
    ran = cli("convert", tmp_path / "none.jsonl", "-o", tmp_path / "out.jsonl")

    assert ran.code == 2
    assert list(tmp_path.iterdir()) == []


def test_the_demo_runs_and_says_that_it_is_simulated(cli: Cli, tmp_path: Path) -> None:
    ran = cli("demo", "-o", tmp_path / "demo", "--json")

    assert ran.code == 0
    summary = ran.summary
    assert summary["simulated"]
    for way in ("single", "swap"):
        run = summary["runs"][way]
        assert run["adds_up"]
        assert run["ledger"]["input"] >= 200
        outcomes = rows_of(Path(run["output"]))
        assert len(outcomes) == run["ledger"]["input"]
        assert all(row["simulated"] for row in outcomes)
    single = summary["runs"]["single"]["figures"]["right_of_decided"]
    both = summary["runs"]["swap"]["figures"]["right_of_decided"]
    assert both["low"] > single["count"] / single["total"]  # what swapping is for
    assert summary["runs"]["swap"]["ledger"]["stored_calls"] > 0


def test_the_demo_tells_people_the_same(cli: Cli, tmp_path: Path) -> None:
    cli("demo", "-o", tmp_path / "demo")
    ran = cli("demo", "-o", tmp_path / "demo")  # and starts anew in a folder of its own

    assert ran.code == 0
    for words in ("SIMULATED", "the two orders disagree", "Wilson 95 %", "ledger of"):
        assert words in ran.out


def test_simulate_refuses_an_unknown_setting(cli: Cli) -> None:
    ran = cli("simulate", "--set", "acuracy=0.9")

    assert ran.code == 2
    assert "server.acuracy: unknown field; did you mean accuracy?" in ran.err


def test_simulate_reads_its_settings_from_a_file_and_the_command_line(tmp_path: Path) -> None:
    config = tmp_path / "s.toml"
    config.write_text("[server]\naccuracy = 0.9\n")
    process = child("simulate", "--config", config, "--set", "rate_limit.requests_per_min=60")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("http://127.0.0.1:")

    process.terminate()
    _, err = process.communicate(timeout=20)

    assert process.returncode == 0
    assert "served 0 requests" in err


def test_an_unexpected_error_is_one_sentence_unless_debug_is_asked_for(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_rows(tmp_path / "in.jsonl", [pair(1)])
    monkeypatch.setattr("dikast.commands.convert.place", None)
    monkeypatch.setattr("dikast.wiring.open_source", lambda *_: 1 / 0)

    ran = cli("convert", source)

    assert ran.code == 2
    assert "ZeroDivisionError" in ran.err
    assert "defect" in ran.err
    monkeypatch.setenv("DIKAST_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli("convert", source)


def test_the_program_in_the_readme_runs() -> None:
    root = Path(__file__).resolve().parents[2]
    _, _, rest = (root / "README.md").read_text("utf-8").partition("```python\n")
    program, _, _ = rest.partition("```")

    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root
    )

    assert ran.stdout.startswith("1 Verdict(")
