"""scan_output and what the sink does with it: the output is the truth about what is done."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dikast.engine.errors import InputError, SinkError
from dikast.engine.model import Failed, Outcome, Undecided, Verdict
from dikast.sinks import JsonlSink, OutputScan, scan_output


def lines_of(outcomes: list[Outcome]) -> bytes:
    return b"".join(msgspec.json.encode(each) + b"\n" for each in outcomes)


def read_back(path: Path) -> list[Outcome]:
    data = path.read_bytes()
    assert not data or data.endswith(b"\n")
    return [msgspec.json.decode(line, type=Outcome) for line in data.split(b"\n")[:-1]]


def scanned(path: Path, **options: bool) -> OutputScan:
    scan = scan_output(path, **options)
    assert scan is not None
    return scan


def verdict(id: str, spec: str = "s") -> Verdict:
    return Verdict(id=id, winner="A", spec=spec)


def failed(id: str, reason: str = "timeout") -> Failed:
    return Failed(id=id, reason=reason, message="m", spec="s")


MIXED: list[Outcome] = [
    verdict("a"),
    failed("b"),
    Undecided(id="c", why="unparsed", spec="s"),
    failed("d"),
    verdict("d"),
    failed("in:7", "bad_row"),
    failed("e"),
    verdict("f"),
    failed("f"),
]


def test_nothing_there_is_nothing_to_resume(tmp_path: Path) -> None:
    assert scan_output(tmp_path / "none.jsonl") is None
    (tmp_path / "empty.jsonl").touch()
    assert scan_output(tmp_path / "empty.jsonl") is None


def test_verdict_and_undecided_are_done_failed_is_not_and_a_later_line_wins(
    tmp_path: Path,
) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(lines_of(MIXED))
    scan = scanned(path)
    assert [id for id in "abcdefg" if scan.is_done(id)] == ["a", "c", "d"]
    assert (scan.done, scan.retry, scan.lines) == (3, 4, 9)
    assert scan.specs == {"s": 9}
    assert path.read_bytes() == lines_of(MIXED)  # looking changes nothing


async def test_opening_drops_what_will_be_judged_again_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(lines_of(MIXED))
    path.chmod(0o640)
    scan = scanned(path)
    sink = JsonlSink(path, resume=scan)
    assert [each.id for each in read_back(path)] == ["a", "c", "d"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(SinkError, match="another process"):
        JsonlSink(path)  # the lock came along to the new file
    await sink.write(verdict("b"))
    await sink.aclose()
    assert read_back(path) == [MIXED[0], MIXED[2], MIXED[4], verdict("b")]
    assert os.listdir(tmp_path) == ["out.jsonl"]


async def test_failed_ones_stay_when_they_are_not_to_be_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(lines_of(MIXED))
    scan = scanned(path, retry_failed=False)
    assert [id for id in "abcdefg" if id in scan] == list("abcdef")
    assert not scan.is_done("in:7")  # reading the input finds a bad row again, for nothing
    await JsonlSink(path, resume=scan).aclose()
    assert [each.id for each in read_back(path)] == ["a", "b", "c", "d", "e", "f"]
    assert [type(each) for each in read_back(path)][5] is Failed


async def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    real.write_bytes(lines_of(MIXED))
    link.symlink_to(real)
    await JsonlSink(link, resume=scanned(link)).aclose()
    assert link.is_symlink()
    assert len(read_back(real)) == 3


@given(
    rows=st.lists(st.sampled_from(MIXED), max_size=6),
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    cut=st.floats(0, 1),
)
@settings(max_examples=60, deadline=None)
async def test_a_tail_torn_anywhere_costs_that_line_and_no_other(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Outcome], text: str, cut: float
) -> None:
    path = tmp_path_factory.mktemp("torn") / "out.jsonl"
    whole: list[Outcome] = [verdict(f"{n}{text}") for n, _ in enumerate(rows)]
    last = lines_of([Verdict(id="last", winner="B", meta={"t": text})])
    torn = last[: int(cut * (len(last) - 1))]
    path.write_bytes(lines_of(whole) + torn)
    scan = scan_output(path)
    if scan is None:
        assert not whole
        assert not torn
        return
    assert (scan.torn_bytes, scan.done) == (len(torn), len(whole))
    sink = JsonlSink(path, resume=scan)
    await sink.write(verdict("next"))
    await sink.aclose()
    assert read_back(path) == [*whole, verdict("next")]


def test_texts_with_line_separators_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    odd = [verdict("x\u2028y"), verdict("u\u0085v"), verdict("c\rd")]
    path.write_bytes(lines_of(list(odd)))
    scan = scanned(path)
    assert scan.lines == 3
    assert all(scan.is_done(each.id) for each in odd)


async def test_zeros_after_a_power_cut_are_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(lines_of([verdict("a")]) + b"\0" * 4096)
    scan = scanned(path)
    assert scan.torn_bytes == 4096
    await JsonlSink(path, resume=scan).aclose()
    assert read_back(path) == [verdict("a")]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"id":"1","question":"q"}\n', 1),
        (b"notes without an end", 1),
        (lines_of([verdict("a")]) + b"garbage\n" + lines_of([verdict("b")]), 2),
        (lines_of([verdict("a")]) + b"\xff\xfe\n", 2),
        (b'{"kind":"verdict"}\n', 1),
    ],
)
def test_a_file_that_is_no_output_is_refused_with_its_line(
    tmp_path: Path, content: bytes, line: int
) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not an outcome written by dikast") as caught:
        scan_output(path)
    assert caught.value.line == line
    assert path.read_bytes() == content


def test_a_compressed_output_and_a_folder_cannot_be_resumed(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl.gz").write_bytes(b"x")
    with pytest.raises(InputError, match="compressed output cannot be resumed"):
        scan_output(tmp_path / "out.jsonl.gz")
    with pytest.raises(InputError, match="not a regular file"):
        scan_output(tmp_path)


def test_an_output_that_changed_since_the_scan_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(lines_of(MIXED))
    scan = scanned(path)
    path.write_bytes(lines_of([*MIXED, verdict("g")]))
    with pytest.raises(SinkError, match="has changed since it was read"):
        JsonlSink(path, resume=scan)
    assert len(read_back(path)) == 10


@pytest.mark.parametrize("step", ["open", "write", "fsync", "replace"])
def test_a_compaction_that_fails_at_any_step_leaves_the_old_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(lines_of(MIXED))
    scan = scanned(path)
    real: Callable[..., object] = getattr(os, step)

    def broken(*args: object, **more: object) -> object:
        if step == "open" and ".compacting" not in str(args[0]):
            return real(*args, **more)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, broken)
    with pytest.raises(SinkError, match="No space left"):
        JsonlSink(path, resume=scan)
    monkeypatch.undo()
    assert path.read_bytes() == lines_of(MIXED)
    assert os.listdir(tmp_path) == ["out.jsonl"]
    JsonlSink(path, resume=scanned(path))
    assert len(read_back(path)) == 3


async def test_what_a_killed_compaction_left_beside_the_output_does_no_harm(
    tmp_path: Path,
) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(lines_of(MIXED))
    (tmp_path / "out.jsonl.compacting").write_bytes(lines_of([verdict("z")]) * 1000)
    await JsonlSink(path, resume=scanned(path)).aclose()
    assert [each.id for each in read_back(path)] == ["a", "c", "d"]
    assert os.listdir(tmp_path) == ["out.jsonl"]


_RUN = """
import asyncio, sys
from dikast.engine.model import Failed, Verdict
from dikast.sinks import JsonlSink, scan_output

async def main(path, turn):
    scan = scan_output(path)
    sink = JsonlSink(path, resume=scan, block_rows=7, block_wait_s=0.001)
    print("open", flush=True)
    for number in range(3000):
        id = f"id-{number}"
        if scan is not None and scan.is_done(id):
            continue
        if turn < 3 and number % 5 == turn:
            await sink.write(Failed(id=id, reason="timeout", message="m"))
        else:
            await sink.write(Verdict(id=id, winner="A"))
        await asyncio.sleep(0)
    await sink.aclose()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def _run(path: Path, turn: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _RUN, str(path), str(turn)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.realtime
async def test_killed_three_times_every_id_stands_once_in_the_final_output(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    for turn in range(3):
        before = path.stat().st_size if path.exists() else 0
        run = _run(path, turn)
        assert run.stdout is not None
        run.stdout.readline()
        while run.poll() is None and path.stat().st_size < before + 5_000:
            continue  # bounded by the run itself, which ends after 3,000 rows
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=30)
    last = _run(path, 3)
    last.communicate(timeout=60)
    assert last.returncode == 0
    assert sorted(each.id for each in read_back(path)) == sorted(f"id-{n}" for n in range(3000))
    assert all(isinstance(each, Verdict) for each in read_back(path))
