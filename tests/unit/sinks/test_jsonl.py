"""JsonlSink: blocks, broken disks, strange texts, the lock, and input order."""

import asyncio
import errno
import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from dikast.engine.errors import ConfigError, SinkError
from dikast.engine.model import Outcome, Verdict
from dikast.sinks import JsonlSink
from dikast.sinks.files import DiskFile


def verdict(number: int, **more: object) -> Verdict:
    return msgspec.structs.replace(Verdict(id=f"id-{number}", winner="A"), **more)


def ids(data: bytes) -> list[str]:
    """Ids of the lines; fails unless the file is made of whole lines only."""
    assert not data or data.endswith(b"\n")
    return [msgspec.json.decode(line, type=Outcome).id for line in data.split(b"\n")[:-1]]


class FailingFile:
    """A file in memory that fails at its n-th write, after having taken `torn` bytes."""

    def __init__(
        self, fail_at: int = 0, *, torn: int = 0, truncates: bool = True, fail_sync_at: int = 0
    ) -> None:
        self.data = bytearray()
        self.fail_at = fail_at
        self.torn = torn
        self.truncates = truncates
        self.operations = 0
        self.syncs = 0
        self.fail_sync_at = fail_sync_at
        self.closed = False

    def _step(self) -> bool:
        self.operations += 1
        return self.operations == self.fail_at

    def write(self, data: bytes | memoryview) -> int:
        if self._step():
            raise OSError(errno.ENOSPC, "No space left on device")
        # The bite before the failure is a short one, as on a disk that runs full.
        taken = bytes(data)[: self.torn] if self.operations == self.fail_at - 1 else bytes(data)
        self.data += taken
        return len(taken)

    def truncate(self, size_bytes: int) -> None:
        if not self.truncates:
            raise OSError(errno.ESPIPE, "Illegal seek")
        del self.data[size_bytes:]

    def sync(self) -> None:
        self.syncs += 1
        if self.syncs == self.fail_sync_at:
            raise OSError(errno.EIO, "Input/output error")

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("torn", [1, 30, 45, 1000])
@pytest.mark.parametrize("fail_at", range(1, 10))
async def test_a_failure_at_any_write_leaves_whole_lines_and_loses_no_row(
    fail_at: int, torn: int
) -> None:
    file = FailingFile(fail_at, torn=torn)
    sink = JsonlSink("out.jsonl", file=file, block_rows=2, sync="batch")
    failed = False
    for number in range(8):
        try:
            await sink.write(verdict(number))
        except SinkError:
            failed = True
            done = ids(bytes(file.data))  # whole lines, whatever the disk took
            assert done == [f"id-{n}" for n in range(len(done))]
            assert len(done) + sink.unwritten_rows == number + 1
            await sink.flush()  # the disk has space again
    await sink.aclose()
    writes = 4 + (torn < 80)  # four blocks; a short write makes one more
    assert failed == (fail_at <= writes)
    assert ids(bytes(file.data)) == [f"id-{n}" for n in range(8)]
    assert file.closed


@pytest.mark.parametrize("fail_at", range(1, 6))
async def test_after_a_failed_sync_nothing_more_is_accepted(fail_at: int) -> None:
    file = FailingFile(fail_sync_at=fail_at)
    sink = JsonlSink("out.jsonl", file=file, block_rows=2, sync="batch")
    accepted = 2 * fail_at - 1
    for number in range(accepted):
        await sink.write(verdict(number))
    with pytest.raises(SinkError, match="Input/output error"):
        await sink.write(verdict(accepted))
    for _ in range(2):
        with pytest.raises(SinkError, match="Input/output error"):
            await sink.write(verdict(101))
    with pytest.raises(SinkError, match="Input/output error"):
        await sink.aclose()
    assert ids(bytes(file.data)) == [f"id-{n}" for n in range(accepted + 1)]


