"""Numbers as judges write them."""

import pytest

from dikast.strategies.numbers import read_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("8", 8.0), (" 8.0 ", 8.0), ("**7**", 7.0), ("-1", -1.0), ("8.5", 8.5)),
        *(("8/10", 8.0), ("8 / 10", 8.0), ("8 out of 10", 8.0), ("eight of ten", 8.0)),
        *(("Eight", 8.0), ("ten", 10.0), ("8 points", 8.0), ("8/10.", 8.0)),
        *(("８", 8.0), ("８／１０", 8.0), ("八", 8.0), ("八分", 8.0), ("8分", 8.0), ("十", 10.0)),
        *(("十二", 12.0), ("二十", 20.0), ("九十九", 99.0), ("两", 2.0), ("〇", 0.0)),
    ],
)
def test_a_number_in_any_dress_is_read(text: str, number: float) -> None:
    assert read_number(text, 10) == number


@pytest.mark.parametrize(
    "text",
    [
        *("", "good", "8-9", "7 or 8", "8/5", "8 of many", "1,000", "true", "nan", "inf", "1e3"),
        *("十十", "百", "一二", "²", "٣", "8 9", "about 8", "half"),
    ],
)
def test_what_is_not_one_number_is_not_read(text: str) -> None:
    assert read_number(text, 10) is None


def test_a_number_out_of_something_is_read_only_where_that_is_the_scale() -> None:
    assert read_number("4/5", 5) == 4.0
    assert read_number("4/5", 10) is None
    assert read_number("4/5") is None
