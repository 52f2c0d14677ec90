"""A web service that judges pairs on request: the engine inside somebody else's event loop.

    python examples/service.py examples/simulated.toml 8080
    curl -d '{"id": "1", "question": "2 + 2?", "response_a": "4", "response_b": "5"}' \
        http://127.0.0.1:8080/judge

One engine serves all requests, so pacing, single flight and the call store hold across them. A
client that hangs up cancels its own pair and nothing else.
"""

import sys
from collections.abc import AsyncIterator

import msgspec
from aiohttp import web

from dikast import Engine, Pair, RunStopped, engine_from_file

ENGINE = web.AppKey("engine", Engine)


async def judge(request: web.Request) -> web.Response:
    """POST /judge: one pair in, one outcome out."""
    try:
        pair = msgspec.json.decode(await request.read(), type=Pair)
    except msgspec.DecodeError as error:
        raise web.HTTPBadRequest(text=f"not a pair: {error}") from error
    try:
        outcome = await request.app[ENGINE].judge_one(pair)
    except RunStopped as stop:  # quota, budget or key: waiting does not help
        raise web.HTTPServiceUnavailable(text=str(stop)) from stop
    return web.Response(body=msgspec.json.encode(outcome), content_type="application/json")


def make_app(config: str) -> web.Application:
    """The service over the judges of a configuration file."""

    async def engine_of(app: web.Application) -> AsyncIterator[None]:
        async with engine_from_file(config) as engine:
            app[ENGINE] = engine
            yield

    app = web.Application()
    app.cleanup_ctx.append(engine_of)
    app.router.add_post("/judge", judge)
    return app


if __name__ == "__main__":
    web.run_app(
        make_app(sys.argv[1]),
        host="127.0.0.1",
        port=int(sys.argv[2]),
        # Off by default in aiohttp, and then a client that has gone away is still judged for.
        handler_cancellation=True,
    )
