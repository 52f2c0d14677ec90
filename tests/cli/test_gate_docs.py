"""The console examples of docs/anchors.md and docs/injection.md, run as they stand.

`python -m tests.cli.test_gate_docs` writes the outputs anew after a change.
"""

import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.tools import DEMO
from tests.ports import free_port

pytestmark = pytest.mark.realtime
ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
SERVER = re.compile(r"dikast simulate --port 8123 --truth pairs.jsonl --set accuracy=([\d.]+)")
AGAIN = re.compile(r"--set accuracy=([\d.]+)`")
# What differs from run to run.
LOOSE = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00|\bspec [0-9a-f]{16}|, \d+ s$", re.MULTILINE)


def transcript(page: str, folder: Path, port: int) -> Iterator[tuple[str, str]]:
    """Each command of the page with what it prints, run in order."""
    config = re.search(r"```toml\n(\[providers.*?)```", page, re.DOTALL)
    assert config is not None
    (folder / "judge.toml").write_text(config[1].replace("8123", str(port)), "utf-8")
    (folder / "pairs.jsonl").write_bytes(DEMO.read_bytes())
    accuracies = [*SERVER.findall(page)[:1], *AGAIN.findall(page)[1:2]]
    blocks = BLOCK.findall(page)
    for number, block in enumerate(blocks):
        accuracy = accuracies[min(number, 1)] if accuracies else None
        with served(folder, port, accuracy):
            for command in re.findall(r"^\$ (dikast .*)$", block, re.MULTILINE):
                yield command, printed(command, folder)


@contextmanager
def served(folder: Path, port: int, accuracy: str | None) -> Iterator[None]:
    if accuracy is None:
        yield
        return
    words = ("--port", str(port), "--truth", "pairs.jsonl", "--set", f"accuracy={accuracy}")
    process = subprocess.Popen(
        [sys.executable, "-m", "dikast", "simulate", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def printed(command: str, folder: Path) -> str:
    """Standard output and error as on a terminal, and `echo $?` where the status is not 0."""
    words = shlex.split(command)
    assert words[0] == "dikast"
    ran = subprocess.run(
        [sys.executable, "-m", "dikast", *words[1:]],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={"PATH": "", "COLUMNS": "120"},
    )
    status = f"$ echo $?\n{ran.returncode}\n" if ran.returncode else ""
    return ran.stdout + status


@pytest.mark.parametrize("name", ["anchors.md", "injection.md"])
def test_the_examples_print_what_the_page_shows(name: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / name).read_text("utf-8")
    shown = LOOSE.sub("*", "".join(BLOCK.findall(page)))
    ran = "".join(
        f"$ {command}\n{text}" for command, text in transcript(page, tmp_path, free_port())
    )
    assert LOOSE.sub("*", ran) == shown


def write_anew(name: str) -> None:
    """Put the real outputs into a page."""
    path = ROOT / "docs" / name
    page = path.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        outputs = dict(transcript(page, Path(folder), free_port()))
    blocks = [re.findall(r"^\$ (dikast .*)$", block, re.MULTILINE) for block in BLOCK.findall(page)]
    texts = iter("".join(f"$ {one}\n{outputs[one]}" for one in block) for block in blocks)
    path.write_text(BLOCK.sub(lambda _: f"```console\n{next(texts)}```", page), "utf-8")


if __name__ == "__main__":
    for each in ("anchors.md", "injection.md"):
        write_anew(each)
