"""Calls become request bodies, response bodies become completions or classified errors."""

import json
import math
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from dikast.engine.clock import ManualClock
from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Message, Params, Usage
from dikast.engine.ports import RateInfo
from dikast.providers.openai_chat import (
    Access,
    OpenAIChatProvider,
    OpenAIChatSettings,
    read_access,
)
from dikast.providers.openai_format import ChatEncoder, decode
from dikast.providers.transport import HttpReply
from tests.unit.providers.calls import call_of, pair_of


def body_of(params: Params, field: str = "max_tokens", **changes: Any) -> dict[str, Any]:
    call = msgspec.structs.replace(call_of(pair_of(1), params=params), **changes)
    decoded: dict[str, Any] = json.loads(ChatEncoder(field).encode(call))
    return decoded


def answer_of(text: str | None = "[[A]]", **changes: Any) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    return {"model": "m-1", "choices": [choice], **changes}


def decoded(answer: dict[str, Any], **options: Any) -> Any:
    return decode(json.dumps(answer).encode(), **options)


class FixedTransport:
    """Answers every request with the same reply and keeps what was sent."""

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.reply = HttpReply(status=status, headers=headers or {}, body=body, latency_s=0.25)
        self.sent: list[tuple[str, bytes]] = []

    async def post_json(
        self, url: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> HttpReply:
        self.sent.append((url, body))
        return self.reply

    async def get(self, url: str) -> HttpReply:
        self.sent.append((url, b""))
        return self.reply

    async def aclose(self) -> None:
        pass


def provider_over(transport: FixedTransport, base_url: str = "http://h/v1/") -> OpenAIChatProvider:
    access = Access(headers={}, secrets=("hunter2",))
    settings = OpenAIChatSettings(base_url=base_url)
    return OpenAIChatProvider(settings, transport, ManualClock(), access)


# --- encode ---


def test_a_body_holds_only_what_was_asked_for() -> None:
    body = body_of(Params())
    assert set(body) == {"model", "messages", "temperature", "max_tokens"}
    assert body["model"] == "judge-1"
    assert body["temperature"] == 0
    assert [turn["role"] for turn in body["messages"]] == ["system", "user"]
    bare = body_of(Params(temperature=None, max_tokens=None))
    assert set(bare) == {"model", "messages"}


def test_every_parameter_has_its_field() -> None:
    body = body_of(
        Params(
            temperature=0.5,
            top_p=0.9,
            max_tokens=7,
            reasoning_effort="low",
            top_logprobs=5,
            json_mode=True,
            extra={"user": "x"},
        ),
        field="max_completion_tokens",
    )
    assert body["top_p"] == 0.9
    assert body["max_completion_tokens"] == 7
    assert "max_tokens" not in body
    assert body["reasoning_effort"] == "low"
    assert body["logprobs"] is True
    assert body["top_logprobs"] == 5
    assert body["response_format"] == {"type": "json_object"}
    assert body["user"] == "x"


def test_a_schema_goes_before_json_mode() -> None:
    schema = {"type": "object"}
    body = body_of(Params(json_mode=True), schema=schema)
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["schema"] == schema


def test_each_sample_has_a_seed_of_its_own() -> None:
    assert body_of(Params(seed=40), sample=2)["seed"] == 42
    assert "seed" not in body_of(Params(), sample=2)


def test_judges_and_schemas_do_not_get_each_others_parameters() -> None:
    encoder = ChatEncoder()
    for number in range(200):
        call = call_of(pair_of(1), params=Params(max_tokens=number), model=f"m-{number}")
        body = json.loads(encoder.encode(call))
        assert (body["model"], body["max_tokens"]) == (f"m-{number}", number)


def test_lone_surrogates_are_replaced_and_the_call_goes_out() -> None:
    messages = (Message(role="user", content="a\ud800b \U0001f600 \ud83d\ude00"),)
    body = body_of(Params(), messages=messages)
    assert body["messages"][0]["content"] == "a\ufffdb \U0001f600 \U0001f600"


@pytest.mark.parametrize("extra", [{"stream": True}, {"messages": []}, {"x": {1, 2}}])
def test_extra_parameters_that_cannot_be_sent_fail_the_call_alone(extra: dict[str, Any]) -> None:
    with pytest.raises(ProviderError) as caught:
        body_of(Params(extra=extra))
    assert caught.value.kind == "bad_request"
    assert "'j'" in caught.value.message


# --- decode ---


def test_a_completion_is_read_with_its_four_token_classes() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    completion = decoded(answer_of("x [[A]]", usage=usage), latency_s=1.5)
    assert completion.text == "x [[A]]"
    assert completion.finish_reason == "stop"
    assert completion.served_by == "m-1"
    assert completion.latency_s == 1.5
    assert completion.usage == Usage(input=100, cached_input=60, output=20, reasoning=5)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}, {"unknown": [1]}])
