"""The simulate server speaks the OpenAI protocol over loopback and counts what comes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.errors import ProviderError
from dikast.engine.model import Call, Completion, Params
from dikast.providers import OpenAIChatSettings, PlantedCriterion, SimulatedProvider, build
from dikast.providers.embeddings import HashEmbedder
from dikast.providers.simulate_server import SimulateServer, start
from dikast.providers.simulation import RateLimit, SimulatedSettings
from dikast.providers.truth import TruthTable
from dikast.strategies.sesse.tier_prompts import tier_prompts
from tests.unit.providers.calls import call_of, pair_of

pytestmark = pytest.mark.realtime


@asynccontextmanager
async def running(
    api_key: str | None = None, truth: TruthTable | None = None, **settings: Any
) -> AsyncIterator[SimulateServer]:
    server = await start(SimulatedSettings(**settings), api_key=api_key, truth=truth)
    try:
        yield server
    finally:
        await server.aclose()


async def ask(
    server: SimulateServer, *numbers: int, key: str | None = None, timeout_s: float = 5, **how: Any
) -> list[Completion | ProviderError]:
    """One call per number, all at once."""
    settings = OpenAIChatSettings(
        base_url=server.url, api_key_env="K" if key else None, timeout_s=timeout_s
    )
    provider = build("p", settings, clock=SystemClock(), env={"K": key or ""})

    async def one(number: int) -> Completion | ProviderError:
        try:
            return (await provider.complete(call_of(pair_of(number), **how))).completion
        except ProviderError as error:
            return error

    try:
        return await asyncio.gather(*map(one, numbers))
    finally:
        await provider.aclose()


async def raw(server: SimulateServer, request: bytes) -> bytes:
    """What comes back until the server closes or falls silent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    answer = b""
    try:
        async with asyncio.timeout(0.3):
            while chunk := await reader.read(65536):
                answer += chunk
    except TimeoutError:
        pass
    writer.close()
    await writer.wait_closed()
    return answer


async def test_it_answers_like_the_provider_in_process() -> None:
    settings: dict[str, Any] = {"accuracy": 0.6, "tie_rate": 0.2, "garbage_rate": 0.2}
    pairs = [pair_of(number) for number in range(30)]
    truth = TruthTable.from_pairs(pairs)
    local = SimulatedProvider(SimulatedSettings(**settings), SystemClock(), truth)
    async with running(truth=truth, **settings) as server:
        how: dict[str, Any] = {"params": Params(seed=3, logprobs=True), "sample": 2}
        remote = await ask(server, *range(30), **how)
        for pair, completion in zip(pairs, remote, strict=True):
            assert isinstance(completion, Completion)
            here = (await local.complete(call_of(pair, **how))).completion
            assert (completion.text, completion.usage) == (here.text, here.usage)
            assert completion.logprobs == here.logprobs
            assert completion.served_by == here.served_by == "simulated:judge-1"


async def test_planted_criteria_answer_like_the_provider_in_process() -> None:
    told = PlantedCriterion(
        name="n", condition="the request is short", conclusion="being short", blind=0.8, applies=0.5
    )
    settings: dict[str, Any] = {"criteria": (told,), "garbage_rate": 0.1, "refuse_rate": 0.1}
    pairs = [pair_of(number) for number in range(20)]
    truth = TruthTable.from_pairs(pairs)
    local = SimulatedProvider(SimulatedSettings(**settings), SystemClock(), truth)
    prompts = tier_prompts()
    judge = call_of(pairs[0], params=Params(seed=3)).judge
    said: list[str] = []
    async with running(truth=truth, **settings) as server:
        settings_there = OpenAIChatSettings(base_url=server.url, api_key_env=None)
        remote = build("p", settings_there, clock=SystemClock(), env={})
        for pair in pairs:
            material = prompts.material(pair, 7, "")
            words = {"condition": told.condition, "conclusion": told.conclusion}
            asked = prompts.ask(material, "tier2", words)
            for sample in (0, 1):
                call = Call(judge=judge, messages=asked, prompt="p", sample=sample)
                answers = [await outcome(each, call) for each in (local, remote)]
                assert answers[0] == answers[1]
                said.append(str(answers[0][0]))
        await remote.aclose()
    assert {"A", "B", "NA", "refused"} < set(said)
    assert said[::2] != said[1::2]  # each sample is a draw of its own


async def outcome(provider: Any, call: Call) -> tuple[object, ...]:
    """The words and the tokens, or the kind of the failure."""
    try:
        completion = (await provider.complete(call)).completion
    except ProviderError as error:
        return (error.kind,)
    return completion.text, completion.usage, completion.served_by


async def post(server: SimulateServer, body: bytes, *headers: bytes) -> bytes:
    """What comes back when texts are sent to be embedded."""
    lines = (b"Content-Length: %d" % len(body), b"Connection: close", *headers)
    head = b"POST /v1/embeddings HTTP/1.1\r\n" + b"\r\n".join(lines)
    return await raw(server, head + b"\r\n\r\n" + body)


