"""Optional packages that are not installed are told before anything is made or paid."""

import sys
from pathlib import Path

import pytest

from tests.cli.tools import DEMO, Cli

_PACKAGES = ("pyarrow", "confluent_kafka", "fsspec", "redis")
_SHARED = '[pacing]\nshared = "redis://127.0.0.1:1/0"\n'
CONFIG = (
    '[providers.p]\nkind = "simulated"\n[judges.j]\nprovider = "p"\nmodel = "m"\n'
    '[run]\nstore = "calls.sqlite"\n'
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a configuration, and a Python without the optional packages."""
    for name in list(sys.modules):
        if name.partition(".")[0] in _PACKAGES or name == "dikast.providers.redis_limit":
            monkeypatch.delitem(sys.modules, name)
    for name in _PACKAGES:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.toml").write_text(CONFIG)
    (tmp_path / "shared.toml").write_text(CONFIG + _SHARED)
    return tmp_path


def _needs(where: str, package: str, extra: str) -> str:
    return (
        f"{where} needs the package {package}, which is not installed; run: pip install "
        f"'dikast[{extra}]'"
    )


CASES = (
    ("-o x.parquet", _needs("x.parquet: writing a table", "pyarrow", "parquet")),
    ("-o o.jsonl --sink x.pq", _needs("x.pq: writing a table", "pyarrow", "parquet")),
    ("-o o.jsonl --sink parquet:x", _needs("parquet:x: writing a table", "pyarrow", "parquet")),
    (
        "-o o.jsonl --sink optional:x.parquet",
        _needs("optional:x.parquet: writing a table", "pyarrow", "parquet"),
    ),
    (
        "-o o.jsonl --sink optional:parquet:x",
        _needs("optional:parquet:x: writing a table", "pyarrow", "parquet"),
    ),
    ("-o kafka://h:1/t", _needs("kafka://h:1/t", "confluent_kafka", "kafka")),
    ("-o o.jsonl --sink kafka://h:1/t", _needs("kafka://h:1/t", "confluent_kafka", "kafka")),
    ("kafka://h:1/t -o o.jsonl", _needs("kafka://h:1/t", "confluent_kafka", "kafka")),
    ("s3://b/x.jsonl -o o.jsonl", _needs("s3://b/x.jsonl", "fsspec", "remote")),
    ("in.parquet -o o.jsonl", _needs("in.parquet: reading a table", "pyarrow", "parquet")),
    ("-o o.jsonl --config shared.toml", _needs("[pacing] shared", "redis", "redis")),
)


@pytest.mark.parametrize(("words", "said"), CASES)
def test_judge_and_check_say_what_to_install_and_judge_makes_nothing(
    words: str, said: str, cli: Cli, folder: Path
) -> None:
    before = sorted(folder.iterdir())
    given = words.split()
    pairs = [DEMO] if given[0].startswith("-") else []
    config = [] if "--config" in given else ["--config", "c.toml"]

    judged = cli("judge", *pairs, *given, *config)
    checked = cli("check", "--offline", *pairs, *given, *config)

    assert (judged.code, judged.out) == (2, "")
    assert judged.err == f"dikast: error: {said}\n"
    assert sorted(folder.iterdir()) == before
    assert checked.code == 2
    assert f"problem: {said}\n" in checked.out
    assert checked.out.endswith("1 problem(s)\n")


def test_several_workers_say_so_before_they_read_the_input(cli: Cli, folder: Path) -> None:
    words = ("in.parquet", "-o", "o.jsonl", "--config", "c.toml", "--processes", 2)

    found = cli("judge", *words)

    assert found.code == 2
    assert _needs("in.parquet: reading a table", "pyarrow", "parquet") in found.err
    assert not (folder / "o.jsonl.shards").exists()


@pytest.mark.parametrize(
    "words",
    [("judge", DEMO, "-o", "x.parquet", "--processes", 2, "--judge", "simulated:careful"),
     ("merge", "plan", "-o", "x.parquet")],
)  # fmt: skip
def test_shards_are_not_put_together_under_the_name_of_a_table(
    words: tuple[object, ...], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    found = cli(*words)

    assert found.code == 2
    assert "make the table of it with: dikast convert x.jsonl -o x.parquet" in found.err
    assert list(tmp_path.iterdir()) == []


def test_check_with_everything_there_is_ready_and_opens_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.toml").write_text(CONFIG)

    found = cli("check", DEMO, "-o", "x.parquet", "--sink", "kafka://h:1/t", "--config", "c.toml")

    assert found.code == 0
    assert found.out.endswith("ready to judge\n")
    assert [each.name for each in tmp_path.iterdir()] == ["c.toml"]


def test_check_tells_of_inputs_that_are_not_there_and_of_places_that_cannot_be_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.toml").write_text(CONFIG)

    found = cli("check", "no.jsonl", DEMO, "-o", "no/out.jsonl", "--config", "c.toml")

    assert found.code == 2
    assert "problem: no.jsonl: there is no such file\n" in found.out
    assert "problem: no/out.jsonl: there is no folder " in found.out
    assert found.out.endswith("2 problem(s)\n")
    assert [each.name for each in tmp_path.iterdir()] == ["c.toml"]


def test_a_check_of_a_shared_limit_that_does_not_answer_says_so(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(CONFIG + _SHARED)

    found = cli("check", "--config", config)

    assert found.code == 2
    assert "problem: " in found.out
    assert "127.0.0.1:1" in found.out
    assert cli("check", "--config", config, "--offline").code == 0
