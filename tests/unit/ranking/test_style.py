"""Differences of style are shares, antisymmetric, and zero where neither answer has any."""

import pytest

from dikast.analysis.ranking import style_difference, style_names


def test_the_differences_are_shares_and_turn_with_the_sides() -> None:
    long, short = "# Why\n\n- **one**\n- two\n" + "x" * 77, "x" * 50

    found = dict(zip(style_names("style"), style_difference(long, short, "style"), strict=True))

    assert found["length"] == pytest.approx((len(long) - 50) / (len(long) + 50))
    assert (found["headings"], found["bold"], found["lists"], found["code"]) == (1, 1, 1, 0)
    turned = style_difference(short, long, "style")
    assert turned == pytest.approx([-value for value in found.values()])


def test_length_alone_is_one_difference_and_no_control_is_none() -> None:
    assert style_names(None) == ()
    assert style_names("length") == ("length",)
    assert style_difference("abc", "a", "length") == (0.5,)
    assert style_difference("", "", "length") == (0.0,)
