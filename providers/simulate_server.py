"""The simulated judge behind real HTTP: an OpenAI-compatible server for demo, tests and load.

`POST /v1/chat/completions` and `/v1/embeddings`, `GET /v1/models` and `/stats`. Written on an
asyncio protocol, with as much of HTTP/1.1 as API clients speak (keep-alive, Content-Length bodies),
so that the server is not what a load test measures. Every answer says that it is simulated.
"""

import asyncio
from typing import cast

import msgspec
import orjson

from dikast.engine.clock import SystemClock
from dikast.engine.ports import Clock
from dikast.providers.embeddings import HashEmbedder
from dikast.providers.planted import simulated_answer
from dikast.providers.simulated import check_settings
from dikast.providers.simulation import Answer, SimulatedSettings
from dikast.providers.traffic import Traffic, TrafficStats
from dikast.providers.truth import TruthTable

HEAD_MAX_BYTES = 64 * 1024
_HEADS_MAX = 4096
BODY_MAX_BYTES = 32 * 1024 * 1024

_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    411: "Length Required",
    413: "Content Too Large",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
}


class SimulateServer:
    """A running server; made by `start`.

    Args:
        desk: answers requests.
        server: the listening socket.
    """

    def __init__(self, desk: "_Desk", server: asyncio.Server) -> None:
        self._desk = desk
        self._server = server
        self.port: int = server.sockets[0].getsockname()[1]
        host = server.sockets[0].getsockname()[0]
        self.host: str = f"[{host}]" if ":" in host else host

    def __repr__(self) -> str:
        return f"SimulateServer({self.url}, {self._desk.traffic})"

    @property
    def url(self) -> str:
        """The base URL for clients, ending in /v1."""
        return f"http://{self.host}:{self.port}/v1"

    def stats(self) -> TrafficStats:
        """What arrived so far."""
        return self._desk.traffic.stats()

    async def aclose(self) -> None:
        """Stop listening and drop all connections; may be called twice."""
        self._server.close()
        for line in list(self._desk.lines):
            line.drop()
        await self._server.wait_closed()


async def start(
    settings: SimulatedSettings,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    truth: TruthTable | None = None,
    api_key: str | None = None,
    clock: Clock | None = None,
) -> SimulateServer:
    """Serve a simulated judge; close the result with `aclose`.

    Args:
        settings: the judge's character, faults and limit.
        host: address to listen on; loopback unless said otherwise.
        port: 0 for any free one.
        truth: what the judge may know of the better answers.
        api_key: demand this key and answer 401 to any other; None takes every request.
        clock: drives the rate limit.

    Raises:
        ConfigError: a setting is out of range.
        OSError: the port cannot be had.
    """
    check_settings("simulate", settings)
    desk = _Desk(settings, truth, api_key, clock or SystemClock())
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Line(desk, loop), host, port, backlog=4096)
    return SimulateServer(desk, server)


# --- the requests -------------------------------------------------------------------------------


class _Turn(msgspec.Struct):
    content: str | None = None


class _Ask(msgspec.Struct):
    model: str
    messages: list[_Turn]
    seed: int | None = None
    logprobs: bool | None = None


class _Embed(msgspec.Struct):
    model: str
    input: list[str] | str


_ASKS = msgspec.json.Decoder(_Ask)
_EMBEDS = msgspec.json.Decoder(_Embed)
_RECORD = msgspec.json.Encoder()


