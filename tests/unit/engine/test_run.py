"""The engine as a whole, over scripted providers in virtual time."""

import asyncio
import contextlib
from collections import Counter

import pytest

from dikast.engine.errors import (
    ConfigError,
    ErrorKind,
    ProviderError,
    RunStopped,
    SinkError,
    StoreError,
)
from dikast.engine.events import CallRetried, Event, PairDone
from dikast.engine.ledger import Ledger
from dikast.engine.model import (
    BadRow,
    Completion,
    Failed,
    Item,
    Outcome,
    Pair,
    Part,
    Prices,
    Row,
    Undecided,
    Verdict,
    Vote,
)
from dikast.engine.pacing import Limits
from dikast.engine.ports import Ask
from dikast.engine.run import Engine
from dikast.engine.sources import IterableSource
from dikast.engine.store import MemoryStore
from dikast.sinks.memory import MemorySink
from tests.unit.engine.worlds import OneCall, ScriptedProvider, pairs, storm

OPEN = {"p": Limits(concurrency_start=512)}


def engine_on(
    provider: ScriptedProvider,
    strategy: OneCall | None = None,
    *,
    store: MemoryStore | None = None,
    workers: int = 16,
    budget_usd: float | None = None,
    seen: list[Event] | None = None,
    drain_s: float = 30.0,
) -> Engine:
    return Engine(
        strategy or OneCall(),
        {"p": provider},
        limits=OPEN,
        store=store,
        workers=workers,
        budget_usd=budget_usd,
        drain_s=drain_s,
        observers=(seen.append,) if seen is not None else (),
    )


async def test_every_pair_is_judged_once_and_the_ledger_adds_up() -> None:
    provider, sink = ScriptedProvider(), MemorySink()
    async with engine_on(provider) as engine:
        report = await engine.run(IterableSource(pairs(200)), sink)
    assert report.complete
    assert report.ledger.judged == 200
    assert {outcome.id for outcome in sink.outcomes} == {f"p{i}" for i in range(200)}
    assert {outcome.spec for outcome in sink.outcomes} == {engine.spec}
    assert provider.closed


@pytest.mark.parametrize("seed", range(25))
async def test_a_storm_leaves_one_outcome_for_each_pair_and_a_ledger_that_adds_up(
    seed: int,
) -> None:
    provider, sink, seen = ScriptedProvider(storm(seed)), MemorySink(), list[Event]()
    store = MemoryStore()
    async with engine_on(provider, OneCall(calls=2), store=store, seen=seen) as engine:
        report = await engine.run(IterableSource(pairs(120)), sink)
    assert report.ledger.adds_up()
    assert report.complete
    assert Counter(outcome.id for outcome in sink.outcomes) == Counter(
        pair.id for pair in pairs(120)
    )
    assert max(provider.answered.values()) == 1, "a completion was paid twice"
    assert provider.peak <= 16
    assert report.requests_sent == provider.requests
    assert sum(isinstance(event, PairDone) for event in seen) == 120
    assert not any(e.spent for e in seen if isinstance(e, CallRetried) and e.kind == "rate")


async def test_live_tasks_are_bounded_by_the_workers_and_not_by_the_pairs() -> None:
    most = 0

    def count(call: object, times: int) -> float:
        nonlocal most
        most = max(most, len(asyncio.all_tasks()))
        return 0.1

    async with engine_on(ScriptedProvider(count), workers=8) as engine:
        await engine.run(IterableSource(pairs(500)), MemorySink())
    assert most <= 8 + 3


async def test_a_poison_pair_fails_alone() -> None:
    rows = [*pairs(3), Pair(id="bad", question="q", response_a="poison", response_b="b")]
    sink = MemorySink()
    async with engine_on(ScriptedProvider()) as engine:
        report = await engine.run(IterableSource(rows), sink)
    assert report.ledger.judged == 3
    assert report.ledger.failed == {"bug": 1}
    failed = next(outcome for outcome in sink.outcomes if isinstance(outcome, Failed))
    assert "ZeroDivisionError" in failed.message


