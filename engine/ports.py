"""Every seam of the engine as a small Protocol. In-memory twins ship with each package.

A pair meets them in this order: Source, Strategy, Ask, (CallStore, Pacer, Provider), Sink; an
Observer looks on, a Clock tells the time. None of them has more than three methods, so that a
user can write one in a screen of code.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from dikast.engine.errors import DikastError, ProviderError
from dikast.engine.events import Event
from dikast.engine.model import Call, Completion, Item, Outcome, Pair, Record, Row


class Clock(Protocol):
    """The only way to learn the time or to wait."""

    def now(self) -> float:
        """Monotonic seconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; a cancelled sleep leaves nothing behind."""
        ...

    def stamp(self) -> str:
        """Wall-clock time as an ISO 8601 string in UTC, for manifests and logs only."""
        ...


class Source(Protocol):
    """Where pairs come from. Pulled, never pushes; a bad row is a row, not an exception."""

    def batches(self) -> AsyncIterator[list[Row]]:
        """Rows in input order, in lists of a bounded size.

        Raises:
            InputError: the input as a whole cannot be read (missing file, unknown format).
        """
        ...

    async def aclose(self) -> None:
        """Release files and connections; may be called twice."""
        ...


@runtime_checkable
class StreamSource(Source, Protocol):
    """A source that hands a row out again until it is told that the row is done.

    Ids may come again (after a crash, from another worker), so they are not refused as used.
    """

    def skipped(self, row: Row) -> None:
        """An earlier run has done this row: it will have no outcome."""
        ...


class Ask(Protocol):
    """The gateway as a strategy sees it: one call in, one completion out."""

    async def __call__(self, call: Call) -> Completion:
        """Answer from the store, or ask the provider with pacing and retries.

        Raises:
            ProviderError: the call failed for good.
            RunStopped: the run ends; the pair stays "not run".
        """
        ...


class Strategy(Protocol):
    """How a pair becomes an outcome. Deterministic given the completions; knows no provider."""

    @property
    def name(self) -> str:
        """`name@version`, as written into outcomes."""
        ...

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Judge one pair. `ProviderError` may pass through; the scheduler makes it `Failed`."""
        ...

    def spec(self) -> Mapping[str, Any]:
        """Everything that decides the result, as plain JSON-ready data (hashed into the spec)."""
        ...


@runtime_checkable
class ItemStrategy(Protocol):
    """What a `Strategy` has besides, where it also judges single answers."""

    def takes_items(self) -> bool:
        """Whether it does; a combinator does where everything inside it does."""
        ...

    async def judge_item(self, item: Item, ask: Ask) -> Outcome:
        """Score one answer: a `Scored`, or why there is none; raises as `Strategy.judge` does."""
        ...


class Provider(Protocol):
    """One model API. One attempt a call: no retry, no sleeping, no pacing."""

    async def complete(self, call: Call) -> "Reply":
        """Ask once.

        Raises:
            ProviderError: classified by kind.
        """
        ...

    async def aclose(self) -> None:
        """Close connections; may be called twice."""
        ...


class Embedder(Protocol):
    """Texts to vectors, for what groups texts by meaning (the library of `sesse`)."""

    @property
    def name(self) -> str:
        """`name@revision`: two embedders of one name give one text one vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector of length 1 for each text, in their order; the same text, the same vector.

        Raises:
            ProviderError: the texts could not be embedded.
        """
        ...

    async def aclose(self) -> None:
        """Release connections and models; may be called twice."""
        ...


class RateInfo(Record, frozen=True):
    """What a response's headers said of the key's limits; None is "not said"."""

    requests_limit: int | None = None
    requests_remaining: int | None = None
    requests_reset_s: float | None = None
    tokens_limit: int | None = None
    tokens_remaining: int | None = None
    tokens_reset_s: float | None = None


class Reply(Record, frozen=True):
    """A completion with what its headers told about the key."""

    completion: Completion
    rate: RateInfo | None = None


class Permit(Protocol):
    """Leave to send one request, held while it is in flight."""

    tokens: int


class Pacer(Protocol):
    """One brain per provider and key: requests, tokens, concurrency, Retry-After."""

    async def acquire(self, tokens: int, priority: int) -> Permit:
        """Wait for leave to send a request of about `tokens` tokens; lower priority goes first.

        Raises:
            ProviderError: kind "oversized", when no amount of waiting could admit the request.
        """
        ...

    def release(
        self,
        permit: Permit,
        *,
        used_tokens: int | None = None,
        rate: RateInfo | None = None,
        error: ProviderError | None = None,
    ) -> None:
        """Give the slot back and tell how it went (synchronous: may be called under cancel).

        `used_tokens` settles the estimate; `error` of kind "rate" pauses the whole key; neither
        given means that the call was cancelled or failed otherwise.
        """
        ...

    def snapshot(self) -> "PacerStats":
        """Counts for progress and tests."""
        ...


class PacerStats(Record, frozen=True):
    """A pacer's state at one moment. `waiting` counts waiters by reason; `note` is for people."""

    name: str
    in_flight: int
    concurrency: float
    waiting: dict[str, int]
    paused_s: float = 0.0
    note: str = ""


class Lease(Record, frozen=True):
    """What a shared limit answers: the block may go in `wait_s`, and no sooner than the pause of
    the key is over; `workers` asked lately.
    """

    wait_s: float
    paused_s: float
    workers: int


class SharedLimitGone(DikastError):  # noqa: N818 - it is a fact; the worker goes on alone
    """The shared limit does not answer."""


class SharedLimit(Protocol):
    """One limit of one key, over all workers that name it alike."""

    async def reserve(
        self, key: str, requests: int, tokens: int, requests_per_s: float, tokens_per_s: float
    ) -> Lease:
        """Reserve for a block of calls; an empty block only asks for pauses and workers.

        Args:
            key: name of the key.
            requests: calls in the block.
            tokens: of all of them, less what earlier ones did not use (so it may be negative).
            requests_per_s: what all workers together may send; infinite: not limited.
            tokens_per_s: likewise.

        Raises:
            SharedLimitGone: it does not answer.
        """
        ...

    async def pause(self, key: str, wait_s: float) -> None:
        """Nobody sends for `wait_s`.

        Raises:
            SharedLimitGone: it does not answer.
        """
        ...

    async def aclose(self) -> None:
        """Close the connection; may be called twice."""
        ...


class CallStore(Protocol):
    """Completions by content hash, durable against a killed process."""

    def get(self, key: str) -> Completion | None:
        """The stored completion, marked `from_store`, or None."""
        ...

    async def put(self, key: str, completion: Completion) -> None:
        """Return when the completion would survive `kill -9`. Errors are never stored."""
        ...

    async def aclose(self) -> None:
        """Flush and close; may be called twice."""
        ...


class Sink(Protocol):
    """Where outcomes go."""

    async def write(self, outcome: Outcome) -> None:
        """Take one outcome; returns when it is accepted (durability is the sink's stated policy).

        Raises:
            SinkError: it cannot be written.
        """
        ...

    async def flush(self) -> None:
        """Return when everything accepted so far is as durable as the sink can make it."""
        ...

    async def aclose(self) -> None:
        """Flush and close; a crash may skip it; may be called twice."""
        ...


class Observer(Protocol):
    """Looks on. Synchronous; must neither raise nor block."""

    def __call__(self, event: Event, /) -> None:
        """Take note of `event`."""
        ...