@pytest.mark.parametrize("torn", [1, 30, 45])
async def test_a_pipe_that_took_part_of_a_line_gets_the_rest_of_it(torn: int) -> None:
    file = FailingFile(2, torn=torn, truncates=False)
    sink = JsonlSink("out.jsonl", file=file, block_rows=3)
    for number in range(2):
        await sink.write(verdict(number))
    with pytest.raises(SinkError, match="disk is full"):
        await sink.write(verdict(2))
    await sink.flush()
    await sink.write(verdict(3))
    await sink.aclose()
    assert ids(bytes(file.data)) == ["id-0", "id-1", "id-2", "id-3"]


async def test_an_error_met_by_the_timer_is_raised_by_the_next_write() -> None:
    sink = JsonlSink("out.jsonl", file=FailingFile(1), block_wait_s=0.05)
    await sink.write(verdict(0))
    await asyncio.sleep(0.1)
    with pytest.raises(SinkError, match=r"out\.jsonl: the disk is full"):
        await sink.write(verdict(1))
    await sink.flush()
    await sink.aclose()


async def test_closing_with_rows_that_cannot_be_written_counts_them() -> None:
    class FullFile(FailingFile):
        def _step(self) -> bool:
            return True

        def write(self, data: bytes | memoryview) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    file = FullFile(1)
    sink = JsonlSink("out.jsonl", file=file)
    await sink.write(verdict(0))
    await sink.write(verdict(1))
    with pytest.raises(SinkError, match="2 accepted rows are not in the output"):
        await sink.aclose()
    assert file.closed
    await sink.aclose()