async def test_duplicate_ids_fail_and_name_both_places() -> None:
    class Rows:
        async def batches(self):  # type: ignore[no-untyped-def]
            one, two, three = pairs(3)
            yield [
                Row(item=one, file="in.jsonl", line=1),
                Row(item=two, file="in.jsonl", line=2),
                Row(item=one, file="more.jsonl", line=5),
                Row(
                    item=BadRow(message="no question", field="question"), file="more.jsonl", line=6
                ),
                Row(item=three, file="more.jsonl", line=7),
            ]

        async def aclose(self) -> None:
            return None

    sink = MemorySink()
    async with engine_on(ScriptedProvider()) as engine:
        report = await engine.run(Rows(), sink)
    assert report.ledger.failed == {"duplicate_id": 1, "bad_row": 1}
    assert report.ledger.judged == 3
    failed = {o.reason: o.message for o in sink.outcomes if isinstance(o, Failed)}
    assert "more.jsonl:5" in failed["duplicate_id"]
    assert "in.jsonl:1" in failed["duplicate_id"]
    assert failed["bad_row"] == "more.jsonl:6, field 'question': no question"


async def test_identical_calls_in_the_air_are_asked_once() -> None:
    same = [Pair(id=f"s{i}", question="the same", response_a="a", response_b="b") for i in range(9)]
    provider, sink = ScriptedProvider(lambda call, times: 1.0), MemorySink()
    async with engine_on(provider) as engine:
        report = await engine.run(IterableSource(same), sink)
    assert provider.requests == 1
    assert report.ledger.judged == 9
    assert report.ledger.stored_calls == 8


async def test_a_follower_takes_over_when_the_leader_is_cancelled() -> None:
    pair = pairs(1)[0]
    provider = ScriptedProvider(lambda call, times: 1.0)
    async with engine_on(provider) as engine:
        leader = asyncio.create_task(engine.judge_one(pair))
        await asyncio.sleep(0.5)
        follower = asyncio.create_task(engine.judge_one(pair))
        await asyncio.sleep(0.1)
        leader.cancel()
        outcome = await follower
    assert isinstance(outcome, Verdict)
    assert provider.requests == 2


async def test_half_a_strategy_resumes_with_the_missing_call_only() -> None:
    store = MemoryStore()
    first = ScriptedProvider(lambda call, times: 0.0 if call.sample == 0 else 1e6)
    async with engine_on(first, OneCall(calls=2), store=store) as engine:
        task = asyncio.create_task(engine.judge_one(pairs(1)[0]))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    second = ScriptedProvider()
    async with engine_on(second, OneCall(calls=2), store=store) as engine:
        outcome = await engine.judge_one(pairs(1)[0])
    assert second.requests == 1
    assert (outcome.calls, outcome.stored_calls) == (2, 1)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ProviderError("quota", "insufficient_quota"), "quota"),
        (ProviderError("auth", "401"), "auth"),
    ],
)
async def test_quota_and_key_stop_the_run_at_once_and_leave_the_rest_unrun(
    error: ProviderError, reason: str
) -> None:
    provider, sink = ScriptedProvider(lambda call, times: error), MemorySink()
    async with engine_on(provider, workers=4) as engine:
        report = await engine.run(IterableSource(pairs(1000)), sink)
    assert report.stopped == reason
    assert provider.requests <= 4
    assert sink.outcomes == []
    assert report.ledger.adds_up()
    assert report.ledger.not_run == report.ledger.input


async def test_a_dead_provider_stops_the_run_instead_of_failing_every_pair() -> None:
    provider = ScriptedProvider(lambda call, times: ProviderError("transient", "refused"))
    sink = MemorySink()
    async with engine_on(provider) as engine:
        report = await engine.run(IterableSource(pairs(10_000)), sink)
    assert report.stopped == "dead"
    assert report.ledger.adds_up()
    assert 0 < report.ledger.failed["transient"] < 40
    assert provider.requests < 400


async def test_a_refusal_is_undecided_and_a_timeout_is_failed() -> None:
    def script(call: object, times: int) -> ProviderError | float:
        pair_id = getattr(call, "pair_id", "")
        if pair_id == "p0":
            return ProviderError("refused", "content filter")
        return ProviderError("timeout", "no answer in 120 s") if pair_id == "p1" else 0.0

    sink = MemorySink()
    async with engine_on(ScriptedProvider(script)) as engine:
        report = await engine.run(IterableSource(pairs(3)), sink)
    ledger = report.ledger
    assert (ledger.judged, ledger.undecided, ledger.failed) == (1, {"refused": 1}, {"timeout": 1})


