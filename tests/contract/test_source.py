"""What every Source promises, run over every implementation."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from dikast.engine.model import BadRow, Pair, Row
from dikast.engine.ports import Source
from dikast.engine.sources import FileSource, IterableSource, MemorySource
from dikast.engine.tables import PAIR_COLUMNS
from dikast.sinks import open_records

PAIRS = [
    Pair(id=str(n), question=f"q{n}", response_a="x", response_b="y", meta={"n": n})
    for n in range(300)
]


async def _stream() -> AsyncIterator[Pair]:
    for pair in PAIRS:
        yield pair


TABLES = ("pairs.csv", "pairs.tsv.gz", "pairs.json.zst", "pairs.parquet", "pairs.arrow")


def written(folder: Path, name: str) -> Path:
    """The pairs in a file of the kind that its name says."""
    with open_records(str(folder / name), PAIR_COLUMNS) as writer:
        for pair in PAIRS:
            writer.add(pair)
    return folder / name


def in_folder(folder: Path) -> Path:
    """The pairs in two files of different kinds in one folder, in order of name."""
    for name, some in (("a.csv", PAIRS[:99]), ("sub/b.parquet", PAIRS[99:])):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with open_records(str(folder / name), PAIR_COLUMNS) as writer:
            for pair in some:
                writer.add(pair)
    return folder


@pytest.fixture(
    params=[
        *("file", "two files", "iterable", "async iterable", "dicts", "memory"),
        *(*TABLES, "folder", "pattern"),
    ]
)
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
    for name in TABLES:
        makers[name] = partial(_of_file, tmp_path, name)
    makers["folder"] = lambda: FileSource(in_folder(tmp_path / "folder"))
    makers["pattern"] = lambda: FileSource(f"{in_folder(tmp_path / 'p')}/**/*.[cp]*")
    return makers[request.param]()


def _of_file(folder: Path, name: str) -> Source:
    return FileSource(written(folder, name))


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
