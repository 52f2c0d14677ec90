"""One Slurm for the tests that ask for it."""

import os
from collections.abc import Iterator

import pytest

from tests.scale.slurm import Slurm, why_no_slurm


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Skipped where there is no Slurm, an error where it was said to be there."""
    reason = why_no_slurm()
    if reason is not None and not os.environ.get("DIKAST_REQUIRE_SLURM"):
        pytest.skip(reason)
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    cluster.start()
    yield cluster
    cluster.stop()
