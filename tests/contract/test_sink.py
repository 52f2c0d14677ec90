"""What every Sink promises, run over every implementation."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from dikast.engine.columns import Columns
from dikast.engine.errors import SinkError
from dikast.engine.model import Failed, Outcome, Undecided, Verdict, Vote
from dikast.engine.places import LocalTree, Place
from dikast.engine.ports import Sink
from dikast.engine.reading import read_place
from dikast.engine.tables import outcome_of
from dikast.sinks import FanoutSink, JsonlSink, MemorySink, ParquetSink

Made = tuple[Sink, Callable[[], list[Outcome]]]
OUTCOMES: list[Outcome] = [
    Verdict(
        id="one",
        winner="tie",
        basis="both_tie",
        votes=(Vote(judge="j", order="ab", pick="tie"), Vote(judge="j", order="ba", pick="tie")),
        meta={"text": "a\u2028b\u0085c\rd\ne", "set": "中文"},
        file="in.jsonl",
        line=3,
    ),
    Undecided(id="two", why="unparsed", votes=(Vote(judge="j", order="ab", pick="none"),)),
    Failed(id="three", reason="timeout", message="no answer", attempts=3),
]


def read_back(path: Path) -> list[Outcome]:
    data = path.read_bytes()
    assert not data or data.endswith(b"\n")
    return [msgspec.json.decode(line, type=Outcome) for line in data.split(b"\n")[:-1]]


def read_table(path: Path) -> list[Outcome]:
    """A table once it is there; until the sink is closed its journal stands for it."""
    if not path.exists():
        return read_back(path.with_name(path.name + ".jsonl"))
    place = Place(LocalTree(), str(path), str(path))
    rows = read_place(place, Columns(), row_bytes_max=1 << 20)
    return [outcome_of(row.raw) for some in rows for row in some if isinstance(row.raw, dict)]


@pytest.fixture(params=["memory", "jsonl", "fanout", "parquet"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    path = tmp_path / "out.jsonl"
    memory = MemorySink()
    if request.param == "memory":
        return memory, lambda: memory.outcomes
    if request.param == "parquet":
        table = tmp_path / "out.parquet"
        return ParquetSink(table), lambda: read_table(table)
    if request.param == "fanout":
        return FanoutSink([memory, JsonlSink(path)]), lambda: read_back(path)
    return JsonlSink(path), lambda: read_back(path)


async def test_what_was_written_is_there_after_a_flush(made: Made) -> None:
    sink, read = made
    for outcome in OUTCOMES:
        await sink.write(outcome)
    await sink.flush()
    assert sorted(read(), key=_id) == sorted(OUTCOMES, key=_id)
    await sink.aclose()


async def test_closing_flushes_and_may_be_done_twice(made: Made) -> None:
    sink, read = made
    for outcome in OUTCOMES:
        await sink.write(outcome)
    await sink.aclose()
    await sink.aclose()
    assert sorted(read(), key=_id) == sorted(OUTCOMES, key=_id)


async def test_a_closed_sink_takes_nothing_more(made: Made) -> None:
    sink, read = made
    await sink.aclose()
    with pytest.raises(SinkError, match="closed"):
        await sink.write(OUTCOMES[0])
    assert read() == []


def _id(outcome: Outcome) -> str:
    return outcome.id