async def test_it_embeds_the_words_of_texts() -> None:
    texts = ["one short text", "quite another"]
    key = b"Authorization: Bearer k"
    async with running(api_key="k", latency_s=0.01) as server:
        several = await post(server, json.dumps({"model": "m", "input": texts}).encode(), key)
        alone = await post(server, json.dumps({"model": "m", "input": texts[1]}).encode(), key)
        keyless = await post(server, b'{"model": "m", "input": []}')
        wrong = await post(server, b'{"model": "m", "input": 3}', key)
        got = await raw(server, b"GET /v1/embeddings HTTP/1.1\r\nConnection: close\r\n\r\n")
        stats = server.stats()
    assert (stats.requests, stats.unauthorized, stats.in_flight) == (3, 1, 0)
    codes = [answer[9:12] for answer in (several, alone, keyless, wrong, got)]
    assert codes == [b"200", b"200", b"401", b"400", b"405"]
    rows = [json.loads(answer.partition(b"\r\n\r\n")[2])["data"] for answer in (several, alone)]
    made = [HashEmbedder().vector(text) for text in texts]
    assert [row["embedding"] for row in rows[0]] == made
    assert [row["index"] for row in rows[0]] == [0, 1]
    assert rows[1][0]["embedding"] == made[1]


async def test_every_answer_says_that_it_is_simulated() -> None:
    async with running() as server:
        for path in (b"/v1/models", b"/stats", b"/nowhere"):
            answer = await raw(server, b"GET " + path + b" HTTP/1.1\r\nConnection: close\r\n\r\n")
            assert b"x-dikast-simulated: 1\r\n" in answer


async def test_faults_arrive_as_what_they_are() -> None:
    kinds = {
        "error_rate": ("transient", 500),
        "error_200_rate": ("transient", 200),
        "reset_rate": ("transient", None),
        "hang_rate": ("timeout", None),
        "refuse_rate": ("refused", 200),
    }
    for field, expected in kinds.items():
        settings: dict[str, Any] = {field: 1.0}
        async with running(**settings) as server:
            (error,) = await ask(server, 1, timeout_s=0.3)
            assert isinstance(error, ProviderError), field
            assert (error.kind, error.status) == expected, field
            await asyncio.sleep(0.02)  # the server notices that the client has gone
            assert server.stats().in_flight == 0


async def test_a_limit_is_counted_and_told_with_its_window() -> None:
    limit = RateLimit(requests_per_min=60, burst=3, retry_after_s=2, headers=True)
    async with running(rate_limit=limit) as server:
        answers = await ask(server, *range(10))
        refused = [each for each in answers if isinstance(each, ProviderError)]
        assert len(refused) == 7
        assert all(each.kind == "rate" for each in refused)
        assert all(1.5 < (each.retry_after_s or 0) <= 2 for each in refused)
        stats = server.stats()
        assert (stats.requests, stats.refused, stats.in_window) == (10, 7, 6)
        answer = await raw(server, b"GET /stats HTTP/1.1\r\nConnection: close\r\n\r\n")
        told = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert (told["requests"], told["refused"], told["in_window"]) == (10, 7, 6)


async def test_a_wrong_key_is_refused_and_the_right_one_let_in() -> None:
    async with running(api_key="right") as server:
        (wrong,) = await ask(server, 1, key="wrong")
        assert isinstance(wrong, ProviderError)
        assert wrong.kind == "auth"
        (right,) = await ask(server, 1, key="right")
        assert isinstance(right, Completion)
        assert server.stats().unauthorized == 1
        assert server.stats().requests == 1


async def test_latency_holds_requests_at_the_same_time() -> None:
    async with running(latency_s=0.2) as server:
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        answers = await ask(server, *range(40))
        assert all(isinstance(each, Completion) for each in answers)
        assert 0.2 <= loop.time() - start_s < 2
        assert server.stats().peak_in_flight == 40


async def test_requests_in_pieces_and_one_after_the_other_are_understood() -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}'
    request = b"POST /v1/chat/completions?x=1 HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )
    async with running(latency_s=0.01) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for byte in request:
            writer.write(bytes([byte]))
            await writer.drain()
        writer.write(request * 2)
        answers = b""
        while answers.count(b"HTTP/1.1 200 OK") < 3 or not answers.endswith(b"}"):
            answers += await reader.read(65536)
        writer.close()
        assert server.stats().peak_in_flight == 1


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 400),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 3\r\n\r\n[[[", 400),
        (b"GET /v1/chat/completions HTTP/1.1\r\n\r\n", 405),
        (b"GET /elsewhere HTTP/1.1\r\n\r\n", 404),
        (b"nonsense\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        (b"x" * 70_000, 431),
    ],
)
async def test_a_bad_request_gets_a_status_and_leaves_the_server_alive(
    request_bytes: bytes, status: int
) -> None:
    async with running() as server:
        answer = await raw(server, request_bytes)
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert isinstance((await ask(server, 1))[0], Completion)
        assert server.stats().in_flight == 0


async def test_a_client_that_asks_before_sending_is_told_to_go_on() -> None:
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    )
    async with running() as server:
        assert await raw(server, head) == b"HTTP/1.1 100 Continue\r\n\r\n"


async def test_closing_drops_what_hangs_and_may_be_repeated() -> None:
    server = await start(SimulatedSettings(hang_rate=1.0))
    asking = asyncio.create_task(ask(server, 1))
    await asyncio.sleep(0.1)
    assert server.stats().in_flight == 1
    await server.aclose()
    await server.aclose()
    async with asyncio.timeout(2):
        (error,) = await asking
    assert isinstance(error, ProviderError)
    assert error.kind == "transient"
