"""Ports for servers that tests start."""

import contextlib
import random
import socket


def free_port(together: int = 1) -> int:
    """A port of loopback that was free a moment ago, with as many as asked for behind it.

    Below those that the system gives to clients: a server takes a while to start, or is started
    again, and meanwhile one of these would be given away now and again.
    """
    chance = random.SystemRandom()
    while True:
        first = chance.randrange(15_000, 30_000)
        with contextlib.ExitStack() as tried, contextlib.suppress(OSError):
            for port in range(first, first + together):
                tried.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
