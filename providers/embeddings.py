"""Vectors from any OpenAI-compatible `/embeddings` endpoint, or from words alone without a model.

Stands where a judge's provider stands, for the library of `sesse`. The HTTP client is the same
owner of sockets as for judgements; failures are classified alike and tried again by the same
policy. Knows no question and no cluster.
"""

import hashlib
import math
import random
import re
from collections.abc import Sequence
from datetime import datetime

import msgspec

from dikast.engine.errors import ProviderError
from dikast.engine.ports import Clock
from dikast.engine.retry import GiveUp, RetryPolicy, RetryState, decide
from dikast.providers.classify import classify, safe_url
from dikast.providers.openai_chat import Access
from dikast.providers.transport import HttpReply, Transport

BATCH_TEXTS = 128
HASH_DIMENSIONS = 256


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Row]


class EndpointEmbedder:
    """An `Embedder` behind an endpoint.

    Args:
        base_url: address up to and without `/embeddings`.
        model: as the endpoint spells it.
        transport: moves the bytes; made with the headers of `access`, closed with the embedder.
        clock: waits out the back-off.
        access: headers and secrets of the endpoint.
        retry: bounds of the retries of one request.
        rng: randomness of the back-off.
        batch: the most texts of one request.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        transport: Transport,
        clock: Clock,
        access: Access,
        *,
        retry: RetryPolicy,
        rng: random.Random,
        batch: int = BATCH_TEXTS,
    ) -> None:
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._model = model
        self._name = f"{model}@{safe_url(base_url.rstrip('/'))}"
        self._transport = transport
        self._clock = clock
        self._secrets = access.secrets
        self._retry = retry
        self._rng = rng
        self._batch = batch
        self.requests_sent = 0

    @property
    def name(self) -> str:
        """`model@address`: an endpoint tells no revision, so its address stands for one."""
        return self._name

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in batches. Source: `Embedder.embed`.

        Raises:
            ProviderError: a batch failed for good.
        """
        vectors: list[list[float]] = []
        for at in range(0, len(texts), self._batch):
            vectors += await self._batch_of(texts[at : at + self._batch])
        return vectors

    async def aclose(self) -> None:
        """Close the transport; may be called twice."""
        await self._transport.aclose()

    async def _batch_of(self, texts: Sequence[str]) -> list[list[float]]:
        body = msgspec.json.encode(
            {"model": self._model, "input": list(texts), "encoding_format": "float"}
        )
        state, began_s = RetryState(), self._clock.now()
        while True:
            try:
                self.requests_sent += 1
                return self._read(await self._transport.post_json(self._url, body), len(texts))
            except ProviderError as error:
                elapsed_s = self._clock.now() - began_s
                verdict = decide(self._retry, state, error, elapsed_s, self._rng)
                if isinstance(verdict, GiveUp):
                    error.attempts = verdict.attempts
                    raise
                # No pacer holds this key back, so a 429 is waited out here.
                wait_s = verdict.wait_s
                if error.kind == "rate":
                    wait_s = max(wait_s, error.retry_after_s or self._retry.base_s)
                state = verdict.state
            await self._clock.sleep(wait_s)

    def _read(self, reply: HttpReply, wanted: int) -> list[list[float]]:
        if not 200 <= reply.status < 300:
            wall_s = datetime.fromisoformat(self._clock.stamp()).timestamp()
            raise classify(
                reply.status, reply.headers, reply.body, wall_s=wall_s, secrets=self._secrets
            )
        try:
            rows = msgspec.json.decode(reply.body, type=_Answer).data
        except (msgspec.DecodeError, RecursionError) as error:
            raise ProviderError(
                "malformed", f"{safe_url(self._url)} sent no list of embeddings"
            ) from error
        rows.sort(key=lambda row: row.index)
        lengths = {len(row.embedding) for row in rows}
        if [row.index for row in rows] != list(range(wanted)) or len(lengths) != 1 or 0 in lengths:
            raise ProviderError(
                "malformed",
                f"{safe_url(self._url)} sent {len(rows)} embeddings for {wanted} texts",
            )
        return [unit_vector(row.embedding) for row in rows]

    def __repr__(self) -> str:
        return f"EndpointEmbedder({self._name})"


class HashEmbedder:
    """An `Embedder` that hashes words and runs of three letters: no model, no network.

    Texts are near when they share words, not when they mean alike: for tests, demonstrations and
    machines without a model.

    Args:
        dimensions: length of the vectors.
    """

    def __init__(self, dimensions: int = HASH_DIMENSIONS) -> None:
        self._dimensions = dimensions

    @property
    def name(self) -> str:
        """`hash@1-DIMENSIONS`."""
        return f"hash@1-{self._dimensions}"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text. Source: `Embedder.embed`."""
        return [self.vector(text) for text in texts]

    async def aclose(self) -> None:
        """Nothing to close; may be called twice."""

    def vector(self, text: str) -> list[float]:
        """The vector of one text, of length 1."""
        vector = [0.0] * self._dimensions
        for feature, weight in _features(text):
            digest = hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest()
            number = int.from_bytes(digest, "big")
            vector[number % self._dimensions] += weight if number >> 63 else -weight
        if not any(vector):
            vector[0] = 1.0
        return unit_vector(vector)

    def __repr__(self) -> str:
        return f"HashEmbedder({self._dimensions})"


def _features(text: str) -> list[tuple[str, float]]:
    words: list[str] = re.findall(r"\w+", text.casefold())
    found = [(word, 1.0) for word in words if len(word) > 2]
    for word in words:
        found += [(word[at : at + 3], 0.3) for at in range(len(word) - 2)]
    return found


def unit_vector(vector: Sequence[float]) -> list[float]:
    """The vector scaled to length 1; one of zeros stays."""
    length = math.sqrt(math.fsum(value * value for value in vector))
    return [value / length for value in vector] if length > 0 else list(vector)