class _Desk:
    """Answers requests: decides at once, and sends when the latency is over."""

    def __init__(
        self, settings: SimulatedSettings, truth: TruthTable | None, key: str | None, clock: Clock
    ) -> None:
        self._settings = settings
        self._truth = truth
        self._authorization = None if key is None else f"Bearer {key}".encode()
        self._clock = clock
        self.traffic = Traffic(settings, clock.now())
        self.lines: set[_Line] = set()
        self._heads: dict[bytes, _Head] = {}

    def answer(self, method: bytes, path: bytes, authorization: bytes, body: bytes) -> "_Plan":
        """What to do with a request. A chat request that is counted in must be counted out."""
        if path in (b"/v1/chat/completions", b"/chat/completions"):
            if method != b"POST":
                return _Plan(_failure(405, "use POST", "invalid_request_error"))
            return self._chat(authorization, body)
        if path in (b"/v1/embeddings", b"/embeddings"):
            if method != b"POST":
                return _Plan(_failure(405, "use POST", "invalid_request_error"))
            return self._embed(authorization, body)
        if path == b"/stats":
            return _Plan(_response(200, _RECORD.encode(self.traffic.stats())))
        if path in (b"/v1/models", b"/models"):
            if not self._welcome(authorization):
                return _Plan(_unauthorized())
            models = {"object": "list", "data": [{"id": "simulated", "object": "model"}]}
            return _Plan(_response(200, orjson.dumps(models)))
        return _Plan(_failure(404, "no such path", "not_found_error"))

    def head(self, lines: bytes) -> "_Head":
        """The headers in `lines`; remembered, for a client's requests differ in length at most."""
        head = self._heads.get(lines)
        if head is None:
            if len(self._heads) >= _HEADS_MAX:
                self._heads.clear()
            head = self._heads[lines] = _read_head(lines)
        return head

    def _welcome(self, authorization: bytes) -> bool:
        return self._authorization is None or authorization == self._authorization

    def _refused(self, authorization: bytes, now_s: float) -> "_Plan | None":
        """The answer to a request without the key or above the limit; None lets it in."""
        if not self._welcome(authorization):
            self.traffic.reject()
            return _Plan(_unauthorized())
        wait_s = self.traffic.arrive(now_s)
        if wait_s is None:
            return None
        text = f"Rate limit reached. Please try again in {wait_s:.3f}s."
        headers = b"Retry-After: %d\r\nretry-after-ms: %d\r\n" % (
            -int(-wait_s // 1),
            -int(-wait_s * 1000 // 1),
        )
        response = _failure(429, text, "rate_limit_exceeded", headers + self._limits(now_s))
        return _Plan(response, counted=True)

    def _embed(self, authorization: bytes, body: bytes) -> "_Plan":
        """Vectors of words, not of meaning, whatever the model is called."""
        now_s = self._clock.now()
        refused = self._refused(authorization, now_s)
        if refused is not None:
            return refused
        try:
            wanted = _EMBEDS.decode(body)
        except msgspec.DecodeError as error:
            response = _failure(400, f"bad request body: {error}", "invalid_request_error")
            return _Plan(response, counted=True)
        texts = [wanted.input] if isinstance(wanted.input, str) else wanted.input
        response = _response(200, _vectors_body(wanted.model, texts), self._limits(now_s))
        return _Plan(response, self._settings.latency_s, counted=True)

    def _chat(self, authorization: bytes, body: bytes) -> "_Plan":
        now_s = self._clock.now()
        refused = self._refused(authorization, now_s)
        if refused is not None:
            return refused
        try:
            ask = _ASKS.decode(body)
        except msgspec.DecodeError as error:
            response = _failure(400, f"bad request body: {error}", "invalid_request_error")
            return _Plan(response, counted=True)
        said = simulated_answer(
            self._settings,
            self._truth,
            ask.model,
            [turn.content or "" for turn in ask.messages],
            draw=ask.seed or 0,
            logprobs=bool(ask.logprobs),
        )
        match self.traffic.fault(said.digest):
            case "hang":
                return _Plan(None, counted=True, hang=True)
            case "reset":
                return _Plan(None, counted=True)
            case "error":
                response = _failure(500, "simulated failure", "server_error")
                return _Plan(response, counted=True)
            case "error_200":
                response = _response(200, _error_body("simulated failure [[A]]", "server_error"))
                return _Plan(response, counted=True)
            case None:
                response = _response(200, _chat_body(ask.model, said), self._limits(now_s))
                return _Plan(response, said.latency_s, counted=True)

    def _limits(self, now_s: float) -> bytes:
        limit, gate = self._settings.rate_limit, self.traffic.gate
        if limit is None or gate is None or not limit.headers:
            return b""
        left, full_s = gate.remaining(now_s)
        return (
            b"x-ratelimit-limit-requests: %d\r\nx-ratelimit-remaining-requests: %d\r\n"
            b"x-ratelimit-reset-requests: %dms\r\n"
            % (limit.requests_per_min, left, int(full_s * 1000))
        )


class _Plan(msgspec.Struct, gc=False):
    """What to send and when; no response means that the connection is closed or hangs."""

    response: bytes | None
    latency_s: float = 0.0
    counted: bool = False
    hang: bool = False


# --- the connections ----------------------------------------------------------------------------


class _Line(asyncio.Protocol):
    """One connection: takes requests apart, one at a time, and writes the answers."""

    def __init__(self, desk: _Desk, loop: asyncio.AbstractEventLoop) -> None:
        self._desk = desk
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._plan: _Plan | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._close_after = False
        self._continued = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of the protocol."""
        self._transport = cast(asyncio.Transport, transport)
        self._desk.lines.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone: what it waited for is over."""
        self._desk.lines.discard(self)
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        self._end_request()

    def data_received(self, data: bytes) -> None:
        """Part of the protocol."""
        self._buffer = self._buffer + data if self._buffer else data
        if self._plan is None:
            self._work()

    def drop(self) -> None:
        """Close the connection without a farewell."""
        if self._transport is not None:
            self._transport.abort()

    def _work(self) -> None:
        """Answer what is complete in the buffer, until an answer has to wait."""
        while self._plan is None and self._transport is not None and self._buffer:
            plan = self._next_plan()
            if plan is None:
                return
            self._plan = plan
            if plan.hang:
                return
            if plan.latency_s > 0:
                self._timer = self._loop.call_later(plan.latency_s, self._send_later)
                return
            self._send()

    def _next_plan(self) -> _Plan | None:
        """The next complete request, answered; None when more bytes are needed."""
        buffer = self._buffer
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(buffer) > HEAD_MAX_BYTES:
                return self._give_up(431)
            return None
        first, _, rest = buffer[:end].partition(b"\r\n")
        head = self._desk.head(rest)
        words = first.split(b" ")
        if len(words) != 3 or head.chunked:
            return self._give_up(411 if head.chunked else 400)
        if not 0 <= head.length <= BODY_MAX_BYTES:
            return self._give_up(413 if head.length > 0 else 400)
        total = end + 4 + head.length
        if len(buffer) < total:
            if head.expects and not self._continued and self._transport is not None:
                self._continued = True
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return None
        self._continued = False
        self._close_after = head.closes or words[2] == b"HTTP/1.0"
        self._buffer = buffer[total:]
        path = words[1].partition(b"?")[0]
        return self._desk.answer(words[0], path, head.authorization, buffer[end + 4 : total])

    def _give_up(self, status: int) -> _Plan:
        self._buffer = b""
        self._close_after = True
        return _Plan(_failure(status, _REASONS[status].lower(), "invalid_request_error"))

    def _send_later(self) -> None:
        self._timer = None
        self._send()
        self._work()

    def _send(self) -> None:
        plan, transport = self._plan, self._transport
        self._end_request()
        if plan is None or transport is None:
            return
        if plan.response is None:
            transport.abort()
            return
        transport.write(plan.response)
        if self._close_after:
            transport.close()
            self._transport = None

    def _end_request(self) -> None:
        plan, self._plan = self._plan, None
        if plan is not None and plan.counted:
            self._desk.traffic.leave()


class _Head(msgspec.Struct, frozen=True, gc=False):
    """The headers that matter here."""

    length: int = 0
    authorization: bytes = b""
    closes: bool = False
    expects: bool = False
    chunked: bool = False


def _read_head(lines: bytes) -> _Head:
    length, authorization, closes, expects, chunked = 0, b"", False, False, False
    for line in lines.split(b"\r\n"):
        name, _, value = line.partition(b":")
        value = value.strip()
        match name.strip().lower():
            case b"content-length":
                length = int(value) if value.isdigit() else -1
            case b"authorization":
                authorization = value
            case b"connection":
                closes = value.lower() == b"close"
            case b"expect":
                expects = value.lower() == b"100-continue"
            case b"transfer-encoding":
                chunked = True
            case _:
                pass
    return _Head(length, authorization, closes, expects, chunked)


# --- the answers --------------------------------------------------------------------------------


def _response(status: int, body: bytes, headers: bytes = b"") -> bytes:
    return (
        b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
        b"x-dikast-simulated: 1\r\n%s\r\n%s"
        % (status, _REASONS[status].encode(), len(body), headers, body)
    )


def _error_body(message: str, code: str) -> bytes:
    return orjson.dumps({"error": {"message": message, "type": code, "code": code}})


def _failure(status: int, message: str, code: str, headers: bytes = b"") -> bytes:
    return _response(status, _error_body(message, code), headers)


def _unauthorized() -> bytes:
    return _failure(401, "Incorrect API key provided.", "invalid_api_key")


def _chat_body(model: str, said: Answer) -> bytes:
    message: dict[str, object] = {"role": "assistant", "content": said.text, "refusal": None}
    if said.refusal:
        message = {"role": "assistant", "content": None, "refusal": "I cannot judge this."}
    choice: dict[str, object] = {"index": 0, "message": message, "finish_reason": said.finish}
    if said.logprobs is not None:
        tokens = [
            {
                "token": token.token,
                "logprob": token.logprob,
                "top_logprobs": [{"token": t.token, "logprob": t.logprob} for t in token.top],
            }
            for token in said.logprobs
        ]
        choice["logprobs"] = {"content": tokens}
    usage: dict[str, object] = {
        "prompt_tokens": said.usage.input,
        "completion_tokens": said.usage.output,
        "total_tokens": said.usage.input + said.usage.output,
    }
    if said.usage.cached_input:
        usage["prompt_tokens_details"] = {"cached_tokens": said.usage.cached_input}
    body = {
        "id": "chatcmpl-" + said.digest[:8].hex(),
        "object": "chat.completion",
        "created": 0,
        "model": f"simulated:{model}",
        "choices": [choice],
        "usage": usage,
    }
    return orjson.dumps(body)


def _vectors_body(model: str, texts: list[str]) -> bytes:
    embedder = HashEmbedder()
    rows = [
        {"object": "embedding", "index": at, "embedding": embedder.vector(text)}
        for at, text in enumerate(texts)
    ]
    return orjson.dumps({"object": "list", "model": f"simulated:{model}", "data": rows})
