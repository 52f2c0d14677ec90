"""What passes between a sample, the labelling page and the audit report: two files of JSON lines.

A sample says what to label and with which probability each item was drawn; a file of labels says
who decided what, and carries the probabilities along, so that a report needs no third file. Both
formats are public (docs/audit.md); other tools may write them. Knows no statistics.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast

import msgspec

from dikast.analysis.rows import json_rows, label_of
from dikast.engine.errors import InputError
from dikast.engine.model import Message, Winner

Ask = Literal["which is better", "keep or drop"]
Decision = Literal["keep", "drop"]
_SIDE: Final = ("A", "B")
_T = TypeVar("_T")


class SampleItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One item to label. What would tell who wrote the answers is not in it.

    `inclusion_probability` is the chance with which it was drawn, `stratum` the group it was
    drawn from and `stratum_pairs` how many pairs that group has. `note` is shown with the item.
    """

    id: str
    ask: Ask = "which is better"
    question: str = ""
    response_a: str | None = None
    response_b: str | None = None
    messages: tuple[Message, ...] = ()
    reference: str | None = None
    key_points: tuple[str, ...] = ()
    category: str | None = None
    note: str | None = None
    inclusion_probability: float = 1.0
    stratum: str = "all"
    stratum_pairs: int | None = None


class LabelEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing an annotator decided, one line of the labels.

    Exactly one of `label`, `decision`, `skipped` and `again` is set. `again` is the answer to an
    item that was shown a second time (`repeat` is 1 then); it has a field of its own so that no
    reader of labels counts it as a further vote. `shown` is "ab" when response_a stood on the
    left. The last line of an annotator, item and repeat counts.
    """

    pair_id: str
    annotator: str
    label: Winner | None = None
    decision: Decision | None = None
    skipped: bool = False
    again: str | None = None
    repeat: int = 0
    shown: Literal["ab", "ba"] = "ab"
    duration_s: float | None = None
    at: str | None = None
    inclusion_probability: float | None = None
    stratum: str | None = None
    stratum_pairs: int | None = None


def read_sample(path: str | Path) -> Iterator[SampleItem]:
    """The items of a sample.

    Raises:
        InputError: it cannot be read, a row is no item, an id stands twice, or a probability is
            not above 0 and at most 1.
    """
    seen: set[str] = set()
    for number, row in json_rows(path):
        item = _as(SampleItem, row, str(path), number)
        if item.id in seen:
            raise InputError(
                f"repeats the id {item.id!r}; an item stands once in a sample",
                file=str(path),
                line=number,
                field="id",
            )
        seen.add(item.id)
        _check_probability(item.inclusion_probability, str(path), number)
        yield item


def read_entries(path: str | Path) -> Iterator[LabelEntry]:
    """The lines of a file of labels, in its order; see `latest` for which of them count.

    Rows of other tools need `pair_id` (or `id`), `label` (or `winner`, `verdict`, `preference`:
    A, B, tie, or 1, 2, 0) and may have `annotator`.

    Raises:
        InputError: it cannot be read, or a row is no label.
    """
    for number, row in json_rows(path):
        plain = dict(row)
        plain.setdefault("pair_id", plain.get("id"))
        plain.setdefault("annotator", "labels")
        if isinstance(plain["pair_id"], int) and not isinstance(plain["pair_id"], bool):
            plain["pair_id"] = str(plain["pair_id"])
        plain["label"] = label_of(plain, str(path), number)
        entry = _as(LabelEntry, plain, str(path), number)
        _check_probability(entry.inclusion_probability, str(path), number)
        yield entry


def latest(path: str | Path) -> list[LabelEntry]:
    """The lines that count: the last of every annotator, item and repeat, in order of appearance.

    Raises:
        InputError: as `read_entries`.
    """
    kept: dict[tuple[str, str, int], LabelEntry] = {}
    for entry in read_entries(path):
        kept[entry.annotator, entry.pair_id, entry.repeat] = entry
    return list(kept.values())


def unswapped(choice: str, shown: Literal["ab", "ba"]) -> Winner:
    """The winner that "left", "right" or "tie" means when the answers stood as `shown`."""
    if choice == "tie":
        return "tie"
    left, right = _SIDE if shown == "ab" else _SIDE[::-1]
    return cast("Winner", left if choice == "left" else right)


def _check_probability(value: float | None, file: str, number: int) -> None:
    if value is not None and not 0 < value <= 1:
        raise InputError(
            f"is {value}; a probability of being drawn is above 0 and at most 1",
            file=file,
            line=number,
            field="inclusion_probability",
        )


def _as(kind: type[_T], row: dict[str, Any], file: str, number: int) -> _T:
    try:
        return msgspec.convert(row, kind)
    except msgspec.ValidationError as error:
        what = "item of a sample" if kind is SampleItem else "label"
        raise InputError(f"is no {what}: {error}", file=file, line=number) from error
