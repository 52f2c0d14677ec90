"""What every Source promises, run over every implementation."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest

from dikast.engine.model import BadRow, Pair, Row
from dikast.engine.ports import Source
from dikast.engine.sources import FileSource, IterableSource, MemorySource

PAIRS = [
    Pair(id=str(n), question=f"q{n}", response_a="x", response_b="y", meta={"n": n})
    for n in range(300)
]


async def _stream() -> AsyncIterator[Pair]:
    for pair in PAIRS:
        yield pair


@pytest.fixture(params=["file", "two files", "iterable", "async iterable", "dicts", "memory"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    lines = [msgspec.json.encode(pair) + b"\n" for pair in PAIRS]
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    whole = tmp_path / "whole.jsonl"
    whole.write_bytes(b"".join(lines))
    files[0].write_bytes(b"".join(lines[:7]))
    files[1].write_bytes(b"".join(lines[7:]))
    makers: dict[str, Callable[[], Source]] = {
        "file": lambda: FileSource(whole),
        "two files": lambda: FileSource(files),
        "iterable": lambda: IterableSource(PAIRS),
        "async iterable": lambda: IterableSource(_stream()),
        "dicts": lambda: IterableSource([msgspec.to_builtins(pair) for pair in PAIRS]),
        "memory": lambda: MemorySource(PAIRS),
    }
    return makers[request.param]()


async def read(source: Source) -> list[Row]:
    rows = [row async for batch in source.batches() for row in batch]
    await source.aclose()
    await source.aclose()
    return rows


async def test_every_pair_comes_once_whole_and_in_order(source: Source) -> None:
    assert [row.item for row in await read(source)] == PAIRS


async def test_every_row_says_where_it_stands(source: Source) -> None:
    rows = await read(source)
    places = [(row.file, row.line) for row in rows]
    assert len(set(places)) == len(places)
    assert all(line >= 1 for _, line in places)


async def test_batches_are_bounded(source: Source) -> None:
    async for batch in source.batches():
        assert 1 <= len(batch) <= 256
    await source.aclose()


async def test_it_can_be_left_in_the_middle(source: Source) -> None:
    batches = source.batches()
    first = await anext(batches)
    assert first[0].item == PAIRS[0]
    await batches.aclose()  # type: ignore[attr-defined]  # every source here is a generator
    await source.aclose()


@pytest.mark.parametrize("kind", ["file", "dicts", "memory"])
async def test_a_bad_row_is_a_row_and_the_rest_go_on(kind: str, tmp_path: Path) -> None:
    good = {"id": "g", "question": "q", "response_a": "x", "response_b": "y"}
    bad = {"id": "b", "question": "q", "response_a": 5, "response_b": "y"}
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join(msgspec.json.encode(each) for each in (good, bad, good)))
    reason = BadRow(message="expected str, got int", id="b", field="response_a")
    sources: dict[str, Source] = {
        "file": FileSource(path),
        "dicts": IterableSource([good, bad, good]),
        "memory": MemorySource([PAIRS[0], reason, PAIRS[0]]),
    }
    rows = await read(sources[kind])
    assert [type(row.item) for row in rows] == [Pair, BadRow, Pair]
    assert rows[1].item == reason
    assert rows[1].line == 2
