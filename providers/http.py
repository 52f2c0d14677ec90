"""The one owner of aiohttp: a call's bytes leave here and its answer's bytes come back.

One session per provider object, made inside the running loop when first needed. Every failure of
the network is named once, here, as a `ProviderError`; HTTP statuses are not failures here, they
are read by `classify`. Knows nothing of calls, judges or JSON.

The request slot is our own semaphore, not aiohttp's pool: a request that waits for a slot has no
clock running yet, and once it holds one a connection is there or is made at once.
"""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from typing import Any

import aiohttp

from dikast.engine.errors import ProviderError
from dikast.engine.ports import Clock
from dikast.providers.classify import safe_url
from dikast.providers.deadlines import Deadlines
from dikast.providers.transport import HttpLimits, HttpReply

# A server that closes an idle connection does so before it reads the request, so the news comes
# within a round trip. A connection that dies later may have died over our request.
REUSE_RACE_S = 1.0

_Address = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[Any, ...]]

_JSON_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "gzip, deflate"}


class HttpClient:
    """A `Transport` on aiohttp. Belongs to the event loop in which it is first used.

    Args:
        limits: sizes, times and the number of requests at once.
        clock: measures latency.
        headers: sent with every request; they hold the key and are never shown.
    """

    def __init__(
        self, limits: HttpLimits, clock: Clock, headers: Mapping[str, str] | None = None
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._headers = {**_JSON_HEADERS, **(headers or {})}
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._deadlines = Deadlines(limits.timeout_s, clock)
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        # Holds one flag per request: did it open its own connection? The socket factory sets it.
        # A trace config would tell the same for a third more time per call.
        self._opened: ContextVar[list[bool] | None] = ContextVar("opened", default=None)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self._session else "unused"
        return f"HttpClient({state}, concurrency {self._limits.concurrency})"

    def post_json(
        self, url: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> Awaitable[HttpReply]:
        """POST a JSON body and read the whole answer. Source: `Transport.post_json`.

        Args:
            url: the full address.
            body: encoded JSON.
            headers: added to the client's own.

        Raises:
            ProviderError: the network failed, the time ran out or the answer is too large.
        """
        return self._send("POST", url, body, headers)

    async def get(self, url: str) -> HttpReply:
        """GET `url`; raises as `post_json` does. Source: `Transport.get`."""
        return await self._send("GET", url, None, None)

    async def aclose(self) -> None:
        """Close the session and its connections; may be called twice."""
        self._closed = True
        self._deadlines.close()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _send(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str] | None
    ) -> HttpReply:
        async with self._slots:
            session = self._session or self._open()
            opened = [False]
            token = self._opened.set(opened)
            task = asyncio.current_task()
            assert task is not None
            cancelling = task.cancelling()
            start_s = self._clock.now()
            self._deadlines.start(task, start_s)
            try:
                async with session.request(
                    method,
                    url,
                    data=body,
                    headers=headers,
                    allow_redirects=False,
                    proxy=self._limits.proxy,
                ) as response:
                    data = await self._read(response)
                    status, received = response.status, response.headers
            except asyncio.CancelledError as error:
                # The deadline cancels, and so may others; only its own becomes a timeout.
                if not self._deadlines.stop(task) or task.uncancel() > cancelling:
                    raise
                failure = self._named(TimeoutError(), url, reused=False)
                cause = _cause(error)
            except (aiohttp.ClientError, OSError) as error:
                early = self._clock.now() - start_s < REUSE_RACE_S
                failure = self._named(error, url, reused=early and not opened[0])
                cause = _cause(error)
            else:
                latency_s = self._clock.now() - start_s
                return HttpReply(status=status, headers=received, body=data, latency_s=latency_s)
            finally:
                self._deadlines.stop(task)
                self._opened.reset(token)
            # Raised here, outside the handler, so that it does not carry the original along.
            raise failure from cause

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        """The body, given up as soon as it is known to pass the cap."""
        limit = self._limits.body_max_bytes
        if (response.content_length or 0) > limit:
            response.close()
            raise _too_large(limit, response.status)
        content = response.content
        data = await content.readany()
        if content.at_eof() and len(data) <= limit:
            return data
        chunks, size = [data], len(data)
        while size <= limit:
            data = await content.readany()
            if not data:
                return b"".join(chunks)
            chunks.append(data)
            size += len(data)
        response.close()
        raise _too_large(limit, response.status)

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise RuntimeError("the HTTP client is closed")
        limits = self._limits
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,  # the semaphore is the limit
                keepalive_timeout=limits.keepalive_s,
                ttl_dns_cache=60,
                socket_factory=self._new_socket,
            ),
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect_timeout_s),
        )
        return self._session

    def _new_socket(self, address: _Address) -> socket.socket:
        """Make the socket of a new connection and note whose request it serves."""
        opened = self._opened.get()
        if opened is not None:
            opened[0] = True
        family, kind, protocol = address[:3]
        return socket.socket(family, kind, protocol)

    def _named(
        self, error: aiohttp.ClientError | OSError, url: str, *, reused: bool
    ) -> ProviderError:
        """The `ProviderError` that stands for what aiohttp or the system reported."""
        where = safe_url(url)
        limits = self._limits
        if self._closed:
            return ProviderError("transient", "the provider was closed during the request")
        match error:
            case aiohttp.ConnectionTimeoutError():
                text = f"no connection to {where} within {limits.connect_timeout_s:g} s"
                return ProviderError("timeout", text)
            case TimeoutError():
                text = f"{where} sent no complete answer within {limits.timeout_s:g} s"
                return ProviderError("timeout", text)
            case aiohttp.ServerDisconnectedError() | ConnectionResetError() | BrokenPipeError():
                text = f"{where} closed the connection without an answer"
                return ProviderError("transient", text, reused_connection=reused)
            case aiohttp.ClientConnectorCertificateError():
                text = f"the TLS certificate of {where} is not trusted"
                return ProviderError("bad_request", text)
            case aiohttp.ClientConnectorDNSError():
                return ProviderError("transient", f"the host name of {where} cannot be resolved")
            case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
                return ProviderError("bad_request", f"{where} is not an http(s) address")
            case aiohttp.ClientPayloadError():
                return ProviderError("transient", f"the answer of {where} broke off")
            case aiohttp.ClientResponseError():
                return ProviderError("transient", f"the answer of {where} is not valid HTTP")
            case OSError():
                return self._named_os_error(error, where, reused=reused)
            case _:
                text = f"the request to {where} failed ({type(error).__name__})"
                return ProviderError("transient", text)

    def _named_os_error(self, error: OSError, where: str, *, reused: bool) -> ProviderError:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            text = (
                "too many open files: raise the limit (ulimit -n) above the concurrency of "
                f"{self._limits.concurrency}, or lower the concurrency"
            )
            return ProviderError("transient", text)
        if error.errno in (errno.ECONNRESET, errno.EPIPE):
            text = f"{where} closed the connection without an answer"
            return ProviderError("transient", text, reused_connection=reused)
        if error.errno == errno.ECONNREFUSED:
            return ProviderError("transient", f"{where} refused the connection: is it running?")
        reason = errno.errorcode.get(error.errno or 0, type(error).__name__)
        return ProviderError("transient", f"no connection to {where} ({reason})")


def _cause(error: BaseException) -> BaseException | None:
    # aiohttp's response errors hold the request's headers, and with them the key.
    return None if isinstance(error, aiohttp.ClientResponseError) else error


def _too_large(limit: int, status: int) -> ProviderError:
    text = f"the answer is larger than body_max_bytes ({limit} bytes)"
    return ProviderError("too_large", text, status=status)