async def test_rows_reach_the_file_by_count_or_by_time(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    sink = JsonlSink(path, block_rows=3, block_wait_s=2.0)
    await sink.write(verdict(0))
    await asyncio.sleep(1.0)
    assert path.read_bytes() == b""
    await asyncio.sleep(1.5)
    assert ids(path.read_bytes()) == ["id-0"]
    for number in (1, 2, 3):
        await sink.write(verdict(number))
    assert len(ids(path.read_bytes())) == 4
    await sink.aclose()


async def test_strange_texts_and_values_never_cost_a_row(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    deep: list[object] = []
    for _ in range(1000):
        deep = [deep]
    sink = JsonlSink(path)
    await sink.write(verdict(0, meta={"t": "a\ud800b", "k\udfff": [1, {"x": "\udc00"}]}))
    await sink.write(verdict(1, meta={"o": object(), "n": float("nan"), "big": 10**40}))
    await sink.write(verdict(2, meta={"deep": deep}))
    await sink.write(verdict(3, meta={"t": "\u2028\u0085\r\n"}))
    await sink.write(verdict(4, id="\ud800", votes=()))
    await sink.aclose()
    rows = [msgspec.json.decode(line) for line in path.read_bytes().split(b"\n")[:-1]]
    assert [row["id"] for row in rows] == ["id-0", "id-1", "id-2", "id-3", "\ufffd"]
    assert [row["kind"] for row in rows] == ["verdict"] * 5
    assert rows[0]["meta"] == {"t": "a\ufffdb", "k\ufffd": [1, {"x": "\ufffd"}]}
    assert rows[3]["meta"] == {"t": "\u2028\u0085\r\n"}


async def test_a_second_writer_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    sink = JsonlSink(path)
    with pytest.raises(SinkError, match="another process is writing"):
        JsonlSink(path)
    with pytest.raises(SinkError, match="another process is writing"):
        JsonlSink(path, fresh=True)
    await sink.write(verdict(0))
    await sink.aclose()
    assert ids(path.read_bytes()) == ["id-0"]
    await JsonlSink(path).aclose()  # the lock is gone with the first


async def test_an_existing_output_is_appended_to_after_a_torn_line_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    sink = JsonlSink(path)
    await sink.write(verdict(0))
    await sink.aclose()
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole + whole[:cut])
        sink = JsonlSink(path)
        await sink.write(verdict(1))
        await sink.aclose()
        assert ids(path.read_bytes()) == ["id-0", "id-1"]


@pytest.mark.parametrize("content", [b"my only notes", b"line\nno newline here"])
def test_a_file_that_is_no_output_is_never_cut(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(SinkError, match="not an output of dikast"):
        JsonlSink(path)
    assert path.read_bytes() == content


async def test_fresh_starts_over(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"old\n")
    sink = JsonlSink(path, fresh=True)
    await sink.write(verdict(0))
    await sink.aclose()
    assert ids(path.read_bytes()) == ["id-0"]


def test_a_missing_folder_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="does not exist"):
        JsonlSink(tmp_path / "no" / "out.jsonl")
    with pytest.raises(SinkError, match="is a folder"):
        JsonlSink(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
async def test_a_full_device_is_one_clear_sentence() -> None:
    sink = JsonlSink("/dev/full")
    await sink.write(verdict(0))
    with pytest.raises(SinkError, match=r"^/dev/full: the disk is full; free some space"):
        await sink.flush()
    with pytest.raises(SinkError, match="1 accepted rows are not in the output"):
        await sink.aclose()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB, or a skip that says why there is none."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("a small file system cannot be mounted here: it needs root and mount")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True
    )
    if made.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.decode()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


async def _write_until_full(sink: JsonlSink) -> int:
    """The number of rows accepted before the error, the one that met it included."""
    for number in range(100_000):
        try:
            await sink.write(verdict(number))
        except SinkError:
            return number + 1
    raise AssertionError("the disk never ran full")


async def test_a_disk_that_runs_full_keeps_whole_lines_and_takes_the_rest_later(
    small_disk: Path,
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 20_000)
    path = small_disk / "out.jsonl"
    sink = JsonlSink(path, block_rows=100)
    accepted = await _write_until_full(sink)
    assert len(ids(path.read_bytes())) + sink.unwritten_rows == accepted
    with pytest.raises(SinkError, match="disk is full"):
        await sink.flush()
    ballast.unlink()
    await sink.aclose()
    assert ids(path.read_bytes()) == [f"id-{n}" for n in range(accepted)]


async def test_gzip_by_suffix_reads_back_and_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl.gz"
    sink = JsonlSink(path, block_rows=3)
    for number in range(10):
        await sink.write(verdict(number))
    await sink.aclose()
    assert ids(gzip.decompress(path.read_bytes())) == [f"id-{n}" for n in range(10)]
    with pytest.raises(SinkError, match="compressed output cannot be continued"):
        JsonlSink(path)
    with pytest.raises(ConfigError, match="zstd"):
        JsonlSink(tmp_path / "out.jsonl.zst")


async def test_a_gzip_block_that_failed_is_written_whole_the_next_time() -> None:
    file = FailingFile(2, torn=20)
    sink = JsonlSink("out.jsonl.gz", file=file, block_rows=2)
    await sink.write(verdict(0))
    with pytest.raises(SinkError):
        await sink.write(verdict(1))
    assert file.data == b""
    await sink.aclose()
    assert ids(gzip.decompress(bytes(file.data))) == ["id-0", "id-1"]


async def test_a_reader_that_has_gone_is_named() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    sink = JsonlSink("out", file=DiskFile(write_end))
    await sink.write(verdict(0))
    with pytest.raises(SinkError, match="reader of this pipe has gone"):
        await sink.flush()
    with pytest.raises(SinkError):
        await sink.aclose()


def test_a_dash_is_standard_output() -> None:
    code = (
        "import asyncio\n"
        "from dikast.engine.model import Verdict\n"
        "from dikast.sinks import build\n"
        "async def main():\n"
        "    sink = build('-')\n"
        "    await sink.write(Verdict(id='x', winner='B'))\n"
        "    await sink.aclose()\n"
        "asyncio.run(main())\n"
        "print('open')\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=env)
    assert out.stdout == b'{"kind":"verdict","id":"x","winner":"B"}\nopen\n'
