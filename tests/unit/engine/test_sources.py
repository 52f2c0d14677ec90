"""FileSource and IterableSource: what real files do to a reader."""

import gzip
import io
import json
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from dikast.engine.errors import InputError
from dikast.engine.lines import Flaw, read_items
from dikast.engine.model import BadRow, Pair, Row
from dikast.engine.sources import FileSource, IterableSource


def row_of(id: object, **more: object) -> dict[str, object]:
    return {"id": id, "question": "q", "response_a": "x", "response_b": "y", **more}


def line_of(id: object, **more: object) -> bytes:
    return json.dumps(row_of(id, **more), ensure_ascii=False).encode() + b"\n"


async def rows_of(*paths: Path, **options: object) -> list[Row]:
    source = FileSource(list(paths), **options)  # type: ignore[arg-type]
    return [row async for batch in source.batches() for row in batch]


async def ids_of(*paths: Path, **options: object) -> list[str | None]:
    return [row.item.id for row in await rows_of(*paths, **options)]


def file_of(tmp_path: Path, data: bytes, name: str = "in.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def open_files() -> set[str]:
    """The files that this process has open."""
    return {os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()}


async def test_lines_end_at_newline_bytes_only(tmp_path: Path) -> None:
    odd = "a\u2028b\u2029c\u0085d\x0be"
    path = file_of(tmp_path, line_of("1", meta={"t": odd}) + line_of("2"))
    rows = await rows_of(path)
    assert [row.line for row in rows] == [1, 2]
    assert isinstance(rows[0].item, Pair)
    assert rows[0].item.meta["t"] == odd


async def test_crlf_blank_lines_bom_and_a_last_line_without_newline(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + line_of("1")[:-1] + b"\r\n\r\n   \n" + line_of("2")[:-1]
    rows = await rows_of(file_of(tmp_path, data))
    assert [(row.item.id, row.line) for row in rows] == [("1", 1), ("2", 4)]


async def test_a_broken_line_names_its_place_and_the_rest_go_on(tmp_path: Path) -> None:
    data = line_of("1") + b'{"id": "2", \n' + b"\xff\xfe{}\n" + b"[1]\n" + line_of("5")
    path = file_of(tmp_path, data)
    rows = await rows_of(path)
    assert [type(row.item) for row in rows] == [Pair, BadRow, BadRow, BadRow, Pair]
    assert [row.line for row in rows] == [1, 2, 3, 4, 5]
    messages = [row.item.message for row in rows if isinstance(row.item, BadRow)]
    assert messages[0].startswith("is not JSON: ")
    assert messages[1] == "is not UTF-8 text"
    assert messages[2] == "expected an object with named fields, got list"
    assert all(row.file == str(path) for row in rows)


async def test_lone_surrogates_and_nan_keep_their_row(tmp_path: Path) -> None:
    data = (
        b'{"id":"1","question":"q","response_a":"a\\ud800b",'
        b'"response_b":"\\ud83d\\ude00","n":NaN}\n'
    )
    (row,) = await rows_of(file_of(tmp_path, data))
    assert isinstance(row.item, Pair)
    assert (row.item.response_a, row.item.response_b) == ("a\ufffdb", "\U0001f600")
    msgspec.json.encode(row.item)


async def test_a_row_nested_too_deep_is_a_bad_row(tmp_path: Path) -> None:
    deep = b'{"id":"1","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    rows = await rows_of(file_of(tmp_path, line_of("0") + deep))
    assert isinstance(rows[1].item, BadRow)
    assert rows[1].item.message == "is nested too deep"


@pytest.mark.parametrize("shape", ["lines", "array"])
async def test_a_row_over_the_size_cap_is_a_bad_row_and_the_rest_go_on(
    tmp_path: Path, shape: str
) -> None:
    rows = [row_of("1"), row_of("2", meta={"t": 'x"\\' * 200_000}), row_of("3")]
    data = json.dumps(rows).encode()
    if shape == "lines":
        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    got = await rows_of(file_of(tmp_path, data), row_bytes_max=100_000)
    assert [row.item.id for row in got] == ["1", None, "3"]
    assert [row.line for row in got] == [1, 2, 3]
    assert isinstance(got[1].item, BadRow)
    assert got[1].item.message == "the row is longer than 100,000 bytes, the most that is read"


@pytest.mark.parametrize("indent", [None, 2])
async def test_a_json_array_is_read_element_by_element(tmp_path: Path, indent: int | None) -> None:
    rows = [row_of(n, meta={"t": '],[{}"\\', "list": [[1], {"a": 2}]}) for n in range(500)]
    data = b" \n" + json.dumps(rows, indent=indent).encode() + b"\n"
    got = await rows_of(file_of(tmp_path, data, "in.json"))
    assert [row.item.id for row in got] == [str(n) for n in range(500)]
    assert got[-1].line == 500
    assert isinstance(got[0].item, Pair)
    assert got[0].item.meta == {"t": '],[{}"\\', "list": [[1], {"a": 2}]}


async def test_a_json_array_without_end_or_with_something_after_it_says_so(tmp_path: Path) -> None:
    data = json.dumps([row_of("1"), row_of("2")]).encode()
    cut = await rows_of(file_of(tmp_path, data[:-5]))
    assert [row.item.id for row in cut] == ["1", None]
    assert isinstance(cut[1].item, BadRow)
    assert "has no end" in cut[1].item.message
    more = await rows_of(file_of(tmp_path, data + b"\n{}"))
    assert [row.item.id for row in more] == ["1", "2", None]
    assert await rows_of(file_of(tmp_path, b"[]")) == []


def pack(data: bytes, kind: str) -> bytes:
    if kind == "gzip":
        return gzip.compress(data)
    return zstandard.ZstdCompressor().compress(data) if kind == "zstd" else data


@pytest.mark.parametrize("kind", ["plain", "gzip", "zstd"])
async def test_packed_files_are_known_by_their_content_in_any_number_of_members(
    tmp_path: Path, kind: str
) -> None:
    data = b"".join(
        pack(b"".join(line_of(n) for n in range(start, start + 1000)), kind)
        for start in (0, 1000, 2000)
    )
    path = file_of(tmp_path, data, "no-suffix")
    assert await ids_of(path) == [str(n) for n in range(3000)]


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
async def test_a_packed_file_that_was_cut_off_gives_its_rows_and_says_so(
    tmp_path: Path, kind: str
) -> None:
    noise = random.Random(5).randbytes(300_000).hex()
    whole = pack(b"".join(line_of(n, meta={"t": noise[n * 60 :][:60]}) for n in range(9000)), kind)
    for share in (0.4, 0.9, 0.9999):
        rows = await rows_of(file_of(tmp_path, whole[: int(share * len(whole))]))
        *good, last = rows
        assert good or share < 0.5
        assert [row.item.id for row in good] == [str(n) for n in range(len(good))]
        assert isinstance(last.item, BadRow)
        assert "ends too early" in last.item.message
        assert last.line == len(good) + 1


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
async def test_a_packed_file_that_is_damaged_says_so(tmp_path: Path, kind: str) -> None:
    noise = random.Random(5).randbytes(200_000).hex()
    lines = b"".join(line_of(n, meta={"t": noise[n * 60 :][:60]}) for n in range(6000))
    whole = bytearray(pack(lines, kind))
    middle = len(whole) * 2 // 3
    whole[middle : middle + 64] = bytes(64)
    rows = await rows_of(file_of(tmp_path, bytes(whole)))
    assert isinstance(rows[-1].item, BadRow)
    assert sum(isinstance(row.item, Pair) for row in rows) < 6000


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=8),
    shape=st.sampled_from(["lines", "array"]),
    bite=st.integers(1, 40),
)
@settings(max_examples=150, deadline=None)
def test_rows_do_not_depend_on_where_the_chunks_are_cut(
    texts: list[str], shape: str, bite: int
) -> None:
    values = [{"t": text, "l": [[text], {}]} for text in texts]
    encoded = [msgspec.json.encode(value) for value in values]
    data = b"[" + b" ,\n".join(encoded) + b"]\n" if shape == "array" else b"\n".join(encoded)
    stream = io.BytesIO(data)
    chunks = read_items(lambda _: stream.read(bite), row_bytes_max=1000, file="f")
    items = [item for chunk in chunks for item in chunk]
    assert [
        msgspec.json.decode(item.raw) for item in items if isinstance(item.raw, bytes)
    ] == values
    assert [item.number for item in items] == list(range(1, len(values) + 1))


