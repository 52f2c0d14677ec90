"""FanoutSink: what happens when one of several sinks breaks; and `build`."""

import asyncio
from pathlib import Path

import pytest

from dikast.engine.errors import ConfigError, SinkError
from dikast.engine.model import Outcome, Verdict
from dikast.engine.ports import Sink
from dikast.sinks import FanoutSink, JsonlSink, MemorySink, build

ONE, TWO = Verdict(id="1", winner="A"), Verdict(id="2", winner="B")


class BrokenSink(MemorySink):
    async def write(self, outcome: Outcome) -> None:
        raise SinkError("broken")

    async def flush(self) -> None:
        raise SinkError("broken")


async def test_under_stop_the_last_sink_never_has_what_an_earlier_one_lacks() -> None:
    first, last = MemorySink(), MemorySink()
    fan = FanoutSink([first, BrokenSink(), last])
    with pytest.raises(SinkError, match="broken"):
        await fan.write(ONE)
    with pytest.raises(SinkError, match="broken"):
        await fan.flush()
    assert first.outcomes == [ONE]
    assert last.outcomes == []
    assert (first.flushes, last.flushes) == (1, 1)  # what they have is made durable all the same
    await fan.aclose()


async def test_two_writes_that_meet_the_same_break_drop_the_sink_once() -> None:
    class SlowlyBroken(MemorySink):
        async def write(self, outcome: Outcome) -> None:
            await asyncio.sleep(1)
            raise SinkError("broken")

    good, told = MemorySink(), list[str]()
    fan = FanoutSink(
        [SlowlyBroken(), good], broken=["drop", "stop"], on_drop=lambda _, e: told.append(str(e))
    )
    await asyncio.gather(fan.write(ONE), fan.write(TWO))
    assert told == ["broken"]
    assert len(good.outcomes) == 2


async def test_under_drop_the_broken_one_is_reported_once_and_the_rest_go_on() -> None:
    good, bad = MemorySink(), BrokenSink()
    told: list[tuple[Sink, str]] = []
    fan = FanoutSink(
        [bad, good], broken="drop", on_drop=lambda sink, error: told.append((sink, str(error)))
    )
    await fan.write(ONE)
    await fan.write(TWO)
    await fan.aclose()
    assert told == [(bad, "broken")]
    assert good.outcomes == [ONE, TWO]
    assert good.closed
    assert bad.closed


async def test_when_the_last_one_breaks_it_is_an_error() -> None:
    fan = FanoutSink([BrokenSink()], broken="drop")
    with pytest.raises(SinkError, match="no sink is left"):
        await fan.write(ONE)


async def test_all_are_closed_even_when_one_cannot_be() -> None:
    class Stuck(MemorySink):
        async def aclose(self) -> None:
            raise SinkError("stuck")

    good = MemorySink()
    with pytest.raises(SinkError, match="stuck"):
        await FanoutSink([Stuck(), good]).aclose()
    assert good.closed


async def test_build_makes_sinks_from_names(tmp_path: Path) -> None:
    assert isinstance(build("memory:"), MemorySink)
    for where in (tmp_path / "a.jsonl", f"jsonl:{tmp_path}/b.jsonl"):
        sink = build(where)
        assert isinstance(sink, JsonlSink)
        assert sink.path.exists()
        await sink.aclose()
    with pytest.raises(ConfigError, match=r"unknown kind 'ftp'; use a path, jsonl:PATH"):
        build("ftp://host/x")
    with pytest.raises(ConfigError, match="choose one"):
        build(tmp_path / "a.jsonl", fresh=True, resume=object())  # type: ignore[arg-type]
