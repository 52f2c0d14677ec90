"""Reads the pairs written by hand in `text/*.toml` and proves those which name a check."""

import tomllib
from pathlib import Path

from .core import Item, Meta
from .verify import holds

TEXT_DIR = Path(__file__).parent / "text"


def read_items() -> list[Item]:
    """Every handwritten item, in the order of the file names and of the files."""
    items: list[Item] = []
    for path in sorted(TEXT_DIR.glob("*.toml")):
        with path.open("rb") as file:
            tables = tomllib.load(file)["pair"]
        items += [_make_item(table, path.stem) for table in tables]
    return items


def _make_item(table: dict[str, object], stem: str) -> Item:
    asked = table["q"]
    turns = tuple(str(turn) for turn in asked) if isinstance(asked, list) else (str(asked),)
    meta: Meta = {key: str(table[key]) for key in ("check", "call", "answer") if key in table}
    item = Item(
        category=str(table.get("category", stem)),
        lang=str(table.get("lang", "en")),
        turns=turns,
        right=str(table["right"]).strip("\n"),
        wrong=str(table["wrong"]).strip("\n"),
        why=str(table["why"]),
        reference=str(table.get("reference", "")),
        tie=bool(table.get("tie", False)),
        meta=meta,
    )
    check = table.get("check")
    if check and (not holds(str(check), item.right) or holds(str(check), item.wrong)):
        raise ValueError(f"{stem}: {check!r} does not tell the answers apart: {item.turns[-1]!r}")
    return item