async def test_the_budget_holds_with_calls_in_flight_and_the_run_is_resumable() -> None:
    prices = Prices(input=1000.0, output=1000.0)  # a tenth of a dollar a call
    provider, sink = ScriptedProvider(lambda call, times: 1.0), MemorySink()
    async with engine_on(provider, OneCall(prices=prices), budget_usd=5.0) as engine:
        report = await engine.run(IterableSource(pairs(500)), sink)
    assert report.stopped == "budget"
    assert report.ledger.spent_usd <= 5.0
    assert report.ledger.judged >= 30
    assert report.ledger.spent_usd == pytest.approx(report.ledger.judged * 0.11)
    assert report.ledger.adds_up()


async def test_the_first_signal_drains_and_open_pairs_are_finished() -> None:
    provider, sink = ScriptedProvider(lambda call, times: 5.0), MemorySink()
    async with engine_on(provider, workers=4) as engine:
        task = asyncio.create_task(engine.run(IterableSource(pairs(100)), sink))
        await asyncio.sleep(7)
        engine.drain()
        report = await task
    assert report.stopped == "interrupted"
    assert report.ledger.judged == 8
    assert report.ledger.not_run == 0
    assert report.ledger.adds_up()
    assert asyncio.get_running_loop().time() == pytest.approx(10.0)


async def test_the_second_signal_cancels_at_once_and_the_ledger_still_adds_up() -> None:
    provider, sink = ScriptedProvider(lambda call, times: 500.0), MemorySink()
    async with engine_on(provider, workers=4) as engine:
        task = asyncio.create_task(engine.run(IterableSource(pairs(100)), sink))
        await asyncio.sleep(1)
        engine.drain()
        await asyncio.sleep(1)
        engine.cancel()
        report = await task
    assert report.ledger.not_run == 4
    assert report.ledger.adds_up()
    assert asyncio.get_running_loop().time() == pytest.approx(2.0)


async def test_a_drain_that_takes_too_long_becomes_a_cancel() -> None:
    provider = ScriptedProvider(lambda call, times: 500.0)
    async with engine_on(provider, workers=4, drain_s=10) as engine:
        task = asyncio.create_task(engine.run(IterableSource(pairs(100)), MemorySink()))
        await asyncio.sleep(1)
        engine.drain()
        report = await task
    assert report.ledger.not_run == 4
    assert asyncio.get_running_loop().time() == pytest.approx(11.0)


async def test_a_decided_outcome_is_written_even_while_the_run_is_being_cancelled() -> None:
    class SlowSink(MemorySink):
        async def write(self, outcome: Outcome) -> None:
            await asyncio.sleep(3)
            await super().write(outcome)

    sink = SlowSink()
    async with engine_on(ScriptedProvider(), workers=2) as engine:
        task = asyncio.create_task(engine.run(IterableSource(pairs(50)), sink))
        await asyncio.sleep(1)
        engine.cancel()
        report = await task
    assert len(sink.outcomes) == report.ledger.judged == 2
    assert report.ledger.adds_up()


async def test_a_full_disk_stops_the_run_with_its_reason_and_the_ledger_adds_up() -> None:
    class FullSink(MemorySink):
        async def write(self, outcome: Outcome) -> None:
            if len(self.outcomes) == 5:
                raise SinkError("out.jsonl: no space left on device")
            await super().write(outcome)

    sink = FullSink()
    async with engine_on(ScriptedProvider()) as engine:
        report = await engine.run(IterableSource(pairs(100)), sink)
    assert report.stopped == "sink"
    assert "no space left" in (report.message or "")
    assert report.ledger.judged == 5
    assert report.ledger.adds_up()


async def test_what_an_earlier_run_has_done_is_skipped_and_counted() -> None:
    provider, sink = ScriptedProvider(), MemorySink()
    async with engine_on(provider) as engine:
        report = await engine.run(
            IterableSource(pairs(10)), sink, is_done=lambda id: id in {"p1", "p2"}
        )
    assert (report.ledger.skipped, report.ledger.judged) == (2, 8)
    assert report.complete


async def test_a_limit_reads_no_more_rows_than_that() -> None:
    async with engine_on(ScriptedProvider()) as engine:
        report = await engine.run(IterableSource(pairs(100)), MemorySink(), limit=7)
    assert report.ledger.input == report.ledger.judged == 7


