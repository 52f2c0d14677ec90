"""One Redis for each test that asks for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis.servers import RedisServer, redis_server


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A server of its own; skipped with a reason where there is none."""
    with redis_server(tmp_path) as server:
        yield server
