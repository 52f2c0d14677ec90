"""Files of all kinds through the command line, and the page that tells of them."""

import gzip
import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from dikast.rows import count_rows
from tests.cli.test_docs_combinators import printed, shown
from tests.cli.tools import Cli, manifest_of, pair, rows_of, write_rows

pytestmark = pytest.mark.realtime
JUDGE = ("--judge", "simulated:careful", "--quiet", "--no-store")


def test_the_page_of_formats_shows_what_its_commands_print(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = shown("formats.md")
    assert len(commands) == 6
    for command, lines in commands:
        program, *words = shlex.split(command)
        if program == "cat":
            Path(words[0]).write_text("".join(f"{line}\n" for line in lines), "utf-8")
            continue
        if program == "python":
            done = subprocess.run([sys.executable, *words], capture_output=True, check=True)
            text = done.stdout.decode()
        else:
            assert program == "dikast"
            ran = cli(*words)
            assert "defect" not in ran.err
            bad, *rest = ran.err.splitlines(keepends=True)
            text = bad + ran.out + "".join(rest)
        assert printed(lines, text), f"{command}\n{text}"


@pytest.mark.parametrize("through", ["x.parquet", "x.arrow", "x.csv", "x.tsv.gz", "x.json.zst"])
def test_real_pairs_come_through_every_kind_of_file_unchanged(
    cli: Cli, tmp_path: Path, data: Path, through: str
) -> None:
    source = data / "pairs" / "judgebench.jsonl.gz"
    assert cli("convert", source, "-o", tmp_path / "own.jsonl").code == 0
    assert cli("convert", source, "-o", tmp_path / through).code == 0
    assert cli("convert", tmp_path / through, "-o", tmp_path / "back.jsonl").code == 0
    lines = gzip.decompress(source.read_bytes()).count(b"\n")
    own = (tmp_path / "own.jsonl").read_bytes()
    assert own.count(b"\n") == lines
    assert (tmp_path / "back.jsonl").read_bytes() == own


def test_a_dataset_folder_is_written_whole_and_read_back(cli: Cli, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", [pair(n, meta={"n": n}) for n in range(30)])
    target = f"{tmp_path}/set/"
    assert cli("convert", source, "-o", target).code == 0
    names = sorted(each.name for each in (tmp_path / "set").iterdir())
    assert names == ["data-00000-of-00001.arrow", "dataset_info.json", "state.json"]
    cli("convert", source, "-o", tmp_path / "own.jsonl")
    cli("convert", target, "-o", tmp_path / "back.jsonl")
    assert (tmp_path / "back.jsonl").read_bytes() == (tmp_path / "own.jsonl").read_bytes()
    assert "is there already" in cli("convert", source, "-o", target).err
    outcomes = write_rows(tmp_path / "o.jsonl", [{"kind": "verdict", "id": "1", "winner": "A"}])
    ran = cli("convert", outcomes, "-o", f"{tmp_path}/other/")
    assert ran.code == 2
    assert "a dataset has no maps, which outcomes have; write them as .parquet" in ran.err
    assert not list(tmp_path.glob("*other*"))


def test_a_table_as_output_is_resumed_from_its_journal(cli: Cli, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", [pair(n, label="A") for n in range(40)])
    out = tmp_path / "out.parquet"
    assert cli("judge", source, "-o", out, *JUDGE, "--limit", "15").code == 0
    ran = cli("judge", source, "-o", out, *JUDGE, "--json")
    assert ran.code == 0
    assert ran.summary["ledger"]["skipped"] == 15
    assert ran.summary["output"] == str(out)
    table = duckdb.connect().execute(
        f"select id, winner, len(votes), label, simulated from '{out}'"
    )
    rows = table.fetchall()
    journal = rows_of(tmp_path / "out.parquet.jsonl")
    assert [(row[0], row[1]) for row in rows] == [(each["id"], each["winner"]) for each in journal]
    assert sorted(row[0] for row in rows) == sorted(pair(n)["id"] for n in range(40))
    assert {row[2:] for row in rows} == {(2, "A", True)}
    assert [run["status"] for run in manifest_of(out)["runs"]] == ["complete", "complete"]


def test_a_table_whose_journal_is_gone_is_not_judged_again_unasked(
    cli: Cli, tmp_path: Path
) -> None:
    source = write_rows(tmp_path / "in.jsonl", [pair(n) for n in range(5)])
    out, journal = tmp_path / "out.parquet", tmp_path / "out.parquet.jsonl"
    cli("judge", source, "-o", out, *JUDGE)
    before = rows_of(journal)
    journal.unlink()

    ran = cli("judge", source, "-o", out, *JUDGE)
    assert ran.code == 2
    assert f"dikast convert {out} -o {journal}" in ran.err
    assert cli("convert", out, "-o", journal).code == 0
    assert [each["id"] for each in rows_of(journal)] == [each["id"] for each in before]
    ran = cli("judge", source, "-o", out, *JUDGE, "--json")
    assert ran.summary["ledger"]["skipped"] == 5

    ran = cli("judge", source, "-o", out, *JUDGE, "--json", "--fresh")
    assert ran.summary["ledger"]["judged"] == 5
    names = {each.name for each in tmp_path.iterdir()}
    assert {"out.parquet.old", "out.parquet.jsonl.old", "out.parquet.old.manifest.json"} <= names


def test_a_table_beside_the_output_has_the_same_outcomes(cli: Cli, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", [pair(n) for n in range(12)])
    out, beside = tmp_path / "out.jsonl", tmp_path / "beside.parquet"
    for limit in ("5", "12"):
        ran = cli("judge", source, "-o", out, "--sink", beside, *JUDGE, "--limit", limit)
        assert ran.code == 0
    ids = duckdb.connect().execute(f"select id from '{beside}'").fetchall()
    assert sorted(each[0] for each in ids) == sorted(each["id"] for each in rows_of(out))


def test_columns_and_split_may_stand_in_the_configuration(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    text = "prompt,left,right\nq,x,y\n"
    (folder / "train-0.csv").write_text(text)
    (folder / "test-0.csv").write_text(text + "q2,x,y\n")
    config = tmp_path / "dikast.toml"
    config.write_text(
        '[input]\nsplit = "test"\n[input.columns]\nquestion = "prompt"\n'
        'response_a = "left"\nresponse_b = "right"\n'
    )
    words = ("judge", folder, "-o", tmp_path / "out.jsonl", "--config", config, *JUDGE, "--json")
    assert cli(*words).summary["ledger"]["judged"] == 2
    ran = cli(*words, "--split", "train", "--fresh")
    assert ran.summary["ledger"]["judged"] == 1
    ran = cli(*words, "--columns", "question=promt")
    assert ran.code == 2
    assert "no column 'promt'" in ran.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "out.xlsx"), "the name does not say what to write"),
        (("-o", "out.parquet.gz"), "the name does not say what to write"),
        (("--columns", "question"), "'question' is not FIELD=COLUMN"),
        (("--columns", "question=a,question=b"), "the field 'question' stands twice"),
        (("--columns", "qestion=a"), "there is no field 'qestion'"),
        (("--split", "train"), "is a single file, so it has no split 'train'"),
        (("-o", "none/out.csv"), "none/out.csv: cannot be written: No such file or directory"),
        (("-o", "none/out.parquet"), "none/out.parquet: cannot be written"),
        (("--format", "nope"), "unknown format 'nope'"),
    ],
)
def test_what_cannot_be_converted_is_one_sentence(
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    source = write_rows(tmp_path / "in.jsonl", [pair(1)])
    ran = cli("convert", source, *words)
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1
    assert "defect" not in ran.err
    assert [each.name for each in tmp_path.iterdir()] == ["in.jsonl"]


def test_pairs_and_single_answers_do_not_share_a_table(cli: Cli, tmp_path: Path) -> None:
    one = write_rows(tmp_path / "a.jsonl", [pair(1)])
    two = write_rows(tmp_path / "b.jsonl", [{"id": "i", "question": "q", "response": "x"}])
    ran = cli("convert", one, two, "-o", tmp_path / "out.parquet")
    assert ran.code == 2
    assert re.search(r"b\.jsonl, line 1: pairs and single answers do not go into one", ran.err)
    assert not (tmp_path / "out.parquet").exists()
    assert cli("convert", one, two, "-o", tmp_path / "out.jsonl").code == 0


def test_a_line_that_is_no_outcome_is_named_and_the_others_are_converted(
    cli: Cli, tmp_path: Path
) -> None:
    rows = [{"kind": "verdict", "id": "1", "winner": "A"}, {"kind": "verdict", "id": "2"}]
    source = write_rows(tmp_path / "in.jsonl", rows)
    ran = cli("convert", source, "-o", tmp_path / "out.csv")
    assert ran.code == 1
    assert "in.jsonl:2: is not an outcome written by dikast judge" in ran.err
    assert (tmp_path / "out.csv").read_text().count("\n") == 2


def test_outcomes_are_no_pairs_and_no_table_is_a_journal(cli: Cli, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", [pair(n) for n in range(3)])
    out = tmp_path / "out.parquet"
    cli("judge", source, "-o", out, *JUDGE)
    ran = cli("judge", out, "-o", tmp_path / "again.jsonl", *JUDGE)
    assert ran.code == 2
    assert "holds outcomes of dikast judge and no pairs" in ran.err
    ran = cli("calibrate", out, "-o", tmp_path / "cal.json")
    assert ran.code == 2
    assert f"name the journal beside it ({out}.jsonl)" in ran.err


_PEAK = """
import asyncio, re, sys
from dikast.engine.sources import FileSource

async def main():
    rows = 0
    async for batch in FileSource(sys.argv[1]).batches():
        rows += len(batch)
    # Not ru_maxrss: a child inherits that from the process that started it.
    print(rows, int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) >> 10)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_input(tmp_path: Path, kind: str) -> None:
    peaks_mib = []
    for rows in (20_000, 80_000):
        path = tmp_path / f"{rows}.{kind}"
        options = "format parquet, row_group_size 20000" if kind == "parquet" else "format csv"
        duckdb.connect().execute(
            "copy (select i as id, 'q' || i as question, repeat(md5(i::text), 30) as response_a, "
            f"repeat(md5((i + 1)::text), 30) as response_b from range({rows}) t(i)) to '{path}' "
            f"({options})"
        )
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, str(path)], capture_output=True, text=True, check=True
        )
        read, peak_mib = map(int, done.stdout.split())
        assert read == rows
        peaks_mib.append(peak_mib)
    # 115 MB of text more.
    assert peaks_mib[1] - peaks_mib[0] < 60, peaks_mib


def test_rows_are_counted_where_it_is_cheap(cli: Cli, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", [pair(n) for n in range(7)])
    cli("convert", source, "-o", tmp_path / "in.parquet")
    cli("convert", source, "-o", tmp_path / "in.csv")
    table = str(tmp_path / "in.parquet")
    assert count_rows([table]) == 7
    assert count_rows([table, str(source)]) == 14
    assert count_rows([str(source)], limit=3) == 3
    assert count_rows([str(tmp_path)]) is None  # the CSV file would have to be read
    assert count_rows([str(tmp_path / "none")]) is None
    assert count_rows(["-"]) is None
