"""The example on the page about scaling out prints what the page says."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.tools import DEMO, Cli

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale-out.md"


def test_the_example_prints_what_the_page_shows(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PAGE.read_text("utf-8")
    example = text.partition("<!-- example: begin -->\n```\n")[2].partition("```")[0]
    shutil.copy(DEMO, tmp_path / "pairs.jsonl")
    monkeypatch.chdir(tmp_path)
    printed = ""
    for line in example.splitlines():
        if line.startswith("$ dikast "):
            ran = cli(*shlex.split(line.removeprefix("$ dikast ")))
            printed += f"{line}\n{ran.out}{ran.err}"

    # The spec changes with every version of a prompt; that is not what the page is about.
    same = re.compile(r"spec [0-9a-f]{16}")
    assert same.sub("spec", printed) == same.sub("spec", example)
