"""Choosing preferences: exact, deterministic, and blind to the choice a sentence came from."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest

from dikast.analysis.preferences_selection import (
    Exact,
    Greedy,
    chooser,
    nested,
    select,
    shuffled_p,
)
from dikast.analysis.preferences_votes import Matrix, right, voted


def world(
    seed: int,
    pairs: int,
    *,
    preferences: int = 10,
    skill: float = 0.0,
    differ: float = 0.0,
    shared: float = 0.0,
    bias: float = 0.0,
) -> Matrix:
    """Probit judges: a latent lead for the person's answer, part of it alike for all preferences.

    Preference i is written from pair i.
    """
    rng = np.random.default_rng(seed)
    labels = rng.choice([-1, 1], pairs).astype(np.int8)
    strength = skill + differ * rng.normal(size=(1, preferences, 1))
    lead = labels[:, None, None] * strength + bias * np.array([1, -1])
    lead = lead + np.sqrt(shared) * rng.normal(size=(pairs, 1, 1))
    lead = lead + np.sqrt(1 - shared) * rng.normal(size=(pairs, preferences, 2))
    return Matrix(
        picks=np.sign(lead).astype(np.int8),
        labels=labels,
        groups=np.arange(pairs),
        sources=tuple(frozenset({number}) for number in range(preferences)),
    )


def cut(matrix: Matrix, rows: slice) -> Matrix:
    return matrix._replace(
        picks=matrix.picks[rows], labels=matrix.labels[rows], groups=matrix.groups[rows]
    )


def accuracy(verdicts: np.ndarray[tuple[int, ...], np.dtype[np.int8]], matrix: Matrix) -> float:
    return float(right(verdicts, matrix.labels, np.ones(verdicts.shape, np.bool_)).mean())


class Figures(NamedTuple):
    """Means over runs: the score that chose in-sample, the nested estimate, the truth."""

    in_sample: float
    nested: float
    truth: float
    best_single: float


def simulate(runs: int, development: int, **kind: float) -> Figures:
    rows = []
    for seed in range(runs):
        whole = world(seed, development + 115, **kind)  # type: ignore[arg-type]
        fitted, rest = cut(whole, slice(development)), cut(whole, slice(development, None))
        inside = select(chooser(fitted, leave_one_out=False))
        search = chooser(fitted)
        apart = select(search)
        single = search.choose(fitted.labels, single=True)
        assert inside is not None
        assert apart is not None
        assert single is not None
        rows.append(
            (
                inside.score,
                accuracy(nested(search), fitted),
                accuracy(voted(rest.picks, apart.weights), rest),
                accuracy(voted(rest.picks, single), rest),
            )
        )
    return Figures(*(float(each) for each in np.mean(rows, axis=0)))


def test_coins_look_good_in_sample_and_the_nested_estimate_says_that_they_are_coins() -> None:
    found = simulate(60, 10)
    assert found.in_sample > 0.7
    assert found.truth == pytest.approx(0.5, abs=0.02)
    assert found.nested == pytest.approx(found.truth, abs=0.05)


def test_alike_judges_without_signal_are_found_out_too() -> None:
    found = simulate(60, 10, shared=0.6, bias=0.3)
    assert found.in_sample > 0.62
    assert found.truth == pytest.approx(0.5, abs=0.02)
    assert found.nested == pytest.approx(found.truth, abs=0.05)


def test_where_preferences_differ_the_choice_pays_and_the_estimate_tells_how_much() -> None:
    found = simulate(60, 10, skill=0.4, differ=0.5, shared=0.4, bias=0.2)
    assert found.in_sample > found.truth + 0.05
    assert found.nested == pytest.approx(found.truth, abs=0.04)
    assert found.truth > 0.7
    assert abs(found.truth - found.best_single) < 0.06


def test_more_development_pairs_shrink_the_optimism() -> None:
    few = simulate(40, 10, skill=0.4, differ=0.3, shared=0.4)
    many = simulate(40, 50, skill=0.4, differ=0.3, shared=0.4)
    assert few.in_sample - few.truth > 2 * (many.in_sample - many.truth) > 0


def by_hand(matrix: Matrix) -> tuple[int, ...]:
    """The best subset by the rules of the documentation, one by one."""
    keys = []
    for size in range(1, len(matrix.sources) + 1):
        for subset in combinations(range(len(matrix.sources)), size):
            totals = [0, 0]
            for pair, label in enumerate(matrix.labels):
                allowed = [p for p in subset if matrix.groups[pair] not in matrix.sources[p]]
                for order in (0, 1):
                    votes = sum(int(matrix.picks[pair, p, order]) for p in allowed)
                    totals[order] += int(np.sign(votes)) * int(label)
            gap = abs(totals[0] - totals[1])
            keys.append((-sum(totals), gap, size % 2 == 0, size, subset))
    return min(keys)[4]


@pytest.mark.parametrize("seed", range(12))
def test_the_exact_search_agrees_with_a_search_by_hand(seed: int) -> None:
    matrix = world(seed, 6, preferences=6, skill=0.3, differ=0.4)
    chosen = chooser(matrix).choose(matrix.labels)
    assert chosen is not None
    assert tuple(np.flatnonzero(chosen)) == by_hand(matrix)


def test_a_preference_is_never_scored_on_the_prompt_it_came_from() -> None:
    matrix = world(3, 8, preferences=5, skill=0.5)
    twisted = matrix.picks.copy()
    for preference in range(5):
        twisted[preference, preference] *= -1  # preference i came from pair i
    before, after = (select(chooser(each)) for each in (matrix, matrix._replace(picks=twisted)))
    assert before is not None
    assert after is not None
    assert before.weights.tolist() == after.weights.tolist()
    assert before.score == after.score


def test_a_nested_verdict_does_not_depend_on_the_label_it_is_held_against() -> None:
    matrix = world(5, 10, preferences=6, skill=0.4, differ=0.4)
    said = nested(chooser(matrix))
    for pair in range(10):
        labels = matrix.labels.copy()
        labels[pair] *= -1
        assert nested(chooser(matrix), labels)[pair].tolist() == said[pair].tolist()


def test_what_was_written_from_every_pair_can_be_chosen_by_a_person_only() -> None:
    matrix = world(2, 6, preferences=4, skill=1.0)
    sources = (*matrix.sources[:3], frozenset(range(6)))
    alone = select(chooser(matrix._replace(sources=sources)))
    pinned = select(chooser(matrix._replace(sources=sources), [False, False, False, True]))
    assert alone is not None
    assert pinned is not None
    assert alone.weights[3] == 0
    assert pinned.weights[3] == 1


def test_a_pinned_preference_is_in_the_set_however_bad() -> None:
    matrix = world(4, 12, preferences=5, skill=2.0)
    picks = matrix.picks.copy()
    picks[:, 2] = -matrix.labels[:, None]
    bad = matrix._replace(picks=picks)
    free = select(chooser(bad))
    kept = select(chooser(bad, [False, False, True, False, False]))
    assert free is not None
    assert kept is not None
    assert free.weights[2] == 0
    assert kept.weights[2] == 1


def test_weights_are_the_shares_of_the_best_sets() -> None:
    labels = np.array([1, 1, -1, -1], np.int8)
    always = np.repeat(labels[:, None, None], 2, axis=2)
    picks = np.concatenate([always, always, -always], axis=1).astype(np.int8)
    matrix = Matrix(picks, labels, np.arange(4), (frozenset(), frozenset(), frozenset()))
    found = select(chooser(matrix), weighted=True)
    assert found is not None
    # Best sets: {0}, {1}, {0, 1}, {0, 1, 2}.
    assert found.tied == 4
    assert found.weights.tolist() == [0.75, 0.75, 0.25]


def test_beyond_sixteen_a_greedy_search_finds_the_planted_preference() -> None:
    matrix = world(6, 40, preferences=20)
    picks = matrix.picks.copy()
    picks[:, 17] = matrix.labels[:, None]
    search = chooser(matrix._replace(picks=picks))
    assert isinstance(search, Greedy)
    found = select(search)
    assert found is not None
    assert not found.exact
    assert found.weights[17] == 1
    assert found.score > 0.95
    assert accuracy(nested(search), matrix) > 0.9


def test_up_to_sixteen_the_search_is_exact_whatever_is_pinned_beside() -> None:
    matrix = world(6, 12, preferences=17)
    assert isinstance(chooser(matrix, [True] + [False] * 16), Exact)
    assert isinstance(chooser(matrix), Greedy)


def test_shuffled_labels_tell_signal_from_none() -> None:
    signal = world(7, 16, preferences=6, skill=2.0)
    nothing = world(8, 16, preferences=6)
    assert shuffled_p(chooser(signal), seed=1, draws=99) <= 0.02
    assert shuffled_p(chooser(nothing), seed=1, draws=99) > 0.1


def test_a_person_with_one_prompt_gets_no_set() -> None:
    matrix = world(9, 3, preferences=3)._replace(
        groups=np.zeros(3, np.int64), sources=(frozenset({0}),) * 3
    )
    assert select(chooser(matrix)) is None
