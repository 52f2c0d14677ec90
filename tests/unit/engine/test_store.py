"""SqliteStore: batches, other processes, broken files, and `kill -9`."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dikast.engine.errors import ConfigError, StoreError
from dikast.engine.model import Completion
from dikast.engine.store import MemoryStore, SqliteStore, open_store
from dikast.engine.storefile import StoreFile, key_bytes

KEY, OTHER = "a" * 32, "b" * 32


def _cursor(store: SqliteStore) -> sqlite3.Cursor:
    assert store._file is not None
    return store._file._cursor


async def test_a_put_waits_for_the_commit_and_a_get_sees_it_before(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "calls.db", batch_wait_s=5.0)
    other = SqliteStore(tmp_path / "calls.db")
    put = asyncio.create_task(store.put(KEY, Completion(text="x")))
    await asyncio.sleep(1.0)
    assert not put.done()
    assert store.get(KEY) is not None
    await other.put(OTHER, Completion(text="y"))
    assert other.get(KEY) is None  # not durable yet: nobody else may build on it
    await asyncio.sleep(4.5)
    assert put.done()
    await other.put("c" * 32, Completion(text="z"))  # a commit looks at what others wrote
    assert other.get(KEY) is not None
    assert store.get(OTHER) is not None
    await store.aclose()
    await other.aclose()


async def test_a_full_batch_does_not_wait_for_the_timer(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "calls.db", batch_rows=3, batch_wait_s=1000.0)
    loop = asyncio.get_running_loop()
    await asyncio.gather(*(store.put(f"{n:032x}", Completion(text="x")) for n in range(3)))
    assert loop.time() < 1.0
    await store.aclose()


async def test_closing_commits_what_is_pending(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "calls.db", batch_wait_s=1000.0)
    put = asyncio.create_task(store.put(KEY, Completion(text="x")))
    await asyncio.sleep(0)
    await store.aclose()
    await put
    again = SqliteStore(tmp_path / "calls.db")
    assert again.get(KEY) is not None
    assert len(again) == 1
    await again.aclose()


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "calls.db")
    await store.aclose()
    with pytest.raises(StoreError, match="closed"):
        store.get(KEY)
    with pytest.raises(StoreError, match="closed"):
        await store.put(KEY, Completion(text="x"))


async def test_a_full_disk_fails_every_put_of_the_batch_and_stores_none(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    store = SqliteStore(path)
    await store.put(KEY, Completion(text="small"))
    pages = _cursor(store).execute("PRAGMA page_count").fetchone()[0]
    _cursor(store).execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own way to be full
    big = Completion(text="x" * 100_000)
    results = await asyncio.gather(
        store.put(OTHER, big), store.put("c" * 32, big), return_exceptions=True
    )
    assert [str(each) for each in results] == [
        f"{path}: the disk is full; free some space and run the same again"
    ] * 2
    assert store.get(OTHER) is None
    _cursor(store).execute("PRAGMA max_page_count = 1000000")
    await store.put(OTHER, big)  # it goes on once there is space
    assert store.get(KEY) is not None
    assert store.get(OTHER) is not None
    await store.aclose()


@pytest.mark.parametrize("content", [b"{}\n" * 2000, b"SQLite format 3\0" + b"x" * 9000])
def test_a_file_that_is_no_database_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "calls.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"calls\.db: is damaged or not a dikast call store"):
        SqliteStore(path)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(path)
    assert path.read_bytes() == before


async def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    await SqliteStore(path).aclose()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match=r"newer dikast .*99"):
        SqliteStore(path)


async def test_a_damaged_row_is_an_error_and_not_a_miss(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    store = SqliteStore(path)
    await store.put(KEY, Completion(text="x"))
    _cursor(store).execute("UPDATE log SET value = x'c1'")
    with pytest.raises(StoreError, match="damaged"):
        store.get(KEY)
    await store.aclose()


def test_a_folder_and_a_place_that_cannot_be_made_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        SqliteStore(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be made"):
        SqliteStore(tmp_path / "file" / "calls.db")


async def test_open_store_knows_paths_and_schemes(tmp_path: Path) -> None:
    assert open_store(None) is None
    assert open_store("none:") is None
    assert isinstance(open_store("memory:"), MemoryStore)
    for where in (tmp_path / "a.db", f"sqlite:{tmp_path}/b.db", f"sqlite://{tmp_path}/c.db"):
        store = open_store(where)
        assert isinstance(store, SqliteStore)
        assert store.path.exists()
        await store.aclose()
    with pytest.raises(ConfigError, match="redis"):
        open_store("redis://localhost")


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 1), st.lists(st.integers(0, 400), max_size=300)), max_size=8
    )
)
@settings(max_examples=15, deadline=None)
def test_rows_are_found_in_memory_in_the_index_and_after_a_crash_alike(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, list[int]]]
) -> None:
    path = tmp_path_factory.mktemp("file") / "calls.db"
    model: dict[bytes, bytes] = {}
    files = [StoreFile(path, run_rows=100), StoreFile(path, run_rows=150)]
    for turn, (who, numbers) in enumerate(steps):
        rows = [(key_bytes(str(n)), b"%d-%d" % (turn, n)) for n in dict.fromkeys(numbers)]
        files[who].append(rows)
        model.update(rows)
        assert all(files[who].get(key) == value for key, value in model.items())
        if turn % 3 == 2:  # opened anew in the middle of whatever the others have begun
            files[who].close()
            files[who] = StoreFile(path, run_rows=100)
            assert all(files[who].get(key) == value for key, value in model.items())
    assert all(file.get(key_bytes("never")) is None for file in files)
    for file in files:
        file.append([])
        assert all(file.get(key) == value for key, value in model.items())
        file.close()


def test_a_run_enters_the_index_slice_by_slice_and_memory_stays_bounded(tmp_path: Path) -> None:
    file = StoreFile(tmp_path / "calls.db", run_rows=3000)
    keys = [key_bytes(str(number)) for number in range(20_000)]
    for start in range(0, len(keys), 250):
        file.append([(key, key) for key in keys[start : start + 250]])
        assert len(file._recent) + len(file._merging) <= 3 * 3000
    assert file._indexed_to > 10_000
    assert all(file.get(key) == key for key in keys)
    file.close()
    again = StoreFile(tmp_path / "calls.db")
    assert 0 < len(again._recent) < 10_000
    assert all(again.get(key) == key for key in keys)
    again.close()


def test_two_keys_that_fold_into_the_same_place_are_never_mistaken(tmp_path: Path) -> None:
    file = StoreFile(tmp_path / "calls.db")
    fold = 0x9E3779B97F4A7C15
    one = (0).to_bytes(8, "big") + fold.to_bytes(8, "big")
    two = (1).to_bytes(8, "big") + (0).to_bytes(8, "big")
    file.append([(one, b"1")])
    assert file.get(two) is None
    file.append([(two, b"2")])
    assert file.get(two) == b"2"
    assert file.get(one) is None  # a miss, paid again; never another call's answer
    file.close()


def test_any_text_can_be_a_key() -> None:
    keys = ["a" * 32, "A" * 31 + "g", "", "k", "\ud800"]
    assert len({key_bytes(key) for key in keys}) == len(keys)
    assert key_bytes("0f" * 16) == b"\x0f" * 16
    assert all(len(key_bytes(key)) == 16 for key in keys)


_WRITER = """
import asyncio, sys
from dikast.engine.model import Completion
from dikast.engine.store import SqliteStore

