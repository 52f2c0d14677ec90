"""What the stages of a build asked and paid, and how a build ended.

Beside the stages: filled in when one is over, shown at the end. Knows no stage by name.
"""

from collections.abc import Callable
from typing import Protocol

from dikast.engine.model import Call, Completion, Record, Usage
from dikast.strategies.sesse.library import Library
from dikast.strategies.sesse.stages import Failure


class BilledAsk(Protocol):
    """An `Ask` that counts what it was asked and what that cost; the gateway's `PairAsk`."""

    calls: int
    stored_calls: int
    usage: Usage | None
    cost_usd: float
    simulated: bool

    async def __call__(self, call: Call) -> Completion:
        """See `Ask`."""
        ...


class Bill(Record, frozen=True):
    """What a stage asked. `expected` is by the formula, `retried` what was asked again because it
    could not be read; `asked` is their sum, less what was refused or failed. `stored` of those
    came from the call store."""

    stage: str
    expected: int
    asked: int
    retried: int
    stored: int
    failed: int
    cost_usd: float
    usage: Usage


class Built(Record, frozen=True):
    """How a build ended. `library` is None where too many calls failed, in `stage`."""

    library: Library | None
    bills: tuple[Bill, ...]
    failures: tuple[Failure, ...] = ()
    stage: str = ""
    embedded: int = 0


OnProgress = Callable[[str, int, int, BilledAsk | None], None]
"""Told of the stage, the items done, the items in all, and the stage's bill so far."""


def nobody(stage: str, done: int, total: int, bill: BilledAsk | None) -> None:
    """Takes no note of progress."""
