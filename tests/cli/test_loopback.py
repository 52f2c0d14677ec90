"""`dikast judge` over real loopback HTTP: keys, quotas, dead endpoints, Ctrl-C."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.tools import (
    DEMO,
    Cli,
    answering,
    child,
    manifest_of,
    rows_of,
    simulate,
)

pytestmark = pytest.mark.realtime

KEY = "sk-test-0123456789abcdefgh"


def _config(path: Path, url: str, more: str = "") -> Path:
    path.write_text(
        f'[providers.p]\nkind = "openai"\nbase_url = "{url}"\napi_key_env = "TEST_KEY"\n{more}\n'
        '[judges.j]\nprovider = "p"\nmodel = "m"\n'
        "[run]\nretry = { attempts = 2, base_s = 0.01, cap_s = 0.02 }\n"
    )
    return path


def _everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_run_over_http_is_marked_as_simulated_and_never_shows_the_key(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    out = tmp_path / "out.jsonl"
    with simulate("--truth", DEMO, env={"DIKAST_SIMULATE_KEY": KEY}) as url:
        config = _config(tmp_path / "c.toml", url)

        ran = cli(
            "judge", DEMO, "-o", out, "--config", config, "--json", "--limit", 40,
            "--log-level", "debug",
        )  # fmt: skip

    assert ran.code == 0
    assert ran.summary["simulated"]
    assert all(row["simulated"] for row in rows_of(out))
    assert KEY not in ran.out + ran.err
    assert KEY.encode() not in _everything_in(tmp_path)


def test_a_wrong_key_stops_the_run_with_status_2_and_is_not_repeated(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    with simulate(env={"DIKAST_SIMULATE_KEY": "another"}) as url:
        config = _config(tmp_path / "c.toml", url)

        ran = cli("judge", DEMO, "-o", tmp_path / "out.jsonl", "--config", config, "--json")

    assert ran.code == 2
    assert ran.summary["stopped"] == "auth"
    assert ran.summary["adds_up"]
    assert "refuses the key" in ran.err
    assert KEY not in ran.out + ran.err
    assert KEY.encode() not in _everything_in(tmp_path)


def test_an_exhausted_quota_stops_the_run_with_status_3(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    with answering(429, body) as url:
        config = _config(tmp_path / "c.toml", url)

        ran = cli("judge", DEMO, "-o", tmp_path / "out.jsonl", "--config", config, "--json")

    assert ran.code == 3
    assert ran.summary["stopped"] == "quota"
    assert ran.summary["adds_up"]
    assert ran.summary["ledger"]["failed"] == {}
    assert manifest_of(tmp_path / "out.jsonl")["runs"][-1]["status"] == "stopped"


def test_a_dead_endpoint_stops_the_run_with_status_3(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    config = _config(tmp_path / "c.toml", "http://127.0.0.1:9/v1")

    ran = cli("judge", DEMO, "-o", tmp_path / "out.jsonl", "--config", config, "--json")

    assert ran.code == 3
    assert ran.summary["stopped"] == "dead"
    assert ran.summary["adds_up"]


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_drains_and_the_same_command_resumes(
    cli: Cli, tmp_path: Path, which: signal.Signals
) -> None:
    out = tmp_path / "out.jsonl"
    config = tmp_path / "c.toml"
    config.write_text(
        '[providers.p]\nkind = "simulated"\nlatency_s = 0.1\nconcurrency_start = 8\n'
        '[judges.j]\nprovider = "p"\nmodel = "m"\n'
    )
    words = ("judge", DEMO, "-o", out, "--config", config, "--json", "--workers", 4)
    process = child(*words)
    while not (out.exists() and out.stat().st_size):
        assert process.poll() is None, process.communicate()
    process.send_signal(which)

    text, err = process.communicate(timeout=30)

    assert process.returncode == 130
    summary = json.loads(text)
    assert summary["stopped"] == "interrupted"
    assert summary["adds_up"]
    ledger = summary["ledger"]
    assert 0 < ledger["judged"] == len(rows_of(out)) < len(DEMO.read_bytes().splitlines())
    assert ledger["failed"] == {}
    assert f"{which.name}: taking no further pair" in err
    assert manifest_of(out)["runs"][-1]["status"] == "interrupted"

    config.write_text(config.read_text().replace("latency_s = 0.1", "latency_s = 0.0"))
    again = cli(*words)

    assert again.code == 0
    ids = [row["id"] for row in rows_of(out)]
    assert len(ids) == len(set(ids)) == len(DEMO.read_bytes().splitlines())


def test_the_second_signal_cancels(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    config = tmp_path / "c.toml"
    config.write_text(
        '[providers.p]\nkind = "simulated"\nlatency_s = 600\n'
        '[judges.j]\nprovider = "p"\nmodel = "m"\n'
    )
    process = child("judge", DEMO, "-o", out, "--config", config, "--json", "--workers", 3)
    while not out.exists():
        assert process.poll() is None, process.communicate()
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    while "taking no further pair" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)

    text, _ = process.communicate(timeout=30)

    assert process.returncode == 130
    summary = json.loads(text)
    assert summary["adds_up"]
    assert summary["ledger"]["judged"] == 0
    assert summary["ledger"]["not_run"] == summary["ledger"]["input"]


def test_check_says_what_works_and_what_does_not(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    with simulate(env={"DIKAST_SIMULATE_KEY": KEY}) as url:
        config = _config(tmp_path / "c.toml", url)
        good = cli("check", "--config", config)
        machine = cli("check", "--config", config, "--json")
        monkeypatch.setenv("TEST_KEY", "wrong-key-0123456789")
        bad = cli("check", "--config", config)
    monkeypatch.delenv("TEST_KEY")
    unset = cli("check", "--config", config)
    dead = cli("check", "--judge", "http://127.0.0.1:9/v1:m")
    offline = cli("check", "--judge", "http://127.0.0.1:9/v1:m", "--offline")

    assert (good.code, bad.code, unset.code, dead.code, offline.code) == (0, 2, 2, 2, 0)
    assert "ready to judge" in good.out
    assert "calls per pair: 2" in good.out
    assert machine.summary["ready"] is True
    assert "TEST_KEY is set" in good.out
    assert "problem: providers.p: " in bad.out
    assert "TEST_KEY is NOT SET" in unset.out
    assert "refused the connection" in dead.out
    assert KEY not in good.out + bad.out + good.err + bad.err
