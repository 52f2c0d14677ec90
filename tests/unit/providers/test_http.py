"""The HTTP client over loopback: every way a network fails has one name, and none shows the key."""

import asyncio
import json
import socket
from email.utils import formatdate

import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.errors import ProviderError
from dikast.providers import OpenAIChatSettings, build
from dikast.providers.http import HttpClient
from dikast.providers.transport import HttpLimits
from tests.unit.providers.calls import call_of, pair_of
from tests.unit.providers.wire import Handler, always, read_request, response, serve

pytestmark = pytest.mark.realtime

KEY = "sk-very-secret-key-1234567890"
GOOD = response(
    200,
    json.dumps(
        {"choices": [{"message": {"content": "[[A]]"}, "finish_reason": "stop"}], "model": "m"}
    ).encode(),
    "Content-Type: application/json",
)


def client_of(**limits: float) -> HttpClient:
    known = {"timeout_s": 5.0, "connect_timeout_s": 2.0, **limits}
    headers = {"Authorization": f"Bearer {KEY}"}
    return HttpClient(HttpLimits(**known), SystemClock(), headers)  # type: ignore[arg-type]


async def post(client: HttpClient, url: str) -> bytes:
    return (await client.post_json(url, b'{"x": 1}')).body


async def error_of(handler: Handler, **limits: float) -> ProviderError:
    """The error of one request to a server with this behaviour; it must not show the key."""
    client = client_of(**limits)
    async with serve(handler) as url:
        with pytest.raises(ProviderError) as caught:
            await post(client, url)
        await client.aclose()
    error = caught.value
    shown = f"{error!r} {error} {error.__cause__!r} {error.__context__!r} {client!r}"
    assert KEY not in shown
    return error


async def complete(url: str, **settings: object) -> str:
    """One judge call through the whole OpenAI provider."""
    env = {"KEY": KEY}
    chosen = OpenAIChatSettings(base_url=url, api_key_env="KEY", **settings)  # type: ignore[arg-type]
    provider = build("p", chosen, clock=SystemClock(), env=env)
    try:
        return (await provider.complete(call_of(pair_of(1)))).completion.text
    finally:
        await provider.aclose()


async def test_a_request_carries_body_and_key_and_returns_what_came() -> None:
    seen: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(response(418, b"short", "X-Name: value"))

    client = client_of()
    async with serve(handler) as url:
        reply = await client.post_json(url + "/chat", b'{"x": 1}', {"X-More": "m"})
        await client.aclose()
    assert (reply.status, reply.body, reply.headers["x-name"]) == (418, b"short", "value")
    assert reply.latency_s >= 0
    head = seen[0].lower()
    assert seen[0].startswith(b"POST /v1/chat HTTP/1.1")
    assert seen[0].endswith(b'{"x": 1}')
    assert b"content-type: application/json" in head
    assert b"x-more: m" in head
    assert f"bearer {KEY}".encode() in head


async def test_a_dead_port_is_transient_and_says_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening
        client = client_of()
        with pytest.raises(ProviderError) as caught:
            await post(client, f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        await client.aclose()
    assert caught.value.kind == "transient"
    assert "refused the connection" in caught.value.message
    assert not caught.value.reused_connection


async def test_a_server_that_never_answers_is_a_timeout() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    error = await error_of(handler, timeout_s=0.2)
    assert error.kind == "timeout"
    assert "0.2 s" in error.message


async def test_a_server_that_drips_bytes_for_ever_is_a_timeout() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.02)

    assert (await error_of(handler, timeout_s=0.3)).kind == "timeout"


async def test_waiting_for_a_slot_is_not_waiting_for_an_answer() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader):
            await asyncio.sleep(0.15)
            writer.write(GOOD)

    client = client_of(concurrency=1, timeout_s=0.4)
    async with serve(handler) as url:
        # Five in a row take longer than the timeout; each alone does not.
        replies = await asyncio.gather(*(client.post_json(url, b"{}") for _ in range(5)))
        await client.aclose()
    assert all(reply.status == 200 and reply.latency_s < 0.4 for reply in replies)


async def test_no_more_requests_are_on_the_wire_than_the_concurrency_allows() -> None:
    open_now, peak = 0, 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now, peak
        while await read_request(reader):
            open_now += 1
            peak = max(peak, open_now)
            await asyncio.sleep(0.02)
            open_now -= 1
            writer.write(GOOD)

    client = client_of(concurrency=3)
    async with serve(handler) as url:
        await asyncio.gather(*(post(client, url) for _ in range(12)))
        await client.aclose()
    assert peak == 3


async def test_a_reset_on_a_new_connection_is_transient_and_not_the_pools_fault() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.transport.abort()

    error = await error_of(handler)
    assert error.kind == "transient"
    assert not error.reused_connection


