"""Texts to vectors, each paid for once: a cache in the call store before any embedder.

Comes before clustering. Vectors lie in the same store as completions, under a hash of the
embedder's name and the text, so that a killed build embeds nothing again. Knows no embedder.
"""

import array
import asyncio
import base64
import hashlib
import sys
from collections.abc import Callable, Sequence

from dikast.engine.errors import ConfigError, ProviderError, RunStopped, StopReason
from dikast.engine.model import Completion
from dikast.engine.ports import CallStore, Embedder

BATCH = 128
BATCHES_AT_ONCE = 4


class StoredEmbedder:
    """An `Embedder` that asks another one only for what the store does not hold.

    Args:
        inner: makes the vectors.
        store: keeps them; None keeps nothing.
        batch: texts handed over at once; what a kill can cost.
        on_done: told how many texts are done, and of how many.
    """

    def __init__(
        self,
        inner: Embedder,
        store: CallStore | None,
        *,
        batch: int = BATCH,
        on_done: Callable[[int, int], None] | None = None,
    ) -> None:
        self._inner = inner
        self._store = store
        self._batch = batch
        self._on_done = on_done
        self.embedded = 0
        self.stored = 0

    @property
    def name(self) -> str:
        """That of the embedder behind."""
        return self._inner.name

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text. Source: `Embedder.embed`.

        Raises:
            ProviderError: the texts could not be embedded.
            StoreError: the store could not be read or written.
        """
        wanted = list(dict.fromkeys(texts))
        vectors: dict[str, list[float]] = {}
        for text in wanted:
            kept = self._store.get(self._key(text)) if self._store is not None else None
            if kept is not None:
                vectors[text] = _unpack(kept.text)
        done = len(vectors)
        self.stored += done
        missing = [text for text in wanted if text not in vectors]
        slots = asyncio.Semaphore(BATCHES_AT_ONCE)

        async def fetch(batch: list[str]) -> None:
            async with slots:
                made = await self._inner.embed(batch)
                packed = {text: _pack(each) for text, each in zip(batch, made, strict=True)}
                # As it will be read back: a resumed build must see the very same numbers.
                vectors.update((text, _unpack(each)) for text, each in packed.items())
                if self._store is not None:
                    put = self._store.put
                    # Together, so that they share a commit.
                    await asyncio.gather(
                        *(
                            put(self._key(text), Completion(text=each))
                            for text, each in packed.items()
                        )
                    )
            nonlocal done
            done += len(batch)
            self.embedded += len(batch)
            if self._on_done is not None:
                self._on_done(done, len(wanted))

        tasks = [
            asyncio.ensure_future(fetch(missing[at : at + self._batch]))
            for at in range(0, len(missing), self._batch)
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return [vectors[text] for text in texts]

    async def aclose(self) -> None:
        """Close the embedder behind; the store is its owner's."""
        await self._inner.aclose()

    def _key(self, text: str) -> str:
        what = f"embedding\n{self._inner.name}\n{text}".encode("utf-8", "surrogatepass")
        return hashlib.sha256(what).hexdigest()[:32]

    def __repr__(self) -> str:
        return f"StoredEmbedder({self.name}, {self.embedded} embedded, {self.stored} stored)"


async def embedded(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """The vectors, or why there are none, as what ends a command.

    Raises:
        ConfigError: the embedder does not take the texts.
        RunStopped: it does not answer; the same command resumes from the store.
    """
    try:
        return await embedder.embed(texts)
    except ProviderError as error:
        message = f"the embedder {embedder.name} failed: {error.message}"
        if error.kind in ("bad_request", "oversized", "malformed", "too_large"):
            raise ConfigError(message) from error
        kinds: dict[str, StopReason] = {"auth": "auth", "quota": "quota", "rate": "quota"}
        raise RunStopped(kinds.get(error.kind, "dead"), message) from error


def _pack(vector: Sequence[float]) -> str:
    """32-bit floats, little-endian, in base64."""
    plain = array.array("f", vector)
    if sys.byteorder == "big":
        plain.byteswap()
    return base64.b64encode(plain.tobytes()).decode("ascii")


def _unpack(text: str) -> list[float]:
    plain = array.array("f")
    plain.frombytes(base64.b64decode(text))
    if sys.byteorder == "big":
        plain.byteswap()
    return plain.tolist()
