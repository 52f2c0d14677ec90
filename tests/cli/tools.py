"""Running the command line in tests: in this process, or as a child over loopback HTTP."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest

from dikast.cli import main

DEMO = Path(__file__).resolve().parents[2] / "api" / "data" / "demo_pairs.jsonl"


class Ran(NamedTuple):
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        """The `--json` object."""
        found: dict[str, Any] = json.loads(self.out)
        return found


class Cli:
    """`cli("judge", ...)` runs `main` in this process and returns what came of it."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *words: object) -> Ran:
        self._capfd.readouterr()
        code = main([str(word) for word in words])
        captured = self._capfd.readouterr()
        assert "Traceback" not in captured.err
        return Ran(code, captured.out, captured.err)


def child(
    *words: object, env: Mapping[str, str] | None = None, **kwargs: Any
) -> subprocess.Popen[str]:
    """The command line as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "dikast", *map(str, words)],
        stdout=kwargs.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
        **kwargs,
    )


@contextmanager
def simulate(*words: object, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """`dikast simulate` in a process of its own; the address it serves."""
    process = child("simulate", *words, env=env)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://"), process.stderr.read() if process.stderr else ""
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        assert process.returncode == 0


@contextmanager
def answering(status: int, body: Mapping[str, Any]) -> Iterator[str]:
    """A server that answers everything alike; its address."""
    text = json.dumps(body).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The lines of an output."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def stored_rows(store: Path) -> int:
    """Rows that a process has put into a call store so far; 0 while it is only being made."""
    if not store.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=1)) as found:
            return int(found.execute("select count(*) from log").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def manifest_of(path: Path) -> dict[str, Any]:
    """The manifest beside an output."""
    found: dict[str, Any] = json.loads(
        path.with_name(path.name + ".manifest.json").read_text("utf-8")
    )
    return found


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A JSONL file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def pair(number: int, **more: Any) -> dict[str, Any]:
    """A small pair."""
    return {
        "id": f"p{number}",
        "question": f"question {number}",
        "response_a": f"answer a {number}",
        "response_b": f"answer b {number}",
        **more,
    }
