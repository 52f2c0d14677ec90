"""Outcomes and people's labels, read back for the reports: a row at a time, in bounded memory.

The first step after a run. `read_outcomes` takes what `dikast judge` wrote (plain, gzip or zstd)
and decodes only the fields that statistics need; `read_labels` takes what people decided, with or
without annotators. A file that is neither is one error with file and line. Keeps nothing: what is
counted is decided by the caller.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from dikast.engine.chat import MisfitError
from dikast.engine.errors import InputError
from dikast.engine.labels import winner_of
from dikast.engine.lines import Flaw, Item, read_items
from dikast.engine.model import Winner

_ROW_BYTES_MAX: Final = 64 << 20
_KINDS: Final = frozenset({"verdict", "scored", "undecided", "failed"})
_PAIR_NAMES: Final = ("pair_id", "id")
_ANNOTATOR_NAMES: Final = ("annotator", "worker", "rater", "judge")
_LABEL_NAMES: Final = ("label", "winner", "verdict", "preference")
NO_NAME: Final = "labels"


class VoteRow(msgspec.Struct, frozen=True, gc=False):
    """One vote, as written; see `dikast.engine.model.Vote`."""

    judge: str
    order: str = "ab"
    pick: str = "none"
    why: str | None = None
    confidence: float | None = None


class MarksRow(msgspec.Struct, frozen=True, gc=False):
    """The marks of a vote that statistics need; see `dikast.engine.model.Marks`."""

    majority_share: float = 1.0
    margin: float = 1.0
    spared: int = 0


class OutcomeRow(msgspec.Struct, frozen=True):
    """The fields of an outcome that statistics need; `kind` says which of the others are there."""

    kind: str
    id: str
    winner: Winner | None = None
    basis: str | None = None
    confidence: float | None = None
    why: str | None = None
    reason: str | None = None
    scores: dict[str, float] = {}
    votes: tuple[VoteRow, ...] = ()
    marks: MarksRow | None = None
    raw_confidence: float | None = None
    strategy: str = ""
    spec: str = ""
    simulated: bool = False
    label: Winner | None = None
    category: str | None = None
    model_a: str | None = None
    model_b: str | None = None
    meta: dict[str, Any] = {}
    cost_usd: float = 0.0
    calls: int = 0

    @property
    def missing(self) -> str | None:
        """Why there is no verdict: "undecided: unparsed", "failed: timeout"; None if there is, and
        for a single answer that was scored."""
        if self.kind in ("verdict", "scored"):
            return None
        if self.kind == "scored":
            return "scored: a single answer"
        return f"{self.kind}: {self.why or self.reason or 'no reason given'}"


Row = TypeVar("Row", bound=OutcomeRow)


class LabelRow(NamedTuple):
    """What one person (or one fixed truth) says about one pair."""

    pair_id: str
    annotator: str
    label: Winner
    category: str | None = None


def read_outcomes(path: str | Path) -> Iterator[OutcomeRow]:
    """The outcomes of a file in its order. Nothing is said about ids that stand twice.

    Raises:
        InputError: it cannot be read, or a line is not an outcome.
    """
    return read_as(path, OutcomeRow)


def read_as(path: str | Path, kind: type[Row]) -> Iterator[Row]:
    """As `read_outcomes`, with the further fields that `kind` names.

    Raises:
        InputError: it cannot be read, or a line is not an outcome.
    """
    decode = msgspec.json.Decoder(kind).decode
    for item in _items(path):
        assert isinstance(item.raw, bytes)
        try:
            row = decode(item.raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(
                f"is not an outcome written by dikast judge ({error}); if it is a line that a "
                "crash cut short, run the same judge command again",
                file=str(path),
                line=item.number,
            ) from error
        if row.kind not in _KINDS or (row.kind == "verdict" and row.winner is None):
            raise InputError(
                "is not an outcome written by dikast judge", file=str(path), line=item.number
            )
        yield row


def read_labels(path: str | Path) -> Iterator[LabelRow]:
    """Labels of people from JSONL or CSV, one row for each annotator and pair.

    A JSON row names the pair (`pair_id` or `id`) and has either `votes` (a list of
    `{"annotator", "label"}`) or one `label` (or `winner`, `verdict`, `preference`) with an
    optional `annotator` (or `worker`, `rater`, `judge`). A CSV file has the same columns in its
    first line. Labels are A, B, tie, or 1, 2, 0. Rows without a label are passed over.

    Raises:
        InputError: it cannot be read, or a row is not a label.
    """
    rows = _csv_rows(path) if str(path).endswith(".csv") else _json_rows(path)
    for number, row in rows:
        pair_id = _first(row, _PAIR_NAMES)
        if not isinstance(pair_id, (str, int)) or isinstance(pair_id, bool) or pair_id == "":
            raise InputError(
                "names no pair; a label row has pair_id or id", file=str(path), line=number
            )
        category = row.get("category")
        for vote in _votes_of(row, str(path), number):
            label = _label_of(vote, str(path), number)
            if label is not None:
                annotator = _first(vote, _ANNOTATOR_NAMES)
                name = NO_NAME if annotator in (None, "") else str(annotator)
                yield LabelRow(
                    str(pair_id), name, label, category if isinstance(category, str) else None
                )


def _votes_of(row: dict[str, Any], file: str, number: int) -> list[dict[str, Any]]:
    votes = row.get("votes")
    if votes is None:
        return [row]
    try:
        return msgspec.convert(votes, list[dict[str, Any]])
    except msgspec.ValidationError as error:
        raise InputError(
            "votes is a list of objects with annotator and label",
            file=file,
            line=number,
            field="votes",
        ) from error


def _label_of(vote: dict[str, Any], file: str, number: int) -> Winner | None:
    for name in _LABEL_NAMES:
        value = vote.get(name)
        if value is None or value == "":
            continue
        try:
            return winner_of(name, value, numbers=True)
        except MisfitError as error:
            raise InputError(str(error), file=file, line=number, field=name) from error
    return None


def _first(row: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _json_rows(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for item in _items(path):
        assert isinstance(item.raw, bytes)
        try:
            yield item.number, decode(item.raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(
                f"is not a JSON object ({error})", file=str(path), line=item.number
            ) from error


def _csv_rows(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            for row in reader:
                yield reader.line_num, {name: value for name, value in row.items() if name}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"is not a CSV file in UTF-8 ({error})", file=str(path)) from error


def _items(path: str | Path) -> Iterator[Item]:
    """Rows as bytes; the first that cannot be read as one is an error."""
    try:
        with open(path, "rb") as file:
            for items in read_items(file.read, row_bytes_max=_ROW_BYTES_MAX, file=str(path)):
                for item in items:
                    if isinstance(item.raw, Flaw):
                        raise InputError(item.raw.message, file=str(path), line=item.number)
                    yield item
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
