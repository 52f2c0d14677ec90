"""Figures of a report, drawn as SVG: intervals, shares, histograms, confusion, calibration.

Numbers come in, markup goes out; what a figure shows stands in a table beside it as well. Colours
are classes of the page's style sheet, so that light, dark and paper each have their own.
"""

import math
from collections.abc import Sequence
from html import escape
from typing import Any, Final, Literal, NamedTuple

from dikast.report.plain import visible
from dikast.tables import Measure, Share, text_of

WIDTH: Final = 760
_LEFT: Final = 230
_RIGHT: Final = 170
_ROW: Final = 24
_TOP: Final = 14
_LABEL_CHARS: Final = 34
_CHAR_WIDTH: Final = 8
_TICKS: Final = 6
_LOG_SPAN_MAX: Final = 6.0
DOTS_MAX: Final = 60
FIGURES_MAX: Final = 12

Scale = Literal["share", "signed share", "number", "log"]


class Dot(NamedTuple):
    """One value with its interval; `value` is None where there is none to show."""

    label: str
    value: float | None
    interval: Any = None
    n: int | None = None


class Axis(NamedTuple):
    """How values are placed: "share" from 0 to 1 in per cent, "signed share" around 0, "number"
    as wide as the data, "log" for ratios. `reference` is marked by a line."""

    scale: Scale
    name: str
    reference: float | None = None
    digits: int = 0


def intervals(title: str, dots: Sequence[Dot], axis: Axis) -> str:
    """Values with their intervals, one below the other; empty where no dot has a value.

    At most `DOTS_MAX` are drawn; the title says so where there are more.
    """
    known = [dot for dot in dots if dot.value is not None and _placeable(dot.value, axis)]
    shown = known[:DOTS_MAX]
    if not shown:
        return ""
    if len(known) > len(shown):
        title = f"{title} (the first {len(shown)} of {len(known)})"
    low, high = _range(shown, axis)
    floor = _TOP + _ROW * len(shown)
    made: list[str] = []

    def at(value: float) -> float:
        place = (_placed(value, axis) - low) / (high - low)
        return round(_LEFT + min(1.0, max(0.0, place)) * (WIDTH - _LEFT - _RIGHT), 1)

    for tick, text in _ticks(low, high, axis):
        made.append(f'<path class="grid" d="M{at(tick)} {_TOP - 4}V{floor}"/>')
        made.append(_text(at(tick), floor + 16, text, "middle", "faint"))
    if axis.reference is not None:
        made.append(f'<path class="reference" d="M{at(axis.reference)} {_TOP - 4}V{floor}"/>')
    for place, dot in enumerate(shown):
        made += _dot(dot, _TOP + _ROW * place + _ROW / 2, at, axis)
    made.append(_text((_LEFT + WIDTH - _RIGHT) / 2, floor + 34, axis.name, "middle", "faint"))
    return _figure(title, made, WIDTH, floor + 42)


def _dot(dot: Dot, y: float, at: Any, axis: Axis) -> list[str]:
    assert dot.value is not None
    n = "" if dot.n is None else f", n {dot.n:,}"
    text = _said(dot, axis)
    made = [
        f"<g><title>{escape(visible(dot.label))}: {escape(text)}{n}</title>",
        _text(_LEFT - 10, y + 4, _short(dot.label), "end", "label"),
    ]
    if dot.interval is not None:
        low, high = at(_floor(dot.interval.low, axis)), at(dot.interval.high)
        made.append(f'<path class="bar" d="M{low} {y}H{high}M{low} {y - 4}v8M{high} {y - 4}v8"/>')
    made.append(f'<circle class="dot" cx="{at(dot.value)}" cy="{y}" r="4"/>')
    made.append(_text(WIDTH - _RIGHT + 10, y + 4, text, "start", "value"))
    made.append("</g>")
    return made


def _floor(value: float, axis: Axis) -> float:
    return max(value, 2.0**-_LOG_SPAN_MAX) if axis.scale == "log" else value


def _placeable(value: float, axis: Axis) -> bool:
    return math.isfinite(value) and (axis.scale != "log" or value > 0)


def _placed(value: float, axis: Axis) -> float:
    return math.log2(value) if axis.scale == "log" else value


