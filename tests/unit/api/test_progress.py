"""What the progress line says."""

import asyncio
import io

import pytest

from dikast.engine.clock import ManualClock
from dikast.engine.events import CallDone, CallRetried, KeyPaused, PairDone, RunStopping
from dikast.engine.model import Failed, Undecided, Verdict
from dikast.engine.ports import PacerStats
from dikast.progress import Progress, ProgressWriter, StageProgress, bar, drawn, duration


def _progress(**kwargs: int) -> tuple[Progress, ManualClock]:
    clock = ManualClock(100.0)
    progress = Progress(clock, **kwargs)
    progress.start()
    return progress, clock


def _done(progress: Progress, count: int) -> None:
    for number in range(count):
        progress(PairDone(outcome=Verdict(id=str(number), winner="A"), duration_s=0.1))


def test_rates_eta_and_money_are_told() -> None:
    progress, clock = _progress(total=100, already=20)
    _done(progress, 40)
    for _ in range(80):
        progress(
            CallDone(
                key="k", pacer="p", pair_id="1", latency_s=0.1, from_store=False, cost_usd=0.001
            )
        )
    clock.now_s += 10

    line = progress.line(in_flight=7)

    assert line == ("60/100 pairs | 4.0 pairs/s | 8.0 calls/s | 7 in flight | $0.0800 | ETA 10 s")


def test_failed_undecided_retried_and_stored_are_told_apart() -> None:
    progress, clock = _progress()
    progress(PairDone(outcome=Failed(id="1", reason="timeout", message="m"), duration_s=1))
    progress(PairDone(outcome=Undecided(id="2", why="unparsed"), duration_s=1))
    progress(
        CallRetried(key="k", pacer="p", pair_id="1", kind="rate", attempt=1, wait_s=1, spent=False)
    )
    progress(CallDone(key="k", pacer="p", pair_id="1", latency_s=0, from_store=True, cost_usd=0.5))
    clock.now_s += 1

    line = progress.line()

    for part in ("1 undecided", "1 failed", "1 retries", "1 calls from the store"):
        assert part in line
    assert "$" not in line  # what the store answers costs nothing now
    assert "ETA" not in line  # the total is not known


def test_a_paused_key_says_how_long_and_why() -> None:
    progress, _ = _progress()
    progress(KeyPaused(pacer="openai", wait_s=12, why="retry_after"))
    stats = PacerStats(
        name="openai", in_flight=0, concurrency=8, waiting={"retry_after": 3}, paused_s=11.6
    )

    line = progress.line([stats])

    assert "waiting 12 s for key openai (retry_after)" in line
    assert "3 queued" in line


def test_a_key_that_holds_back_for_its_rate_says_so() -> None:
    progress, _ = _progress()
    stats = PacerStats(
        name="openai", in_flight=2, concurrency=8, waiting={"requests": 5, "tokens": 1}
    )

    assert "key openai waits for the request rate" in progress.line([stats])


def test_a_stop_is_told() -> None:
    progress, _ = _progress()
    progress(RunStopping(reason="budget", message="m"))

    assert "stopping (budget)" in progress.line()


def test_the_bar_shows_the_share_and_needs_a_total() -> None:
    progress, _ = _progress(total=4)
    _done(progress, 1)

    assert bar(progress, 8) == "██░░░░░░  25% | "
    assert bar(_progress()[0], 8) == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")]
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


async def test_elsewhere_than_on_a_terminal_plain_lines_are_written() -> None:
    clock = ManualClock()

    class StopError(Exception):
        pass

    stream = io.StringIO()
    sleep = clock.sleep

    async def sleep_thrice(seconds: float) -> None:
        if clock.now_s >= 10:
            raise StopError
        await sleep(seconds)

    clock.sleep = sleep_thrice  # type: ignore[method-assign]
    progress = Progress(clock)
    progress.start()
    with pytest.raises(StopError):
        await asyncio.wait_for(
            ProgressWriter(progress, clock, stream, lambda: ((), 3)).run(), timeout=5
        )

    assert stream.getvalue().splitlines() == ["dikast: 0 pairs | 3 in flight"] * 2


def _asked(progress: Progress, *, from_store: bool) -> None:
    progress(
        CallDone(key="k", pacer="p", pair_id="1", latency_s=0, from_store=from_store, cost_usd=0.25)
    )


def test_each_stage_counts_for_itself_and_leaves_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = ManualClock(100.0)
    stages = StageProgress(clock, quiet=False)
    stages("draft", 0, 4)
    for _ in range(3):
        _asked(stages.counts, from_store=False)
    stages("draft", 2, 4)
    clock.now_s += 4
    assert stages.counts.line(in_flight=1) == (
        "draft 2/4 | 0.5/s | 0.8 calls/s | 1 in flight | $0.7500 | ETA 4 s"
    )
    assert bar(stages.counts, 8) == "████░░░░  50% | "
    _asked(stages.counts, from_store=True)
    stages("draft", 4, 4)
    stages("cluster", 3, 3)
    stages("summarise", 0, 3)
    _asked(stages.counts, from_store=True)
    stages("summarise", 3, 3)
    assert capsys.readouterr().err.splitlines() == [
        "dikast: draft 4/4 | 4 calls (1 from the store) | $0.7500 | 4 s",
        "dikast: cluster 3/3",
        "dikast: summarise 3/3 | 1 calls (1 from the store)",
    ]


def test_a_call_that_shares_an_answer_is_counted_by_the_bill(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Bill:
        calls = 5
        stored_calls = 3

    stages = StageProgress(ManualClock(), quiet=False)
    _asked(stages.counts, from_store=False)
    stages("draft", 4, 4, Bill())
    assert capsys.readouterr().err == "dikast: draft 4/4 | 5 calls (3 from the store)\n"


def test_stages_may_be_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    stages = StageProgress(ManualClock(), quiet=True)
    stages("draft", 4, 4)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("quiet", [False, True])
async def test_a_block_is_drawn_from_its_beginning_to_its_end(
    capsys: pytest.CaptureFixture[str], quiet: bool
) -> None:
    class YieldingClock(ManualClock):
        async def sleep(self, seconds: float) -> None:
            await super().sleep(seconds)
            await asyncio.sleep(0)

    progress = Progress(YieldingClock())
    before = asyncio.all_tasks()
    async with drawn(progress, lambda: ((), 2), quiet=quiet):
        for _ in range(3):
            await asyncio.sleep(0)
    said = capsys.readouterr().err.splitlines()
    assert set(said) == (set() if quiet else {"dikast: 0 pairs | 2 in flight"})
    assert asyncio.all_tasks() == before
