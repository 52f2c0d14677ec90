"""Stage 2: questions that mean alike into themes: k-means++ on unit vectors, and how well it fits.

Comes after embedding. k-means++ seeding after Arthur and Vassilvitskii ("k-means++: the advantages
of careful seeding", SODA 2007), Lloyd's iterations, the best of several starts; silhouettes after
Rousseeuw (J. Comput. Appl. Math. 20, 1987) with cosine distance. Everything follows from the
vectors and a seed. Knows no question and no judge.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float64]
Labels = NDArray[np.int64]

ITERATIONS_MAX = 300
SILHOUETTE_ROWS_MAX = 2000
MANY_STARTS_ROWS_MAX = 500
SILHOUETTE_KS = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50)


class Fit(NamedTuple):
    """A clustering: each row's cluster, the centroids (k x d), the sum of squared distances."""

    labels: Labels
    centroids: Vectors
    inertia: float


def unit(rows: Sequence[Sequence[float]] | Vectors) -> Vectors:
    """Rows scaled to length 1; a row of zeros stays."""
    plain = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(plain, axis=1, keepdims=True)
    return plain / np.where(lengths > 0, lengths, 1.0)


def k_means(vectors: Vectors, k: int, *, seed: int, n_init: int = 10) -> Fit:
    """The best of `n_init` runs of k-means with k-means++ seeding.

    Args:
        vectors: n x d, unit rows.
        k: clusters, 1 to n.
        seed: of all randomness.
        n_init: starts; the one with the least inertia is kept, the first of equals.
    """
    runs = [_one_run(vectors, k, np.random.default_rng([seed, start])) for start in range(n_init)]
    return min(runs, key=lambda fit: fit.inertia)


def _one_run(vectors: Vectors, k: int, rng: np.random.Generator) -> Fit:
    squares = (vectors**2).sum(axis=1)
    centroids = _plus_plus(vectors, squares, k, rng)
    labels = np.full(len(vectors), -1, dtype=np.int64)
    for _ in range(ITERATIONS_MAX):
        distances = _squared(vectors, squares, centroids)
        nearest = distances.argmin(axis=1).astype(np.int64)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        own = distances[np.arange(len(vectors)), labels].copy()
        for cluster in range(k):
            members = labels == cluster
            if members.any():
                centroids[cluster] = vectors[members].mean(axis=0)
            else:
                # An empty cluster takes the row that fits its own worst.
                worst = int(own.argmax())
                centroids[cluster] = vectors[worst]
                own[worst] = -1.0
    distances = _squared(vectors, squares, centroids)
    inertia = float(distances[np.arange(len(vectors)), labels].sum())
    return Fit(labels, centroids, inertia)


def _plus_plus(vectors: Vectors, squares: Vectors, k: int, rng: np.random.Generator) -> Vectors:
    """First centroid at random, each further one with a probability that grows with its squared
    distance to the nearest chosen."""
    chosen = [int(rng.integers(len(vectors)))]
    nearest = _squared(vectors, squares, vectors[chosen])[:, 0]
    for _ in range(1, k):
        total = float(nearest.sum())
        if total <= 0.0:  # fewer different rows than clusters
            chosen.append(int(rng.integers(len(vectors))))
            continue
        place = int(np.searchsorted(np.cumsum(nearest), rng.random() * total, side="right"))
        chosen.append(min(place, len(vectors) - 1))
        nearest = np.minimum(nearest, _squared(vectors, squares, vectors[chosen[-1:]])[:, 0])
    return vectors[chosen].copy()


def _squared(vectors: Vectors, squares: Vectors, centroids: Vectors) -> Vectors:
    """Squared distances, n x k; `squares` are the rows' own squared lengths."""
    found: Vectors = squares[:, None] - 2.0 * (vectors @ centroids.T)
    found += (centroids**2).sum(axis=1)[None, :]
    return np.maximum(found, 0.0, out=found)


def silhouette(vectors: Vectors, labels: Labels) -> float:
    """Mean silhouette by cosine distance, -1 to 1; a row alone in its cluster counts 0."""
    distances = np.maximum(1.0 - vectors @ vectors.T, 0.0)
    np.fill_diagonal(distances, 0.0)
    names, places = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        return 0.0
    member = np.eye(len(names))[places]
    sizes = member.sum(axis=0)
    sums = distances @ member
    own_size = sizes[places]
    rows = np.arange(len(vectors))
    within = sums[rows, places] / np.maximum(own_size - 1, 1)
    means = sums / sizes
    means[rows, places] = np.inf
    between = means.min(axis=1)
    spread = np.maximum(within, between)
    scores = np.where(
        (own_size > 1) & (spread > 0), (between - within) / np.where(spread > 0, spread, 1.0), 0.0
    )
    return float(scores.mean())


def silhouette_table(vectors: Vectors, *, seed: int, n_init: int) -> dict[int, float]:
    """The mean silhouette for each usual number of clusters below that of the rows.

    With more than 500 rows, of three starts at most; with more than 2,000, on a sample of 2,000:
    the table costs rows x rows.
    """
    starts = n_init if len(vectors) <= MANY_STARTS_ROWS_MAX else min(3, n_init)
    if len(vectors) > SILHOUETTE_ROWS_MAX:
        rng = np.random.default_rng(seed)
        kept = np.sort(rng.choice(len(vectors), SILHOUETTE_ROWS_MAX, replace=False))
        vectors = vectors[kept]
    return {
        k: silhouette(vectors, k_means(vectors, k, seed=seed, n_init=starts).labels)
        for k in SILHOUETTE_KS
        if k < len(vectors)
    }
