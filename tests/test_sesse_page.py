"""docs/sesse.md shows what the commands print: every example is run, in the page's order."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from dikast.cli import main
from tests.cli.tools import simulate

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "sesse.md"
pytestmark = pytest.mark.realtime


def blocks() -> list[tuple[str, str]]:
    """Each command of the page with the output under it."""
    found = re.findall(r"```\n\$ (dikast [^\n]*)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(found) == 6
    return found


def told(where: str) -> list[tuple[str, str]]:
    """The blocks in the process, or those over a socket."""
    far = ("dikast simulate", "dikast sesse build api/data/demo_pairs.jsonl -o there.json")
    return [each for each in blocks() if each[0].startswith(far) == (where == "there")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with what the page's commands read."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(ROOT / "api" / "data", tmp_path / "api" / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def test_the_page_shows_what_the_commands_print(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for command, expected in told("here"):
        capfd.readouterr()
        code = main(shlex.split(command)[1:])
        out, err = capfd.readouterr()
        assert code == 0, err
        assert out.rstrip() == expected.rstrip(), command


def test_the_page_shows_the_same_library_over_a_socket(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (serve, address), (build, expected) = told("there")
    words = [word for word in shlex.split(serve)[2:] if word not in ("--port", "8123")]
    settings = re.search(r"```toml\n(\[providers\.there\]\n.*?)```", PAGE.read_text(), re.DOTALL)
    assert settings is not None
    with simulate(*words) as url:
        text = settings[1].replace(address.strip(), url)
        assert url in text
        (folder / "there.toml").write_text(text)
        capfd.readouterr()
        assert main(shlex.split(build.removesuffix(" | tail -n 1"))[1:]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == expected.strip()
    hashes = re.findall(r"library ([0-9a-f]{16})", PAGE.read_text())
    assert len(hashes) == 2
    assert len(set(hashes)) == 1
