"""A call to any OpenAI-compatible `/chat/completions` endpoint: encoded, sent once, decoded.

Stands between the gateway (which paces, stores and retries) and a `Transport` (which moves
bytes). Knows the wire format; knows no pairs and no verdicts.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Call, Completion, Record
from dikast.engine.ports import Clock, Reply
from dikast.providers.classify import HIDDEN, classify, safe_url, scrub
from dikast.providers.headers import rate_info
from dikast.providers.openai_format import ChatEncoder, ErrorBody, asks_logprobs, decode
from dikast.providers.transport import HttpLimits, HttpReply, Transport

_MASKED_MIN_CHARS = 16


class OpenAIChatSettings(
    Record, frozen=True, tag_field="kind", tag="openai", forbid_unknown_fields=True
):
    """Configuration of one OpenAI-compatible endpoint."""

    base_url: str = "https://api.openai.com/v1"
    """Address up to and without `/chat/completions`."""
    api_key_env: str | None = "OPENAI_API_KEY"
    """Environment variable that holds the key; None (in TOML: "") for an endpoint without one."""
    api_key_header: str = "Authorization"
    """Header that carries the key; any but `Authorization` carries it without "Bearer"."""
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Further headers, sent with every request and never shown."""
    concurrency: int = 512
    """Requests on the wire at once."""
    timeout_s: float = 120.0
    """Seconds from sending a request to the last byte of its answer."""
    connect_timeout_s: float = 10.0
    """Seconds until a connection must stand."""
    body_max_bytes: int = 8 * 1024 * 1024
    """Bytes of the largest answer that is read (8 MiB)."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Name under which the token limit is sent; OpenAI's reasoning models want the second."""
    proxy: str | None = None
    """Address of an HTTP proxy; None for none. The environment is not consulted."""

    def __repr__(self) -> str:
        return f"OpenAIChatSettings({safe_url(self.base_url)}, key from {self.api_key_env})"

    def limits(self) -> HttpLimits:
        """The part that concerns the transport."""
        return HttpLimits(
            concurrency=self.concurrency,
            connect_timeout_s=self.connect_timeout_s,
            timeout_s=self.timeout_s,
            body_max_bytes=self.body_max_bytes,
            proxy=self.proxy,
        )


class Access(Record, frozen=True):
    """What lets a request in: the headers to send, and the texts that no message may show."""

    headers: dict[str, str]
    secrets: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Access({len(self.headers)} headers)"


def read_access(name: str, settings: OpenAIChatSettings, env: Mapping[str, str]) -> Access:
    """Check the settings and fetch the key from the environment.

    Args:
        name: the provider's name in the configuration, for messages.
        settings: its settings.
        env: the environment.

    Raises:
        ConfigError: an address, a limit or a header is unusable, or the key's variable is empty.
    """
    where = f"providers.{name}"
    _check_address(f"{where}.base_url", settings.base_url)
    for field in ("concurrency", "timeout_s", "connect_timeout_s", "body_max_bytes"):
        if not getattr(settings, field) > 0:
            raise ConfigError(f"{where}.{field}: must be above 0")
    headers = dict(settings.headers)
    secrets = [value for value in headers.values() if len(value) >= 8]
    if settings.api_key_env:
        key = env.get(settings.api_key_env, "").strip()
        if not key:
            raise ConfigError(
                f"{where}: the environment variable {settings.api_key_env} is not set; export it "
                'with the API key, name another one in api_key_env, or set api_key_env to "" '
                "for an endpoint without a key"
            )
        bearer = settings.api_key_header.lower() == "authorization"
        headers[settings.api_key_header] = f"Bearer {key}" if bearer else key
        secrets.append(key)
    for header, value in headers.items():
        if not (header + value).isascii() or not (header + value).isprintable():
            raise ConfigError(
                f"{where}: the value of header {header!r} holds a character that HTTP does not "
                "allow; look for a line break or a typographic quote in the key"
            )
    return Access(headers=headers, secrets=tuple(secrets))


def _check_address(where: str, address: str) -> None:
    """A mistyped address must be found before the first call, not by each of a million."""
    shown = repr(scrub(safe_url(address)))
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        usable = usable and (parts.port is None or parts.port > 0)
    except ValueError:  # a port out of range, or brackets that do not close
        usable = False
        parts = None
    if not usable or parts is None:
        raise ConfigError(f"{where}: {shown} is not an http:// or https:// address")
    if parts.username or parts.password:
        raise ConfigError(
            f"{where}: holds credentials; keys belong in an environment variable, named in "
            "api_key_env"
        )


class OpenAIChatProvider:
    """A `Provider` for one endpoint and key. One request per call.

    Args:
        settings: the endpoint.
        transport: moves the bytes; made with the headers of `access`, closed with the provider.
        clock: tells the date when an error asks to wait until one.
        access: headers and secrets, see `read_access`.
    """

    simulated = False

    def __init__(
        self, settings: OpenAIChatSettings, transport: Transport, clock: Clock, access: Access
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._secrets = access.secrets
        # A made-up key such as "none" is a word that an answer may well hold.
        self._maskable = tuple(each for each in access.secrets if len(each) >= _MASKED_MIN_CHARS)
        self._base = settings.base_url.rstrip("/")
        self._url = f"{self._base}/chat/completions"
        self._encoder = ChatEncoder(settings.max_tokens_field)

    def __repr__(self) -> str:
        return f"OpenAIChatProvider({safe_url(self._base)})"

    async def complete(self, call: Call) -> Reply:
        """Ask once. Source: `Provider.complete`.

        Raises:
            ProviderError: classified by kind; see `classify` and `decode`.
        """
        reply = await self._transport.post_json(self._url, self._encoder.encode(call))
        if not 200 <= reply.status < 300:
            raise self._error(reply)
        try:
            completion = decode(reply.body, latency_s=reply.latency_s, logprobs=asks_logprobs(call))
        except ErrorBody:
            raise self._error(reply) from None
        return Reply(completion=self._masked(completion), rate=rate_info(reply.headers))

    async def check(self) -> None:
        """Ask for the list of models, to see whether the endpoint answers and the key is good.

        An endpoint without such a list counts as reachable.

        Raises:
            ProviderError: it cannot be reached, or refuses the key.
        """
        reply = await self._transport.get(f"{self._base}/models")
        if reply.status in (404, 405, 501) or 200 <= reply.status < 300:
            return
        raise self._error(reply)

    async def aclose(self) -> None:
        """Close the transport; may be called twice."""
        await self._transport.aclose()

    def _masked(self, completion: Completion) -> Completion:
        """A server that echoes its headers must not get the key into the call store."""
        text = completion.text
        for secret in self._maskable:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        if text is completion.text:
            return completion
        # Token by token the key would still be there.
        return msgspec.structs.replace(completion, text=text, logprobs=None)

    def _error(self, reply: HttpReply) -> ProviderError:
        wall_s = datetime.fromisoformat(self._clock.stamp()).timestamp()
        return classify(
            reply.status, reply.headers, reply.body, wall_s=wall_s, secrets=self._secrets
        )
