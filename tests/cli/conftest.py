"""Command-line tests: `cli` runs a command in this process."""

import gc
from collections.abc import Iterator

import pytest

from tests.cli.tools import Cli


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    """The command line; what it does to the collector is undone."""
    threshold = gc.get_threshold()
    yield Cli(capfd)
    gc.set_threshold(*threshold)
    gc.unfreeze()
