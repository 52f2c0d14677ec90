"""docs/sesse.md shows what the commands print: every example is run, in the page's order."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.tools import child

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


def test_the_page_shows_what_the_commands_print(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(ROOT / "api" / "data", tmp_path / "api" / "data")
    for command, expected in examples():
        process = child(*shlex.split(command)[1:], cwd=tmp_path, env={"COLUMNS": "120"})
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert out.rstrip() == expected.rstrip(), command