async def test_a_stream_yields_every_outcome_and_leaving_it_early_cancels_the_rest() -> None:
    provider = ScriptedProvider(lambda call, times: 1.0)
    async with engine_on(provider, workers=4) as engine:
        every = [outcome.id async for outcome in engine.judge(pairs(30))]
        assert sorted(every) == sorted(pair.id for pair in pairs(30))
        async with contextlib.aclosing(engine.judge(pairs(1000))) as stream:
            async for _ in stream:
                break
    assert provider.requests < 60
    assert provider.in_flight == 0


async def test_a_stream_that_must_stop_says_so_after_its_outcomes() -> None:
    def script(call: object, times: int) -> ProviderError | float:
        return ProviderError("quota", "used up") if getattr(call, "pair_id", "") == "p5" else 0.0

    got: list[str] = []

    async def collect(engine: Engine) -> None:
        async for outcome in engine.judge(pairs(30)):
            got.append(outcome.id)

    async with engine_on(ScriptedProvider(script), workers=1) as engine:
        with pytest.raises(RunStopped, match="quota"):
            await collect(engine)
    assert got == ["p0", "p1", "p2", "p3", "p4"]


async def test_another_strategy_has_another_spec() -> None:
    one = engine_on(ScriptedProvider(), OneCall(version=1))
    two = engine_on(ScriptedProvider(), OneCall(version=2))
    assert one.spec != two.spec
    assert len(one.spec) == 16


def test_a_ledger_that_is_off_says_so() -> None:
    ledger = Ledger(input=10, judged=7, skipped=1)
    assert not ledger.adds_up()
    assert "DOES NOT ADD UP: 8 of 10" in ledger.lines()[-1]


async def test_a_stored_answer_is_used_even_when_the_quota_is_gone() -> None:
    store = MemoryStore()
    async with engine_on(ScriptedProvider(), store=store) as engine:
        await engine.judge_one(pairs(1)[0])
    broke = ScriptedProvider(lambda call, times: ProviderError("quota", "none left"))
    async with engine_on(broke, store=store) as engine:
        outcome = await engine.judge_one(pairs(1)[0])
    assert isinstance(outcome, Verdict)
    assert broke.requests == 0


async def test_text_that_is_no_verdict_costs_nobody_else() -> None:
    answer = Completion(text="[[B]]")
    async with engine_on(ScriptedProvider(lambda call, times: answer)) as engine:
        outcome = await engine.judge_one(pairs(1)[0])
    assert outcome.votes[0].pick == "B"


@pytest.mark.parametrize("broken", ["get", "put"])
async def test_a_broken_store_stops_the_run_and_nothing_is_used_that_is_not_kept(
    broken: str,
) -> None:
    class BrokenStore(MemoryStore):
        def get(self, key: str) -> Completion | None:
            if broken == "get":
                raise StoreError("calls.db: is damaged")
            return super().get(key)

        async def put(self, key: str, completion: Completion) -> None:
            raise StoreError("calls.db: the disk is full")

    sink = MemorySink()
    async with engine_on(ScriptedProvider(), store=BrokenStore(), workers=4) as engine:
        report = await engine.run(IterableSource(pairs(100)), sink)
    assert report.stopped == "store"
    assert sink.outcomes == []
    assert report.ledger.adds_up()
    assert report.ledger.not_run == report.ledger.input


async def test_a_stop_sends_home_at_once_those_who_wait_for_a_slow_key() -> None:
    def script(call: object, times: int) -> ProviderError | float:
        return ProviderError("quota", "used up") if getattr(call, "pair_id", "") == "p1" else 0.0

    engine = Engine(
        OneCall(),
        {"p": ScriptedProvider(script)},
        limits={"p": Limits(requests_per_min=1)},
        workers=16,
    )
    async with engine:
        report = await engine.run(IterableSource(pairs(100)), MemorySink())
    assert report.stopped == "quota"
    # The second turn comes after a minute and finds the quota used up; fifteen are waiting.
    assert (report.ledger.judged, report.ledger.adds_up()) == (1, True)
    assert report.ledger.not_run == 16
    assert asyncio.get_running_loop().time() < 70


async def test_a_retry_after_beyond_all_patience_stops_the_run_resumably() -> None:
    refusal = ProviderError("rate", "too fast", retry_after_s=1e11)
    async with engine_on(ScriptedProvider(lambda call, times: refusal)) as engine:
        report = await engine.run(IterableSource(pairs(100)), MemorySink())
    assert report.stopped == "quota"
    assert report.ledger.adds_up()
    assert asyncio.get_running_loop().time() < 1.0


