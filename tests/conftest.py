"""Every async test runs in virtual time unless it is marked `realtime`; no test leaves a task."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import settings

from tests.sim.vloop import VirtualLoop

# The same examples every time, and no verdict on how fast a busy machine runs them.
settings.register_profile("dikast", deadline=None, derandomize=True, database=None)
settings.load_profile("dikast")

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_configure() -> None:
    """One thread for linear algebra, here and in child processes.

    The tests' matrices are small and two tests run at a time: more threads wait for each other.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop of a test: virtual by default."""
    if item.get_closest_marker("realtime") is not None:
        return {"realtime": asyncio.SelectorEventLoop}
    return {"virtual": VirtualLoop}


@pytest_asyncio.fixture(autouse=True)
async def no_task_is_left() -> AsyncIterator[None]:
    """Fail a test that leaves a task running."""
    before = asyncio.all_tasks()
    yield
    mine = {asyncio.current_task()}
    left = [task for task in asyncio.all_tasks() - before - mine if not task.done()]
    assert not left, f"tasks left running: {left}"


@pytest.fixture
def data() -> Path:
    """The folder of real pairs and recorded judge outputs, or a skip that says so."""
    if not DATA.is_dir():
        pytest.skip("the shared data folder is not beside the project (../shared/data)")
    return DATA
