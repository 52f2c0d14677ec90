"""A call to any OpenAI-compatible `/chat/completions` endpoint: encoded, sent once, decoded.

Stands between the gateway (which paces, stores and retries) and a `Transport` (which moves
bytes). Knows the wire format; knows no pairs and no verdicts.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec
import orjson

from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import (
    Call,
    Completion,
    Judge,
    Message,
    Record,
    TokenLogprob,
    TopToken,
    Usage,
)
from dikast.engine.ports import Clock, Reply
from dikast.providers.classify import classify, safe_url, scrub
from dikast.providers.headers import rate_info
from dikast.providers.transport import HttpLimits, HttpReply, Transport

# These decide how the answer is to be read, so they are not the configuration's to change.
_RESERVED = frozenset(("messages", "stream", "n", "logprobs", "response_format", "seed"))
_HEADS_MAX = 64


class OpenAIChatSettings(
    Record, frozen=True, tag_field="kind", tag="openai", forbid_unknown_fields=True
):
    """Configuration of one OpenAI-compatible endpoint."""

    base_url: str = "https://api.openai.com/v1"
    """Address up to and without `/chat/completions`."""
    api_key_env: str | None = "OPENAI_API_KEY"
    """Environment variable that holds the key; None for an endpoint without one."""
    api_key_header: str = "Authorization"
    """Header that carries the key; any but `Authorization` carries it without "Bearer"."""
    headers: dict[str, str] = {}
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
    if not settings.base_url.startswith(("http://", "https://")):
        raise ConfigError(
            f"{where}.base_url: {scrub(settings.base_url)!r} is not an http:// or https:// address"
        )
    for field in ("concurrency", "timeout_s", "connect_timeout_s", "body_max_bytes"):
        if not getattr(settings, field) > 0:
            raise ConfigError(f"{where}.{field}: must be above 0")
    headers = dict(settings.headers)
    secrets = [value for value in headers.values() if len(value) >= 8]
    if settings.api_key_env is not None:
        key = env.get(settings.api_key_env, "").strip()
        if not key:
            raise ConfigError(
                f"{where}: the environment variable {settings.api_key_env} is not set; export it "
                "with the API key, name another one in api_key_env, or leave the key out by "
                "giving api_key_env no value"
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
            completion = decode(
                reply.body, latency_s=reply.latency_s, logprobs=_asks_logprobs(call)
            )
        except _ErrorBody:
            raise self._error(reply) from None
        return Reply(completion=completion, rate=rate_info(reply.headers))

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

    def _error(self, reply: HttpReply) -> ProviderError:
        wall_s = datetime.fromisoformat(self._clock.stamp()).timestamp()
        return classify(
            reply.status, reply.headers, reply.body, wall_s=wall_s, secrets=self._secrets
        )


# --- from a call to bytes -----------------------------------------------------------------------


class ChatEncoder:
    """Turns calls into request bodies; what is the same for all calls of a judge is made once.

    Args:
        max_tokens_field: the name under which the token limit is sent.
    """

    def __init__(self, max_tokens_field: str = "max_tokens") -> None:
        self._max_tokens_field = max_tokens_field
        # By identity: a judge holds a dict and cannot be hashed. The entry keeps its judge and
        # schema alive, so an id is not given to another object while it stands here.
        self._tails: dict[tuple[int, int], tuple[Judge, dict[str, Any] | None, bytes]] = {}

    def encode(self, call: Call) -> bytes:
        """The request body of `call`.

        Raises:
            ProviderError: "bad_request", when the judge's extra parameters claim a field that is
                not theirs or hold something that JSON cannot say.
        """
        key = (id(call.judge), id(call.schema))
        entry = self._tails.get(key)
        if entry is None:
            if len(self._tails) >= _HEADS_MAX:
                self._tails.clear()
            entry = (call.judge, call.schema, self._tail(call))
            self._tails[key] = entry
        seed = call.judge.params.seed
        end = b"}" if seed is None else b',"seed":%d}' % (seed + call.sample)
        return b'{"messages":' + _encode_messages(call.messages) + entry[2] + end

    def _tail(self, call: Call) -> bytes:
        """Everything but messages and seed, from the first comma on, without the last brace."""
        params = call.judge.params
        fields: dict[str, Any] = {"model": call.judge.model}
        if params.temperature is not None:
            fields["temperature"] = params.temperature
        if params.top_p is not None:
            fields["top_p"] = params.top_p
        if params.max_tokens is not None:
            fields[self._max_tokens_field] = params.max_tokens
        if params.reasoning_effort is not None:
            fields["reasoning_effort"] = params.reasoning_effort
        if _asks_logprobs(call):
            fields["logprobs"] = True
        if params.top_logprobs is not None:
            fields["top_logprobs"] = params.top_logprobs
        if call.schema is not None:
            schema = {"name": "verdict", "schema": call.schema, "strict": True}
            fields["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif params.json_mode:
            fields["response_format"] = {"type": "json_object"}
        claimed = sorted(_RESERVED.intersection(params.extra))
        if claimed:
            text = f"judge {call.judge.name!r}: params.extra may not set {', '.join(claimed)}"
            raise ProviderError("bad_request", text)
        fields.update(params.extra)
        try:
            return b"," + orjson.dumps(fields)[1:-1]
        except TypeError as error:
            text = f"judge {call.judge.name!r}: its parameters cannot be written as JSON"
            raise ProviderError("bad_request", text) from error


def _asks_logprobs(call: Call) -> bool:
    return call.judge.params.logprobs or call.judge.params.top_logprobs is not None


_MESSAGES_ENCODER = msgspec.json.Encoder()


def _encode_messages(messages: tuple[Message, ...]) -> bytes:
    try:
        return _MESSAGES_ENCODER.encode(messages)
    except UnicodeEncodeError:
        clean = [
            Message(role=turn.role, content=without_surrogates(turn.content)) for turn in messages
        ]
        return _MESSAGES_ENCODER.encode(clean)


def without_surrogates(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# --- from bytes to a completion -----------------------------------------------------------------


class _Part(msgspec.Struct):
    text: str | None = None
    type: str = "text"


class _ReplyMessage(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Top(msgspec.Struct):
    token: str
    logprob: float


class _Token(msgspec.Struct):
    token: str
    logprob: float
    top_logprobs: list[_Top] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Choice(msgspec.Struct):
    message: _ReplyMessage | None = None
    finish_reason: str | None = None
    error: Any = None


class _ChoiceWithLogprobs(_Choice):
    logprobs: _Logprobs | None = None


class _InDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _OutDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _InDetails | None = None
    completion_tokens_details: _OutDetails | None = None


class _Body(msgspec.Struct):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: Any = None


class _BodyWithLogprobs(msgspec.Struct):
    choices: list[_ChoiceWithLogprobs] | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: Any = None


_PLAIN = msgspec.json.Decoder(_Body)
_FULL = msgspec.json.Decoder(_BodyWithLogprobs)


class _ErrorBody(Exception):  # noqa: N818 - a signal inside this module, never seen outside
    """The body is an error object, though the status said otherwise."""


def decode(body: bytes, *, latency_s: float = 0.0, logprobs: bool = False) -> Completion:
    """The completion in a response body; only the fields that are used are ever built.

    Args:
        body: as received with a 2xx status.
        latency_s: put into the completion.
        logprobs: also read token log probabilities.

    Raises:
        ProviderError: "malformed" (not a chat completion) or "refused".
        _ErrorBody: the body is an error object; the caller, who has the headers, classifies it.
    """
    answer = _parse(body, _FULL if logprobs else _PLAIN)
    if answer.error:
        raise _ErrorBody
    if not answer.choices:
        raise ProviderError("malformed", "the answer has no choices", status=200)
    choice = answer.choices[0]
    if choice.error:
        raise _ErrorBody
    message = choice.message
    if message is None:
        raise ProviderError("malformed", "the answer's choice has no message", status=200)
    if message.refusal:
        raise ProviderError("refused", "the model declined to answer", status=200)
    if choice.finish_reason == "content_filter":
        raise ProviderError("refused", "the provider's content filter cut the answer", status=200)
    return Completion(
        text=_text(message.content),
        finish_reason=choice.finish_reason,
        usage=_usage(answer.usage),
        logprobs=_tokens(choice) if logprobs else None,
        latency_s=latency_s,
        served_by=answer.model,
    )


def _parse(
    body: bytes, decoder: "msgspec.json.Decoder[_Body] | msgspec.json.Decoder[_BodyWithLogprobs]"
) -> _Body | _BodyWithLogprobs:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError):
        pass
    # Some servers cut an emoji in two and send half of it as an escape, which strict decoders
    # refuse. The answer is paid for: read it leniently, the broken half replaced.
    try:
        loose = json.loads(body.decode("utf-8", "replace"))
        return decoder.decode(without_surrogates(json.dumps(loose, ensure_ascii=False)))
    except msgspec.ValidationError as error:
        if isinstance(loose, dict) and loose.get("error"):
            raise _ErrorBody from error
        text = f"the answer is not a chat completion ({scrub(str(error))})"
        raise ProviderError("malformed", text, status=200) from error
    except (ValueError, RecursionError) as error:
        raise ProviderError("malformed", "the answer is not JSON", status=200) from error


def _text(content: str | list[_Part] | None) -> str:
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    return "".join(part.text or "" for part in content if part.type == "text")


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    details, out = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        input=usage.prompt_tokens or 0,
        cached_input=(details.cached_tokens or 0) if details else 0,
        output=usage.completion_tokens or 0,
        reasoning=(out.reasoning_tokens or 0) if out else 0,
    )


def _tokens(choice: _Choice) -> tuple[TokenLogprob, ...] | None:
    found = choice.logprobs if isinstance(choice, _ChoiceWithLogprobs) else None
    if found is None or found.content is None:
        return None
    return tuple(
        TokenLogprob(
            token=token.token,
            logprob=token.logprob,
            top=tuple(
                TopToken(token=top.token, logprob=top.logprob) for top in token.top_logprobs or ()
            ),
        )
        for token in found.content
    )
