"""Live progress of a run on stderr: counts what the events say and draws it on a timer.

A terminal gets one live line, everything else a plain line every few seconds. A command of several
stages counts each by itself and leaves a line when it is over. Looks on from outside: knows no
strategy, no provider and no key, and a run without it is the same run.
"""

import asyncio
import contextlib
import math
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TextIO

from dikast.engine.events import (
    CallDone,
    CallRetried,
    Event,
    KeyPaused,
    PairDone,
    RunStopping,
)
from dikast.engine.model import Failed, Undecided
from dikast.engine.ports import Clock, PacerStats

if TYPE_CHECKING:
    from dikast.engine.run import Engine

LIVE_EVERY_S = 0.25
PLAIN_EVERY_S = 5.0

# How a pacer's reasons are told to people.
_WAITS = {
    "concurrency": "a free slot",
    "requests": "the request rate",
    "tokens": "the token rate",
    "retry_after": "retry_after",
    "shared": "its share of the rate",
}


class Progress:
    """Counts of one run. Synchronous and cheap: one `isinstance` chain an event.

    Args:
        clock: for rates; read when drawing, never per event.
        total: pairs in the input, if known.
        already: pairs that an earlier run has done.
    """

    def __init__(self, clock: Clock, *, total: int | None = None, already: int = 0) -> None:
        self.clock = clock
        self.total = total
        self.already = already
        self.stage = ""
        self.done = 0
        self.failed = 0
        self.first_failures: dict[str, Failed] = {}
        self.undecided = 0
        self.calls = 0
        self.stored_calls = 0
        self.retries = 0
        self.spent_usd = 0.0
        self.simulated = False
        self.stopping: str | None = None
        self.in_flight_name = "in flight"
        self.lag: Callable[[], int | None] | None = None
        self._pauses: dict[str, tuple[float, str]] = {}
        self._started_s: float | None = None

    def __call__(self, event: Event) -> None:
        """See `Observer`."""
        if isinstance(event, CallDone):
            if event.from_store:
                self.stored_calls += 1
            else:
                self.calls += 1
                self.spent_usd += event.cost_usd
        elif isinstance(event, PairDone):
            self.done += 1
            self.simulated = self.simulated or event.outcome.simulated
            if isinstance(event.outcome, Failed):
                self.failed += 1
                self.first_failures.setdefault(event.outcome.reason, event.outcome)
            elif isinstance(event.outcome, Undecided):
                self.undecided += 1
        elif isinstance(event, CallRetried):
            self.retries += 1
        elif isinstance(event, KeyPaused):
            self._pauses[event.pacer] = (self.clock.now() + event.wait_s, event.why)
        elif isinstance(event, RunStopping):
            self.stopping = event.reason

    def start(self) -> None:
        """The run begins now; rates count from here."""
        self._started_s = self.clock.now()

    def begin(self, stage: str, total: int) -> None:
        """A stage of a command of several begins: what is told is its own from here.

        Args:
            stage: its name, told instead of "pairs".
            total: of what it does.
        """
        self.stage, self.total = stage, total
        self.already = self.done = self.failed = self.undecided = 0
        self.calls = self.stored_calls = self.retries = 0
        self.spent_usd = 0.0
        self.start()

    def line(self, pacers: Sequence[PacerStats] = (), in_flight: int = 0) -> str:
        """Where the run stands, in one line without line breaks."""
        now_s = self.clock.now()
        elapsed_s = max(1e-9, now_s - (now_s if self._started_s is None else self._started_s))
        rate = self.done / elapsed_s
        finished = self.done + self.already
        total = f"/{self.total:,}" if self.total is not None else ""
        unit = "" if self.stage else " pairs"
        parts = [f"{self.stage} {finished:,}{total}{unit}".lstrip()]
        if self.done:
            parts.append(f"{_rate(rate)}{unit}/s")
        if self.calls:
            parts.append(f"{_rate(self.calls / elapsed_s)} calls/s")
        parts.append(f"{in_flight:,} {self.in_flight_name}")
        waiting = sum(sum(each.waiting.values()) for each in pacers)
        if waiting:
            parts.append(f"{waiting:,} queued")
        for count, name in (
            (self.undecided, "undecided"),
            (self.failed, "failed"),
            (self.retries, "retries"),
            (self.stored_calls, "calls from the store"),
        ):
            if count:
                parts.append(f"{count:,} {name}")
        if self.lag is not None and (lag := self.lag()) is not None:
            parts.append(f"lag {lag:,}")
        if self.spent_usd:
            parts.append(f"${self.spent_usd:,.4f}")
        if self.total is not None and rate > 0 and self.total > finished:
            parts.append(f"ETA {duration((self.total - finished) / rate)}")
        if self.stopping:
            parts.append(f"stopping ({self.stopping})")
        parts += self._waits(pacers, now_s)
        return " | ".join(parts)

    def result(self) -> str:
        """What became of a stage, in one line: counts, price and time instead of rates."""
        parts = [f"{self.stage} {self.done:,}/{self.total:,}"]
        if asked := self.calls + self.stored_calls:
            parts.append(f"{asked:,} calls ({self.stored_calls:,} from the store)")
        if self.retries:
            parts.append(f"{self.retries:,} retries")
        if self.spent_usd:
            parts.append(f"${self.spent_usd:,.4f}")
        elapsed_s = 0.0 if self._started_s is None else self.clock.now() - self._started_s
        if elapsed_s >= 1:
            parts.append(duration(elapsed_s))
        return " | ".join(parts)

    def _waits(self, pacers: Sequence[PacerStats], now_s: float) -> list[str]:
        out: list[str] = []
        for each in pacers:
            if each.note:
                out.append(f"key {each.name}: {each.note}")
            if each.paused_s > 0:
                why = self._pauses.get(each.name, (0.0, "retry_after"))[1]
                out.append(f"waiting {_left(each.paused_s)} for key {each.name} ({why})")
            elif each.waiting:
                reason = max(each.waiting, key=lambda name: each.waiting[name])
                if each.waiting[reason]:
                    out.append(f"key {each.name} waits for {_WAITS.get(reason, reason)}")
        if not pacers:
            for name, (until_s, why) in self._pauses.items():
                if until_s > now_s:
                    out.append(f"waiting {_left(until_s - now_s)} for key {name} ({why})")
        return out

    def __repr__(self) -> str:
        return f"Progress(done={self.done}, failed={self.failed}, calls={self.calls})"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _left(seconds: float) -> str:
    return duration(math.ceil(seconds))


