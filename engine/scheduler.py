"""The bounded heart: a fixed pool of workers, one pair each, from the intake to the sink.

The number of tasks is the number of workers, whatever the length of the input. Here is the pair
boundary, the one place of the engine that catches every exception: a strategy that breaks on a
pair makes that pair `Failed` and stops nobody else. Knows no HTTP and no files.
"""

import asyncio
from typing import Any

import msgspec

from dikast.engine.delivery import Delivery
from dikast.engine.errors import ConfigError, HandedBack, ProviderError, RunStopped
from dikast.engine.events import Events, PairDone
from dikast.engine.gateway import Gateway, PairAsk
from dikast.engine.intake import Intake, Work, place_of
from dikast.engine.ledger import LedgerBook
from dikast.engine.model import Failed, Item, Outcome, Pair, Row, Scored, Subject, Undecided
from dikast.engine.ports import Ask, Clock, ItemStrategy, Strategy


class Scheduler:
    """Judges pairs with a bounded number of workers.

    Args:
        strategy: how a pair becomes an outcome.
        gateway: answers the strategy's calls.
        clock: time, for durations.
        events: where outcomes are announced.
        spec: the hash that every outcome carries.
        simulated: True when any answer comes from a simulated judge; every outcome says so.
    """

    def __init__(
        self,
        strategy: Strategy,
        gateway: Gateway,
        *,
        clock: Clock,
        events: Events,
        spec: str,
        simulated: bool,
    ) -> None:
        self._strategy = strategy
        self._gateway = gateway
        self._clock = clock
        self._events = events
        self._spec = spec
        self._simulated = simulated

    async def judge(self, subject: Subject, row: Row | None = None, priority: int = 0) -> Outcome:
        """One pair or item to its outcome, complete with bill and provenance.

        Raises:
            RunStopped: it was not judged and stays open.
            ConfigError: the strategy and the configuration do not fit each other.
        """
        ask = PairAsk(self._gateway, priority)
        try:
            outcome = await self._put(subject, ask, row)
        except (RunStopped, ConfigError):
            raise
        except ProviderError as error:
            outcome = _from_error(subject, error)
        except Exception as error:  # the pair boundary: a defect costs one pair, not the run
            outcome = Failed(
                id=subject.id,
                reason="bug",
                message=f"{type(error).__name__} in strategy {self._strategy.name}: {error}",
            )
        return msgspec.structs.replace(
            _named(outcome, subject),
            usage=ask.usage or outcome.usage,
            cost_usd=ask.cost_usd,
            calls=ask.calls,
            stored_calls=ask.stored_calls,
            strategy=self._strategy.name,
            spec=self._spec,
            simulated=self._simulated or ask.simulated,
            category=subject.category,
            meta=subject.meta,
            file=(row.file or None) if row else None,
            line=(row.line or None) if row else None,
        )

    async def _put(self, subject: Subject, ask: Ask, row: Row | None) -> Outcome:
        """Hand it to the strategy; a single answer that it cannot take costs nothing and says so.

        "bad_row", because nothing but another input or another strategy will help.
        """
        strategy = self._strategy
        if isinstance(subject, Pair):
            return await strategy.judge(subject, ask)
        if isinstance(strategy, ItemStrategy) and strategy.takes_items():
            return await strategy.judge_item(subject, ask)
        place = place_of(row) if row is not None and (row.file or row.line) else subject.id
        return Failed(
            id=subject.id,
            reason="bad_row",
            message=f"{place}: holds a single answer, and the strategy {strategy.name} compares "
            "two; score it with --strategy score, or give response_a and response_b",
        )

    async def work(
        self, intake: Intake, book: LedgerBook, delivery: Delivery, desk: "Desk"
    ) -> None:
        """One worker: take, judge, write, book, until the intake has no more.

        Raises:
            SinkError: the outcome cannot be written.
        """
        watched = self._events.active
        while (work := intake.take() or await intake.next()) is not None:
            started_s = self._clock.now() if watched else 0.0
            try:
                if work.subject is None:
                    outcome: Outcome = self._known(work)
                else:
                    task = desk.sit_down()
                    try:
                        outcome = await self.judge(work.subject, work.row, work.ordinal)
                    finally:
                        desk.get_up(task)
            except RunStopped:
                book.leave_unrun()
                delivery.skip(work.turn)
                intake.close()
                continue
            except BaseException:
                book.leave_unrun()
                delivery.skip(work.turn)
                raise
            try:
                await delivery.write(work.turn, outcome)
            except HandedBack:
                book.hand_back()
                continue
            except BaseException:
                book.leave_unrun()
                raise
            book.book(outcome)
            if watched:
                self._events.emit(
                    PairDone(outcome=outcome, duration_s=self._clock.now() - started_s)
                )

    def _known(self, work: Work) -> Failed:
        assert work.known is not None
        return msgspec.structs.replace(
            work.known,
            spec=self._spec,
            strategy=self._strategy.name,
            simulated=self._simulated,
        )

    def __repr__(self) -> str:
        return f"Scheduler({self._strategy.name}, {self._gateway!r})"


def _from_error(subject: Subject, error: ProviderError) -> Outcome:
    """A judge that declined has answered, in its way; everything else is a failure."""
    beside: dict[str, Any] = {"id": subject.id, "votes": error.votes, "parts": error.parts}
    if error.kind == "refused":
        return Undecided(why="refused", detail=error.message, **beside)
    return Failed(reason=error.kind, message=error.message, attempts=error.attempts, **beside)


def _named(outcome: Outcome, subject: Subject) -> Outcome:
    """The outcome with what is known of whose answers these are, and of what people said."""
    if isinstance(subject, Item):
        if isinstance(outcome, Scored):
            return msgspec.structs.replace(outcome, model=subject.model, grade=subject.grade)
        return outcome
    return msgspec.structs.replace(
        outcome, label=subject.label, model_a=subject.model_a, model_b=subject.model_b
    )


class Desk:
    """Knows which workers are judging, so that a cancel never hits one that is writing."""

    def __init__(self) -> None:
        self._judging: set[asyncio.Task[Any]] = set()
        self.cancelled = False

    def sit_down(self) -> "asyncio.Task[Any]":
        """The current worker begins to judge; a cancel that came meanwhile stops it here.

        Raises:
            RunStopped: the run is being cancelled.
        """
        if self.cancelled:
            raise RunStopped("interrupted", "the run is being cancelled")
        task = asyncio.current_task()
        assert task is not None
        self._judging.add(task)
        return task

    def get_up(self, task: "asyncio.Task[Any]") -> None:
        """The worker has its outcome, or has been stopped."""
        self._judging.discard(task)

    def cancel(self) -> None:
        """Cancel every judgement that is under way; outcomes being written are left alone."""
        self.cancelled = True
        for task in tuple(self._judging):
            task.cancel("the run is being cancelled")
