"""What an output holds over all runs on it, and what they have spent: told beside "this run".

Stands beside one run: the scan that a resume makes anyway has counted what was there, the ledger
counts what is added, and what a new outcome takes the place of is taken off.
"""

from typing import Any

import msgspec

from dikast.engine.events import Event, PairDone
from dikast.engine.ledger import Held, Ledger
from dikast.manifest import Spent
from dikast.sinks import OutputScan
from dikast.streams import TopicDone


class WholeOutput:
    """An observer of the run, for what earlier runs have left in its output."""

    def __init__(self) -> None:
        self._scan: OutputScan | TopicDone | None = None
        self._known = True
        self.resumed = False

    def begin(self, scan: OutputScan | TopicDone | None, *, known: bool = True) -> None:
        """Before the first pair.

        Args:
            scan: what was found in the output; None when it is new or empty.
            known: False where nobody has looked, as in a topic that is fed from a topic.
        """
        self._scan = scan
        self._known = known
        self.resumed = scan is not None

    def __call__(self, event: Event) -> None:
        """A written outcome may take the place of one that was there."""
        if self._scan is not None and isinstance(event, PairDone):
            self._scan.replaced(event.outcome.id)

    def held(self, run: Ledger) -> Held | None:
        """What the output holds now; None where that is not known."""
        if not self._known:
            return None
        before = Held() if self._scan is None else self._scan.held()
        return before.plus(run)

    def __repr__(self) -> str:
        return f"WholeOutput({self._scan!r})"


def lines(held: Held, spent: Spent | None) -> list[str]:
    """For a terminal, under the ledger of the run."""
    out = ["the whole output, earlier runs and this one"]
    out += [f"  {line}" for line in held.lines()]
    if spent is not None:
        out.append(
            f"  {'at most ' if spent.bound else ''}${spent.usd:,.4f} spent by all runs on it"
        )
    return out


def machine(held: Held | None, spent: Spent | None) -> dict[str, Any] | None:
    """What `--json` has under `whole_output`; null where it is not known."""
    if held is None:
        return None
    return {
        "rows": held.rows,
        **{name: msgspec.to_builtins(getattr(held, name)) for name in held.__struct_fields__},
        "spent_usd": None if spent is None else spent.usd,
        "spent_is_bound": None if spent is None else spent.bound,
    }
