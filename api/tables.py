"""Tables of a report, drawn three ways: for a terminal, as Markdown, as JSON.

What a command prints last. A table is columns, rows of plain values, and notes that say what the
numbers were computed on. Values are formatted here and nowhere else; JSON keeps them as they are.
Knows no statistics: an interval is anything with `low` and `high`.
"""

import io
import shutil
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

As = Literal["terminal", "md", "json"]
_DIGITS = 3
_WIDTH_PIPE = 1000
_NOTE_WIDTH = 110


@runtime_checkable
class _Ranged(Protocol):
    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


class Share(msgspec.Struct, frozen=True):
    """A share, drawn in per cent; `value` lies between 0 and 1, differences between -1 and 1."""

    value: float | None
    interval: Any = None
    signed: bool = False


class Measure(msgspec.Struct, frozen=True):
    """A number with an interval, drawn with three digits after the point."""

    value: float | None
    interval: Any = None
    digits: int = _DIGITS
    signed: bool = False


class P(msgspec.Struct, frozen=True):
    """A p-value; below 0.001 it is drawn as "<0.001"."""

    value: float | None


Cell = str | int | float | Share | Measure | P | None


class Table(msgspec.Struct, frozen=True):
    """One table. `notes` say on what, how many were left out and why, under which tie rule."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


def render(table: Table | Sequence[Table], as_: As = "terminal", *, colour: bool = False) -> str:
    """One table or several as text that ends with a newline.

    Args:
        table: what to draw; a list is drawn one below the other (in JSON: a list).
        as_: "terminal" (box drawing), "md" (Markdown) or "json".
        colour: terminal only: with colours and as wide as the terminal.
    """
    tables = [table] if isinstance(table, Table) else list(table)
    if as_ == "json":
        plain = [as_builtins(each) for each in tables]
        return _json(plain[0] if isinstance(table, Table) else plain)
    if as_ == "md":
        return "\n".join(_markdown(each) for each in tables)
    return _terminal(tables, colour)


def render_report(report: Mapping[str, Any]) -> str:
    """A report's own fields as JSON, for programs; `render` draws its tables for people."""
    return _json(report)


def as_builtins(table: Table) -> dict[str, Any]:
    """A table as objects by column name, the values unrounded."""
    rows = [
        {name: _plain(cell) for name, cell in zip(table.columns, row, strict=True)}
        for row in table.rows
    ]
    return {"title": table.title, "rows": rows, "notes": list(table.notes)}


def text_of(cell: Cell) -> str:
    """A cell as people read it; "-" stands for what is not known."""
    if isinstance(cell, Share):
        return _estimate(cell.value, cell.interval, 100.0, 1, cell.signed, " %")
    if isinstance(cell, Measure):
        return _estimate(cell.value, cell.interval, 1.0, cell.digits, cell.signed, "")
    if isinstance(cell, P):
        if cell.value is None:
            return "-"
        return "<0.001" if cell.value < 0.001 else f"{cell.value:.3f}"
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:.{_DIGITS}f}" if isinstance(cell, float) else cell


def _estimate(
    value: float | None, interval: Any, scale: float, digits: int, signed: bool, unit: str
) -> str:
    if value is None:
        return "-"
    sign = "+" if signed else ""
    text = f"{value * scale:{sign}.{digits}f}{unit}"
    if isinstance(interval, _Ranged):
        low, high = interval.low * scale, interval.high * scale
        text += f" [{low:{sign}.{digits}f}, {high:{sign}.{digits}f}]"
    return text


def _plain(cell: Cell) -> Any:
    if isinstance(cell, Share | Measure):
        if cell.interval is None:
            return cell.value
        return {"value": cell.value, "interval": msgspec.to_builtins(cell.interval)}
    return cell.value if isinstance(cell, P) else cell


def _json(value: Any) -> str:
    plain = msgspec.to_builtins(value)
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode() + "\n"


def _markdown(table: Table) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(_in_markdown(cell).replace("|", "\\|") for cell in cells) + " |\n"

    right = [_is_number(table, column) for column in range(len(table.columns))]
    text = f"### {_in_markdown(table.title)}\n\n" + line(table.columns)
    text += "|" + "|".join("---:" if each else "---" for each in right) + "|\n"
    text += "".join(line(text_of(cell) for cell in row) for row in table.rows)
    if table.notes:
        text += "\n" + "".join(f"- {_in_markdown(note)}\n" for note in table.notes)
    return text


def _in_markdown(text: str) -> str:
    """A name from outside starts no line and no tag of its own."""
    return " ".join(text.splitlines()).replace("<", "\\<")


def _is_number(table: Table, column: int) -> bool:
    cells = [row[column] for row in table.rows]
    return bool(cells) and all(not isinstance(cell, str) for cell in cells)


def _terminal(tables: Sequence[Table], colour: bool) -> str:
    # rich costs 60 ms to import, and only a terminal needs it.
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    out = io.StringIO()
    # Nothing is folded where nobody looks: what is piped keeps a row on a line.
    width = shutil.get_terminal_size().columns if colour else _WIDTH_PIPE
    console = Console(
        file=out, width=width, force_terminal=colour, color_system="standard" if colour else None
    )
    for number, table in enumerate(tables):
        if number:
            console.print()
        console.print(Text(table.title, style="bold"))
        grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
        for column, name in enumerate(table.columns):
            right = _is_number(table, column)
            grid.add_column(name, justify="right" if right else "left", overflow="fold")
        for row in table.rows:
            grid.add_row(*(Text(text_of(cell)) for cell in row))
        console.print(grid)
        for note in table.notes:
            for line in wrap(note, min(width, _NOTE_WIDTH) - 2) or [""]:
                console.print(Text(f"  {line}", style="dim"))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
