"""Who is shown what, in which order, and what they decided: the labelling page without the page.

Between a sample and its file of labels. Each annotator has an order of items, sides of answers
and repeated items of their own, decided by a seed and their name alone, so that a restart shows
the same. What leaves here for a browser names no id, no model, no stratum and no verdict. A
decision is acknowledged when the device has it. Knows no HTTP.
"""

import asyncio
import random
import threading
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol, cast

import msgspec

from dikast.analysis.audit_rows import Decision, LabelEntry, SampleItem, latest, unswapped
from dikast.engine.errors import InputError, SinkError
from dikast.engine.ports import Clock
from dikast.engine.text import scrub_text

_NAME_CHARS_MAX: Final = 64
_GAP_ITEMS: Final = 10
_CHOICES: Final = {
    "which is better": ("left", "right", "tie", "skip"),
    "keep or drop": ("keep", "drop", "skip"),
}
_DURATION_MAX_S: Final = 86_400.0


class LabelFile(Protocol):
    """The open and locked file under a `Book`."""

    def write(self, data: bytes | memoryview) -> int:
        """Append some of `data`; the number of bytes taken."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cut the file."""
        ...

    def sync(self) -> None:
        """Return when the device has it."""
        ...

    def close(self) -> None:
        """Close and give the lock up."""
        ...


class Book:
    """The labels on disk: appended to, synced line by line, a torn last line cut off.

    Args:
        path: where `file` is.
        file: opened for appending and locked by the caller; closed by `close`.

    Raises:
        InputError: what is there already are no labels.
    """

    def __init__(self, path: Path, file: LabelFile) -> None:
        self.path = path
        self._file = file
        self._turn = threading.Lock()
        self._encode = msgspec.json.Encoder().encode
        whole = path.read_bytes() if path.is_file() else b""
        self._size_bytes = whole.rfind(b"\n") + 1
        self.torn = self._size_bytes < len(whole)
        if self.torn:
            file.truncate(self._size_bytes)
        self.entries = latest(path) if self._size_bytes else []

    async def append(self, entry: LabelEntry) -> None:
        """Write one decision; returns when the device has it.

        Raises:
            SinkError: it could not be written; nothing of it is in the file.
        """
        line = self._encode(entry) + b"\n"
        await asyncio.to_thread(self._write_alone, line)

    def _write_alone(self, line: bytes) -> None:
        # A lock of threads: a caller that goes away does not end the write that is under way.
        with self._turn:
            self._write(line)

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            self._file.sync()
        except OSError as error:
            self._file.truncate(self._size_bytes)
            raise SinkError(f"{self.path}: the label was not saved: {error.strerror}") from error
        self._size_bytes += len(line)

    def close(self) -> None:
        """Close the file after the write that is under way."""
        with self._turn:
            self._file.close()

    def __repr__(self) -> str:
        return f"Book({str(self.path)!r}, {self._size_bytes:,} bytes)"


class Place(NamedTuple):
    """One showing: which item, the first time (0) or again (1), and on which side what stands."""

    item: int
    repeat: int
    shown: Literal["ab", "ba"]


