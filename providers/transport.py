"""How a call's bytes travel: the record of a reply, the limits of a connection, the seam.

A provider turns a call into bytes and hands them to a `Transport`; what comes back is judged by
`classify` and decoded by the provider. Nothing here knows judges, models or any HTTP library, so
a faster transport can take `http.py`'s place.
"""

from collections.abc import Awaitable, Mapping
from typing import Protocol

from dikast.engine.model import Record


class HttpLimits(Record, frozen=True):
    """The bounds of one provider's connections. Every wait and every size has one."""

    concurrency: int = 512
    """Requests on the wire at once; also the number of connections kept open."""
    connect_timeout_s: float = 10.0
    """Seconds until a TCP (and TLS) connection must stand."""
    timeout_s: float = 120.0
    """Seconds from sending a request to the last byte of its answer."""
    body_max_bytes: int = 8 * 1024 * 1024
    """An answer larger than this is given up as `too_large`."""
    keepalive_s: float = 4.0
    """Seconds an idle connection is kept; many servers drop theirs after 5 s."""
    proxy: str | None = None
    """Address of an HTTP proxy, or None for none. The environment is not consulted."""


class HttpReply(Record, frozen=True):
    """An answer as it came, whatever its status. `latency_s` runs from send to last byte."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    latency_s: float


class Transport(Protocol):
    """Sends a request once: no retry, no classification of statuses."""

    def post_json(
        self, url: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> Awaitable[HttpReply]:
        """Send a JSON body and read the whole answer.

        Raises:
            ProviderError: "transient", "timeout", "too_large" or "bad_request" (unusable address).
        """
        ...

    async def get(self, url: str) -> HttpReply:
        """Fetch `url`; raises as `post_json` does. For reachability checks."""
        ...

    async def aclose(self) -> None:
        """Close connections; may be called twice."""
        ...
