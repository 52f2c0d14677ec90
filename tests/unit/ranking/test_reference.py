"""Two rankings side by side, by hand and by scipy."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from dikast.analysis.ranking import Place, compare_rankings, read_places, separability
from dikast.engine.errors import InputError

HERE = [
    Place("a", 4, 3.5, 4.5),
    Place("b", 3, 2.8, 3.2),
    Place("c", 2, 1.0, 3.0),
    Place("d", 1, 0, 0.5),
]
THERE = [
    Place("a", 3, 2.5, 3.5),
    Place("b", 4, 3.6, 4.4),
    Place("c", 2, 1.5, 2.4),
    Place("d", 1, 0, 2.6),
]


def test_separation_and_agreement_are_those_counted_by_hand() -> None:
    found = compare_rankings(HERE, THERE)

    # here all but b-c are apart; there a-b (the other way round), a-c, b-c and b-d are
    assert found.pairs == 6
    assert found.separability == pytest.approx(5 / 6)
    assert found.reference_separability == pytest.approx(4 / 6)
    assert (found.agree, found.disagree) == (2, 1)
    assert found.agreement_with_confidence == pytest.approx(1 / 6)
    assert found.same_order == pytest.approx(5 / 6)
    assert separability(HERE) == found.separability


def test_the_correlations_are_those_of_scipy_with_ties() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 8, 15).astype(float), rng.integers(0, 8, 15).astype(float)
    y += x
    found = compare_rankings(
        [Place(str(k), value) for k, value in enumerate(x)],
        [Place(str(k), value) for k, value in enumerate(y)],
    )

    assert found.kendall_tau_b == pytest.approx(kendalltau(x, y).statistic)
    assert found.spearman == pytest.approx(spearmanr(x, y).statistic)
    assert found.kendall_interval is not None
    assert found.kendall_tau_b is not None
    assert found.kendall_interval.low < found.kendall_tau_b < found.kendall_interval.high
    assert found.separability is None
    assert any("Without intervals" in note for note in found.notes)


def test_of_a_perfect_correlation_no_interval_is_said() -> None:
    many = [Place(str(k), float(k)) for k in range(9)]
    found = compare_rankings(many, many)

    assert found.kendall_tau_b == pytest.approx(1)
    assert (found.kendall_interval, found.spearman_interval) == (None, None)


def test_equal_ratings_have_no_correlation_and_that_is_said() -> None:
    found = compare_rankings([Place(name, 1.0) for name in "abc"], HERE)

    assert found.kendall_tau_b is None
    assert found.same_order is None
    assert any("all models equal" in note for note in found.notes)


def test_rankings_without_shared_models_are_refused() -> None:
    with pytest.raises(InputError, match="are the models named alike"):
        compare_rankings(HERE, [Place("x", 1), Place("y", 2), Place("a", 3)])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "holds no ranking"),
        ("model,rating\n", "holds no ranking"),
        ("model,points\na,1\n", "is no place in a ranking"),
        ("model,rating\na,many\n", "line 2, field 'rating': is not a number"),
        ("model,rating\na,inf\n", "is not a number"),
        ('{"models": [{"name": "a"}]}', "is not a ranking printed by dikast rank"),
    ],
)
def test_a_reference_that_is_none_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "reference.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_places(path)


def test_a_csv_with_other_column_names_is_read(tmp_path: Path) -> None:
    path = tmp_path / "reference.csv"
    path.write_text("item,score,lower,upper\na,2,1,3\nb,1,,\n")
    assert read_places(path) == [Place("a", 2.0, 1.0, 3.0), Place("b", 1.0)]
