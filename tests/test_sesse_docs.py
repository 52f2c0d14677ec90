"""The page on evaluating SESSE: its commands run as they stand and print what it shows."""

import re
import shlex
from pathlib import Path

import pytest

from dikast.config import load_settings
from tests.cli.tools import Cli

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "sesse-evaluate.md").read_text("utf-8")
BLOCK = re.compile(r"^```\n\$ dikast (.*)\n((?:.*\n)*?)```$", re.MULTILINE)
pytestmark = pytest.mark.realtime


def rooted(word: str) -> str:
    return str(ROOT / word) if word.startswith(("examples/", "api/")) else word


def unhashed(text: str) -> str:
    """Without the hashes of libraries, which change with any word of a prompt."""
    return re.sub(r"\b[0-9a-f]{16}\b", "HASH", text)


def test_the_commands_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    cli = Cli(capfd)
    found = BLOCK.findall(PAGE)
    assert [command.split()[:2] for command, _ in found] == [
        ["sesse", "tune"],
        ["judge", "api/data/demo_pairs.jsonl"],
        ["sesse", "evaluate"],
        ["sesse", "baselines"],
    ]
    for command, shown in found:
        ran = cli(*map(rooted, shlex.split(command)))
        assert ran.code == 0, ran.err
        assert unhashed(shown).rstrip("\n") in unhashed(ran.out)
    assert (tmp_path / "report.html").stat().st_size > 5000


def test_every_field_of_the_table_is_a_field_of_the_strategy() -> None:
    rows = re.findall(r"^\| `(\w+)`(?:, `(\w+)`)? \|", PAGE, re.MULTILINE)
    named = {name for row in rows for name in row if name}
    config = load_settings(ROOT / "examples" / "sesse.toml").strategy
    assert config is not None
    assert named <= set(config.__struct_fields__)
    assert {"mode", "ladder", "early_stop", "wave", "batch"} <= named
