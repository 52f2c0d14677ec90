"""What an answer's headers say: how long to wait, and what is left of the key's limits.

Every provider writes these in a way of its own; they are brought to seconds and counts here.
Pure functions: no network, no clock (the wall-clock time is passed in).
"""

import email.utils
import re
from collections.abc import Mapping
from datetime import datetime

from dikast.engine.ports import RateInfo

WAIT_MAX_S = 31 * 86400.0

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|us|[dhms])", re.IGNORECASE)
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?\s*(?:ms|us|[dhms])\s*)+", re.IGNORECASE)
_TRY_AGAIN = re.compile(
    r"(?:try again in|retry in|retry after|retryDelay['\"]?\s*:\s*['\"]?)\s*"
    r"((?:\d+(?:\.\d+)?\s*(?:ms|[dhms])(?:econds?|inutes?|ours?)?\s*)+)",
    re.IGNORECASE,
)
_UNIT_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def retry_after_s(headers: Mapping[str, str], wall_s: float | None = None) -> float | None:
    """Seconds the answer asks to wait: `retry-after-ms`, or `Retry-After` as seconds or date.

    A date is taken against the answer's own `Date`, so that a wrong local clock does no harm.
    """
    millis = _number(headers.get("retry-after-ms"))
    if millis is not None:
        return min(millis / 1000, WAIT_MAX_S)
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is None:
        until_s = _http_date_s(value)
        if until_s is None:
            return duration_s(value)
        now_s = _http_date_s(headers.get("date"))
        now_s = wall_s if now_s is None else now_s
        if now_s is None:
            return None
        seconds = max(0.0, until_s - now_s)
    return min(seconds, WAIT_MAX_S)


def duration_s(text: str) -> float | None:
    """Seconds of a duration such as "6m0s", "120ms", "1h2m3.5s" or a bare number of seconds."""
    bare = _number(text)
    if bare is not None:
        return bare
    if not _DURATION.fullmatch(text.strip()):
        return None
    return _sum_s(text)


def wait_in_text(text: str) -> float | None:
    """Seconds named by a message such as "Please try again in 7m12s", or None."""
    found = _TRY_AGAIN.search(text)
    return None if found is None else min(_sum_s(found.group(1)), WAIT_MAX_S)


def _sum_s(text: str) -> float:
    parts = _DURATION_PART.findall(text)
    return sum(float(number) * _UNIT_S[unit.lower()] for number, unit in parts)


def _number(text: str | None) -> float | None:
    """A finite number not below zero, or None."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _http_date_s(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def rate_info(headers: Mapping[str, str], wall_s: float | None = None) -> RateInfo | None:
    """What the headers say of the key's limits, or None when they say nothing.

    OpenAI style (`x-ratelimit-limit-requests`, resets as durations), Anthropic style
    (`anthropic-ratelimit-requests-limit`, resets as dates) and the plain `x-ratelimit-remaining`
    (its limit is left out: the window it counts in is not stated).

    Args:
        headers: of the answer.
        wall_s: Unix time, for resets given as dates; the answer's own Date header goes first.
    """
    get = headers.get
    if get("x-ratelimit-remaining-requests") or get("x-ratelimit-remaining-tokens"):
        return _openai_rate(headers)
    if get("x-ratelimit-limit-requests") or get("x-ratelimit-limit-tokens"):
        return _openai_rate(headers)
    if get("anthropic-ratelimit-requests-limit") or get("anthropic-ratelimit-tokens-limit"):
        return _anthropic_rate(headers, wall_s)
    if get("x-ratelimit-remaining"):
        return RateInfo(
            requests_remaining=_int(get("x-ratelimit-remaining")),
            requests_reset_s=_reset_s(get("x-ratelimit-reset"), headers, wall_s),
        )
    return None


def _openai_rate(headers: Mapping[str, str]) -> RateInfo:
    get = headers.get
    requests_reset = get("x-ratelimit-reset-requests")
    tokens_reset = get("x-ratelimit-reset-tokens")
    return RateInfo(
        requests_limit=_int(get("x-ratelimit-limit-requests")),
        requests_remaining=_int(get("x-ratelimit-remaining-requests")),
        requests_reset_s=duration_s(requests_reset) if requests_reset else None,
        tokens_limit=_int(get("x-ratelimit-limit-tokens")),
        tokens_remaining=_int(get("x-ratelimit-remaining-tokens")),
        tokens_reset_s=duration_s(tokens_reset) if tokens_reset else None,
    )


def _anthropic_rate(headers: Mapping[str, str], wall_s: float | None) -> RateInfo:
    def field(what: str, name: str) -> str | None:
        return headers.get(f"anthropic-ratelimit-{what}-{name}")

    return RateInfo(
        requests_limit=_int(field("requests", "limit")),
        requests_remaining=_int(field("requests", "remaining")),
        requests_reset_s=_reset_s(field("requests", "reset"), headers, wall_s),
        tokens_limit=_int(field("tokens", "limit")),
        tokens_remaining=_int(field("tokens", "remaining")),
        tokens_reset_s=_reset_s(field("tokens", "reset"), headers, wall_s),
    )


def _int(text: str | None) -> int | None:
    number = _number(text)
    return None if number is None else int(number)


def _reset_s(text: str | None, headers: Mapping[str, str], wall_s: float | None) -> float | None:
    """Seconds until a reset given as RFC 3339 date, Unix time (s or ms) or duration."""
    if text is None:
        return None
    until_s = _number(text)
    if until_s is not None and until_s < 1e8:
        return until_s
    if until_s is not None and until_s > 1e11:
        until_s /= 1000
    if until_s is None:
        try:
            until_s = datetime.fromisoformat(text).timestamp()
        except ValueError:
            return duration_s(text)
    now_s = _http_date_s(headers.get("date"))
    now_s = wall_s if now_s is None else now_s
    return None if now_s is None else max(0.0, until_s - now_s)
