"""The live ranking is the ranking; following an output sees what a run appends."""

import asyncio
import json
from pathlib import Path

import pytest

from dikast.analysis.ranking import LiveRanking, RankSettings, battles_of, rank
from dikast.commands.rank_follow import follow_output
from dikast.engine.errors import InputError, SinkError
from dikast.engine.model import Failed, Verdict, Winner
from tests.sim.vloop import VirtualLoop

ROWS: list[tuple[str, str, Winner]] = [
    ("ant", "bee", "A"), ("bee", "cat", "tie"), ("cat", "ant", "B"), ("ant", "bee", "B"),
    ("bee", "cat", "A"),
]  # fmt: skip


class LoopClock:
    """The virtual loop as a clock."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def stamp(self) -> str:
        return ""


def verdict(place: int, row: tuple[str, str, Winner]) -> Verdict:
    return Verdict(id=str(place), model_a=row[0], model_b=row[1], winner=row[2])


def line(place: int, row: tuple[str, str, Winner]) -> str:
    return (
        json.dumps(
            {"kind": "verdict", "id": str(place), "winner": row[2], "model_a": row[0],
             "model_b": row[1]}
        )
        + "\n"
    )  # fmt: skip


async def test_as_a_sink_it_ends_where_the_ranking_of_all_battles_is() -> None:
    live = LiveRanking()
    assert live.rows() == ()
    for place, row in enumerate(ROWS):
        await live.write(verdict(place, row))
        live.rows()  # refits from the last strengths
    await live.write(Failed(id="x", reason="timeout", message="m"))
    await live.flush()
    await live.aclose()

    whole = rank(battles_of(list(ROWS)), RankSettings(ridge=0.01)).report
    assert [(each.model, each.battles) for each in live.rows()] == [
        (each.model, each.battles) for each in whole.models
    ]
    assert [each.rating for each in live.rows()] == pytest.approx(
        [each.rating for each in whole.models], abs=1e-4
    )
    assert live.left_out == {"without a verdict": 1}
    with pytest.raises(SinkError):
        await live.write(verdict(9, ROWS[0]))


def test_a_live_ranking_needs_a_penalty() -> None:
    with pytest.raises(InputError, match="above 0"):
        LiveRanking(ridge=0)


async def test_follow_sees_lines_as_they_come_and_ends_with_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(asyncio.get_running_loop(), VirtualLoop)
    out = tmp_path / "out.jsonl"
    following = asyncio.create_task(
        follow_output(out, LoopClock(), every_s=1.0, ridge=0.01, shape="json")
    )
    await asyncio.sleep(2.5)
    assert capsys.readouterr().out == ""
    first, second = line(0, ROWS[0]), line(1, ROWS[1])
    out.write_text(first + second[:20])
    await asyncio.sleep(1.0)
    assert battles(capsys) == [1]  # the second line is still being written
    out.write_text(first + second)
    await asyncio.sleep(1.0)
    assert battles(capsys) == [2]
    with out.open("a") as file:
        file.write(line(2, ROWS[2]))
    manifest = {"output": "out.jsonl", "spec": "s", "spec_tree": {}, "runs": [
        {"status": "complete", "started": "now"}]}  # fmt: skip
    (tmp_path / "out.jsonl.manifest.json").write_text(json.dumps(manifest))
    await asyncio.wait_for(following, 3.0)
    assert battles(capsys) == [3]


async def test_follow_starts_over_when_the_output_was_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, new = tmp_path / "out.jsonl", tmp_path / "new.jsonl"
    out.write_text("".join(line(place, row) for place, row in enumerate(ROWS)))
    following = asyncio.create_task(
        follow_output(out, LoopClock(), every_s=1.0, ridge=0.01, shape="json")
    )
    await asyncio.sleep(0.5)
    assert battles(capsys) == [5]
    new.write_text(line(0, ROWS[0]))
    new.replace(out)
    await asyncio.sleep(1.0)
    assert battles(capsys) == [1]
    out.write_text("this is no outcome\n" * 9)
    with pytest.raises(InputError, match=r"line 1.*--follow reads those|is not an outcome"):
        await asyncio.wait_for(following, 3.0)


def battles(capsys: pytest.CaptureFixture[str]) -> list[int]:
    return [json.loads(each)["battles"] for each in capsys.readouterr().out.splitlines()]
