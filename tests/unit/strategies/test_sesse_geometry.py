"""Clusters and their order: against a reference implementation, and against their definitions."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from dikast.strategies.sesse.cluster import k_means, silhouette, silhouette_table, unit
from dikast.strategies.sesse.formulas import candidates_wanted, clusters_wanted
from dikast.strategies.sesse.order import farthest_first


def blobs(count: int, rows: int, *, seed: int, spread: float = 0.25) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = unit(rng.normal(size=(count, 16)))
    return unit(np.repeat(centres, rows, axis=0) + spread * rng.normal(size=(count * rows, 16)) / 4)


def same_groups(one: np.ndarray, other: np.ndarray) -> bool:
    return len(set(zip(one.tolist(), other.tolist(), strict=True))) == len(set(one.tolist()))


@pytest.mark.parametrize("seed", range(4))
def test_clear_groups_are_found_exactly(seed: int) -> None:
    vectors = blobs(6, 12, seed=seed)
    fit = k_means(vectors, 6, seed=seed)
    assert same_groups(fit.labels, np.repeat(np.arange(6), 12))


@pytest.mark.parametrize(("k", "seed"), [(3, 0), (8, 1), (25, 2)])
def test_the_fit_is_as_good_as_the_reference(k: int, seed: int) -> None:
    vectors = unit(np.random.default_rng(seed).normal(size=(200, 24)))
    ours = k_means(vectors, k, seed=seed, n_init=10)
    reference: Any = KMeans
    theirs = reference(k, n_init=10, random_state=seed).fit(vectors)
    assert ours.inertia <= theirs.inertia_ * 1.02
    own = ((vectors - ours.centroids[ours.labels]) ** 2).sum()
    assert ours.inertia == pytest.approx(own)
    assert len(set(ours.labels.tolist())) == k


def test_the_same_seed_gives_the_same_clusters_and_another_may_not() -> None:
    vectors = unit(np.random.default_rng(5).normal(size=(120, 8)))
    one, two = (k_means(vectors, 9, seed=3) for _ in range(2))
    assert np.array_equal(one.labels, two.labels)
    starts = {k_means(vectors, 9, seed=seed, n_init=1).inertia for seed in range(6)}
    assert len(starts) > 1


def test_more_clusters_than_different_rows_is_no_disaster() -> None:
    vectors = unit([[1.0, 0.0]] * 5 + [[0.0, 1.0]] * 5)
    fit = k_means(vectors, 4, seed=0)
    assert fit.inertia == pytest.approx(0.0)
    assert silhouette(vectors, fit.labels) <= 1.0


@pytest.mark.parametrize("k", [2, 5, 9])
def test_the_silhouette_is_that_of_the_reference(k: int) -> None:
    vectors = blobs(5, 15, seed=k, spread=1.5)
    labels = k_means(vectors, k, seed=0).labels
    expected = silhouette_score(vectors, labels, metric="cosine")
    assert silhouette(vectors, labels) == pytest.approx(expected, abs=1e-9)


def test_the_silhouette_table_is_highest_at_the_true_number() -> None:
    table = silhouette_table(blobs(10, 6, seed=1), seed=0, n_init=4)
    assert max(table, key=lambda k: table[k]) == 10
    assert list(table) == [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]


def test_a_single_cluster_has_no_silhouette() -> None:
    assert silhouette(blobs(1, 5, seed=0), np.zeros(5, dtype=np.int64)) == 0.0


# --- order --------------------------------------------------------------------------------------


def ids_of(count: int) -> list[str]:
    return [f"q{number:03d}" for number in range(count)]


@given(seed=st.integers(0, 10_000), rows=st.integers(1, 24))
def test_the_order_is_the_greedy_one_nested_and_the_same_for_any_input_order(
    seed: int, rows: int
) -> None:
    rng = np.random.default_rng(seed)
    vectors, ids = unit(rng.normal(size=(rows, 6))), ids_of(rows)
    full = farthest_first(vectors, ids, n_max=rows)
    distance = 1.0 - vectors @ vectors.T
    means = distance.mean(axis=1)
    assert means[full.places[0]] == pytest.approx(means.min())
    for at in range(1, rows):
        before, rest = full.places[:at], full.places[at:]
        gaps = {row: min(distance[row, one] for one in before) for row in rest}
        assert gaps[full.places[at]] == pytest.approx(max(gaps.values()))
        assert full.radii[at] == pytest.approx(gaps[full.places[at]], abs=1e-6)
    assert all(a >= b for a, b in itertools.pairwise(full.radii[1:]))
    shuffled = rng.permutation(rows)
    again = farthest_first(vectors[shuffled], [ids[row] for row in shuffled], n_max=rows)
    assert [int(shuffled[place]) for place in again.places] == full.places
    shallow = farthest_first(vectors, ids, n_max=3)
    assert shallow.places == full.places[:3]


def test_equal_distances_are_settled_by_the_smallest_id() -> None:
    vectors = np.eye(4)
    assert farthest_first(vectors, ["d", "b", "c", "a"], n_max=4).places == [3, 1, 2, 0]


def test_trimming_keeps_the_outlier_from_being_second() -> None:
    close = unit(np.array([[1.0, 0.02 * n, 0.0] for n in range(19)]))
    vectors = np.vstack([close, [[0.0, 0.0, 1.0]]])
    assert farthest_first(vectors, ids_of(20), n_max=3).places[1] == 19
    trimmed = farthest_first(vectors, ids_of(20), n_max=20, trim_pct=5.0)
    assert 19 not in trimmed.places
    assert len(trimmed.places) == 19


@pytest.mark.parametrize(
    ("questions", "k", "expected"),
    [(0, 25, 1), (3, 25, 1), (8, 25, 2), (99, 25, 24), (400, 25, 25)],
)
def test_the_number_of_clusters(questions: int, k: int, expected: int) -> None:
    assert clusters_wanted(questions, k) == expected


@pytest.mark.parametrize(
    ("clusters", "quantile", "expected"),
    [(25, 0.9, 30), (25, 0.0, 300), (25, 1.0, 0), (2, 0.9, 1), (1, 0.9, 0), (20, 0.8, 38)],
)
def test_the_number_of_candidates(clusters: int, quantile: float, expected: int) -> None:
    assert candidates_wanted(clusters, quantile) == expected
