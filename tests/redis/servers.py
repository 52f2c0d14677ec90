"""A Redis of one's own, and a provider that counts what arrives when."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ports import free_port

_UP_S = 10.0


def require_redis() -> None:
    """Skip where there is no server, unless it was said to be there."""
    if shutil.which("redis-server") is None and not os.environ.get("DIKAST_REQUIRE_REDIS"):
        pytest.skip("no redis-server on this machine (apt-get install redis-server)")


class RedisServer:
    """`redis-server` on a free port of loopback; keeps nothing on disk."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        """Return when it answers."""
        self._process = subprocess.Popen(
            [
                *("redis-server", "--port", str(self.port), "--bind", "127.0.0.1"),
                *("--save", "", "--appendonly", "no", "--dir", str(self._folder), *more),
            ],
            stdout=subprocess.DEVNULL,
        )
        deadline_s = time.monotonic() + _UP_S
        while time.monotonic() < deadline_s:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.01)
        pytest.fail("redis-server did not come up")

    def stop(self) -> None:
        """Gone at once, as in a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    """A running server."""
    require_redis()
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def most_in_a_second(times_s: list[float]) -> int:
    """The most arrivals in any window of one second."""
    times_s = sorted(times_s)
    most, first = 0, 0
    for last, now_s in enumerate(times_s):
        while times_s[first] <= now_s - 1.0:
            first += 1
        most = max(most, last - first + 1)
    return most