def _range(dots: Sequence[Dot], axis: Axis) -> tuple[float, float]:
    if axis.scale == "share":
        return 0.0, 1.0
    values = [_placed(dot.value, axis) for dot in dots if dot.value is not None]
    for dot in dots:
        if dot.interval is not None:
            values += [
                _placed(_floor(dot.interval.low, axis), axis),
                _placed(_floor(dot.interval.high, axis), axis),
            ]
    if axis.reference is not None:
        values.append(_placed(axis.reference, axis))
    if axis.scale in ("signed share", "log"):
        most = max(abs(value) for value in values) or 0.1
        if axis.scale == "log":
            most = min(_LOG_SPAN_MAX, max(1.0, most))
        return -most * 1.05, most * 1.05
    low, high = min(values), max(values)
    edge = (high - low) * 0.05 or 1.0
    return low - edge, high + edge


def _ticks(low: float, high: float, axis: Axis) -> list[tuple[float, str]]:
    """Round values between the ends of an axis, with their texts."""
    if axis.scale == "log":
        powers = range(math.ceil(low), math.floor(high) + 1)
        return [(2.0**p, f"{2**p}" if p >= 0 else f"1/{2**-p}") for p in powers]
    step = 10 ** math.floor(math.log10((high - low) / _TICKS))
    step *= next(each for each in (1, 2, 5, 10, 20) if (high - low) / (step * each) <= _TICKS)
    first = math.ceil(low / step - 1e-9)
    values = [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]
    if axis.scale == "number":
        digits = max(0, -math.floor(math.log10(step)))
        return [(value, f"{value:.{digits}f}") for value in values]
    digits = 0 if step >= 0.01 else 1
    sign = "+" if axis.scale == "signed share" else ""
    return [(value, f"{value:{sign}.{digits}%}" if value else "0%") for value in values]


def _said(dot: Dot, axis: Axis) -> str:
    """The value and its interval as the tables have it."""
    if axis.scale in ("share", "signed share"):
        return text_of(Share(dot.value, dot.interval, axis.scale == "signed share"))
    return text_of(Measure(dot.value, dot.interval, axis.digits))


class Piece(NamedTuple):
    """One part of a bar: how many, and the class that colours it."""

    name: str
    n: int
    kind: Literal["a", "tie", "b", "none"]


def shares(title: str, bars: Sequence[tuple[str, Sequence[Piece]]]) -> str:
    """Bars that are cut by count, each as long as the others."""
    bars = [(name, pieces) for name, pieces in bars if sum(each.n for each in pieces)]
    if not bars:
        return ""
    wide = WIDTH - _LEFT - 10
    made: list[str] = []
    for place, (name, pieces) in enumerate(bars):
        y = _TOP + place * 34
        made.append(_text(_LEFT - 10, y + 17, _short(name), "end", "label"))
        total = sum(each.n for each in pieces)
        x = float(_LEFT)
        for piece in pieces:
            width = wide * piece.n / total
            if not piece.n:
                continue
            said = f"{piece.name}: {piece.n:,} ({piece.n / total:.1%})"
            made.append(
                f"<g><title>{escape(visible(name))}: {escape(said)}</title>"
                f'<rect class="{piece.kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="26"/>'
            )
            name_and_n = f"{piece.name} {piece.n:,}"
            if width > _CHAR_WIDTH * len(name_and_n):
                kind = f"on-{piece.kind}"
                made.append(_text(x + width / 2, y + 17, name_and_n, "middle", kind))
            made.append("</g>")
            x += width
    return _figure(title, made, WIDTH, _TOP + 34 * len(bars))


def histogram(title: str, bars: Sequence[tuple[str, int]], name: str) -> str:
    """Counts side by side, in the order given."""
    if not bars:
        return ""
    most = max(count for _, count in bars)
    step = (WIDTH - 60) / len(bars)
    floor = 170
    every = max(1, math.ceil(len(bars) * 34 / (WIDTH - 60)))
    made = [f'<path class="axis" d="M50 {floor}H{WIDTH - 10}"/>']
    for place, (label, count) in enumerate(bars):
        height = round(140 * count / most, 1)
        x = 50 + step * place
        made.append(
            f"<g><title>{escape(label)}: {count:,}</title>"
            f'<rect class="b" x="{x + step * 0.08:.1f}" y="{floor - height}" '
            f'width="{step * 0.84:.1f}" height="{height}"/></g>'
        )
        if place % every == 0:
            made.append(_text(x + step / 2, floor + 16, label, "middle", "faint"))
    made.append(_text(44, 34, f"{most:,}", "end", "faint"))
    made.append(_text(44, floor, "0", "end", "faint"))
    made.append(_text((50 + WIDTH) / 2, floor + 36, name, "middle", "faint"))
    return _figure(title, made, WIDTH, floor + 44)


