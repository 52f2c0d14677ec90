"""What the shell left behind: closed standard streams, a reader that went away, a full device."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from dikast.open_files import fit_open_files
from dikast.process import raise_open_files
from dikast.settling import Choices, settled
from tests.cli.tools import DEMO, child

pytestmark = pytest.mark.realtime
FULL = Path("/dev/full")
JUDGE = ("judge", DEMO, "--judge", "simulated:careful", "--quiet", "--no-store")


def in_shell(redirections: str, *words: object) -> subprocess.CompletedProcess[str]:
    """The command line with redirections that only a shell can make."""
    line = [sys.executable, "-m", "dikast", *map(str, words)]
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirections}', "sh", *line],
        # A developer's own setting would hide what is lost in a buffer.
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_reader_that_went_away_ends_a_run_on_stdout_with_141() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with child(*JUDGE, "-o", "-", stdout=writes) as process:
        os.close(writes)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 141
    assert "dikast: error" not in err


def test_closed_standard_streams_do_no_harm(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    ran = in_shell("<&- >&- 2>&-", *JUDGE, "-o", output)
    assert ran.returncode == 0
    rows = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert len(rows) == 249


@pytest.mark.parametrize(
    ("redirections", "words", "place"),
    [
        (">&-", (*JUDGE, "-o", "-"), "standard output"),
        (">&-", ("convert", DEMO, "-o", "/dev/null/no"), "/dev/null/no"),
        (">&-", ("--version",), "standard output"),
        ("<&-", ("convert", "-"), "stdin"),
    ],
)
def test_who_needs_a_closed_stream_is_told(
    redirections: str, words: tuple[object, ...], place: str
) -> None:
    ran = in_shell(redirections, *words)
    assert ran.returncode in (2, 3)
    assert ran.stderr.startswith(("dikast: error:", "2")), ran.stderr
    assert place in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "defect" not in ran.stderr


def test_a_report_is_utf_8_in_any_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LC_ALL", "C"), ("PYTHONUTF8", "0"), ("PYTHONIOENCODING", "ascii")):
        monkeypatch.setenv(name, value)
    battles = DEMO.parents[2] / "examples" / "battles.csv"
    with child("rank", battles, "--matrix") as process:
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [("--version",), ("--help",), ("check", "--offline")])
def test_a_report_that_could_not_be_written_is_no_success(words: tuple[str, ...]) -> None:
    more = ("--judge", "simulated:careful") if words[0] == "check" else ()
    ran = in_shell(">/dev/full", *words, *more)
    assert ran.returncode == 3
    assert "standard output: cannot be written: No space left on device" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_a_command_takes_the_open_files_that_the_system_grants() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[0], 200), before[1]))
    try:
        raise_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_connections_fit_into_the_open_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judges = ("http://127.0.0.1:9/v1:one", "openai:two")
    settings = settled(Choices(judges=judges, strategy="committee"))
    monkeypatch.setattr("dikast.open_files.open_files_max", lambda: 164)
    fitted = fit_open_files(settings)
    concurrencies = [entry.settings.limits().concurrency for entry in fitted.providers.values()]  # type: ignore[union-attr]
    assert concurrencies == [50, 50]
    assert "only 164 files may be open" in capsys.readouterr().err
    monkeypatch.setattr("dikast.open_files.open_files_max", lambda: 1024 + 64)
    assert fit_open_files(settings) is settings
    assert capsys.readouterr().err == ""
