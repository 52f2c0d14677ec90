"""The desk: orders that hold, blind sides, decisions on disk before they count."""

from pathlib import Path
from typing import Any

import pytest

from dikast.analysis.audit_rows import LabelEntry, SampleItem, latest
from dikast.audit_desk import Book, Desk, clean_name
from dikast.engine.clock import ManualClock
from dikast.engine.errors import InputError, SinkError
from tests.cli.tools import rows_of


class Disk:
    """A file that notes what happens to it, and breaks when told to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()
        self.log: list[str] = []
        self.full = False

    def write(self, data: bytes | memoryview) -> int:
        if self.full:
            with self.path.open("ab") as file:
                file.write(bytes(data)[:3])
            raise OSError(28, "No space left on device")
        part = bytes(data)[:40]
        with self.path.open("ab") as file:
            file.write(part)
        self.log.append("write")
        return len(part)

    def truncate(self, size_bytes: int) -> None:
        with self.path.open("r+b") as file:
            file.truncate(size_bytes)
        self.log.append("truncate")

    def sync(self) -> None:
        self.log.append("sync")

    def close(self) -> None:
        self.log.append("close")


def items(n: int = 30, **more: Any) -> list[SampleItem]:
    return [
        SampleItem(id=f"p{k}", question=f"q{k}", response_a=f"a{k}", response_b=f"b{k}", **more)
        for k in range(n)
    ]


def desk(tmp_path: Path, sample: list[SampleItem], *, seed: int = 0, repeat: float = 0.2) -> Desk:
    path = tmp_path / "labels.jsonl"
    return Desk(sample, Book(path, Disk(path)), seed=seed, repeat_share=repeat, clock=ManualClock())


def test_an_order_is_the_annotators_own_and_survives_a_restart(tmp_path: Path) -> None:
    one, two = desk(tmp_path, items()), desk(tmp_path, items())
    assert one.queue("ana") == two.queue("ana")
    assert one.queue("ana") != one.queue("bo")
    assert one.queue("ana") != desk(tmp_path, items(), seed=1).queue("ana")


def test_repeats_come_later_and_turned_around(tmp_path: Path) -> None:
    queue = desk(tmp_path, items()).queue("ana")
    assert len(queue) == 36
    first = {each.item: at for at, each in enumerate(queue) if not each.repeat}
    assert sorted(first) == list(range(30))
    for at, each in enumerate(queue):
        if each.repeat:
            before = queue[first[each.item]]
            assert at - first[each.item] >= 10
            assert {each.shown, before.shown} == {"ab", "ba"}


def test_sides_are_a_coin_for_every_item_and_annotator(tmp_path: Path) -> None:
    at_desk = desk(tmp_path, items(400), repeat=0.0)
    sides = {name: {x.item: x.shown for x in at_desk.queue(name)} for name in ("ana", "bo")}
    for shown in sides.values():
        assert 160 < sum(each == "ab" for each in shown.values()) < 240
    same = sum(sides["ana"][k] == sides["bo"][k] for k in range(400))
    assert 160 < same < 240


@pytest.mark.realtime
async def test_a_decision_counts_only_when_the_device_has_it(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    disk = Disk(path)
    at_desk = Desk(items(), Book(path, disk), seed=0, repeat_share=0, clock=ManualClock())
    session = await at_desk.decide(" ana ", 0, "left", 3.21)
    assert (session["done"], session["next"]) == (1, 1)
    assert disk.log[-1] == "sync"
    assert disk.log.count("write") > 1  # a short write is carried on
    disk.full = True
    with pytest.raises(SinkError, match="not saved: No space left"):
        await at_desk.decide("ana", 1, "right", None)
    assert at_desk.session("ana")["done"] == 1
    assert len(rows_of(path)) == 1
    assert rows_of(path)[0]["duration_s"] == 3.2
    disk.full = False
    await at_desk.decide("ana", 1, "tie", None)
    assert [row.get("label") for row in rows_of(path)][1] == "tie"


@pytest.mark.realtime
async def test_left_and_right_are_turned_back(tmp_path: Path) -> None:
    at_desk = desk(tmp_path, items(), repeat=0.0)
    for at in range(30):
        shown = at_desk.show("ana", at)
        await at_desk.decide("ana", at, "left", None)
        entry = rows_of(tmp_path / "labels.jsonl")[-1]
        assert shown["left"] == entry["label"].lower() + entry["pair_id"][1:]
        assert at_desk.show("ana", at)["choice"] == "left"
    assert at_desk.session("ana")["next"] == 30


def test_a_torn_line_is_cut_off_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"pair_id":"p1","annotator":"ana","label":"A"}\n{"pair_id":"p2","anno')
    book = Book(path, Disk(path))
    assert book.torn
    assert path.read_text().endswith('"A"}\n')
    assert [each.pair_id for each in book.entries] == ["p1"]
    made = Desk(items(), book, seed=0, repeat_share=0, clock=ManualClock())
    assert made.session("ana")["done"] == 1
    assert made.session("bo")["done"] == 0


def test_the_last_line_of_an_item_counts(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(
        '{"pair_id":"p1","annotator":"ana","label":"A"}\n'
        '{"pair_id":"p1","annotator":"bo","winner":2}\n'
        '{"pair_id":"p1","annotator":"ana","skipped":true}\n'
        '{"id":7,"label":"tie"}\n'
    )
    assert latest(path) == [
        LabelEntry(pair_id="p1", annotator="ana", skipped=True),
        LabelEntry(pair_id="p1", annotator="bo", label="B"),
        LabelEntry(pair_id="7", annotator="labels", label="tie"),
    ]


async def test_nonsense_is_refused(tmp_path: Path) -> None:
    at_desk = desk(tmp_path, items(3, ask="keep or drop"))
    for at, choice in ((99, "keep"), (-1, "keep"), (0, "left"), (0, "A")):
        with pytest.raises(InputError):
            await at_desk.decide("ana", at, choice, None)
    for name in ("", "  ", "x" * 65, "a\u202eb", "a\x00b"):
        with pytest.raises(InputError, match="name has"):
            clean_name(name)
    assert clean_name(" A\u030a  b ") == "\u00c5 b"
    with pytest.raises(InputError, match="empty"):
        desk(tmp_path, [])
    with pytest.raises(InputError, match="--pairs"):
        desk(tmp_path, [SampleItem(id="x", response_a="a")])
