"""Stage 3: a theme's questions, the most diverse first, so that any first n are a good n.

Comes after clustering, and again after merging. Greedy farthest-first traversal (Gonzalez,
"Clustering to minimize the maximum intercluster distance", Theor. Comput. Sci. 38, 1985) by cosine
distance, begun at the medoid. Nested: a deeper order begins with the shallower one. It follows
from the vectors and the ids alone, whatever their order. Knows no judge.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dikast.strategies.sesse.cluster import Vectors

# Distances that differ by less are equal: rounding must not decide, ids do.
_SAME = 1e-9


class Ordered(NamedTuple):
    """Places of the chosen rows in order, and the distance at which each was chosen (first: 0)."""

    places: list[int]
    radii: list[float]


def farthest_first(
    vectors: Vectors, ids: Sequence[str], *, n_max: int, trim_pct: float = 0.0
) -> Ordered:
    """The order of a cluster's rows.

    Args:
        vectors: n x d, unit rows.
        ids: of the rows; the smallest wins a tie.
        n_max: the most rows to choose.
        trim_pct: percent of the rows, those farthest from the medoid, that are never chosen. The
            second row chosen is otherwise the cluster's greatest outlier, by construction.
    """
    distances = np.maximum(1.0 - vectors @ vectors.T, 0.0)
    np.fill_diagonal(distances, 0.0)
    start = _first(-distances.mean(axis=1), ids, set())
    dropped = _outliers(distances[start], ids, trim_pct)
    chosen = [start]
    radii = [0.0]
    nearest = distances[start].copy()
    while len(chosen) < min(n_max, len(ids) - len(dropped)):
        best = _first(nearest, ids, dropped | set(chosen))
        radii.append(round(float(nearest[best]), 6))
        chosen.append(best)
        nearest = np.minimum(nearest, distances[best])
    return Ordered(chosen, radii)


def _first(values: Vectors, ids: Sequence[str], without: set[int]) -> int:
    """The row with the greatest value; the smallest id of equals."""
    rows = [row for row in range(len(ids)) if row not in without]
    best = max(float(values[row]) for row in rows)
    return min((row for row in rows if values[row] >= best - _SAME), key=lambda row: ids[row])


def _outliers(from_medoid: Vectors, ids: Sequence[str], trim_pct: float) -> set[int]:
    count = int(len(ids) * trim_pct / 100)
    far = sorted(range(len(ids)), key=lambda row: (-round(float(from_medoid[row]), 9), ids[row]))
    return set(far[:count])
