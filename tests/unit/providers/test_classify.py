"""Errors are named from status, headers and body; messages hide what looks like a key."""

import pytest

from dikast.engine.errors import ERROR_KINDS
from dikast.providers.classify import MESSAGE_MAX_CHARS, classify, safe_url, scrub


def one_line(body: bytes) -> bytes:
    """A body that was broken into lines for reading."""
    return body.replace(b"\n", b" ")


OPENAI_QUOTA = one_line(
    b"""{"error": {"message": "You exceeded your current quota, please check your plan
and billing details.", "type": "insufficient_quota", "code": "insufficient_quota"}}"""
)
OPENAI_RATE = one_line(
    b"""{"error": {"message": "Rate limit reached for gpt-4o in organization org-x on
requests per min (RPM): Limit 500, Used 500. Please try again in 120ms.", "type": "requests",
"code": "rate_limit_exceeded"}}"""
)
GROQ_DAY = one_line(
    b"""{"error": {"message": "Rate limit reached for model on tokens per day (TPD): Limit
100000, Used 99. Please try again in 7m12s.", "type": "tokens", "code": "rate_limit_exceeded"}}"""
)
GEMINI_MINUTE = one_line(
    b"""[{"error": {"code": 429, "message": "You exceeded your current quota, please
check your plan and billing details.", "status": "RESOURCE_EXHAUSTED", "details": [{"quotaId":
"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}, {"retryDelay": "32s"}]}}]"""
)
GEMINI_DAY = GEMINI_MINUTE.replace(b"PerMinute", b"PerDay")
AZURE_FILTER = one_line(
    b"""{"error": {"message": "The response was filtered", "code": "content_filter",
"innererror": {"code": "ResponsibleAIPolicyViolation"}}}"""
)
CREDIT = one_line(
    b"""{"type": "error", "error": {"type": "invalid_request_error", "message":
"Your credit balance is too low to access the API."}}"""
)
CONTEXT = one_line(
    b"""{"error": {"message": "This model's maximum context length is 8192 tokens.",
"type": "invalid_request_error", "code": "context_length_exceeded"}}"""
)
OVERLOADED = b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'
ABOUT_QUOTAS = one_line(
    b"""{"error": {"message": "messages[0]: the text about a milk quota is not valid",
"type": "invalid_request_error"}}"""
)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, OPENAI_RATE, "rate"),
        (429, b"", "rate"),
        (429, b"<html>slow down</html>", "rate"),
        (429, OPENAI_QUOTA, "quota"),
        (429, GROQ_DAY, "quota"),
        (429, GEMINI_MINUTE, "rate"),
        (429, GEMINI_DAY, "quota"),
        (429, b'{"error": "quota exceeded"}', "quota"),
        (429, b'{"error": {"message": "Rate limit exceeded: free-models-per-day"}}', "quota"),
        (402, b'{"error": {"message": "Insufficient credits"}}', "quota"),
        (400, CREDIT, "quota"),
        (403, b'{"error": {"message": "billing is disabled for this account"}}', "quota"),
        (401, b'{"error": {"message": "Incorrect API key"}}', "auth"),
        (403, b'{"error": {"message": "no access to this model"}}', "auth"),
        (400, ABOUT_QUOTAS, "bad_request"),
        (400, CONTEXT, "bad_request"),
        (400, AZURE_FILTER, "refused"),
        (404, b'{"detail": "Not Found"}', "bad_request"),
        (413, b"", "bad_request"),
        (422, b'{"detail": [{"msg": "field required"}]}', "bad_request"),
        (301, b"", "bad_request"),
        (408, b"", "transient"),
        (409, b"", "transient"),
        (425, b"", "transient"),
        (500, b"", "transient"),
        (502, b"<html>Bad Gateway</html>", "transient"),
        (503, b"null", "transient"),
        (504, b"[]", "transient"),
        (529, OVERLOADED, "transient"),
        (200, OVERLOADED, "transient"),
        (200, OPENAI_QUOTA, "quota"),
        (200, OPENAI_RATE, "rate"),
        (200, GROQ_DAY, "quota"),
        (200, AZURE_FILTER, "refused"),
        (200, b'{"error": {"code": 429, "message": "slow down"}}', "rate"),
        (200, b'{"error": {"code": 502, "message": "upstream is down"}}', "transient"),
        (200, b'{"error": {"code": 401, "message": "no"}}', "auth"),
        (200, b'{"error": "something [[A]]"}', "malformed"),
        (200, b'{"error": {"message": "bad [[A]]", "type": "server_error"}}', "transient"),
    ],
)
def test_an_answer_is_named_by_its_status_and_its_error_object(
    status: int, body: bytes, kind: str
) -> None:
    error = classify(status, {}, body)
    assert error.kind == kind
    assert error.kind in ERROR_KINDS
    assert error.status == status