class Desk:
    """Hands out items and takes decisions.

    Args:
        items: the sample.
        book: where decisions go, and those of earlier sittings.
        seed: decides orders and sides, together with the annotator's name.
        repeat_share: share of the items that everyone is shown a second time, sides exchanged.
        clock: stamps decisions.

    Raises:
        InputError: there is no item, or one has no answers to show.
    """

    def __init__(
        self,
        items: Sequence[SampleItem],
        book: Book,
        *,
        seed: int,
        repeat_share: float,
        clock: Clock,
    ) -> None:
        _check(items)
        self._items = items
        self._book = book
        self._seed = seed
        self._repeat_share = repeat_share
        self._clock = clock
        self._queues: dict[str, list[Place]] = {}
        self._decided: dict[tuple[str, str, int], LabelEntry] = {
            (each.annotator, each.pair_id, each.repeat): each for each in book.entries
        }

    def queue(self, annotator: str) -> list[Place]:
        """All showings of one annotator in order; the same whenever it is asked for."""
        found = self._queues.get(annotator)
        if found is None:
            found = _queue(len(self._items), f"{self._seed}/{annotator}", self._repeat_share)
            self._queues[annotator] = found
        return found

    def session(self, name: str) -> dict[str, Any]:
        """How far an annotator is: total, decided, and the first place that is open.

        Raises:
            InputError: the name is empty, too long or has control characters.
        """
        annotator = clean_name(name)
        queue = self.queue(annotator)
        open_ = [at for at in range(len(queue)) if self._entry(annotator, queue[at]) is None]
        return {
            "annotator": annotator,
            "total": len(queue),
            "done": len(queue) - len(open_),
            "next": open_[0] if open_ else len(queue),
        }

    def show(self, name: str, at: int) -> dict[str, Any]:
        """What stands at a place of an annotator's queue, and what they decided about it.

        Raises:
            InputError: there is no such place.
        """
        annotator = clean_name(name)
        place = self._place(annotator, at)
        item = self._items[place.item]
        sides = (item.response_a or "", item.response_b or "")
        left, right = sides if place.shown == "ab" else sides[::-1]
        return {
            **self.session(annotator),
            "at": at,
            "ask": item.ask,
            "question": scrub_text(item.question),
            "messages": [
                {"role": each.role, "content": scrub_text(each.content)} for each in item.messages
            ],
            "reference": item.reference,
            "key_points": item.key_points,
            "note": item.note,
            "left": scrub_text(left),
            "right": scrub_text(right),
            "choice": _choice_of(self._entry(annotator, place), place.shown),
        }

    async def decide(
        self, name: str, at: int, choice: str, duration_s: float | None
    ) -> dict[str, Any]:
        """Take a decision; returns the session when it is safely on the device.

        Raises:
            InputError: there is no such place, or the choice is none for it.
            SinkError: it could not be written.
        """
        annotator = clean_name(name)
        place = self._place(annotator, at)
        item = self._items[place.item]
        if choice not in _CHOICES[item.ask]:
            raise InputError(
                f"the choice {choice!r} is none of {', '.join(_CHOICES[item.ask])}", field="choice"
            )
        entry = self._made(annotator, item, place, choice, duration_s)
        await self._book.append(entry)
        self._decided[annotator, item.id, place.repeat] = entry
        return self.session(annotator)

    def summary(self) -> tuple[int, int]:
        """How many annotators have decided something, and how many decisions there are."""
        return len({annotator for annotator, _, _ in self._decided}), len(self._decided)

    def _made(
        self,
        annotator: str,
        item: SampleItem,
        place: Place,
        choice: str,
        duration_s: float | None,
    ) -> LabelEntry:
        result: dict[str, Any]
        if choice == "skip":
            result = {"skipped": True}
        else:
            kept = choice in ("keep", "drop")
            value = cast("Decision", choice) if kept else unswapped(choice, place.shown)
            field = "again" if place.repeat else "decision" if kept else "label"
            result = {field: value}
        if duration_s is not None and 0 <= duration_s <= _DURATION_MAX_S:
            result["duration_s"] = round(duration_s, 1)
        return LabelEntry(
            pair_id=item.id,
            annotator=annotator,
            repeat=place.repeat,
            shown=place.shown,
            at=self._clock.stamp(),
            inclusion_probability=item.inclusion_probability,
            stratum=item.stratum,
            stratum_pairs=item.stratum_pairs,
            **result,
        )

    def _entry(self, annotator: str, place: Place) -> LabelEntry | None:
        return self._decided.get((annotator, self._items[place.item].id, place.repeat))

    def _place(self, annotator: str, at: int) -> Place:
        queue = self.queue(annotator)
        if not 0 <= at < len(queue):
            raise InputError(f"there is no place {at} among {len(queue)}", field="at")
        return queue[at]


def clean_name(name: str) -> str:
    """An annotator's name as it is written down.

    Raises:
        InputError: it is empty, too long, or has control characters.
    """
    text = " ".join(unicodedata.normalize("NFC", name).split())
    if not text or len(text) > _NAME_CHARS_MAX:
        raise InputError(f"a name has 1 to {_NAME_CHARS_MAX} characters", field="annotator")
    if any(unicodedata.category(sign)[0] == "C" for sign in text):
        raise InputError("a name has no control characters", field="annotator")
    return text


def _check(items: Sequence[SampleItem]) -> None:
    if not items:
        raise InputError("the sample is empty; there is nothing to label")
    bare = [
        each.id
        for each in items
        if each.response_a is None or (each.response_b is None and each.ask == "which is better")
    ]
    if bare:
        raise InputError(
            f"{len(bare):,} items have no answers to show (the first is {bare[0]!r}); draw the "
            "sample with --pairs PAIRS"
        )


def _queue(items: int, seed: str, repeat_share: float) -> list[Place]:
    """Items in random order, sides by coin; some again, ten places later, sides exchanged."""
    rng = random.Random(seed)
    order = rng.sample(range(items), items)
    first = [Place(item, 0, rng.choice(("ab", "ba"))) for item in order]
    gap = min(_GAP_ITEMS, items // 2)
    may = items - gap
    again = rng.sample(range(may), min(may, round(repeat_share * items)))
    keyed: list[tuple[float, Place]] = [(float(at), place) for at, place in enumerate(first)]
    for at in sorted(again):
        item, _, shown = first[at]
        later = rng.uniform(at + gap, items)
        keyed.append((later, Place(item, 1, "ba" if shown == "ab" else "ab")))
    return [place for _, place in sorted(keyed, key=lambda each: each[0])]


def _choice_of(entry: LabelEntry | None, shown: Literal["ab", "ba"]) -> str | None:
    """An earlier decision in words of the page."""
    if entry is None:
        return None
    if entry.skipped:
        return "skip"
    value = entry.again or entry.label or entry.decision
    if value in ("A", "B"):
        return "left" if (value == "A") == (shown == "ab") else "right"
    return value