async def test_a_cancel_while_waiting_for_a_turn_stays_a_cancel() -> None:
    slow = {"p": Limits(requests_per_min=1)}
    async with Engine(OneCall(), {"p": ScriptedProvider()}, limits=slow) as engine:
        await engine.judge_one(pairs(1)[0])
        task = asyncio.create_task(engine.judge_one(pairs(2)[1]))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("seed", range(5))
async def test_ordered_outcomes_come_in_input_order_whatever_the_latencies(seed: int) -> None:
    sink = MemorySink()
    async with engine_on(ScriptedProvider(storm(seed))) as engine:
        report = await engine.run(
            IterableSource(pairs(100)), sink, is_done=lambda id: id in {"p3", "p50"}, ordered=True
        )
    assert report.complete
    assert [o.id for o in sink.outcomes] == [f"p{i}" for i in range(100) if i not in {3, 50}]


async def test_an_ordered_run_that_is_cancelled_writes_what_is_decided_and_adds_up() -> None:
    slow_first = ScriptedProvider(
        lambda call, times: 1e6 if getattr(call, "pair_id", "") == "p0" else 0.1
    )
    sink = MemorySink()
    async with engine_on(slow_first, workers=4) as engine:
        task = asyncio.create_task(engine.run(IterableSource(pairs(100)), sink, ordered=True))
        await asyncio.sleep(5)
        assert sink.outcomes == []
        engine.cancel()
        report = await task
    assert [outcome.id for outcome in sink.outcomes] == ["p1", "p2", "p3"]
    assert (report.ledger.judged, report.ledger.not_run) == (3, 1)
    assert report.ledger.adds_up()


class Quarrel:
    """A strategy whose error carries what was said beside it."""

    name = "quarrel@1"

    def __init__(self, kind: ErrorKind) -> None:
        self._kind: ErrorKind = kind

    def spec(self) -> dict[str, str]:
        return {"kind": "quarrel"}

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        vote, part = Vote(judge="j", order="ab", pick="A"), Part(name="m", pick="A")
        raise ProviderError(self._kind, "no").beside((vote,), (part,))


@pytest.mark.parametrize(("kind", "outcome"), [("timeout", Failed), ("refused", Undecided)])
async def test_a_failed_pair_shows_the_votes_that_stood_beside_the_failure(
    kind: ErrorKind, outcome: type
) -> None:
    async with Engine(Quarrel(kind), {"p": ScriptedProvider()}) as engine:
        found = await engine.judge_one(pairs(1)[0])
    assert isinstance(found, outcome)
    assert [vote.pick for vote in found.votes] == ["A"]
    assert [part.name for part in found.parts] == ["m"]


async def test_an_item_for_a_strategy_that_compares_fails_without_a_call() -> None:
    provider = ScriptedProvider()
    async with engine_on(provider) as engine:
        found = await engine.judge_one(Item(id="i", question="q", response="r"))
    assert isinstance(found, Failed)
    assert found.reason == "bad_row"
    assert found.message.startswith("i: holds a single answer, and the strategy one-call@1")
    assert provider.requests == 0


async def test_a_source_that_cannot_be_closed_well_still_leaves_an_account() -> None:
    class Topic(IterableSource):
        async def aclose(self) -> None:
            raise SinkError("topic: positions were not committed")

    sink = MemorySink()
    async with engine_on(ScriptedProvider()) as engine:
        report = await engine.run(Topic(pairs(3)), sink)
    assert (report.ledger.judged, len(sink.outcomes)) == (3, 3)
    assert (report.stopped, report.message) == ("sink", "topic: positions were not committed")


async def test_a_closed_engine_judges_nothing_and_says_so() -> None:
    provider = ScriptedProvider()
    async with engine_on(provider) as engine:
        assert isinstance(await engine.judge_one(next(iter(pairs(1)))), Verdict)
    asked = provider.requests

    with pytest.raises(ConfigError, match="engine is closed"):
        await engine.judge_one(next(iter(pairs(1))))
    with pytest.raises(ConfigError, match="engine is closed"):
        await anext(engine.judge(pairs(1)))
    with pytest.raises(ConfigError, match="engine is closed"):
        await engine.run(IterableSource(pairs(1)), MemorySink())
    assert provider.requests == asked
