"""The Parquet output: what other programs see in it, and what a crash leaves."""

import errno
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pyarrow.parquet
import pytest

from dikast.engine.errors import ConfigError, SinkError
from dikast.engine.model import Failed, Outcome, Part, Scored, Undecided, Usage, Verdict, Vote
from dikast.engine.tables import OUTCOME_TABLE
from dikast.sinks import ParquetSink, build, parquet, scan_output

OUTCOMES: list[Outcome] = [
    Verdict(
        id="one",
        winner="A",
        basis="agree",
        confidence=0.75,
        scores={"A.total": 8.0, "B.total": 3.5},
        votes=(
            Vote(judge="j", order="ab", pick="A", probabilities={"A": 0.9, "B": 0.1}),
            Vote(judge="j", order="ba", pick="tie", why="中文"),
        ),
        parts=(Part(name="swap", pick="A", parts=(Part(name="x", pick="B"),)),),
        usage=Usage(input=10, output=2),
        cost_usd=0.5,
        calls=2,
        label="B",
        meta={"set": "dev", "deep": {"n": [1, 2]}},
        line=7,
    ),
    Undecided(id="two", why="unparsed"),
    Failed(id="three", reason="timeout", message="no answer", attempts=3),
    Scored(id="four", scores={"clarity": 4.0}, grade=5.0),
]


async def written(path: Path) -> Path:
    sink = ParquetSink(path)
    for outcome in OUTCOMES:
        await sink.write(outcome)
    await sink.aclose()
    return path


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def ask(query: str) -> list[tuple[Any, ...]]:
    return duckdb.connect().execute(query).fetchall()


async def test_duckdb_reads_types_votes_scores_and_meta(tmp_path: Path) -> None:
    path = await written(tmp_path / "out.parquet")
    typed = dict(ask(f"select column_name, column_type from (describe from '{path}')"))
    assert typed["calls"] == "BIGINT"
    assert typed["confidence"] == "DOUBLE"
    assert typed["simulated"] == "BOOLEAN"
    assert typed["scores"] == "MAP(VARCHAR, DOUBLE)"
    assert typed["votes"].startswith('STRUCT(judge VARCHAR, "order" VARCHAR, pick VARCHAR')
    assert typed["votes"].endswith("[]")
    votes = ask(
        f"select id, v.order, v.pick, v.why, v.probabilities['A'] "
        f"from '{path}', unnest(votes) as t(v)"
    )
    assert votes == [("one", "ab", "A", None, 0.9), ("one", "ba", "tie", "中文", None)]
    assert ask(f"select kind, count(*) from '{path}' group by 1 order by 1") == [
        ("failed", 1), ("scored", 1), ("undecided", 1), ("verdict", 1),
    ]  # fmt: skip
    assert ask(
        f"select scores['A.total'], usage.input, cost_usd, line, winner, label from '{path}' "
        "where kind = 'verdict'"
    ) == [(8.0, 10, 0.5, 7, "A", "B")]
    assert ask(f"select winner, attempts, reason from '{path}' where id = 'three'") == [
        (None, 3, "timeout")
    ]
    (meta, parts) = ask(f"select meta, parts from '{path}' where id = 'one'")[0]
    assert json.loads(meta) == {"set": "dev", "deep": {"n": [1, 2]}}
    assert json.loads(parts)[0]["parts"] == [{"name": "x", "pick": "B"}]


async def test_pandas_reads_the_same(tmp_path: Path) -> None:
    frame = pandas.read_parquet(await written(tmp_path / "out.parquet"))
    assert list(frame["id"]) == ["one", "two", "three", "four"]
    assert [vote["pick"] for vote in frame["votes"][0]] == ["A", "tie"]
    assert frame["confidence"].isna().tolist() == [False, True, True, True]
    assert dict(frame["scores"][3]) == {"clarity": 4.0}


async def test_rows_are_written_in_groups(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    writer = parquet.TableWriter(path, OUTCOME_TABLE, group_rows=2048)
    for number in range(5000):
        writer.add(Undecided(id=str(number), why="refused"))
    writer.close()
    found = pyarrow.parquet.ParquetFile(path)
    groups = [found.metadata.row_group(at).num_rows for at in range(found.num_row_groups)]
    assert groups == [2048, 2048, 904]
    assert found.read(["id"])["id"].to_pylist() == [str(number) for number in range(5000)]


_KILLED = """
import asyncio, os, sys
from dikast.engine.model import Failed, Undecided, Verdict
from dikast.sinks import ParquetSink

async def main():
    sink = ParquetSink(sys.argv[1])
    await sink.write(Verdict(id="one", winner="A"))
    await sink.write(Undecided(id="two", why="unparsed"))
    await sink.write(Failed(id="three", reason="timeout", message="no answer"))
    await sink.flush()
    os._exit(9)

asyncio.run(main())
"""


def killed_run(path: Path) -> None:
    """A process that writes three outcomes and dies, with half a line behind them."""
    subprocess.run([sys.executable, "-c", _KILLED, str(path)], check=False)
    with path.with_name("out.parquet.jsonl").open("ab") as file:
        file.write(b'{"kind":"verdict","id":"torn')


@pytest.mark.realtime
async def test_a_run_that_is_killed_leaves_the_journal_and_the_next_one_goes_on(
    tmp_path: Path,
) -> None:
    path, journal = tmp_path / "out.parquet", tmp_path / "out.parquet.jsonl"
    killed_run(path)
    assert names_in(tmp_path) == ["out.parquet.jsonl"]

    scan = scan_output(journal)
    assert scan is not None
    assert scan.is_done("one")
    again = ParquetSink(path, resume=scan)
    await again.write(Verdict(id="three", winner="B"))
    await again.aclose()

    assert ask(f"select id, kind, winner from '{path}'") == [
        ("one", "verdict", "A"), ("two", "undecided", None), ("three", "verdict", "B"),
    ]  # fmt: skip


async def test_a_further_table_keeps_what_earlier_runs_wrote(tmp_path: Path) -> None:
    path = await written(tmp_path / "out.parquet")
    sink = build(path)
    await sink.write(Verdict(id="three", winner="tie"))
    await sink.aclose()
    assert ask(f"select id, kind from '{path}'") == [
        ("one", "verdict"), ("two", "undecided"), ("four", "scored"), ("three", "verdict"),
    ]  # fmt: skip


async def test_a_table_that_cannot_be_written_leaves_the_old_one_and_the_outcomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await written(tmp_path / "out.parquet")
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    sink = ParquetSink(path)
    await sink.write(Verdict(id="five", winner="A"))
    monkeypatch.setattr(parquet.TableWriter, "add", full)
    with pytest.raises(SinkError, match=r"No space left.*dikast convert .*out\.parquet\.jsonl -o"):
        await sink.aclose()
    assert path.read_bytes() == before
    assert b'"five"' in (tmp_path / "out.parquet.jsonl").read_bytes()
    assert names_in(tmp_path) == ["out.parquet", "out.parquet.jsonl"]


async def test_without_pyarrow_it_is_one_clear_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> object:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(parquet, "import_module", absent)
    with pytest.raises(ConfigError, match=r"pip install 'dikast\[parquet\]'"):
        ParquetSink(tmp_path / "out.parquet")
    assert names_in(tmp_path) == []
