"""The labelling page over HTTP: static files, three calls, and who may make them.

In front of a `Desk`. Bound to loopback unless told otherwise. The page's files hold no data and
are open; every call needs the token, a JSON body and a Host that is this server's, so that no
other site and no other user of the machine can read or write labels. Answers are data: the page
gets them as JSON, under a content policy that runs no script but the page's own.
"""

import hmac
import socket
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any, Final, NamedTuple

import msgspec
from aiohttp import web

from dikast.audit_desk import Desk
from dikast.engine.errors import InputError, SinkError

_BODY_BYTES_MAX: Final = 64 * 1024
_PAGE: Final[dict[str, tuple[str, str]]] = {
    "/": ("index.html", "text/html"),
    "/audit.css": ("audit.css", "text/css"),
    "/audit.js": ("audit.js", "text/javascript"),
    "/words.js": ("words.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_EVERYWHERE: Final = ("0.0.0.0", "::", "")
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Who(msgspec.Struct, forbid_unknown_fields=True):
    annotator: str
    at: int = 0


class _Decided(msgspec.Struct, forbid_unknown_fields=True):
    annotator: str
    at: int
    choice: str
    duration_s: float | None = None


class AuditServer(NamedTuple):
    """A running server; made by `start`."""

    url: str
    runner: web.AppRunner

    async def aclose(self) -> None:
        """Stop listening; calls under way are finished first."""
        await self.runner.cleanup()


async def start(
    desk: Desk, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None
) -> AuditServer:
    """Serve the page; close the result with `aclose`.

    Args:
        desk: what is shown and decided.
        host: address to listen on.
        port: 0 for any free one.
        token: what a call must carry; None lets every local process in.

    Raises:
        OSError: the address cannot be had.
    """
    calls = _Calls(desk, token, anywhere=host in _EVERYWHERE)
    app = web.Application(middlewares=[calls.guard], client_max_size=_BODY_BYTES_MAX)
    app.add_routes([web.get(path, _file(*page)) for path, page in _PAGE.items()])
    app.add_routes(
        [
            web.post("/api/session", calls.session),
            web.post("/api/item", calls.item),
            web.post("/api/label", calls.label),
        ]
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=5.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError:
        await runner.cleanup()
        raise
    shown = "127.0.0.1" if host in _EVERYWHERE else f"[{host}]" if ":" in host else host
    bound = runner.addresses[0][1]
    calls.hosts = {f"{name}:{bound}" for name in (shown, "localhost", "127.0.0.1", "[::1]")}
    return AuditServer(f"http://{shown}:{bound}/", runner)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address of that name."""
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        return False
    return all(str(each[4][0]) == "::1" or str(each[4][0]).startswith("127.") for each in found)


class _Calls:
    """The three calls, and the guard before them."""

    def __init__(self, desk: Desk, token: str | None, *, anywhere: bool) -> None:
        self._desk = desk
        self._token = token
        self._anywhere = anywhere
        self.hosts: set[str] = set()

    @property
    def guard(self) -> Any:
        """Middleware: refuses strangers, puts the headers on, makes errors one sentence."""

        @web.middleware
        async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
            refusal = self._refusal(request)
            if refusal is not None:
                response: web.StreamResponse = _reply({"error": refusal[1]}, refusal[0])
            else:
                response = await _answered(request, handler)
            response.headers.update(_HEADERS)
            return response

        return guard

    def _refusal(self, request: web.Request) -> tuple[int, str] | None:
        """Why a request is not let in. A name that is rebound to this address is a stranger."""
        if not self._anywhere and request.host.lower() not in self.hosts:
            return 403, "this server has another name; open the address that the terminal printed"
        if not request.path.startswith("/api/"):
            return None
        if request.content_type != "application/json":
            return 415, "a call has a JSON body"
        if self._token is None:
            return None
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return 401, "the token is missing or wrong; open the address that the terminal printed"
        return None

    async def session(self, request: web.Request) -> web.Response:
        """How far an annotator is."""
        who = msgspec.json.decode(await request.read(), type=_Who)
        return _reply(self._desk.session(who.annotator))

    async def item(self, request: web.Request) -> web.Response:
        """One place of an annotator's queue."""
        who = msgspec.json.decode(await request.read(), type=_Who)
        return _reply(self._desk.show(who.annotator, who.at))

    async def label(self, request: web.Request) -> web.Response:
        """A decision; answered when the device has it."""
        done = msgspec.json.decode(await request.read(), type=_Decided)
        return _reply(
            await self._desk.decide(done.annotator, done.at, done.choice, done.duration_s)
        )


async def _answered(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _reply({"error": error.reason}, error.status)
    except (msgspec.DecodeError, InputError) as error:
        return _reply({"error": str(error)}, 400)
    except SinkError as error:
        return _reply({"error": str(error)}, 507)


def _reply(content: Mapping[str, Any], status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(content), status=status, content_type="application/json"
    )


def _file(name: str, content_type: str) -> _Handler:
    body = files("dikast.data").joinpath("audit", name).read_bytes()

    async def serve(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type=content_type, charset="utf-8")

    return serve
