"""What cannot be written is told before anything is asked: no command pays first and fails then."""

from pathlib import Path

import pytest

from tests.cli.tools import DEMO, Cli, pair, stored_rows, write_rows

ROOT = DEMO.parents[2]
EXAMPLES = ROOT / "examples"
SESSE = ("--config", EXAMPLES / "sesse.toml", "--limit", 12, "--quiet")
BENCHMARK = """
[providers.sim]
kind = "simulated_benchmark"
[judges]
big = { provider = "sim", model = "big" }
small = { provider = "sim", model = "small" }
"""


def commands(folder: Path) -> dict[str, list[object]]:
    """Each command up to its output; those that ask somebody take `calls.sqlite` as their store.

    Inputs that are only read, and not paid for, are missing: the output is told even before them.
    """
    store = ("--store", folder / "calls.sqlite")
    library, nothing = EXAMPLES / "sesse-library.json", folder / "nothing.jsonl"
    return {
        "build": ["sesse", "build", DEMO, *SESSE, *store, "--embedder", "hash", "-o"],
        "tune": ["sesse", "tune", library, DEMO, *SESSE, *store, "-o"],
        "check": ["sesse", "check", library, DEMO, *SESSE, *store, "--record"],
        "evaluate": ["sesse", "evaluate", nothing, "--html"],
        "anchors": [
            *("anchors", "run", folder / "set.json", "--judge", "simulated:careful", *store, "-o")
        ],
        "anchors-init": ["anchors", "init", nothing, "--name", "n", "-o"],
        "calibrate": ["calibrate", nothing, "-o"],
        "weights": ["weights", nothing, "-o"],
    }


MAKES_FOLDER = ("build", "tune", "check")
NAMES = list(commands(Path()))


@pytest.fixture
def folder(cli: Cli, tmp_path: Path) -> Path:
    """With an anchor set, a file and a folder."""
    made = cli("anchors", "init", DEMO, "-o", tmp_path / "set.json", "--name", "n", "--size", 4)
    assert made.code == 0, made.err
    (tmp_path / "taken.json").mkdir()
    (tmp_path / "file").write_text("x")
    return tmp_path


def refused(cli: Cli, folder: Path, words: list[object], said: str) -> None:
    ran = cli(*words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""
    assert stored_rows(folder / "calls.sqlite") == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("taken.json", "is a folder; name a file"),
        ("file/out.json", "cannot be written: Not a directory"),
    ],
)
def test_an_output_that_cannot_be_written_is_told_before_anybody_is_asked(
    cli: Cli, folder: Path, name: str, where: str, said: str
) -> None:
    refused(cli, folder, [*commands(folder)[name], folder / where], said)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MAKES_FOLDER])
def test_a_missing_folder_is_told_before_anybody_is_asked(
    cli: Cli, folder: Path, name: str
) -> None:
    words = [*commands(folder)[name], folder / "not" / "there.json"]
    refused(cli, folder, words, "make it, or name another file")


def test_a_missing_folder_of_a_library_is_made(cli: Cli, folder: Path) -> None:
    ran = cli(*commands(folder)["check"], folder / "not" / "there.json")
    assert ran.code == 0, ran.err
    assert (folder / "not" / "there.json").is_file()
    assert stored_rows(folder / "calls.sqlite") > 0


@pytest.mark.parametrize("name", ["benchmark.json", "6-challenge.jsonl", "statistics.json"])
def test_a_benchmark_is_not_begun_where_one_of_its_files_cannot_be_written(
    cli: Cli, folder: Path, name: str
) -> None:
    (folder / "b.toml").write_text(BENCHMARK)
    (folder / "out" / name).mkdir(parents=True)
    words = ["benchmark", "build", folder / "nothing.jsonl", "-o", folder / "out", "--quiet"]
    more = ("--config", folder / "b.toml", "--judge", "big", "--strong", "big", "--weak", "small")
    refused(cli, folder, [*words, *more, "--store", folder / "calls.sqlite"], "is a folder")


def test_no_profile_is_fitted_whose_votes_cannot_be_written(cli: Cli, folder: Path) -> None:
    write_rows(folder / "p.jsonl", [pair(n, label="AB"[n % 2]) for n in range(12)])
    words = ("preferences", "fit", folder / "p.jsonl", "-o", folder / "out", "--quiet")
    who = ("--config", EXAMPLES / "preferences.toml", "--min-labels", 4, "--development", 2)
    dry = cli(*words, *who, "--dry-run")
    assert dry.code == 0, dry.err
    (folder / "out" / "me.votes.jsonl").mkdir(parents=True)
    refused(cli, folder / "out", [*words, *who], "is a folder")
