"""The bytes of OpenAI's chat format: a call becomes a request body, a response body a completion.

Used by `openai_chat` on either side of the network. Pure, but for what is remembered of a judge
to spare work. Knows the wire format; knows no connection, no key and no status.
"""

import json
from typing import Any

import msgspec
import orjson

from dikast.engine.errors import ProviderError
from dikast.engine.model import Call, Completion, Judge, Message, TokenLogprob, TopToken, Usage
from dikast.engine.text import scrub_text
from dikast.providers.classify import scrub

# These decide how the answer is to be read, so they are not the configuration's to change.
_RESERVED = frozenset(("messages", "stream", "n", "logprobs", "response_format", "seed"))
_HEADS_MAX = 64


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
        if asks_logprobs(call):
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


def asks_logprobs(call: Call) -> bool:
    """Whether the call wants token log probabilities."""
    return call.judge.params.logprobs or call.judge.params.top_logprobs is not None


_MESSAGES_ENCODER = msgspec.json.Encoder()


def _encode_messages(messages: tuple[Message, ...]) -> bytes:
    try:
        return _MESSAGES_ENCODER.encode(messages)
    except UnicodeEncodeError:
        clean = [Message(role=turn.role, content=scrub_text(turn.content)) for turn in messages]
        return _MESSAGES_ENCODER.encode(clean)


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


class _ErrorOnly(msgspec.Struct):
    error: Any = None


_PLAIN = msgspec.json.Decoder(_Body)
_FULL = msgspec.json.Decoder(_BodyWithLogprobs)
_ERROR = msgspec.json.Decoder(_ErrorOnly)
_CONSTANTS = {"-Infinity": -9999.0}  # the stand-in that OpenAI uses; NaN and Infinity become null


class ErrorBody(Exception):  # noqa: N818 - a signal inside these two modules, never seen outside
    """The body is an error object, though the status said otherwise."""


def decode(body: bytes, *, latency_s: float = 0.0, logprobs: bool = False) -> Completion:
    """The completion in a response body; only the fields that are used are ever built.

    Args:
        body: as received with a 2xx status.
        latency_s: put into the completion.
        logprobs: also read token log probabilities.

    Raises:
        ProviderError: "malformed" (not a chat completion), "refused", or "transient" (broken off).
        ErrorBody: the body is an error object; the caller, who has the headers, classifies it.
    """
    answer = _parse(body, _FULL if logprobs else _PLAIN)
    if answer.error:
        raise ErrorBody
    if not answer.choices:
        raise ProviderError("malformed", "the answer has no choices", status=200)
    choice = answer.choices[0]
    if choice.error:
        raise ErrorBody
    message = choice.message
    if message is None:
        raise ProviderError("malformed", "the answer's choice has no message", status=200)
    if message.refusal:
        raise ProviderError("refused", "the model declined to answer", status=200)
    if choice.finish_reason == "content_filter":
        raise ProviderError("refused", "the provider's content filter cut the answer", status=200)
    if choice.finish_reason == "error":
        raise ProviderError("transient", "the provider broke the answer off", status=200)
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
    # refuse; others write the logarithm of 0 as -Infinity. The answer is paid for: read it
    # leniently, the broken half replaced.
    try:
        loose = json.loads(body.decode("utf-8", "replace"), parse_constant=_CONSTANTS.get)
        text = scrub_text(json.dumps(loose, ensure_ascii=False))
    except (ValueError, RecursionError) as error:
        raise ProviderError("malformed", "the answer is not JSON", status=200) from error
    try:
        return decoder.decode(text)
    except msgspec.DecodeError as error:
        if _has_error(text):
            raise ErrorBody from error
        message = f"the answer is not a chat completion ({scrub(str(error))})"
        raise ProviderError("malformed", message, status=200) from error


def _has_error(text: str) -> bool:
    try:
        return bool(_ERROR.decode(text).error)
    except msgspec.DecodeError:
        return False


def _text(content: str | list[_Part] | None) -> str:
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    return "".join(part.text or "" for part in content if part.type == "text")


TOKENS_MAX = 1_000_000_000


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    details, out = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        input=_count(usage.prompt_tokens),
        cached_input=_count(details.cached_tokens) if details else 0,
        output=_count(usage.completion_tokens),
        reasoning=_count(out.reasoning_tokens) if out else 0,
    )


def _count(tokens: int | None) -> int:
    """A reported count; one that no answer can have is taken as not reported."""
    return tokens if tokens and 0 < tokens <= TOKENS_MAX else 0


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