def duration(seconds: float) -> str:
    """Seconds for people: 12 s, 3 min 20 s, 2 h 5 min."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class ProgressWriter:
    """Draws a `Progress` on a timer until cancelled.

    Args:
        progress: what to draw.
        clock: the timer.
        stream: usually stderr; a terminal gets a live line.
        state: returns the pacers' state and the number of calls in flight.
    """

    def __init__(
        self,
        progress: Progress,
        clock: Clock,
        stream: TextIO,
        state: Callable[[], tuple[Sequence[PacerStats], int]],
    ) -> None:
        self._progress = progress
        self._clock = clock
        self._stream = stream
        self._state = state
        self._live = stream.isatty()

    async def run(self) -> None:
        """Draw for ever; end it by cancelling."""
        if self._live:
            await self._run_live()
        else:
            while True:
                await self._clock.sleep(PLAIN_EVERY_S)
                self._stream.write(f"dikast: {self._line()}\n")
                self._stream.flush()

    async def _run_live(self) -> None:
        # rich costs 60 ms to import, and only a terminal needs it.
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console(file=self._stream)
        with Live(Text(self._line()), console=console, auto_refresh=False, transient=True) as live:
            while True:
                await self._clock.sleep(LIVE_EVERY_S)
                live.update(Text(self._barred(console.width)), refresh=True)

    def _barred(self, width: int) -> str:
        return f"{bar(self._progress, min(24, width // 4))}{self._line()}"

    def _line(self) -> str:
        pacers, in_flight = self._state()
        return self._progress.line(pacers, in_flight)

    def __repr__(self) -> str:
        return f"ProgressWriter(live={self._live})"


class Billed(Protocol):
    """What a stage has asked so far."""

    calls: int
    stored_calls: int


class StageProgress:
    """Progress of a command that asks in several stages; see `OnProgress` of a build.

    Args:
        clock: for rates and the timer.
        quiet: say nothing.
    """

    def __init__(self, clock: Clock, *, quiet: bool) -> None:
        self.counts = Progress(clock)
        self._quiet = quiet

    def __call__(self, stage: str, done: int, total: int, bill: Billed | None = None) -> None:
        """So much of a stage is done; what it costs is counted by `counts`.

        Args:
            stage: its name.
            done: of what it does.
            total: all of that.
            bill: its calls; they go above those of the events, which know nothing of a call that
                was answered together with another one.
        """
        if stage != self.counts.stage:
            self.counts.begin(stage, total)
        self.counts.done = done
        if bill is not None:
            self.counts.stored_calls = bill.stored_calls
            self.counts.calls = bill.calls - bill.stored_calls
        if done >= total and not self._quiet:
            # A live line is moved down by rich, which has the stream in its hands then.
            sys.stderr.write(f"dikast: {self.counts.result()}\n")
            sys.stderr.flush()

    def drawn(self, engine: "Engine") -> contextlib.AbstractAsyncContextManager[None]:
        """Draw while the block runs; `counts` must be an observer of the engine."""
        return drawn(self.counts, state_of(engine), quiet=self._quiet)

    def __repr__(self) -> str:
        return f"StageProgress({self.counts.stage}: {self.counts!r})"


@contextlib.asynccontextmanager
async def drawn(
    progress: Progress, state: Callable[[], tuple[Sequence[PacerStats], int]], *, quiet: bool
) -> AsyncGenerator[None, None]:
    """Progress is drawn on stderr while the block runs, and counted from its beginning.

    Args:
        progress: what to draw.
        state: as for `ProgressWriter`.
        quiet: draw nothing.
    """
    progress.start()
    if quiet:
        yield
        return
    drawing = asyncio.create_task(ProgressWriter(progress, progress.clock, sys.stderr, state).run())
    try:
        yield
    finally:
        drawing.cancel()
        await asyncio.gather(drawing, return_exceptions=True)


def state_of(engine: "Engine") -> Callable[[], tuple[Sequence[PacerStats], int]]:
    """Where an engine stands: its pacers, and the calls in flight."""

    def state() -> tuple[Sequence[PacerStats], int]:
        snapshot = engine.snapshot()
        return snapshot.pacers, snapshot.in_flight

    return state


def bar(progress: Progress, width: int) -> str:
    """A bar of `width` characters with a percentage, or nothing when the total is unknown."""
    if not progress.total or width < 8:
        return ""
    share = min(1.0, (progress.done + progress.already) / progress.total)
    full = int(share * width)
    return f"{'█' * full}{'░' * (width - full)} {share:>4.0%} | "
