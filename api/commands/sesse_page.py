"""The report of `dikast sesse evaluate` as one page that needs nothing else: tables and two curves.

All texts are escaped: categories and ids come from files that others wrote.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from dikast.tables import Table, text_of

if TYPE_CHECKING:
    from dikast.analysis.sesse_report import Report

_WIDTH, _HEIGHT, _EDGE = 460, 240, 44
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8884; }
td.n, th.n { text-align: right; }
.wide { overflow-x: auto; }
.note { color: #777; font-size: 13px; margin: .2rem 0; }
figure { display: inline-block; margin: 1rem 2rem 1rem 0; }
svg text { font-size: 11px; fill: currentColor; }
.warn { border-left: 4px solid #c80; padding-left: .8rem; }
"""


def page(report: "Report", tables: Sequence[Table]) -> str:
    """The page as text.

    Args:
        report: for the curves.
        tables: as they are shown in a terminal.
    """
    source = report.source
    warning = (
        '<p class="warn">The judge is simulated: the figures show the machinery, not a model.</p>'
        if source.simulated
        else ""
    )
    curves = _figure(
        "risk against coverage (by margin)",
        [(point.coverage, point.risk) for point in report.risk_coverage.points],
        "coverage",
    )
    if report.depth:
        deepest = max(each.depth for each in report.depth)
        curves += _figure(
            "score by depth (ties one half)",
            [(each.depth / deepest, each.half.value or 0.0) for each in report.depth],
            f"depth, 1 to {deepest}",
        )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>SESSE: {escape(source.judge)}</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>SESSE: {escape(source.judge)}, library {escape(source.library)}</h1>\n{warning}\n"
        f"{curves}\n" + "\n".join(map(_table, tables)) + "\n</body></html>\n"
    )


def _table(table: Table) -> str:
    numeric = [
        all(not isinstance(row[at], str) for row in table.rows) for at in range(len(table.columns))
    ]

    def line(cells: Sequence[str], tag: str) -> str:
        made = (_cell(tag, cell, right) for cell, right in zip(cells, numeric, strict=True))
        return f"<tr>{''.join(made)}</tr>"

    body = "\n".join(line([text_of(cell) for cell in row], "td") for row in table.rows)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    return (
        f'<h2>{escape(table.title)}</h2>\n<div class="wide"><table><thead>'
        f"{line(table.columns, 'th')}</thead><tbody>\n{body}\n</tbody></table></div>\n{notes}"
    )


def _cell(tag: str, text: str, right: bool) -> str:
    kind = ' class="n"' if right else ""
    return f"<{tag}{kind}>{escape(text)}</{tag}>"


def _figure(title: str, points: Sequence[tuple[float, float]], below: str) -> str:
    """A line through points whose x lies between 0 and 1; y is scaled to what is there."""
    if not points:
        return ""
    low, high = min(y for _, y in points), max(y for _, y in points)
    spread = (high - low) or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        across = _EDGE + x * (_WIDTH - 2 * _EDGE)
        down = _HEIGHT - _EDGE - (y - low) / spread * (_HEIGHT - 2 * _EDGE)
        return round(across, 1), round(down, 1)

    places = [at(x, y) for x, y in points]
    line = " ".join(f"{x},{y}" for x, y in places)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="2.5" fill="#36c"/>' for x, y in places)
    floor = _HEIGHT - _EDGE
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f'<path d="M{_EDGE} {_EDGE}V{floor}H{_WIDTH - _EDGE}" fill="none" stroke="#8888"/>'
        f'<polyline points="{line}" fill="none" stroke="#36c" stroke-width="1.5"/>{dots}'
        f'<text x="4" y="{floor}">{low:.1%}</text><text x="4" y="{_EDGE}">{high:.1%}</text>'
        f'<text x="{_WIDTH // 2}" y="{_HEIGHT - 12}">{escape(below)}</text></svg></figure>'
    )
