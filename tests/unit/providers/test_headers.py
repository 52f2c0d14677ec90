"""Waiting times and limits are read from headers in every common spelling."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dikast.engine.ports import RateInfo
from dikast.providers.headers import WAIT_MAX_S, duration_s, rate_info, retry_after_s, wait_in_text

NOW_S = 1_700_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "20s"}, 20),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1e300"}, WAIT_MAX_S),
        ({"retry-after": formatdate(NOW_S + 30, usegmt=True)}, 30),
        ({"retry-after": formatdate(NOW_S - 30, usegmt=True)}, 0),
        (
            {
                "retry-after": formatdate(NOW_S + 3630, usegmt=True),
                "date": formatdate(NOW_S + 3600, usegmt=True),
            },
            30,
        ),
    ],
)
def test_retry_after_is_read_as_seconds_milliseconds_or_date(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after_s(headers, NOW_S) == seconds


def test_a_date_without_any_clock_says_nothing() -> None:
    assert retry_after_s({"retry-after": formatdate(NOW_S, usegmt=True)}) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("6m0s", 360),
        ("120ms", 0.12),
        ("1h2m3.5s", 3723.5),
        ("1.5", 1.5),
        ("2d", 172800),
        ("", None),
        ("6 moons", None),
    ],
)
def test_durations_are_read(text: str, seconds: float | None) -> None:
    assert duration_s(text) == (None if seconds is None else pytest.approx(seconds))


def test_a_waiting_time_is_found_in_prose() -> None:
    assert wait_in_text("Please try again in 1m2.5s. Visit us.") == pytest.approx(62.5)
    assert wait_in_text("Please retry in 3 seconds") == 3
    assert wait_in_text("Try harder") is None


def test_openai_limits_are_read() -> None:
    headers = {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    assert rate_info(headers) == RateInfo(
        requests_limit=500,
        requests_remaining=499,
        requests_reset_s=0.12,
        tokens_limit=30000,
        tokens_remaining=0,
        tokens_reset_s=360,
    )


def test_anthropic_limits_are_read_against_the_date_of_the_answer() -> None:
    headers = {
        "date": "Tue, 14 Nov 2023 22:13:20 GMT",
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2023-11-14T22:13:25Z",
        "anthropic-ratelimit-tokens-remaining": "1000",
    }
    found = rate_info(headers, 0.0)
    assert found == RateInfo(
        requests_limit=50, requests_remaining=49, requests_reset_s=5, tokens_remaining=1000
    )


def test_a_limit_whose_window_is_not_stated_is_left_out() -> None:
    headers = {
        "x-ratelimit-limit": "20",
        "x-ratelimit-remaining": "3",
        "x-ratelimit-reset": str(int((NOW_S + 9) * 1000)),
    }
    assert rate_info(headers, NOW_S) == RateInfo(requests_remaining=3, requests_reset_s=9)


def test_no_header_means_no_information() -> None:
    assert rate_info({"content-type": "application/json"}) is None


@given(st.text(max_size=40))
def test_no_header_value_breaks_the_reader(text: str) -> None:
    names = ("retry-after", "retry-after-ms", "date")
    wait_s = retry_after_s(dict.fromkeys(names, text), NOW_S)
    assert wait_s is None or 0 <= wait_s <= WAIT_MAX_S
    for name in ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"):
        rate_info({"x-ratelimit-limit-requests": "5", name: text}, NOW_S)
    rate_info({"x-ratelimit-remaining": text, "x-ratelimit-reset": text}, NOW_S)
