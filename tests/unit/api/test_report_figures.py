"""Figures and texts of the report: places, ticks, escapes."""

import json
import re

import pytest

from dikast.analysis.intervals import Interval
from dikast.report.figures import DOTS_MAX, Axis, Dot, Piece, histogram, intervals, shares
from dikast.report.page import json_block
from dikast.report.plain import visible


def places(svg: str) -> list[float]:
    return [float(each) for each in re.findall(r'class="dot" cx="([\d.]+)"', svg)]


def test_dots_stand_where_their_values_are() -> None:
    dots = [Dot(str(value), value) for value in (0.0, 0.25, 0.5, 1.0)]
    zero, quarter, half, one = places(intervals("t", dots, Axis("share", "x")))

    assert half == pytest.approx((zero + one) / 2)
    assert quarter - zero == pytest.approx((one - zero) / 4)


def test_on_a_log_axis_half_and_double_are_as_far_from_one() -> None:
    dots = [Dot("half", 0.5), Dot("one", 1.0), Dot("double", 2.0), Dot("never", 0.0)]
    half, one, double = places(intervals("t", dots, Axis("log", "x", 1.0)))

    assert one - half == pytest.approx(double - one)


def test_an_interval_is_drawn_and_said_as_the_tables_say_it() -> None:
    drawn = intervals("t", [Dot("a", 0.5, Interval(0.25, 0.75, 0.95, "m"), 8)], Axis("share", "x"))

    assert "50.0 % [25.0, 75.0], n 8" in drawn
    assert 'class="bar"' in drawn


@pytest.mark.parametrize("scale", ["share", "signed share", "number", "log"])
@pytest.mark.parametrize("value", [1e-9, 0.3, 1.0, 40.0, 1e9])
def test_any_number_gives_an_axis(scale: str, value: float) -> None:
    axis = Axis(scale, "x", 1.0)  # type: ignore[arg-type]
    drawn = intervals("t", [Dot("a", value, Interval(value, value, 0.95, "m"))], axis)

    assert len(places(drawn)) == 1
    assert 2 <= drawn.count('class="grid"') <= 14


def test_nothing_to_show_is_no_figure() -> None:
    axis = Axis("share", "x")
    assert intervals("t", [], axis) == ""
    assert intervals("t", [Dot("a", None), Dot("b", float("nan"))], axis) == ""
    assert shares("t", [("run", [Piece("A", 0, "a")])]) == ""
    assert histogram("t", [], "x") == ""


def test_more_dots_than_fit_are_said() -> None:
    dots = [Dot(str(k), 0.5) for k in range(DOTS_MAX + 3)]
    drawn = intervals("Rates", dots, Axis("share", "x"))

    assert len(places(drawn)) == DOTS_MAX
    assert f"Rates (the first {DOTS_MAX} of {DOTS_MAX + 3})" in drawn


def test_pieces_of_a_bar_are_as_wide_as_their_share() -> None:
    drawn = shares("t", [("run", [Piece("A", 30, "a"), Piece("B", 10, "b")])])
    wide, narrow = (float(each) for each in re.findall(r'<rect [^>]*width="([\d.]+)"', drawn))

    assert wide == pytest.approx(3 * narrow, abs=0.2)


def test_names_are_escaped_in_figures() -> None:
    name = '<img src=x onerror="1">\u202e'
    drawn = intervals(name, [Dot(name, 0.5)], Axis("share", name))

    assert "<img" not in drawn
    assert "[U+202E]" in drawn
    assert '"1"' not in drawn


def test_unseen_characters_are_shown_by_their_number() -> None:
    text = "a\u202eb\u200bc\x07d\ud800e\U000e0041f\tg\nh"
    assert visible(text) == "a[U+202E]b[U+200B]c[U+0007]d\ufffde[U+E0041]f\tg\nh"
    assert (
        visible("gr\u00fc\u00dfe \u4f60\u597d \U0001f44d")
        == "gr\u00fc\u00dfe \u4f60\u597d \U0001f44d"
    )


def test_a_block_of_json_has_no_character_that_ends_it() -> None:
    text = "</script><!-- & \u2028 \u202e \U000e0041 \u4f60"
    block = json_block({"text": text})

    assert not set("<>&\u2028\u202e\U000e0041") & set(block)
    assert json.loads(block) == {"text": text}