async def dying_after(answers: int, pause_s: float = 0.0) -> ProviderError:
    """The error of a request on a connection whose server gives up after so many answers."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(answers):
            await read_request(reader)
            writer.write(GOOD)
        await read_request(reader)
        await asyncio.sleep(pause_s)

    client = client_of()
    async with serve(handler) as url:
        for _ in range(answers):
            await post(client, url)
        with pytest.raises(ProviderError) as caught:
            await post(client, url)
        # The pool has let go of the dead connection: the next request opens a new one.
        assert await post(client, url)
        await client.aclose()
    return caught.value


async def test_a_connection_that_was_dead_when_taken_from_the_pool_is_told_apart() -> None:
    error = await dying_after(2)
    assert error.kind == "transient"
    assert error.reused_connection


async def test_a_reused_connection_that_dies_over_the_request_is_an_ordinary_failure() -> None:
    error = await dying_after(1, pause_s=1.2)
    assert error.kind == "transient"
    assert not error.reused_connection


@pytest.mark.parametrize("chunked", [False, True])
async def test_an_answer_above_the_cap_is_given_up_early(chunked: bool) -> None:
    sent = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await read_request(reader)
        head = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {1 << 30}"
        writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        while sent < 1 << 28:
            writer.write(piece)
            await writer.drain()
            sent += len(piece)

    error = await error_of(handler, body_max_bytes=100_000)
    assert error.kind == "too_large"
    assert "100000 bytes" in error.message
    assert sent < 1 << 26


async def test_an_answer_at_the_cap_is_read() -> None:
    client = client_of(body_max_bytes=200_000)
    async with serve(always(response(200, b"y" * 200_000))) as url:
        assert len(await post(client, url)) == 200_000
        await client.aclose()


async def test_an_answer_that_breaks_off_is_transient() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    error = await error_of(handler)
    assert error.kind == "transient"
    assert "broke off" in error.message


async def test_an_answer_that_is_not_http_is_transient_and_hides_the_request() -> None:
    error = await error_of(always(b"SSH-2.0-OpenSSH_9.0\r\n\r\n"))
    assert error.kind == "transient"
    assert error.__cause__ is None


async def test_an_unusable_address_is_a_bad_request() -> None:
    client = client_of()
    for url in ("http://", "ftp://host/x"):
        with pytest.raises(ProviderError) as caught:
            await post(client, url)
        assert caught.value.kind == "bad_request"
    await client.aclose()


async def test_a_redirect_is_not_followed_with_the_key() -> None:
    async with serve(always(response(307, b"", "Location: http://127.0.0.1:1/"))) as url:
        with pytest.raises(ProviderError) as caught:
            await complete(url)
    assert caught.value.kind == "bad_request"
    assert "base_url" in caught.value.message


async def test_cancelling_a_request_frees_its_slot() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"slow" in await read_request(reader):
            await asyncio.sleep(60)
        writer.write(GOOD)

    client = client_of(concurrency=1)
    async with serve(handler) as url:
        slow = asyncio.ensure_future(client.post_json(url, b'"slow"'))
        await asyncio.sleep(0.05)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        async with asyncio.timeout(2):
            assert await post(client, url)
        await client.aclose()


async def test_a_client_closes_twice_and_then_refuses_work() -> None:
    client = client_of()
    async with serve(always(GOOD)) as url:
        await post(client, url)
        await client.aclose()
        await client.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            await post(client, url)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b"[[A]] is no JSON", "malformed"),
        (200, b'{"error": {"message": "down [[A]]", "type": "server_error"}}', "transient"),
        (401, f'{{"error": {{"message": "Incorrect API key: {KEY}"}}}}'.encode(), "auth"),
        (429, b'{"error": {"code": "insufficient_quota", "message": "pay"}}', "quota"),
        (503, b"<html>overloaded</html>", "transient"),
    ],
)
async def test_what_a_server_answers_is_classified(status: int, body: bytes, kind: str) -> None:
    async with serve(always(response(status, body))) as url:
        with pytest.raises(ProviderError) as caught:
            await complete(url)
    assert caught.value.kind == kind
    assert caught.value.status == status
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (["Retry-After: 2"], 2),
        (["Retry-After-Ms: 1500"], 1.5),
        (
            [
                f"Retry-After: {formatdate(1_700_000_030, usegmt=True)}",
                f"Date: {formatdate(1_700_000_000, usegmt=True)}",
            ],
            30,
        ),
    ],
)
async def test_a_429_says_how_long_to_wait(headers: list[str], seconds: float) -> None:
    async with serve(always(response(429, b"", *headers))) as url:
        with pytest.raises(ProviderError) as caught:
            await complete(url)
    assert (caught.value.kind, caught.value.retry_after_s) == ("rate", seconds)


async def test_a_good_answer_is_a_completion() -> None:
    async with serve(always(GOOD)) as url:
        assert await complete(url) == "[[A]]"
