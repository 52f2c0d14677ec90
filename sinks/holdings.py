"""What an output holds, counted while it is scanned: one count an id, the latest line's.

Beside the two scans, of a file and of a topic. A line's kind is kept as a small number in the
scan's table of ids, so that a later line of the id takes the earlier one's count away again; the
memory does not grow with the output.
"""

import msgspec

from dikast.engine.ids import IdTable
from dikast.engine.ledger import Held

CODE_BITS = 6
CODE_MASK = (1 << CODE_BITS) - 1
_KINDS = ("verdict", "scored", "undecided", "failed")
_FOUND_AGAIN = frozenset({"bad_row", "duplicate_id"})
# The last codes are for words that dikast does not write; a file may have been edited.
_OTHER = {kind: CODE_MASK - index for index, kind in enumerate(_KINDS)}
_NAMED_MAX = CODE_MASK - len(_KINDS)
OTHER = "other"


class OutcomeLine(msgspec.Struct):
    """The few fields of an outcome that a resume needs; all else is skipped unread."""

    kind: str
    id: str
    spec: str = ""
    reason: str = ""
    winner: str = ""
    basis: str = "single"
    why: str = ""

    @property
    def is_outcome(self) -> bool:
        """Whether it is of a kind that dikast writes."""
        return self.kind in _KINDS

    @property
    def label(self) -> str:
        """What it is counted as among its kind, in the words of the ledger."""
        if self.kind == "verdict":
            return f"{self.winner} {self.basis}"
        return {"undecided": self.why, "failed": self.reason}.get(self.kind, self.kind)

    def stands(self, retry_failed: bool) -> bool:
        """Whether its pair is done: failed ones are tried again unless told otherwise."""
        if self.kind != "failed":
            return True
        return not retry_failed and self.reason not in _FOUND_AGAIN


class Holdings:
    """Counts by kind and label."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], int] = {}
        self._names: dict[int, tuple[str, str]] = {
            code: (kind, OTHER) for kind, code in _OTHER.items()
        }
        self._counts = [0] * (CODE_MASK + 1)

    def code_of(self, line: OutcomeLine) -> int:
        """A number below 64 for what the line is counted as."""
        key = (line.kind, line.label)
        code = self._codes.get(key)
        if code is None:
            if len(self._codes) >= _NAMED_MAX:
                return _OTHER[line.kind]
            code = self._codes[key] = len(self._codes)
            self._names[code] = key
        return code

    def enter(self, code: int) -> None:
        """One more."""
        self._counts[code] += 1

    def leave(self, code: int) -> None:
        """One less: another line of its id has taken its place."""
        self._counts[code] -= 1

    def held(self) -> Held:
        """The counts now."""
        found: dict[str, dict[str, int]] = {kind: {} for kind in _KINDS}
        for code, (kind, label) in self._names.items():
            if self._counts[code]:
                found[kind][label] = self._counts[code]
        verdicts = {**found["verdict"], **found["scored"]}
        return Held(
            judged=sum(verdicts.values()),
            undecided=found["undecided"],
            failed=found["failed"],
            verdicts=verdicts,
        )

    def __repr__(self) -> str:
        return f"Holdings({self.held()!r})"


class Standing:
    """The ids of an output, whether the pair of each is done, and what it is counted as.

    What both scans share. An id's number in the table: what its line is counted as from the third
    bit on (a scan may put more above it), whether the line stays in the output, whether its pair is
    done.
    """

    def __init__(self) -> None:
        self._table = IdTable()
        self._holdings = Holdings()

    def is_done(self, id: str) -> bool:
        """True when an earlier run has an outcome of `id` that stands."""
        value = self._table.get(id)
        return value is not None and value & 1 == 1

    def held(self) -> Held:
        """What is in the output when the run begins, less what `replaced` has told."""
        return self._holdings.held()

    def replaced(self, id: str) -> None:
        """A new outcome of `id` is in the output: one that was kept no longer counts."""
        value = self._table.get(id)
        if value is not None and value & 2:
            self._holdings.leave(value >> 2 & CODE_MASK)
            self._table.set(id, value & ~2)