def test_missing_usage_counts_as_nothing(usage: Any) -> None:
    assert decoded(answer_of(usage=usage)).usage == Usage()


def test_no_content_is_an_empty_text_and_parts_are_joined() -> None:
    assert decoded(answer_of(None)).text == ""
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "[[B]]"}]
    assert decoded(answer_of(parts)).text == "[[B]]"  # type: ignore[arg-type]


def test_a_truncated_answer_passes_with_its_finish_reason() -> None:
    answer = answer_of("half an ans")
    answer["choices"][0]["finish_reason"] = "length"
    assert decoded(answer).finish_reason == "length"


def test_an_answer_that_the_provider_broke_off_is_worth_another_attempt() -> None:
    answer = answer_of("[[A]] was")
    answer["choices"][0]["finish_reason"] = "error"
    with pytest.raises(ProviderError) as caught:
        decoded(answer)
    assert caught.value.kind == "transient"


def test_refusal_and_content_filter_are_refusals() -> None:
    refusal = answer_of(None)
    refusal["choices"][0]["message"]["refusal"] = "I cannot."
    filtered = answer_of("[[A]]")
    filtered["choices"][0]["finish_reason"] = "content_filter"
    for answer in (refusal, filtered):
        with pytest.raises(ProviderError) as caught:
            decoded(answer)
        assert caught.value.kind == "refused"


def test_logprobs_are_read_when_asked_for() -> None:
    answer = answer_of("A")
    token = {"token": "A", "logprob": -0.1, "top_logprobs": [{"token": "B", "logprob": -2.0}]}
    answer["choices"][0]["logprobs"] = {"content": [token]}
    assert decoded(answer).logprobs is None
    (found,) = decoded(answer, logprobs=True).logprobs
    assert (found.token, found.logprob) == ("A", -0.1)
    assert [(top.token, top.logprob) for top in found.top] == [("B", -2.0)]
    assert decoded(answer_of(), logprobs=True).logprobs is None


def test_the_logarithm_of_zero_does_not_cost_the_answer() -> None:
    answer = answer_of("A")
    tokens = [{"token": "A", "logprob": -math.inf}]
    answer["choices"][0]["logprobs"] = {"content": tokens}
    assert b"-Infinity" in json.dumps(answer).encode()
    assert decoded(answer).text == "A"
    assert decoded(answer, logprobs=True).logprobs[0].logprob == -9999
    tokens[0]["logprob"] = math.nan
    assert decoded(answer).text == "A"
    with pytest.raises(ProviderError, match="malformed"):
        decoded(answer, logprobs=True)


