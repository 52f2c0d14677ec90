"""A real small model behind an OpenAI-compatible endpoint, for tests that ask for it.

`local_server` gives its address and the model's name. It is skipped unless DIKAST_LOCAL_MODEL names
a GGUF file and xllamacpp can be imported, here or in the environment of scripts/local_model.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.conftest import cli as cli

ROOT = Path(__file__).resolve().parents[2]
OWN_PYTHON = ROOT / ".local-model" / "venv" / "bin" / "python"
STOP_S = 20


class LocalServer(NamedTuple):
    """A running server: the address up to and with /v1, and the name of its model."""

    base_url: str
    model: str

    def provider(self) -> dict[str, object]:
        """A `[providers.NAME]` table for it; one call at a time, as it has one slot."""
        return {
            "kind": "openai",
            "base_url": self.base_url,
            "api_key_env": "",
            "concurrency": 1,
            "timeout_s": 600.0,
        }


def interpreter() -> str | None:
    """A Python that has xllamacpp."""
    if find_spec("xllamacpp") is not None:
        return sys.executable
    return str(OWN_PYTHON) if OWN_PYTHON.exists() else None


@pytest.fixture(scope="session")
def local_server() -> Iterator[LocalServer]:
    """The server of the model, started once for all tests that use it."""
    model = os.environ.get("DIKAST_LOCAL_MODEL")
    if not model:
        pytest.skip("DIKAST_LOCAL_MODEL names no GGUF file; see docs/local-model.md")
    if not Path(model).is_file():
        pytest.skip(f"DIKAST_LOCAL_MODEL: there is no file {model}")
    python = interpreter()
    if python is None:
        pytest.skip("xllamacpp is not installed; scripts/local_model makes an environment with it")
    with subprocess.Popen(
        [python, str(ROOT / "scripts" / "local_model_server.py"), model],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            base_url = process.stdout.readline().strip()
            assert base_url.startswith("http://127.0.0.1:"), "the server did not start"
            yield LocalServer(base_url, "local")
        finally:
            process.stdin.close()  # its end is the server's signal to stop
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
