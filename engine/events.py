"""What happens, as frozen records: the core emits them, observers (progress, log) read them.

An event never carries a key, a header or the text of an answer. Nothing is built when nobody
listens: emitters ask `Events.active` first.
"""

from collections.abc import Callable

from dikast.engine.model import Outcome, Record


class RunStarted(Record, frozen=True):
    """The run begins with this spec."""

    spec: str
    strategy: str


class CallSent(Record, frozen=True):
    """A request leaves for the provider; its clock starts here."""

    key: str
    pacer: str
    pair_id: str
    attempt: int


class CallDone(Record, frozen=True):
    """A completion arrived and is in the store (or came from it)."""

    key: str
    pacer: str
    pair_id: str
    latency_s: float
    from_store: bool
    cost_usd: float


class CallRetried(Record, frozen=True):
    """A call failed and will be tried again after `wait_s`; `spent` says if it used an attempt."""

    key: str
    pacer: str
    pair_id: str
    kind: str
    attempt: int
    wait_s: float
    spent: bool


class CallFailed(Record, frozen=True):
    """A call failed for good."""

    key: str
    pacer: str
    pair_id: str
    kind: str
    attempts: int
    message: str


class LimitChanged(Record, frozen=True):
    """A pacer changed one of its limits; `why` is a word such as "429", "headers" or "growth"."""

    pacer: str
    what: str
    value: float
    why: str


class KeyPaused(Record, frozen=True):
    """A whole key is held back for `wait_s` because the provider asked for it."""

    pacer: str
    wait_s: float
    why: str


class PairDone(Record, frozen=True):
    """An outcome was written."""

    outcome: Outcome
    duration_s: float


class RunStopping(Record, frozen=True):
    """The run stops before its input ends; `reason` is a `StopReason`."""

    reason: str
    message: str


Event = (
    RunStarted
    | CallSent
    | CallDone
    | CallRetried
    | CallFailed
    | LimitChanged
    | KeyPaused
    | PairDone
    | RunStopping
)


class Events:
    """Fans events out to observers. Observers are synchronous and must neither raise nor block.

    Args:
        observers: called with each event, in order.
    """

    def __init__(self, observers: tuple[Callable[[Event], None], ...] = ()) -> None:
        self._observers = observers
        self.active = bool(observers)

    def emit(self, event: Event) -> None:
        """Hand `event` to every observer."""
        for observer in self._observers:
            observer(event)

    def __repr__(self) -> str:
        return f"Events({len(self._observers)} observers)"
