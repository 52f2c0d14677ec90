"""One key, many workers: the key's local pacer in front of a limit that all of them share.

A call has passed `KeyPacer` (concurrency here, what headers and refusals taught) when it comes
here. Calls that wait are granted in blocks: one request to the shared limit reserves the requests
and the tokens of a whole block and is told when the block may go, so there is no request for each
call and nobody polls. A refusal seen by one worker pauses the key for all.

When the shared limit does not answer, this worker goes on with a safe share of it: the limit
divided by the workers that were last seen. Knows no Redis and no Ray; they are behind
`ports.SharedLimit`.
"""

import asyncio
import contextlib
import math
from collections import deque

from dikast.engine.buckets import PACE_SHARE
from dikast.engine.errors import ProviderError
from dikast.engine.events import Events, KeyPaused, LimitChanged
from dikast.engine.model import Record
from dikast.engine.pacing import KeyPacer, Leave
from dikast.engine.ports import (
    Clock,
    Lease,
    PacerStats,
    Permit,
    RateInfo,
    SharedLimit,
    SharedLimitGone,
)

# A block is so much of one second's requests: small enough for a pause to be met at once, large
# enough for twenty questions a second to be all that a worker asks.
BLOCK_S = 0.05

# What was left unused may be caught up with for so long, so that a late worker loses nothing.
CATCH_UP_S = 0.05

# A block of a key without a stated rate of requests.
_UNLIMITED_BLOCK = 64

# A block that waited longer than this asks again whether the key was paused meanwhile.
LOOK_AGAIN_S = 0.25

# Without a stated rate only pauses are shared; they are asked for this often.
PAUSE_LOOK_S = 0.5

# While the shared limit does not answer it is tried again this often.
RETRY_S = 1.0

# After it came back, workers that were seen before count for so long, seen again or not.
FORGET_S = 10.0


class Rates(Record, frozen=True):
    """What all workers together may send, per second; infinite where nothing is stated."""

    requests_per_s: float = math.inf
    tokens_per_s: float = math.inf

    def share(self, workers: int) -> "Rates":
        """What one of so many workers may send."""
        return Rates(
            requests_per_s=self.requests_per_s / workers, tokens_per_s=self.tokens_per_s / workers
        )


class Reservations:
    """The arithmetic of a shared limit, for one process: what the Lua script does in Redis.

    Two clocks run ahead of the present, one for requests and one for tokens; each reservation
    moves them on by what it takes, and may go when both had been reached before it; neither
    starts before a pause is over. (The generic
    cell rate algorithm, ITU-T I.371, with a block for a cell.)
    """

    def __init__(self) -> None:
        self._requests_s = -math.inf
        self._tokens_s = -math.inf
        self._paused_until_s = -math.inf

    def reserve(self, requests: int, tokens: int, rates: Rates, now_s: float) -> float:
        """Seconds until the block may go. Negative `tokens` gives back what was not used."""
        at_s = max(now_s, self._paused_until_s)
        earliest_s = max(now_s - CATCH_UP_S, self._paused_until_s)
        if requests and rates.requests_per_s < math.inf:
            start_s = max(self._requests_s, earliest_s)
            self._requests_s = start_s + requests / rates.requests_per_s
            at_s = max(at_s, start_s)
        if tokens and rates.tokens_per_s < math.inf:
            start_s = max(self._tokens_s, earliest_s)
            self._tokens_s = start_s + tokens / rates.tokens_per_s
            at_s = max(at_s, start_s)
        return max(0.0, at_s - now_s)

    def pause(self, wait_s: float, now_s: float) -> None:
        """Nobody sends for `wait_s`; the longest pause stays."""
        self._paused_until_s = max(self._paused_until_s, now_s + wait_s)

    def paused_s(self, now_s: float) -> float:
        """Seconds that the key is still paused."""
        return max(0.0, self._paused_until_s - now_s)


