"""The authors' selection on stored votes: its golden figures, without its trap."""

from itertools import combinations

import numpy as np
import pytest

from dikast.analysis.preferences_paper import paper_accuracy, paper_selection
from dikast.engine.errors import InputError


def labels_of(count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    return np.where(np.arange(count) % 3 == 0, 1, -1).astype(np.int8)


def always_first(pairs: int, columns: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    picks = np.ones((pairs, columns, 2), np.int8)
    picks[:, :, 1] = -1  # B is shown first in the second order
    return picks


def test_a_judge_that_always_says_a_ties_all_4095_sets_at_half_of_230_verdicts() -> None:
    development, test = labels_of(10), labels_of(115)
    chosen = paper_selection(always_first(10, 12), development)
    assert chosen.strategy == "forward_best"
    assert len(chosen.subsets) == 4095
    assert (chosen.best, chosen.cells) == (10, 20)
    assert paper_accuracy(always_first(115, 12), test, chosen) == (50.0, 230)


def test_a_judge_that_says_nothing_is_an_error_and_not_a_hundred_per_cent() -> None:
    silent = np.zeros((10, 12, 2), np.int8)
    with pytest.raises(InputError, match="100% of the judge's answers gave no verdict"):
        paper_selection(silent, labels_of(10))


def test_a_perfect_judge_has_a_hundred_per_cent() -> None:
    labels = labels_of(10)
    perfect = np.repeat(np.repeat(labels[:, None, None], 12, axis=1), 2, axis=2)
    chosen = paper_selection(perfect, labels)
    assert paper_accuracy(perfect, labels, chosen) == (100.0, 20)


def test_a_judge_that_is_always_wrong_is_turned_round_as_the_authors_do() -> None:
    labels = labels_of(10)
    wrong = np.repeat(np.repeat(-labels[:, None, None], 3, axis=1), 2, axis=2)
    chosen = paper_selection(wrong, labels)
    assert chosen.strategy == "inverted_worst"
    assert paper_accuracy(wrong, labels, chosen) == (100.0, 20)


def correct(picks: list[int], label: int, shown_first: bool) -> bool:
    """Their vote in their terms: ones are picks of the person's answer, level goes to first."""
    ones = sum(pick == label for pick in picks)
    return 2 * ones >= len(picks) if shown_first else 2 * ones > len(picks)


@pytest.mark.parametrize("penalty", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_sets_and_scores_agree_with_their_rules_written_out(seed: int, penalty: bool) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.choice([-1, 1], 7).astype(np.int8)
    picks = rng.choice([-1, 1, 1, 1, 0], (7, 5, 2), p=[0.3, 0.2, 0.2, 0.25, 0.05]).astype(np.int8)
    scores: dict[tuple[int, ...], tuple[int, int]] = {}
    for size in range(1, 6):
        for subset in combinations(range(5), size):
            first = second = 0
            for pair, label in enumerate(labels):
                for order in (0, 1):
                    shown_first = (label == 1) == (order == 0)
                    votes = [int(picks[pair, each, order]) for each in subset]
                    hit = correct(votes, int(label), shown_first)
                    first += hit and shown_first
                    second += hit and not shown_first
            scores[subset] = first, second
    penal = {s: sum(v) - (abs(v[0] - v[1]) if penalty else 0) for s, v in scores.items()}
    plain = {subset: sum(each) for subset, each in scores.items()}
    best, worst = max(penal.values()), min(plain.values())
    if 14 - worst > best:
        expected = {s for s, each in plain.items() if each == worst}
    else:
        expected = {s for s, each in penal.items() if each == best}
    found = paper_selection(picks, labels, gap_penalty=penalty)
    assert {tuple(np.flatnonzero(each)) for each in found.subsets} == expected
    assert (found.best, found.worst) == (best, worst)
