"""The commands shown in the pages of combinators, calibration and scoring print what is shown."""

import re
import shutil
from pathlib import Path

import pytest

from tests.cli.tools import Cli

pytestmark = pytest.mark.realtime
ROOT = Path(__file__).resolve().parents[2]


def shown(page: str) -> list[tuple[str, list[str]]]:
    """Every command of a page with the lines shown under it; "..." stands for any lines."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    out: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```\n(\$ .*?)```", text, flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            out.append((command, lines))
    return out


def printed(lines: list[str], text: str) -> bool:
    """Whether the lines stand in the text in this order; "..." within one is any text."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(re.escape("..."), ".+") + r"\n"
        for line in lines
    )
    return re.search(pattern, text) is not None


@pytest.mark.parametrize("page", ["strategies.md", "scoring.md", "confidence.md"])
def test_the_commands_of_a_page_print_what_it_shows(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    commands = shown(page)
    assert commands
    for command, lines in commands:
        program, *words = command.split()
        if program == "cat":
            Path(words[0]).write_text("".join(f"{line}\n" for line in lines), "utf-8")
            continue
        assert program == "dikast"
        ran = cli(*words)
        assert ran.code == 0, ran.err
        assert printed(lines, ran.out + ran.err), f"{command}\n{ran.out}{ran.err}"
