"""What went wrong with a call, told from the answer's status, headers and body alone.

Errors are named here once and for all: the gateway decides on the kind, never on a status or a
wording. Pure functions: no network, no clock (the wall-clock time is passed in).
"""

import re
from collections.abc import Iterable, Mapping
from typing import cast
from urllib.parse import urlsplit, urlunsplit

import msgspec

from dikast.engine.errors import ErrorKind, ProviderError
from dikast.providers.headers import retry_after_s, wait_in_text

MESSAGE_MAX_CHARS = 200
HIDDEN = "[hidden]"


class ApiError(msgspec.Struct):
    """The error object of an answer, in whichever of the usual shapes it came."""

    message: str = ""
    type: str = ""
    code: str = ""
    detail: str = ""


def classify(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    wall_s: float | None = None,
    secrets: Iterable[str] = (),
) -> ProviderError:
    """The error that an answer stands for. Call it for every status but 2xx, and for a 2xx whose
    body is an error object.

    Args:
        status: HTTP status.
        headers: of the answer; names in any case if the mapping ignores case, else lower case.
        body: as received.
        wall_s: Unix time, for dates in headers; the answer's own Date header goes first.
        secrets: texts that must not appear in the message, besides what looks like a key.
    """
    found = read_error(body)
    wait_s = retry_after_s(headers, wall_s)
    if wait_s is None:
        wait_s = wait_in_text(f"{found.message} {found.detail}")
    kind = _kind(status, found, wait_s)
    if kind not in ("rate", "quota", "transient"):
        wait_s = None
    message = scrub(_sentence(status, kind, found), secrets)
    return ProviderError(kind, message, status=status, retry_after_s=wait_s)


# --- the error object ---------------------------------------------------------------------------


def read_error(body: bytes) -> ApiError:
    """The error object in a body of any of the common shapes, or its plain text."""
    try:
        data: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        text = body[:2000].decode("utf-8", "replace")
        return ApiError(message=re.sub(r"<[^>]*>", " ", text))
    answer = _fields(_first(data))  # Google wraps its errors in a list
    if answer is None:
        return ApiError(message=str(data)[:2000])
    # Routers put the failure of the model behind them into the first choice.
    choice = _fields(_first(answer.get("choices"))) or {}
    found = _first(answer.get("error") or answer.get("errors") or choice.get("error") or answer)
    error = _fields(found)
    if error is None:
        return ApiError(message=_text(found), code=_text(answer.get("code")))
    detail = error.get("details") or error.get("innererror") or error.get("metadata")
    message = error.get("message") or error.get("detail") or error.get("error")
    return ApiError(
        message=_text(message),
        type=_text(error.get("type") or error.get("status")),
        code=_text(error.get("code")),
        detail=_text(detail)[:2000],
    )


def _fields(value: object) -> dict[str, object] | None:
    return cast(dict[str, object], value) if isinstance(value, dict) else None


def _first(value: object) -> object:
    """The first element of a list, None of an empty one; anything else as it is."""
    if not isinstance(value, list):
        return value
    elements = cast(list[object], value)
    return elements[0] if elements else None


def _text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


# --- kinds --------------------------------------------------------------------------------------

_QUOTA_CODES = frozenset(
    (
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "quota_exceeded",
        "insufficient_balance",
        "insufficient_credits",
        "insufficient_user_quota",
        "billing_error",
        "payment_required",
    )
)
_CODE_KINDS: dict[str, ErrorKind] = {
    "rate_limit_exceeded": "rate",
    "rate_limit_error": "rate",
    "too_many_requests": "rate",
    "resource_exhausted": "rate",
    "requests": "rate",
    "tokens": "rate",
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "permission_error": "auth",
    "permission_denied": "auth",
    "unauthenticated": "auth",
    "content_filter": "refused",
    "content_policy_violation": "refused",
    "responsibleaipolicyviolation": "refused",
    "invalid_prompt": "refused",
    "context_length_exceeded": "bad_request",
    "invalid_request_error": "bad_request",
    "badrequesterror": "bad_request",
    "invalid_argument": "bad_request",
    "not_found_error": "bad_request",
    "model_not_found": "bad_request",
    "overloaded_error": "transient",
    "overloaded": "transient",
    "unavailable": "transient",
    "server_error": "transient",
    "internal_server_error": "transient",
    "internalservererror": "transient",
    "internal": "transient",
    "api_error": "transient",
    "timeout_error": "transient",
    "deadline_exceeded": "transient",
}
_TRANSIENT_STATUSES = frozenset((408, 409, 425))
_RATE_WAIT_MAX_S = 120.0
# Daily and monthly allowances do not come back while a run waits.
_LONG_WINDOW = re.compile(
    r"per[\s_-]?day|perday|daily|\b[rt]pd\b|per[\s_-]?month|monthly|per[\s_-]?week", re.IGNORECASE
)
_SHORT_WINDOW = re.compile(
    r"per[\s_-]?(?:minute|second|hour)|\b[rt]p[ms]\b|\bq(?:ps|pm)\b", re.IGNORECASE
)
_MONEY = re.compile(
    r"quota|billing|credit balance|insufficient (?:credit|balance|fund)|out of credits"
    r"|spend(?:ing)? limit|payment",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"credit balance is too low|insufficient (?:credit|balance|fund)", re.IGNORECASE
)
_TOO_LONG = re.compile(
    r"maximum context length|context[ _](?:length|window)|prompt is too long|input is too long"
    r"|too many (?:input )?tokens",
    re.IGNORECASE,
)


