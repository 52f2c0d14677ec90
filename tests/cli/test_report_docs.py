"""The pages on agreement, biases and the report show what their commands print, word for word."""

import re
from pathlib import Path

import pytest

from tests.cli.tools import DEMO, Cli

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["agreement.md", "bias.md", "report.md"])
def test_the_tables_of_a_page_are_what_its_commands_print(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.jsonl").write_bytes(DEMO.read_bytes())
    example = (DOCS / page).read_text("utf-8").partition("## Example")[2]
    blocks = re.findall(r"```(sh|text)\n(.*?)```", example, flags=re.DOTALL)
    printed = ""
    shown = 0
    for kind, text in blocks:
        if kind == "sh":
            for line in text.splitlines():
                ran = cli(*line.removeprefix("dikast ").split())
                assert ran.code == 0, ran.err
                printed = ran.out
        else:
            assert text.strip() in printed
            shown += 1
    assert shown >= 3