def confusion(title: str, counts: Sequence[Sequence[int]]) -> str:
    """Labels in rows, verdicts in columns; shaded by the share of the row."""
    said = ("A", "tie", "B", "none")
    wide, high, left, top = 92, 40, 120, 40
    made = [_text(left + 2 * wide, 14, "verdict", "middle", "faint")]
    made += [
        _text(left + (at + 0.5) * wide, 34, name, "middle", "label") for at, name in enumerate(said)
    ]
    for place, row in enumerate(counts):
        y, total = top + place * high, sum(row)
        made.append(_text(left - 10, y + 25, f"label {said[place]}", "end", "label"))
        for at, count in enumerate(row):
            share = count / total if total else 0.0
            kind = "hit" if at == place else "miss"
            made.append(
                f"<g><title>label {said[place]}, verdict {said[at]}: {count:,} ({share:.1%} of the "
                f'row)</title><rect class="cell" x="{left + at * wide}" y="{y}" width="{wide - 3}" '
                f'height="{high - 3}"/><rect class="{kind}" x="{left + at * wide}" y="{y}" '
                f'width="{wide - 3}" height="{high - 3}" opacity="{share * 0.55:.2f}"/>'
                + _text(left + at * wide + wide / 2, y + 17, f"{count:,}", "middle", "label")
                + _text(left + at * wide + wide / 2, y + 31, f"{share:.0%}", "middle", "faint")
                + "</g>"
            )
    return _figure(title, made, left + 4 * wide, top + 3 * high, narrow=True)


class Reliable(NamedTuple):
    """One bin of a reliability curve."""

    confidence: float
    share: float
    interval: Any
    n: int


def reliability(title: str, bins: Sequence[Reliable], across: str) -> str:
    """Confidence across, the share that agrees upward; on the diagonal both are the same."""
    if not bins:
        return ""
    size, left, top = 300, 60, 12
    floor = top + size

    def at(x: float, y: float) -> tuple[float, float]:
        return round(left + x * size, 1), round(floor - y * size, 1)

    made = [
        f'<path class="axis" d="M{left} {top}V{floor}H{left + size}"/>',
        f'<path class="reference" d="M{left} {floor}L{left + size} {top}"/>',
    ]
    for tenth in (0, 2, 4, 6, 8, 10):
        x, y = at(tenth / 10, tenth / 10)
        made.append(_text(x, floor + 16, f"{tenth * 10}%", "middle", "faint"))
        made.append(_text(left - 8, y + 4, f"{tenth * 10}%", "end", "faint"))
    most = max(each.n for each in bins)
    line = " ".join("{},{}".format(*at(each.confidence, each.share)) for each in bins)
    made.append(f'<polyline class="line" points="{line}"/>')
    for each in bins:
        x, y = at(each.confidence, each.share)
        said = f"confidence {each.confidence:.1%}, agreed {each.share:.1%}, n {each.n:,}"
        made.append(f"<g><title>{escape(said)}</title>")
        if each.interval is not None:
            low, high = at(0, each.interval.low)[1], at(0, each.interval.high)[1]
            made.append(
                f'<path class="bar" d="M{x} {low}V{high}M{x - 4} {low}h8M{x - 4} {high}h8"/>'
            )
        radius = round(3 + 5 * math.sqrt(each.n / most), 1)
        made.append(f'<circle class="dot" cx="{x}" cy="{y}" r="{radius}"/></g>')
    made.append(_text(left + size / 2, floor + 36, across, "middle", "faint"))
    made.append(_text(left + 6, top + 10, "share that agrees with people", "start", "faint"))
    return _figure(title, made, left + size + 20, floor + 44, narrow=True)


# -- markup -----------------------------------------------------------------------------------


def _figure(
    title: str, made: Sequence[str], width: float, height: float, *, narrow: bool = False
) -> str:
    name = escape(visible(title))
    kind = ' class="narrow"' if narrow else ""
    return (
        f'<figure{kind}><figcaption>{name}</figcaption><div class="wide" role="region" '
        f'tabindex="0" aria-label="Figure: {name}"><svg viewBox="0 0 {width:g} {height:g}" '
        f'role="img" aria-label="{name}">{"".join(made)}</svg></div></figure>'
    )


def _text(x: float, y: float, text: str, anchor: str, kind: str) -> str:
    return (
        f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">'
        f"{escape(visible(text))}</text>"
    )


def _short(text: str) -> str:
    return text if len(text) <= _LABEL_CHARS else f"{text[: _LABEL_CHARS - 1]}…"
