"""The report as one HTML file: no address is asked for anything, text from outside stays text.

The page carries its own style and script and a policy that allows these two, by their hashes, and
nothing else. What the script reads lies in a block of JSON that cannot end early.
"""

import base64
import hashlib
from html import escape
from importlib import resources
from typing import Any, Final, NamedTuple

import msgspec

from dikast.report.plain import in_script, visible
from dikast.tables import Table, render, text_of

ROWS_MAX: Final = 200
_LONG_CHARS: Final = 60


class Section(NamedTuple):
    """One section. `lead` are sentences, `figures` markup of `dikast.report.figures`; `absent` says
    why there is nothing to show. `browser` marks the one that holds the pairs."""

    key: str
    title: str
    lead: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    absent: str | None = None
    browser: bool = False


class Page(NamedTuple):
    """What the file shows: `facts` are names and values at the top."""

    title: str
    subtitle: str
    warnings: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    foot: str
    browser: dict[str, Any]


def html(page: Page) -> str:
    """The whole file."""
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    links = "".join(
        f'<li><a href="#{each.key}">{_text(each.title)}</a></li>' for each in page.sections
    )
    facts = "".join(
        f"<li><span>{_text(name)}</span><strong>{_text(value)}</strong></li>"
        for name, value in page.facts
    )
    warnings = "".join(f'<p class="warning">{_text(each)}</p>' for each in page.warnings)
    body = "\n".join(_section(each) for each in page.sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{_text(page.title)}</title>\n<style>{style}</style></head>\n<body>\n"
        '<a class="skip" href="#main">Skip to the report</a>\n'
        f"<header><h1>{_text(page.title)}</h1><p>{_text(page.subtitle)}</p></header>\n"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n'
        f'<main id="main">\n{warnings}<ul class="facts">{facts}</ul>\n{body}\n</main>\n'
        f"<footer><p>{_text(page.foot)}</p></footer>\n"
        f'<script type="application/json" id="pairs-data">{json_block(page.browser)}</script>\n'
        f"<script>{script}</script>\n</body></html>\n"
    )


def json_block(value: Any) -> str:
    """JSON that may stand inside a script element: no character in it can end the element."""
    return in_script(msgspec.json.encode(value).decode())


def markdown(page: Page) -> str:
    """The same numbers as Markdown, without figures and pairs."""
    lines = [f"# {visible(page.title)}", "", page.subtitle, ""]
    lines += [f"- {name}: {value}" for name, value in page.facts]
    lines += ["", *(f"**{each}**\n" for each in page.warnings)]
    for section in page.sections:
        lines += [f"## {section.title}", ""]
        lines += [f"{each}\n" for each in section.lead]
        if section.absent is not None:
            lines.append(f"{_sentence(section.absent)}\n")
        if section.tables:
            lines.append(render(section.tables, "md"))
    lines.append(page.foot)
    return visible("\n".join(lines)) + "\n"


def _asset(name: str) -> str:
    return resources.files(__package__ or "dikast.report").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _text(text: str) -> str:
    return escape(visible(text))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")


def _section(section: Section) -> str:
    lead = "".join(f"<p>{_text(each)}</p>" for each in section.lead)
    absent = (
        f'<p class="absent">{_text(_sentence(section.absent))}</p>'
        if section.absent is not None
        else ""
    )
    figures = "".join(section.figures)
    if len(section.figures) > 1 and all("narrow" in each[:24] for each in section.figures):
        figures = f'<div class="beside">{figures}</div>'
    tables = "\n".join(_table(each) for each in section.tables)
    return (
        f'<section id="{section.key}" aria-labelledby="{section.key}-title">'
        f'<h2 id="{section.key}-title">{_text(section.title)}</h2>{lead}{absent}\n{figures}'
        f"{_BROWSER if section.browser else ''}\n{tables}</section>"
    )


def _table(table: Table) -> str:
    numeric = [
        bool(table.rows) and all(not isinstance(row[at], str) for row in table.rows)
        for at in range(len(table.columns))
    ]
    head = "".join(
        f'<th scope="col"{_kind("", right)}>{_text(name)}</th>' if name else "<td></td>"
        for name, right in zip(table.columns, numeric, strict=True)
    )
    body = "\n".join(
        "<tr>"
        + "".join(
            f"<td{_kind(text_of(cell), right)}>{_text(text_of(cell))}</td>"
            for cell, right in zip(row, numeric, strict=True)
        )
        + "</tr>"
        for row in table.rows[:ROWS_MAX]
    )
    notes = list(table.notes)
    if len(table.rows) > ROWS_MAX:
        notes.append(
            f"{len(table.rows) - ROWS_MAX:,} further rows are not shown here; --json has all"
        )
    below = "".join(f'<p class="note">{_text(note)}</p>' for note in notes)
    name = _text(table.title)
    return (
        f'<h3>{name}</h3>\n<div class="wide" role="region" tabindex="0" aria-label="Table: {name}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>\n{below}"
    )


def _kind(text: str, right: bool) -> str:
    if right:
        return ' class="n"'
    return ' class="long"' if len(text) > _LONG_CHARS else ""


_BROWSER: Final = """
<div class="controls">
<div><label for="pair-search">Search in ids, models, questions, answers</label>
<input type="search" id="pair-search" autocomplete="off"></div>
<div><label for="pair-kind">Kind</label><select id="pair-kind"></select></div>
<div><label for="pair-category">Category</label><select id="pair-category"></select></div>
<div><label for="pair-run">Run</label><select id="pair-run"></select></div>
<p id="pair-count" role="status"></p></div>
<p class="absent" id="no-script">The pairs are shown by a script in this file, which is switched
off here; all numbers stand without it.</p>
<div class="browser"><ul class="list" id="pair-list" aria-label="Pairs"></ul>
<div id="pair"></div></div>
"""