@given(bite=st.integers(1, 9), length=st.integers(0, 60))
def test_the_size_cap_holds_wherever_the_chunks_are_cut(bite: int, length: int) -> None:
    data = b'{"a":1}\n"' + b'\\"' * length + b'"\n{"b":2}\n'
    for text in (data, b"[" + data.strip().replace(b"\n", b",") + b"]"):
        stream = io.BytesIO(text)

        def read(_: int, stream: io.BytesIO = stream) -> bytes:
            return stream.read(bite)

        chunks = read_items(read, row_bytes_max=40, file="f")
        items = [item for chunk in chunks for item in chunk]
        assert [item.number for item in items] == [1, 2, 3]
        assert isinstance(items[1].raw, Flaw) == (2 * length + 2 > 40)
        assert items[2].raw == b'{"b":2}'


async def test_several_files_may_be_of_several_formats(tmp_path: Path) -> None:
    own = file_of(tmp_path, line_of("1"), "own.jsonl")
    chosen = file_of(
        tmp_path, b'{"id":"2","prompt":"q","chosen":"x","rejected":"y"}\n', "chosen.jsonl"
    )
    empty = file_of(tmp_path, b"", "empty.jsonl")
    rows = await rows_of(own, empty, chosen)
    assert [(row.item.id, row.file) for row in rows] == [("1", str(own)), ("2", str(chosen))]


