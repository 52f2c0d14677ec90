"""A web service with one pair or a stream of pairs per request, over one engine.

    python examples/aiohttp_service.py --port 8099
    curl -d '{"id": "1", "question": "2 + 2?", "response_a": "4", "response_b": "5"}' \
        http://127.0.0.1:8099/judge
    curl -T pairs.jsonl -X POST http://127.0.0.1:8099/judge/stream

Without `--base-url` the judge is simulated, in this process: no key, no cost, and every outcome
says so. One engine lives as long as the application, so pacing and single flight hold across all
requests. A client that hangs up cancels its own pairs and nobody else's.
"""

import argparse
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import msgspec
from aiohttp import web

from dikast import Engine, Failed, Outcome, Pair, RunStopped
from dikast.config import parse_settings
from dikast.wiring import build_engine

ENGINE = web.AppKey("engine", Engine)
LINE_BYTES_MAX = 1 << 20


async def judge(request: web.Request) -> web.Response:
    """POST /judge: one pair in, one outcome out."""
    try:
        pair = msgspec.json.decode(await request.read(), type=Pair)
    except msgspec.DecodeError as error:
        raise web.HTTPBadRequest(text=f"not a pair: {error}") from error
    try:
        outcome = await request.app[ENGINE].judge_one(pair)
    except RunStopped as stop:  # quota, budget or key: asking again does not help
        raise web.HTTPServiceUnavailable(text=str(stop)) from stop
    return web.Response(body=msgspec.json.encode(outcome), content_type="application/json")


async def judge_stream(request: web.Request) -> web.StreamResponse:
    """POST /judge/stream: JSON lines of pairs in, JSON lines of outcomes out, as they complete.

    The body is read as the engine takes pairs in and not before. A line that is no pair comes
    back as a failed outcome; the others go on.
    """
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await response.prepare(request)
    bad: list[Outcome] = []
    engine = request.app[ENGINE]
    try:
        # aclosing: when the client hangs up, its pairs are cancelled before the handler ends.
        async with aclosing(engine.judge(read_pairs(request, bad))) as outcomes:
            async for outcome in outcomes:
                await response.write(to_lines([*bad, outcome]))
                bad.clear()
        await response.write(to_lines(bad))
    except RunStopped as stop:  # the status line is long gone, so the last line tells
        await response.write(to_lines([*bad, {"kind": "stopped", "message": str(stop)}]))
    await response.write_eof()
    return response


async def read_pairs(request: web.Request, bad: list[Outcome]) -> AsyncIterator[Pair]:
    """The pairs of a body of JSON lines; what is none is put into `bad`."""
    number = 0
    async with aclosing(read_lines(request)) as lines:
        async for line in lines:
            number += 1
            if not line.strip():
                continue
            if len(line) > LINE_BYTES_MAX:
                bad.append(bad_line(number, f"over {LINE_BYTES_MAX} bytes; it was not read"))
                continue
            try:
                pair = msgspec.json.decode(line, type=Pair)
            except msgspec.DecodeError as error:
                bad.append(bad_line(number, str(error)))
                continue
            yield pair


def bad_line(number: int, problem: str) -> Outcome:
    """What becomes of a line that is no pair."""
    where = f"line {number}"
    return Failed(id=where, reason="bad_row", message=f"{where}: {problem}", line=number)


async def read_lines(request: web.Request) -> AsyncGenerator[bytes, None]:
    """Lines of the body, never holding more than one of `LINE_BYTES_MAX` and a chunk.

    A line that outgrows that is cut short, which the reader sees by its length; what is left of
    it is passed over, so that the client can send to the end and the next line is read again.
    """
    rest = b""
    async for chunk in request.content.iter_any():
        first, *more = chunk.split(b"\n")
        if len(rest) <= LINE_BYTES_MAX:
            rest += first
        for line in more:
            yield rest
            rest = line
    yield rest


def to_lines(records: list[Any]) -> bytes:
    """JSON lines."""
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def make_app(open_engine: Callable[[], Engine]) -> web.Application:
    """The service; `open_engine` is called once, when it starts."""

    async def engine_of(app: web.Application) -> AsyncIterator[None]:
        async with open_engine() as engine:
            app[ENGINE] = engine
            yield

    app = web.Application()
    app.cleanup_ctx.append(engine_of)
    app.router.add_post("/judge", judge)
    app.router.add_post("/judge/stream", judge_stream)
    return app


def settings_of(base_url: str | None, model: str, api_key_env: str) -> dict[str, Any]:
    """What a configuration file would say, as plain data (docs/configuration.md)."""
    provider: dict[str, Any] = {"kind": "simulated", "latency_s": 0.05}
    if base_url is not None:
        provider = {"kind": "openai", "base_url": base_url, "api_key_env": api_key_env}
    return {
        "providers": {"main": provider},
        "judges": {"judge": {"provider": "main", "model": model}},
        "strategy": {"kind": "swap", "inner": {"kind": "pairwise", "judge": "judge"}},
        # Every open stream has as many workers; pacing is shared by all of them.
        "run": {"workers": 32},
    }


def main() -> None:
    """Read the command line and serve until interrupted."""
    parser = argparse.ArgumentParser(description="Judge pairs of answers over HTTP.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--base-url", help="an OpenAI-compatible API, such as http://host:8000/v1")
    parser.add_argument("--model", default="simulated", help="as the API spells it")
    parser.add_argument(
        "--api-key-env", default="", help="the environment variable that holds the key, if any"
    )
    args = parser.parse_args()
    settings = parse_settings(settings_of(args.base_url, args.model, args.api_key_env))
    web.run_app(
        make_app(lambda: build_engine(settings)),
        host=args.host,
        port=args.port,
        # Off by default in aiohttp, and then a client that has gone away is still judged for.
        handler_cancellation=True,
    )


if __name__ == "__main__":
    main()
