"""docs/sesse.md shows what the commands print: every example is run, in the page's order."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from dikast.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "sesse.md"
pytestmark = pytest.mark.realtime


def examples() -> list[tuple[str, str]]:
    """Each command of the page with the output under it."""
    blocks = re.findall(
        r"```\n\$ (dikast sesse [^\n]*)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL
    )
    assert len(blocks) == 4
    return blocks


def test_the_page_shows_what_the_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(ROOT / "api" / "data", tmp_path / "api" / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for command, expected in examples():
        capfd.readouterr()
        code = main(shlex.split(command)[1:])
        out, err = capfd.readouterr()
        assert code == 0, err
        assert out.rstrip() == expected.rstrip(), command
