"""Folders, patterns, saved datasets and addresses: which files an input stands for."""

import json
import os
import re
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import fsspec
import pyarrow as pa
import pyarrow.ipc
import pytest

from dikast.cli import main
from dikast.engine import arrowrows, remote
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.model import BadRow
from dikast.engine.places import places, shown
from dikast.engine.sources import FileSource


def line_of(id: object) -> str:
    return json.dumps({"id": str(id), "question": "q", "response_a": "x", "response_b": "y"}) + "\n"


async def ids_of(path: Path | str, **options: str) -> list[str | None]:
    source = FileSource(path, **options)  # type: ignore[arg-type]
    return [row.item.id async for batch in source.batches() for row in batch]


def shards(folder: Path, count: int, start: int = 0, split: str | None = None) -> Path:
    """A dataset as Hugging Face `datasets` saves it: Arrow streams and two descriptions."""
    folder.mkdir(parents=True)
    names = [f"data-{n:05}-of-{count:05}.arrow" for n in range(count)]
    for number, name in enumerate(names):
        rows = [json.loads(line_of(start + number * 10 + n)) for n in range(10)]
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_stream(str(folder / name), table.schema) as stream:
            stream.write_table(table)
    state = {"_data_files": [{"filename": name} for name in names], "_split": split}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    return folder


async def test_a_folder_stands_for_its_data_files_in_order_of_name(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a/z.ndjson", "c.jsonl", ".git/x.jsonl", "_tmp/y.jsonl", "notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(line_of(name))
    (tmp_path / "b.jsonl.manifest.json").write_text("{}")
    assert await ids_of(tmp_path) == ["a/z.ndjson", "b.jsonl", "c.jsonl"]
    assert await ids_of(f"{tmp_path}/*.jsonl") == ["b.jsonl", "c.jsonl"]
    assert await ids_of(f"{tmp_path}/**/[az].*") == ["a/z.ndjson"]


async def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "run[1].jsonl").write_text(line_of("odd"))
    (tmp_path / "run1.jsonl").write_text(line_of("plain"))
    assert await ids_of(tmp_path / "run[1].jsonl") == ["odd"]


async def test_a_split_is_told_by_the_names_of_files_and_folders(tmp_path: Path) -> None:
    for name in ("train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"):
        (tmp_path / f"{name}.jsonl").write_text(line_of(name))
    assert await ids_of(tmp_path, split="train") == ["train-00000-of-00002", "train-00001-of-00002"]
    with pytest.raises(InputError, match=r"has no split 'dev'.*there are: test, train"):
        await ids_of(tmp_path, split="dev")


async def test_a_saved_dataset_is_its_shards_and_nothing_else(tmp_path: Path) -> None:
    folder = shards(tmp_path / "set", 3)
    (folder / "cache-1.arrow").write_bytes(b"no shard")
    assert await ids_of(folder) == [str(n) for n in range(30)]
    (folder / "data-00001-of-00003.arrow").unlink()
    with pytest.raises(InputError, match=r"data-00001-of-00003.arrow: there is no such file"):
        await ids_of(folder)