class MemoryLimit:
    """Implements `ports.SharedLimit` inside one process: the in-memory twin, and for several
    engines that use one key side by side.

    Args:
        clock: time; one for all engines.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._keys: dict[str, Reservations] = {}

    async def reserve(
        self, key: str, requests: int, tokens: int, requests_per_s: float, tokens_per_s: float
    ) -> Lease:
        """Reserve a block of calls. Source: `ports.SharedLimit.reserve`."""
        now_s = self._clock.now()
        held = self._keys.setdefault(key, Reservations())
        rates = Rates(requests_per_s=requests_per_s, tokens_per_s=tokens_per_s)
        return Lease(
            wait_s=held.reserve(requests, tokens, rates, now_s),
            paused_s=held.paused_s(now_s),
            workers=1,
        )

    async def pause(self, key: str, wait_s: float) -> None:
        """Pause the key for everybody. Source: `ports.SharedLimit.pause`."""
        self._keys.setdefault(key, Reservations()).pause(wait_s, self._clock.now())

    async def aclose(self) -> None:
        """Nothing to close."""


class SharedPacer:
    """Implements `ports.Pacer` over a `KeyPacer` and a `SharedLimit`; see the module.

    Args:
        local: the pacer of this worker's key.
        limit: what all workers share.
        clock: time; must run with the event loop's clock.
        events: where pauses and a lost shared limit are announced.
        workers: the fewest workers to reckon with when the shared limit is gone.
    """

    def __init__(
        self,
        local: KeyPacer,
        limit: SharedLimit,
        clock: Clock,
        events: Events,
        *,
        workers: int = 1,
    ) -> None:
        self._local = local
        self._limit = limit
        self._clock = clock
        self._events = events
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._sends: set[asyncio.Task[None]] = set()
        self._back_tokens = 0
        self._paused_until_s = -math.inf
        self._workers = max(1, workers)
        self._workers_min = max(1, workers)
        self._alone = Reservations()
        self._gone_since_s: float | None = None
        self._retry_at_s = -math.inf
        self._alone_s = 0.0
        self._times_gone = 0
        self._forget_at_s = -math.inf
        self._closed = False

    # ------------------------------------------------------------------ asking for leave

    async def acquire(self, tokens: int, priority: int) -> Permit:
        """Wait for leave here, then for leave from all. Source: `ports.Pacer.acquire`.

        Raises:
            ProviderError: kind "oversized": more tokens than the provider's whole minute.
        """
        while True:
            leave = await self._local.acquire(tokens, priority)
            try:
                await self._turn(tokens)
            except BaseException:
                self._local.release(leave, used_tokens=0)
                raise
            if self._local.snapshot().paused_s <= 0.0:
                # The wait for the others is no part of the provider's latency.
                leave.sent_s = self._clock.now()
                return leave
            self._back_tokens += tokens
            self._local.release(leave, used_tokens=0)

    async def _turn(self, tokens: int) -> None:
        if self._watch is None:
            self._watch = asyncio.create_task(self._watch_pauses())
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((tokens, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._grant())
            self._task.add_done_callback(self._granted)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._back_tokens += tokens
            raise

    async def _grant(self) -> None:
        """Grant block after block while calls wait."""
        while self._queue and not self._closed:
            rates = self._rates()
            block = self._block(rates)
            if not block:
                return
            tokens, self._back_tokens = sum(each for each, _ in block) - self._back_tokens, 0
            await self._wait_for(len(block), tokens, rates)
            for _, future in block:
                if not future.done():
                    future.set_result(None)
            # Those granted send, and may queue their next call, before the next block is cut.
            await self._clock.sleep(0)

    def _granted(self, task: "asyncio.Task[None]") -> None:
        """A defect in granting must not leave its callers waiting for ever."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        while self._queue:
            _, future = self._queue.popleft()
            if not future.done():
                future.set_exception(error)

    def _block(self, rates: Rates) -> list[tuple[int, "asyncio.Future[None]"]]:
        most = _UNLIMITED_BLOCK
        if rates.requests_per_s < math.inf:
            most = max(1, int(rates.requests_per_s * BLOCK_S))
        block: list[tuple[int, asyncio.Future[None]]] = []
        room = rates.tokens_per_s * BLOCK_S
        while self._queue and len(block) < most:
            tokens, future = self._queue[0]
            if future.done():
                self._queue.popleft()
                continue
            if block and tokens > room:
                break
            room -= tokens
            block.append(self._queue.popleft())
        return block

    async def _wait_for(self, requests: int, tokens: int, rates: Rates) -> None:
        """Reserve for a block, and wait until it may go and no pause is on."""
        while True:
            reserved_s = await self._reserve(requests, tokens, rates)
            wait_s = max(reserved_s, self._paused_until_s - self._clock.now())
            if wait_s > 0.0:
                await self._clock.sleep(wait_s)
            if wait_s > LOOK_AGAIN_S:
                await self._look()
            if self._paused_until_s <= self._clock.now():
                return
            # A pause came after the reservation. It is made anew, so that the blocks of all
            # workers do not go at once when the pause ends.

    async def _reserve(self, requests: int, tokens: int, rates: Rates) -> float:
        lease = await self._ask(requests, tokens, rates)
        if lease is not None:
            self._note_pause(lease.paused_s)
            return lease.wait_s
        # The local pacer keeps the whole limit; here it is the share.
        now_s = self._clock.now()
        self._alone.pause(self._paused_until_s - now_s, now_s)
        return self._alone.reserve(requests, tokens, rates.share(self._workers), now_s)

    async def _ask(self, requests: int, tokens: int, rates: Rates) -> Lease | None:
        """Ask the shared limit; None while it is gone."""
        now_s = self._clock.now()
        if self._gone_since_s is not None and now_s < self._retry_at_s:
            return None
        try:
            lease = await self._limit.reserve(
                self._local.name, requests, tokens, rates.requests_per_s, rates.tokens_per_s
            )
        except SharedLimitGone as error:
            self._lost(str(error))
            return None
        self._found(lease)
        return lease

    async def _look(self) -> None:
        """Ask only whether the key is paused."""
        lease = await self._ask(0, 0, self._rates())
        if lease is not None:
            self._note_pause(lease.paused_s)

    async def _watch_pauses(self) -> None:
        """Hear of a pause that others met, also while nothing is reserved here."""
        # The flag, because a client library may take a cancellation for its own timeout.
        while not self._closed:
            await self._clock.sleep(PAUSE_LOOK_S)
            await self._look()

    def _note_pause(self, paused_s: float) -> None:
        until_s = self._clock.now() + paused_s
        if paused_s <= 0.0 or until_s <= self._paused_until_s + LOOK_AGAIN_S:
            return
        self._paused_until_s = until_s
        if self._local.snapshot().paused_s <= 0.0 and self._events.active:
            self._events.emit(KeyPaused(pacer=self._local.name, wait_s=paused_s, why="others"))

    def _rates(self) -> Rates:
        requests, tokens = self._local.stated()
        return Rates(
            requests_per_s=math.inf if requests is None else requests * PACE_SHARE / 60.0,
            tokens_per_s=math.inf if tokens is None else tokens * PACE_SHARE / 60.0,
        )

    # ------------------------------------------------------------------ with and without the others

    def _lost(self, message: str) -> None:
        now_s = self._clock.now()
        self._retry_at_s = now_s + RETRY_S
        if self._gone_since_s is None:
            self._gone_since_s = now_s
            self._times_gone += 1
            self._announce(1.0 / self._workers, f"shared limit gone: {message}")

    def _found(self, lease: Lease) -> None:
        now_s = self._clock.now()
        if self._gone_since_s is not None:
            self._alone_s += now_s - self._gone_since_s
            self._gone_since_s = None
            # A limit that starts anew has not seen the others yet: they are not forgotten.
            self._forget_at_s = now_s + FORGET_S
            self._announce(1.0, "shared limit is back")
        held = self._workers if now_s < self._forget_at_s else self._workers_min
        self._workers = max(held, lease.workers)

    def _announce(self, value: float, why: str) -> None:
        if self._events.active:
            self._events.emit(
                LimitChanged(pacer=self._local.name, what="share", value=value, why=why)
            )

    # ------------------------------------------------------------------ how it went

    def release(
        self,
        permit: Permit,
        *,
        used_tokens: int | None = None,
        rate: RateInfo | None = None,
        error: ProviderError | None = None,
    ) -> None:
        """Learn here, and tell the others of a pause. Source: `ports.Pacer.release`."""
        assert isinstance(permit, Leave)
        refused = error is not None and error.kind == "rate"
        if refused:
            self._back_tokens += permit.tokens
        elif used_tokens is not None:
            self._back_tokens += permit.tokens - used_tokens
        self._local.release(permit, used_tokens=used_tokens, rate=rate, error=error)
        if error is None or not (refused or error.retry_after_s is not None):
            return
        paused_s = self._local.snapshot().paused_s
        until_s = self._clock.now() + paused_s
        if paused_s > 0.0 and until_s > self._paused_until_s + LOOK_AGAIN_S:
            self._paused_until_s = until_s
            task = asyncio.get_running_loop().create_task(self._tell_pause(paused_s))
            self._sends.add(task)
            task.add_done_callback(self._sends.discard)

    async def _tell_pause(self, wait_s: float) -> None:
        with contextlib.suppress(SharedLimitGone):  # the next reservation finds out and says so
            await self._limit.pause(self._local.name, wait_s)

    async def aclose(self) -> None:
        """End what runs beside the calls; may be called twice."""
        self._closed = True
        tasks = [task for task in (self._task, self._watch) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *self._sends, return_exceptions=True)

    def snapshot(self) -> PacerStats:
        """The local pacer's counts, those that wait for the others, and how it stands with them."""
        local = self._local.snapshot()
        now_s = self._clock.now()
        waiting = dict(local.waiting)
        queued = sum(not future.done() for _, future in self._queue)
        if queued:
            waiting["shared"] = queued
        return PacerStats(
            name=local.name,
            in_flight=local.in_flight - queued,
            concurrency=local.concurrency,
            waiting=waiting,
            paused_s=max(local.paused_s, self._paused_until_s - now_s, 0.0),
            note=self._note(now_s),
        )

    def _note(self, now_s: float) -> str:
        if self._gone_since_s is not None:
            return f"shared limit gone, at 1/{self._workers} of the limit"
        if self._times_gone:
            times = "once" if self._times_gone == 1 else f"{self._times_gone} times"
            return f"shared limit was gone {times}, {self._alone_s:.1f} s in all"
        return ""

    def __repr__(self) -> str:
        return f"SharedPacer({self._local!r}, {len(self._queue)} queued, {self._workers} workers)"
