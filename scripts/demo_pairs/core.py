"""The item all modules make, and how an item becomes a labelled row."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

Meta = dict[str, str | list[str]]
Message = dict[str, str]


@dataclass(frozen=True)
class Item:
    """One question with its right and its wrong answer; in a tie both are right."""

    category: str
    lang: str
    turns: tuple[str, ...]  # user, assistant, user, ...: an odd number
    right: str
    wrong: str
    why: str  # "{wrong}" stands for the name of the wrong response
    reference: str = ""
    tie: bool = False
    meta: Meta = field(default_factory=dict)


def pick_style(index: int) -> tuple[bool, bool]:
    """Whether the right and the wrong answer are long: all four cases in turn."""
    return ((True, False), (False, True), (True, True), (False, False))[index % 4]


def build_rows(items: Sequence[Item], rng: random.Random) -> list[dict[str, object]]:
    """Rows in category order, numbered within a category, the labels balanced in each."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item.category, []).append(item)
    rows: list[dict[str, object]] = []
    flip = 0
    for category, members in groups.items():
        labels = [("A", "B")[(flip + n) % 2] for n in range(len(members))]
        flip += len(members)
        rng.shuffle(labels)
        for number, (item, label) in enumerate(zip(members, labels, strict=True), 1):
            rows.append(_make_row(f"demo:{category}:{number:04d}", item, label))
    return rows


def _make_row(row_id: str, item: Item, label: str) -> dict[str, object]:
    if len(item.turns) % 2 == 0:
        raise ValueError(f"{row_id}: the last turn is not the user's")
    if item.right == item.wrong:
        raise ValueError(f"{row_id}: the two answers are the same")
    row: dict[str, object] = {"id": row_id, "category": item.category}
    if len(item.turns) == 1:
        row["question"] = item.turns[0]
    else:
        roles = ("user", "assistant")
        row["messages"] = [
            {"role": roles[n % 2], "content": text} for n, text in enumerate(item.turns)
        ]
    first, second = (item.right, item.wrong) if label == "A" else (item.wrong, item.right)
    row |= {"response_a": first, "response_b": second, "label": "tie" if item.tie else label}
    if item.reference:
        row["reference"] = item.reference
    wrong_name = "response_b" if label == "A" else "response_a"
    row["meta"] = {"lang": item.lang, "why": item.why.replace("{wrong}", wrong_name), **item.meta}
    return row