def test_a_waiting_time_in_the_headers_is_kept_for_rate_and_overload() -> None:
    for status in (429, 503, 529):
        assert classify(status, {"retry-after": "7"}, b"").retry_after_s == 7


def test_a_waiting_time_in_the_message_counts_when_no_header_tells_one() -> None:
    assert classify(429, {}, OPENAI_RATE).retry_after_s == pytest.approx(0.12)
    assert classify(429, {}, GEMINI_MINUTE).retry_after_s == 32
    assert classify(429, {"retry-after": "3"}, OPENAI_RATE).retry_after_s == 3


def test_a_vague_quota_with_a_short_wait_is_a_rate_but_a_coded_one_is_not() -> None:
    vague = b'{"error": {"message": "Quota exceeded for metric requests"}}'
    assert classify(429, {"retry-after": "20"}, vague).kind == "rate"
    assert classify(429, {"retry-after": "7200"}, vague).kind == "quota"
    assert classify(429, {"retry-after": "20"}, OPENAI_QUOTA).kind == "quota"


def test_an_exhausted_daily_allowance_says_when_to_come_back() -> None:
    assert classify(429, {}, GROQ_DAY).retry_after_s == pytest.approx(432)


def test_a_prompt_that_is_too_long_is_told_as_such() -> None:
    assert "longer than the model's context window" in classify(400, {}, CONTEXT).message


def test_a_message_is_cut_to_its_limit_and_to_one_line() -> None:
    error = classify(400, {}, b'{"error": {"message": "' + b"line\\n " * 500 + b'"}}')
    assert len(error.message) == MESSAGE_MAX_CHARS
    assert "\n" not in error.message


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b"\xff\xfe\x00",
        b'{"error": {"error": {"error": []}}}',
        b'{"error": []}',
        b"12",
        b'"text"',
        b'{"error": {"code": null, "message": {"a": 1}}}',
    ],
)
def test_any_body_can_be_read(body: bytes) -> None:
    for status in (200, 400, 429, 500):
        assert classify(status, {}, body).kind in ERROR_KINDS


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop",
        "sk-ab****************wxyz",
        "gsk_abcdefghijklmnop1234",
        "AIzaSyA1234567890abcdefg",
        "0123456789abcdef0123456789abcdef",
    ],
)
def test_what_looks_like_a_key_is_hidden(secret: str) -> None:
    for text in (f"bad key {secret}.", f"Authorization: Bearer {secret}", f"api_key={secret}&x=1"):
        assert secret not in scrub(text)
        assert "[hidden]" in scrub(text)


def test_a_known_secret_is_hidden_even_when_it_looks_like_a_word() -> None:
    error = classify(401, {}, b'{"error": {"message": "wrong: hunter2"}}', secrets=["hunter2"])
    assert "hunter2" not in str(error)


def test_a_key_at_the_cut_leaves_no_half_behind() -> None:
    assert "sk-abc" not in scrub("x" * (MESSAGE_MAX_CHARS - 8) + " sk-abcdefghijklmnopqrst")


def test_ordinary_words_stay_readable() -> None:
    text = "The model 'meta-llama-3.1-405b' does not exist; max_tokens: 5 of 10 tokens per minute"
    assert scrub(text) == text


def test_an_address_in_a_message_has_no_password_and_no_query() -> None:
    assert safe_url("https://u:p@host:8443/v1?key=abc#x") == "https://host:8443/v1"
    assert "abc" not in safe_url("http://[broken?key=abc")
