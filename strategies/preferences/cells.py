"""The vote matrix, one cell at a time: a pair under one wording, asked in both orders.

Used by the fit and by the evaluation. Each cell is an ordinary judgement of the engine (`swap`
around `pairwise`), so it is stored, paced and resumed like any other; what is kept of it is what
was picked in each order, never whether that was right.
"""

from collections.abc import Mapping
from typing import Any, Literal

from dikast.engine.model import Failed, Outcome, Pair, Record
from dikast.engine.ports import Ask, Strategy

VERSION = "1"
CellPick = Literal["A", "B", "none"]


class CellPicks(Record, frozen=True):
    """What one cell said, in the pair's own A and B: `ab` with A shown first, `ba` with B.

    `why` tells what kept an order from a pick, by order.
    """

    pair: str
    column: str
    ab: CellPick = "none"
    ba: CellPick = "none"
    why: dict[str, str] = {}


class Cells:
    """A strategy over cells: the id of the pair it is handed names the cell to be judged.

    Args:
        cells: for each id, the pair itself and how it is judged.
    """

    def __init__(self, cells: Mapping[str, tuple[Pair, Strategy]]) -> None:
        self._cells = cells

    @property
    def name(self) -> str:
        """`preference_cells@version`."""
        return f"preference_cells@{VERSION}"

    def spec(self) -> dict[str, Any]:
        """Nothing of the cells: each is told apart by the keys of its calls."""
        return {"kind": "preference_cells", "version": VERSION}

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Judge the cell.

        Raises:
            ProviderError: a call failed for good.
            RunStopped: the run ends.
        """
        shown, strategy = self._cells[pair.id]
        return await strategy.judge(shown, ask)

    def __repr__(self) -> str:
        return f"Cells({len(self._cells)})"


def cell_picks(pair: str, column: str, outcome: Outcome) -> CellPicks:
    """The picks of a judged cell. A tie is no pick: the cell was asked to choose."""
    picks: dict[str, CellPick] = {}
    why: dict[str, str] = {}
    if isinstance(outcome, Failed):
        why = dict.fromkeys(("ab", "ba"), outcome.reason)
    for vote in outcome.votes:
        if vote.pick == "A" or vote.pick == "B":
            picks[vote.order] = vote.pick
            why.pop(vote.order, None)
        else:
            why[vote.order] = vote.why or vote.pick
    return CellPicks(
        pair=pair,
        column=column,
        ab=picks.get("ab", "none"),
        ba=picks.get("ba", "none"),
        why=why,
    )
