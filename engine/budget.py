"""The money of a run: a hard cap that counts what is in flight. Asked by the gateway only.

A call reserves its worst price before it is sent and is settled with its real price. When the
worst case of what is in flight leaves no room, a call waits for a settlement; when even the money
already spent leaves none, the run stops. So the cap is never passed, whatever the answers cost
(as long as the provider keeps to `max_tokens`).

Several runs may share a total. Then what this run may have spent is noted ahead of spending it,
in steps, so that a killed run is not forgotten: the step that it was in counts as spent.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from dikast.engine.errors import RunStopped
from dikast.engine.model import Call

_NOTE_SHARE = 0.01


def estimate_tokens(call: Call) -> tuple[int, int]:
    """Input and output tokens to reserve for `call`: an upper guess by length, settled later.

    About four ASCII characters or one other character a token; `max_tokens` (or 1,024) out.
    Counting exactly costs more than the whole call (90 us for 1.8 KB with a BPE tokenizer).
    """
    tokens = 8
    for message in call.messages:
        content = message.content
        size = len(content)
        tokens += 4 + (
            size // 4 if content.isascii() else (len(_utf8(content)) - size) // 2 + size // 4
        )
    return tokens, call.judge.params.max_tokens or 1024


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Budget:
    """A cap on spending in US dollars; None is "no cap", and then nothing ever waits here."""

    def __init__(self, cap_usd: float | None = None) -> None:
        self.cap_usd = cap_usd
        self.spent_usd = 0.0
        self.reserved_usd = 0.0
        self._total_usd: float | None = None
        self._before_usd = 0.0
        self._noted_usd = 0.0
        self._note: Callable[[float], None] | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()

    def share(
        self, total_usd: float | None, before_usd: float, note: Callable[[float], None]
    ) -> None:
        """Count this run together with others.

        Args:
            total_usd: cap on what all of them spend, or None.
            before_usd: what the runs before this one have spent.
            note: told the most that this run may have spent by now, before it does; raises
                `RunStopped` when it cannot keep that.
        """
        self._note = note
        self._before_usd = before_usd
        if total_usd is not None:
            left_usd = max(0.0, total_usd - before_usd)
            if self.cap_usd is None or left_usd <= self.cap_usd:
                self.cap_usd, self._total_usd = left_usd, total_usd

    @property
    def total_binds(self) -> bool:
        """Whether it is the total that ends this run first."""
        return self._total_usd is not None

    async def reserve(self, usd: float) -> None:
        """Set `usd` aside, waiting for settlements where those may make room.

        Raises:
            RunStopped: reason "budget", when the money spent leaves no room for this call.
        """
        while self.cap_usd is not None:
            if self.spent_usd + usd > self.cap_usd:
                raise RunStopped("budget", self._used_up(usd))
            if self.spent_usd + self.reserved_usd + usd <= self.cap_usd:
                break
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        self._tell(self.spent_usd + self.reserved_usd + usd)
        self.reserved_usd += usd

    def _used_up(self, usd: float) -> str:
        next_call = f"and the next call may cost ${usd:,.4f}"
        if self._total_usd is not None:
            return (
                f"the total budget of ${self._total_usd:,.4f} is used up: "
                f"${self._before_usd:,.4f} spent by earlier runs on this output, "
                f"${self.spent_usd:,.4f} by this one, {next_call}"
            )
        return (
            f"the budget of ${self.cap_usd:,.4f} is used up: ${self.spent_usd:,.4f} spent, "
            f"{next_call} (every run has its own budget)"
        )

    def _tell(self, most_usd: float) -> None:
        """Note a step ahead, so that a note is not needed for every call."""
        if self._note is None or most_usd <= self._noted_usd:
            return
        step_usd = _NOTE_SHARE * (1.0 if self.cap_usd is None else self.cap_usd)
        noted_usd = most_usd + max(step_usd, _NOTE_SHARE * most_usd)
        if self.cap_usd is not None:
            noted_usd = min(noted_usd, max(self.cap_usd, most_usd))
        self._note(noted_usd)
        self._noted_usd = noted_usd

    def settle(self, reserved_usd: float, paid_usd: float) -> None:
        """Give a reservation back and book what was really paid (0.0 for a failed call)."""
        self.spent_usd += paid_usd
        self.reserved_usd = max(0.0, self.reserved_usd - reserved_usd)
        self._wake()

    def _wake(self) -> None:
        # All of them: a large waiter at the head must not hide a small one that fits.
        waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def __repr__(self) -> str:
        return f"Budget(cap={self.cap_usd}, spent={self.spent_usd}, reserved={self.reserved_usd})"