def _kind(status: int, error: ApiError, wait_s: float | None) -> ErrorKind:
    """The kind, from the most reliable sign to the least: code, status, wording."""
    codes = [error.code.lower(), error.type.lower()]
    if status < 300 and re.fullmatch(r"[45]\d\d", error.code):
        return _kind(int(error.code), msgspec.structs.replace(error, code=""), wait_s)
    if any(code in _QUOTA_CODES for code in codes):
        return "quota"
    said = f"{error.message} {error.detail} {error.code} {error.type}"
    if status in (402, 403, 429) or (status < 300 and _is_rate(codes)):
        if status == 402:
            return "quota"
        return _limit_kind(said, wait_s, "auth" if status == 403 else "rate")
    if status == 401:
        return "auth"
    if status in _TRANSIENT_STATUSES or status >= 500:
        return "transient"
    if status >= 400:
        if _NO_CREDIT.search(error.message):
            return "quota"
        return "refused" if _is_filtered(error) else "bad_request"
    if status >= 300:
        return "bad_request"
    if _is_filtered(error):
        return "refused"
    for code in codes:
        if code in _CODE_KINDS:
            return _CODE_KINDS[code]
    return "malformed"


def _is_rate(codes: list[str]) -> bool:
    return any(_CODE_KINDS.get(code) == "rate" for code in codes)


def _is_filtered(error: ApiError) -> bool:
    codes = (error.code.lower(), error.type.lower())
    return (
        any(_CODE_KINDS.get(code) == "refused" for code in codes)
        or "responsibleaipolicyviolation" in error.detail.lower()
    )


def _limit_kind(said: str, wait_s: float | None, otherwise: ErrorKind) -> ErrorKind:
    """Whether a limit that was hit comes back by waiting (rate) or not (quota)."""
    if _LONG_WINDOW.search(said):
        return "quota"
    if _SHORT_WINDOW.search(said):
        return "rate"
    if _MONEY.search(said):
        # "Quota" is also said of limits per minute; those tell a short time to wait.
        return "quota" if wait_s is None or wait_s > _RATE_WAIT_MAX_S else "rate"
    return otherwise


def _sentence(status: int, kind: ErrorKind, error: ApiError) -> str:
    said = " ".join(error.message.split()) or error.type or error.code or "no message"
    if kind == "bad_request" and (
        _TOO_LONG.search(error.message) or error.code == "context_length_exceeded"
    ):
        said = f"the prompt is longer than the model's context window: {said}"
    elif kind == "refused":
        said = f"the provider's content filter declined: {said}"
    elif 300 <= status < 400:
        said = "the address redirects elsewhere: set base_url to the final address"
    return f"HTTP {status}: {said}"


# --- keys stay hidden ---------------------------------------------------------------------------

_KEY_LIKE = re.compile(
    r"\b(?:(?:sk|pk|gsk|xai|hf|ghp|key)[-_]|AIza|eyJ)[-_A-Za-z0-9.*]{8,}"
    r"|(?i:bearer)\s+\S+"
    r"|(?i:(?:api[-_ ]?key|token|secret|password|authorization)\b[\"']?\s*[:=]\s*[\"']?)[^\s\"',&]+"
    r"|(?=[A-Za-z+_-]*\d)[A-Za-z0-9+_-]{32,}={0,2}"
)


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with everything that looks like a key hidden, cut to 200 characters.

    Hidden before it is cut, so that no half of a key is left at the end.
    """
    for secret in secrets:
        if secret:
            text = text.replace(secret, HIDDEN)
    text = _KEY_LIKE.sub(HIDDEN, text[:4000])
    return text if len(text) <= MESSAGE_MAX_CHARS else text[: MESSAGE_MAX_CHARS - 3] + "..."


def safe_url(url: str) -> str:
    """`url` without user name, password, query and fragment: fit for messages."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the address"
    return urlunsplit((parts.scheme, host + port, parts.path, "", ""))