def test_half_an_emoji_in_an_answer_is_replaced_and_the_answer_kept() -> None:
    body = json.dumps(answer_of("PLACE [[A]]")).encode().replace(b"PLACE", b"\\ud83d")
    assert decode(body).text == "\ufffd [[A]]"
    assert (
        decode(json.dumps(answer_of("PLACE")).encode().replace(b"PLACE", b"\xff")).text == "\ufffd"
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[[A]]",
        b"<html>[[A]]</html>",
        b"{}",
        b"[]",
        b"null",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": "[[A]]"}',
        b'{"choices": [{"message": 1}]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_completion_is_malformed(body: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        decode(body)
    assert caught.value.kind == "malformed"


# --- the provider ---


async def test_the_reply_has_completion_and_limits() -> None:
    headers = {"x-ratelimit-remaining-requests": "9"}
    transport = FixedTransport(200, json.dumps(answer_of()).encode(), headers)
    reply = await provider_over(transport).complete(call_of(pair_of(1)))
    assert reply.completion.text == "[[A]]"
    assert reply.completion.latency_s == 0.25
    assert reply.rate == RateInfo(requests_remaining=9)
    assert transport.sent[0][0] == "http://h/v1/chat/completions"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"error": {"message": "busy [[A]]", "type": "overloaded_error"}}', "transient"),
        (b'{"error": {"message": "[[A]]", "code": "insufficient_quota"}, "choices": []}', "quota"),
        (
            b'{"choices": [{"error": {"code": 502, "message": "x"}, "message": {"content": "A"}}]}',
            "transient",
        ),
        (b'{"error": {"message": "[[A]]"}, "choices": "none"}', "malformed"),
    ],
)
async def test_an_error_inside_http_200_is_an_error(body: bytes, kind: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await provider_over(FixedTransport(200, body)).complete(call_of(pair_of(1)))
    assert caught.value.kind == kind


async def test_an_error_status_is_classified_without_showing_the_key() -> None:
    body = b'{"error": {"message": "hunter2 is no key"}}'
    with pytest.raises(ProviderError) as caught:
        await provider_over(FixedTransport(401, body)).complete(call_of(pair_of(1)))
    assert caught.value.kind == "auth"
    assert "hunter2" not in str(caught.value)


async def test_a_date_to_wait_until_is_taken_against_the_clock() -> None:
    headers = {"retry-after": "Thu, 01 Jan 1970 00:00:09 GMT"}
    with pytest.raises(ProviderError) as caught:
        await provider_over(FixedTransport(429, b"", headers)).complete(call_of(pair_of(1)))
    assert caught.value.retry_after_s == 9


async def test_check_accepts_an_endpoint_without_a_model_list_and_refuses_a_wrong_key() -> None:
    await provider_over(FixedTransport(200, b"{}")).check()
    await provider_over(FixedTransport(404, b"")).check()
    with pytest.raises(ProviderError) as caught:
        await provider_over(FixedTransport(401, b"")).check()
    assert caught.value.kind == "auth"


# --- settings ---


def test_a_missing_key_is_told_by_the_name_of_its_variable() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as caught:
        read_access("main", OpenAIChatSettings(), {"OPENAI_API_KEY": "  "})
    assert "providers.main" in str(caught.value)


def test_the_key_goes_into_the_header_that_was_named() -> None:
    env = {"K": " sk-123 \n"}
    access = read_access("p", OpenAIChatSettings(api_key_env="K"), env)
    assert access.headers == {"Authorization": "Bearer sk-123"}
    azure = OpenAIChatSettings(api_key_env="K", api_key_header="api-key", headers={"x": "y"})
    assert read_access("p", azure, env).headers == {"x": "y", "api-key": "sk-123"}
    assert read_access("p", OpenAIChatSettings(api_key_env=None), {}).headers == {}


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (OpenAIChatSettings(api_key_env=None, base_url="localhost:8000"), "base_url"),
        (OpenAIChatSettings(api_key_env=None, concurrency=0), "concurrency"),
        (OpenAIChatSettings(api_key_env=None, timeout_s=float("nan")), "timeout_s"),
        (OpenAIChatSettings(api_key_env=None, headers={"x": "a\r\nb"}), "'x'"),
    ],
)
def test_unusable_settings_are_named(settings: OpenAIChatSettings, field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        read_access("p", settings, {})


def test_no_representation_shows_a_key() -> None:
    settings = OpenAIChatSettings(
        base_url="https://user:sk-in-url@host/v1", headers={"x-key": "sk-in-header"}
    )
    plain = OpenAIChatSettings(headers={"x-key": "sk-in-header"})
    access = read_access("p", plain, {"OPENAI_API_KEY": "sk-in-env"})
    provider = OpenAIChatProvider(settings, FixedTransport(200, b""), ManualClock(), access)
    for thing in (settings, access, provider):
        assert "sk-in" not in f"{thing!r} {thing}"


@pytest.mark.parametrize(
    ("key", "kept"), [("sk-0123456789abcdefgh", "[hidden]"), ("none", "none")], ids=["key", "word"]
)
async def test_a_key_that_the_server_echoes_is_hidden_and_a_made_up_one_is_just_a_word(
    key: str, kept: str
) -> None:
    body = answer_of(f"you sent Bearer {key}: [[A]]")
    settings = OpenAIChatSettings(base_url="http://h/v1", api_key_env="KEY")
    access = read_access("p", settings, {"KEY": key})
    transport = FixedTransport(200, json.dumps(body).encode())
    provider = OpenAIChatProvider(settings, transport, ManualClock(), access)
    reply = await provider.complete(call_of(pair_of(1)))
    assert reply.completion.text == f"you sent Bearer {kept}: [[A]]"