async def main(path, first):
    store = SqliteStore(path)
    numbers = iter(range(first, 10**9))
    async def work():
        for number in numbers:
            await store.put(f"{number:032x}", Completion(text="t" * 500 + str(number)))
            sys.stdout.write(f"{number}\\n")
            sys.stdout.flush()
    await asyncio.gather(*(work() for _ in range(64)))

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def _start(path: Path, first: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path), str(first)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def _kill_after(writer: subprocess.Popen[bytes], rows: int) -> list[int]:
    """Kill the writer once it has said `rows` puts returned; all that it had said by then."""
    assert writer.stdout is not None
    said = [int(writer.stdout.readline()) for _ in range(rows)]
    writer.send_signal(signal.SIGKILL)
    # Not `communicate`: it reads past the buffer of `readline` and may begin within a line.
    with writer.stdout:
        rest = writer.stdout.read()
    writer.wait(timeout=30)
    return said + [int(line) for line in rest.split(b"\n")[:-1]]


@pytest.mark.realtime
async def test_every_put_that_returned_survives_kill_dash_nine(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    acknowledged: list[int] = []
    for turn, rows in enumerate((1, 300, 2000)):
        acknowledged += _kill_after(_start(path, turn * 1_000_000), rows)
    store = SqliteStore(path)
    assert _cursor(store).execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    for number in acknowledged:
        found = store.get(f"{number:032x}")
        assert found is not None, number
        assert found.text.endswith(f"t{number}")
    await store.aclose()


@pytest.mark.realtime
async def test_two_processes_open_and_write_the_same_new_store_at_once(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    writers = [_start(path, 0), _start(path, 500)]
    said = [_kill_after(writer, 300) for writer in writers]
    store = SqliteStore(path)
    assert all(store.get(f"{number:032x}") is not None for each in said for number in each)
    assert _cursor(store).execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    await store.aclose()