async def test_a_forced_format_is_taken_at_its_word(tmp_path: Path) -> None:
    path = file_of(tmp_path, line_of("1"))
    (row,) = await rows_of(path, format="llmbar")
    assert isinstance(row.item, BadRow)
    with pytest.raises(InputError, match="unknown format"):
        FileSource(path, format="nope")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PAR1....", "is no Parquet file that can be read"),
        ("x".encode("utf-16"), "is UTF-16 text"),
        (b"id,question\n1,q\n", "no row can be read; is not JSON"),
        (b"1\n2\n", "no row can be read; the rows are no objects"),
        (b'{"a":1}\n', "no known format has these fields: a;"),
        (b"\x1f\x8bnot gzip", "the gzip data is damaged"),
    ],
)
async def test_a_file_that_cannot_be_read_at_all_is_one_clear_error(
    tmp_path: Path, data: bytes, message: str
) -> None:
    path = file_of(tmp_path, data)
    with pytest.raises(InputError, match=message) as caught:
        await rows_of(path)
    assert str(caught.value).startswith(str(path))


async def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        await rows_of(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="is a folder without data files in it"):
        await rows_of(tmp_path)
    with pytest.raises(InputError, match="no input was named"):
        FileSource([])


async def test_no_file_stays_open_when_reading_stops_early(tmp_path: Path) -> None:
    path = file_of(tmp_path, b"".join(line_of(n) for n in range(2000)))
    source = FileSource(path)
    batches = source.batches()
    await anext(batches)
    assert open_files() & {str(path)}
    await source.aclose()
    assert not open_files() & {str(path)}
    await batches.aclose()  # an async generator


_PRINT = """
import asyncio, sys
from dikast.engine.sources import FileSource

async def main():
    async for batch in FileSource("-").batches():
        for row in batch:
            print(row.item.id, row.file, row.line, flush=True)
            if row.item.id == "stop":
                return

asyncio.run(main())
"""


def _reader() -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", _PRINT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
    )


@pytest.mark.realtime
async def test_rows_from_standard_input_come_as_they_are_written() -> None:
    reader = _reader()
    assert reader.stdin is not None
    assert reader.stdout is not None
    for number in range(1, 4):
        reader.stdin.write(line_of(number))
        reader.stdin.flush()
        assert reader.stdout.readline() == f"{number} stdin {number}\n".encode()
    out, _ = reader.communicate(line_of(4)[:-1], timeout=30)
    assert out == b"4 stdin 4\n"
    assert reader.returncode == 0


@pytest.mark.realtime
async def test_a_silent_standard_input_does_not_keep_the_program_from_ending() -> None:
    reader = _reader()
    assert reader.stdin is not None
    reader.stdin.write(line_of("stop"))
    reader.stdin.flush()
    assert reader.wait(timeout=30) == 0
    reader.stdin.close()
    assert reader.stdout is not None
    reader.stdout.close()


async def test_an_async_iterable_is_handed_on_one_by_one() -> None:
    pulled = 0

    async def stream() -> AsyncIterator[dict[str, object]]:
        nonlocal pulled
        for number in range(3):
            pulled += 1
            yield row_of(number)

    source = IterableSource(stream(), name="queue")
    batches = source.batches()
    first = await anext(batches)
    assert [row.item.id for row in first] == ["0"]
    assert (first[0].file, first[0].line, pulled) == ("queue", 1, 1)
    await batches.aclose()  # type: ignore[attr-defined]  # an async generator
    await source.aclose()


async def test_ready_rows_pass_through_an_iterable_source() -> None:
    row = Row(item=BadRow(message="no"), file="f", line=7)
    source = IterableSource([row])
    assert [each async for batch in source.batches() for each in batch] == [row]


async def test_a_wrong_checksum_at_the_end_costs_no_row(tmp_path: Path) -> None:
    packed = bytearray(pack(b"".join(line_of(n) for n in range(3000)), "gzip"))
    packed[-6] ^= 0xFF
    *good, last = await rows_of(file_of(tmp_path, bytes(packed)))
    assert [row.item.id for row in good] == [str(n) for n in range(3000)]
    assert isinstance(last.item, BadRow)
    assert "incorrect data check" in last.item.message