async def test_of_several_splits_one_has_to_be_chosen(tmp_path: Path) -> None:
    shards(tmp_path / "train", 1, split="train")
    shards(tmp_path / "test", 1, start=500, split="test")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert (await ids_of(tmp_path, split="test"))[0] == "500"
    with pytest.raises(InputError, match=r"2 splits \(train, test\); choose one with --split"):
        await ids_of(tmp_path)
    with pytest.raises(InputError, match="has no split 'dev'; there are: train, test"):
        await ids_of(tmp_path, split="dev")
    with pytest.raises(InputError, match="has no split 'test'; it is the split 'train'"):
        await ids_of(tmp_path / "train", split="test")


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("{", "its state.json does not describe a dataset"),
        ('{"_data_files": [], "_indices_data_files": [{"filename": "i"}]}', "flatten_indices"),
    ],
)
async def test_a_dataset_that_cannot_be_read_says_why(
    tmp_path: Path, state: str, message: str
) -> None:
    (tmp_path / "state.json").write_text(state)
    with pytest.raises(InputError, match=message):
        await ids_of(tmp_path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("none.jsonl", "none.jsonl: there is no such file"),
        ("*.none", "no file matches this pattern"),
    ],
)
async def test_what_is_not_there_is_named(tmp_path: Path, given: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        await ids_of(f"{tmp_path}/{given}")


def test_a_split_of_a_single_file_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(line_of(1))
    with pytest.raises(InputError, match="is a single file, so it has no split 'train'"):
        places(str(tmp_path / "a.jsonl"), "train")


def test_neither_a_login_nor_a_signature_is_shown() -> None:
    assert shown("https://me:pw@host/a/b.csv?X-Sig=1") == "https://host/a/b.csv"
    assert shown("s3://bucket/a b.csv") == "s3://bucket/a b.csv"
    assert shown("in/a?.csv") == "in/a?.csv"


@pytest.mark.realtime
async def test_an_object_store_is_read_as_a_disk_is(tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    try:
        for name in ("set/b.jsonl", "set/a.jsonl", "other.jsonl"):
            store.pipe(f"/bucket/{name}", line_of(name).encode())
        dataset = shards(tmp_path / "d", 2)
        store.put(f"{dataset}/", "/bucket/d/", recursive=True)
        assert await ids_of("memory://bucket/set") == ["set/a.jsonl", "set/b.jsonl"]
        assert await ids_of("memory://bucket/**/*.jsonl") == [
            "other.jsonl", "set/a.jsonl", "set/b.jsonl",
        ]  # fmt: skip
        assert await ids_of("memory://bucket/d") == [str(n) for n in range(20)]
        with pytest.raises(InputError, match=r"memory://bucket/none\.csv: there is no such file"):
            await ids_of("memory://bucket/none.csv")
    finally:
        store.rm("/bucket", recursive=True)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """A web server over the test's folder; its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.realtime
async def test_a_web_address_is_read_and_its_secrets_stay_out_of_the_rows(
    tmp_path: Path, web: str
) -> None:
    (tmp_path / "in.jsonl").write_text(line_of(1) + "{broken\n")
    source = FileSource(f"http://me:secret@{web}/in.jsonl?sig=secret")
    rows = [row async for batch in source.batches() for row in batch]
    assert [row.item.id for row in rows] == ["1", None]
    assert isinstance(rows[1].item, BadRow)
    assert {row.file for row in rows} == {f"http://{web}/in.jsonl"}
    assert "secret" not in repr(source)
    with pytest.raises(InputError, match=r"none\.jsonl: there is no such file"):
        await ids_of(f"http://{web}/none.jsonl")


@pytest.mark.realtime
async def test_a_server_that_is_not_there_is_one_clear_error() -> None:
    with pytest.raises(InputError, match=r"http://127\.0\.0\.1:9/in\.csv: cannot be read: "):
        await ids_of("http://127.0.0.1:9/in.csv")


def test_an_address_of_an_unknown_kind_is_named() -> None:
    with pytest.raises(InputError, match="pigeon:// is no kind of address that fsspec knows"):
        places("pigeon://x/y.csv")


async def test_without_the_extras_it_is_one_clear_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = shards(tmp_path / "d", 1)

    def absent(name: str) -> object:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(arrowrows, "import_module", absent)
    with pytest.raises(InputError, match=r"needs the package pyarrow: pip install"):
        await ids_of(dataset)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(InputError, match=r"needs the package fsspec: pip install"):
        places("s3://bucket/a.csv")


@pytest.mark.realtime
def test_the_manifest_of_a_run_holds_no_signature_of_its_input(tmp_path: Path, web: str) -> None:
    (tmp_path / "in.csv").write_text("id,question,response_a,response_b\n1,q,x,y\n")
    address = f"http://me:hunter2@{web}/in.csv?X-Amz-Signature=hunter3"
    out = tmp_path / "out.parquet"
    assert main(["judge", address, "-o", str(out), "--judge", "simulated:careful", "--quiet"]) == 0
    written = (tmp_path / "out.parquet.manifest.json").read_text()
    assert f"http://{web}/in.csv" in written
    everything = written + (tmp_path / "out.parquet.jsonl").read_text()
    assert "hunter" not in everything


async def test_a_link_back_into_its_folder_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(line_of(1))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.jsonl").write_text(line_of(2))
    (tmp_path / "sub" / "loop").symlink_to(tmp_path)
    assert await ids_of(f"{tmp_path}/**/*.jsonl") == ["1", "2"]
    assert await ids_of(tmp_path) == ["1", "2"]


async def test_of_two_ways_to_a_file_the_shorter_one_names_it(tmp_path: Path) -> None:
    # The order in which a disk tells its folders is its own: of so many some links come first.
    names = [f"real{number}" for number in range(8)]
    for number, name in enumerate(names):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.jsonl").write_text(line_of(number))
        (tmp_path / f"link{number}").mkdir()
        (tmp_path / f"link{number}" / "to").symlink_to(tmp_path / name)
    found = [each.shown for each in places(f"{tmp_path}/**/*.jsonl")]
    assert found == [f"{tmp_path}/{name}/x.jsonl" for name in names]


def test_a_named_pipe_is_converted_whole_and_not_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe, out = tmp_path / "pipe", tmp_path / "out.jsonl"
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_text(line_of(1) + line_of(2)))
    writer.start()
    assert main(["convert", str(pipe), "-o", str(out)]) == 0
    writer.join()
    assert len(out.read_text().splitlines()) == 2
    words = ["shard", str(pipe), "-o", str(tmp_path / "p"), "--shards", "2"]
    assert main([*words, "--judge", "simulated:careful"]) == 2
    assert "only files can be cut into shards" in capsys.readouterr().err


async def test_one_column_for_both_answers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'x' stands for both answers"):
        FileSource(tmp_path / "a.csv", columns={"response_a": "x", "response_b": "x"})


@pytest.mark.realtime
async def test_a_web_server_that_falls_silent_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken = Event()

    class Silent(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            woken.wait(20)

        do_HEAD = do_GET  # noqa: N815 - the name is the method's

        def log_message(self, format: str, *args: object) -> None:
            return

    monkeypatch.setattr(remote, "_SILENT_S", 0.3)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    serving = Thread(target=server.serve_forever)
    serving.start()
    try:
        with pytest.raises(InputError, match="cannot be read: Timeout"):
            await ids_of(f"http://127.0.0.1:{server.server_port}/a.jsonl")
    finally:
        woken.set()
        server.shutdown()
        serving.join()
        server.server_close()
