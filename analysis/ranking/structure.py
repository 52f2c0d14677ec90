"""Who can be compared with whom: groups that never met, and models that never lost.

Ratings exist (without a penalty) only when every model can be reached from every other along
"beat or drew with" (Ford 1957, American Mathematical Monthly 64). Where that fails, the data set
no bound on somebody's rating, and the report has to say on whose and in which direction.
"""

from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, connected_components

from dikast.analysis.ranking.battles import Floats, Ints

Side = Literal["above", "below", "apart"]


class Structure(NamedTuple):
    """`groups` numbers the models that met, directly or through others, the largest group first.

    `sides` says for each model how it stands to the core of its group: None is in the core,
    "above" has beaten it and never lost to it, "below" the reverse, "apart" neither.
    """

    groups: Ints
    sides: tuple[Side | None, ...]

    @property
    def group_count(self) -> int:
        """How many groups never met one another."""
        return int(self.groups.max()) + 1

    @property
    def separated(self) -> bool:
        """Whether the data leave somebody's rating without a bound."""
        return any(side is not None for side in self.sides)


def structure_of(points: Floats) -> Structure:
    """Look at the points each model took from each other.

    Args:
        points: shape (n, n), what row i won against column j, ties counted for both.
    """
    graph: Floats = (points > 0).astype(float)
    _, weak = connected_components(graph, directed=True, connection="weak", return_labels=True)
    _, strong = connected_components(graph, directed=True, connection="strong", return_labels=True)
    sizes = np.bincount(weak)
    order = np.argsort(-sizes, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    groups = number[weak].astype(np.int64)
    sides: list[Side | None] = [None] * len(points)
    for group in range(len(sizes)):
        members = np.flatnonzero(groups == group)
        parts, counts = np.unique(strong[members], return_counts=True)
        if len(parts) == 1:
            continue
        core = members[strong[members] == parts[np.argmax(counts)]]
        losers = set(
            breadth_first_order(
                graph, int(core[0]), directed=True, return_predecessors=False
            ).tolist()
        )
        winners = set(
            breadth_first_order(
                graph.T, int(core[0]), directed=True, return_predecessors=False
            ).tolist()
        )
        for model in set(members.tolist()) - set(core.tolist()):
            sides[model] = "above" if model in winners else "below" if model in losers else "apart"
    return Structure(groups, tuple(sides))
