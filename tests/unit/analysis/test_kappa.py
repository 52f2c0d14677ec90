"""Agreement coefficients: equal to scikit-learn, statsmodels and krippendorff, and their laws."""

from collections.abc import Callable
from typing import Any

import krippendorff as reference
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support
from statsmodels.stats.inter_rater import fleiss_kappa

from dikast.analysis import kappa
from dikast.analysis.intervals import Floats

code = st.integers(min_value=0, max_value=2)
two_raters = st.lists(st.tuples(code, code), min_size=2, max_size=60)
many = st.lists(
    st.lists(st.one_of(st.none(), code), min_size=4, max_size=4), min_size=3, max_size=30
)
LEVELS = ("nominal", "ordinal", "interval")


def confusion(pairs: list[tuple[int, int]]) -> Floats:
    first, second = np.array(pairs, dtype=np.int64).T
    return kappa.confusion_rows(first, second, 3)


def counts_of(rows: list[list[int | None]]) -> Floats:
    counts: Floats = np.zeros((len(rows), 3))
    for at, row in enumerate(rows):
        for value in row:
            if value is not None:
                counts[at, value] += 1
    return counts


def shown(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, abs=1e-9)


@given(pairs=two_raters)
def test_cohen_equals_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    first, second = zip(*pairs, strict=True)
    ours = kappa.value_of(confusion(pairs), kappa.cohen)
    if len(set(first) | set(second)) == 1:
        assert ours is None  # both always say the same one thing
    else:
        assert ours == pytest.approx(cohen_kappa_score(first, second), abs=1e-9)


@given(pairs=two_raters)
def test_macro_figures_equal_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    truth, said = zip(*pairs, strict=True)
    how: dict[str, Any] = {"average": "macro", "zero_division": 0}
    theirs: Any = precision_recall_fscore_support(truth, said, **how)
    parts: tuple[Any, ...] = ("precision", "recall", "f1")
    ours = [kappa.value_of(confusion(pairs), kappa.macro(part)) for part in parts]
    assert ours == pytest.approx(theirs[:3], abs=1e-9)


@given(rows=st.lists(st.lists(code, min_size=5, max_size=5), min_size=2, max_size=30))
def test_fleiss_equals_statsmodels(rows: list[list[int]]) -> None:
    counts = counts_of([list(row) for row in rows])
    ours = kappa.FLEISS.of(counts)
    if (counts.sum(axis=0) > 0).sum() == 1:
        assert ours is None
    else:
        assert ours == pytest.approx(fleiss_kappa(counts), abs=1e-9)


@pytest.mark.parametrize("level", LEVELS)
@given(rows=many)
def test_alpha_with_missing_ratings_equals_the_krippendorff_package(
    level: Any, rows: list[list[int | None]]
) -> None:
    data = np.array([[np.nan if v is None else float(v) for v in row] for row in rows]).T
    paired = [[v for v in row if v is not None] for row in rows]
    paired = [row for row in paired if len(row) > 1]
    ours = kappa.krippendorff(level).of(counts_of(rows)) if paired else None
    if len({value for row in paired for value in row}) < 2:
        assert ours is None
        return
    theirs = reference.alpha(
        reliability_data=data, level_of_measurement=level, value_domain=[0.0, 1.0, 2.0]
    )
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_ac1_of_many_raters_is_what_its_definition_says() -> None:
    rows: list[list[int | None]] = [
        [0, 0, 0, 2], [2, 2, None, 2], [1, 1, 2, None], [0, None, None, None], [2, 2, 2, 2],
    ]  # fmt: skip
    agreed, shares = [], []
    for row in rows:
        given = [value for value in row if value is not None]
        shares.append([given.count(k) / len(given) for k in range(3)])
        if len(given) > 1:
            pairs = sum(given.count(k) * (given.count(k) - 1) for k in range(3))
            agreed.append(pairs / (len(given) * (len(given) - 1)))
    mean = [sum(column) / len(rows) for column in zip(*shares, strict=True)]
    expected = sum(p * (1 - p) for p in mean) / 2
    observed = sum(agreed) / len(agreed)
    wanted = (observed - expected) / (1 - expected)
    assert kappa.GWET.of(counts_of(rows)) == pytest.approx(wanted)


def test_ac1_of_two_raters_is_the_same_by_either_way() -> None:
    pairs = [(0, 0), (0, 2), (2, 2), (1, 2), (2, 2), (0, 0)]
    rows: list[list[int | None]] = [list(pair) for pair in pairs]
    two = kappa.value_of(confusion(pairs), kappa.gwet_of_two)
    assert two == pytest.approx(kappa.GWET.of(counts_of(rows)))


STATISTICS = [kappa.cohen, kappa.gwet_of_two, kappa.agreement]


@pytest.mark.parametrize("statistic", STATISTICS)
@given(pairs=two_raters, names=st.permutations([0, 1, 2]))
def test_other_names_for_the_classes_change_nothing(
    statistic: Callable[[Floats], Floats], pairs: list[tuple[int, int]], names: list[int]
) -> None:
    renamed = [(names[a], names[b]) for a, b in pairs]
    turned = [(b, a) for a, b in pairs]
    value = kappa.value_of(confusion(pairs), statistic)
    assert kappa.value_of(confusion(renamed), statistic) == shown(value)
    assert kappa.value_of(confusion(turned), statistic) == shown(value)
    assert kappa.value_of(confusion(pairs * 3), statistic) == shown(value)


@given(rows=many, names=st.permutations([0, 1, 2]), order=st.permutations([0, 1, 2, 3]))
def test_raters_and_class_names_may_change_places(
    rows: list[list[int | None]], names: list[int], order: list[int]
) -> None:
    renamed = [[None if v is None else names[v] for v in row] for row in rows]
    moved = [[row[at] for at in order] for row in rows]
    for each in (kappa.FLEISS, kappa.GWET, kappa.krippendorff("nominal")):
        value = each.of(counts_of(rows))
        assert each.of(counts_of(renamed)) == shown(value)
        assert each.of(counts_of(moved)) == shown(value)
    for level in ("ordinal", "interval"):
        value = kappa.krippendorff(level).of(counts_of(rows))
        mirrored = [[None if v is None else 2 - v for v in row] for row in rows]
        assert kappa.krippendorff(level).of(counts_of(mirrored)) == shown(value)


def test_an_interval_scale_may_have_other_values() -> None:
    counts = counts_of(
        [[0, 1, None, None], [2, 2, None, None], [0, 0, None, None], [1, 2, None, None]]
    )
    theirs = reference.alpha(
        value_counts=counts.astype(int), value_domain=[1.0, 5.0, 6.0],
        level_of_measurement="interval",
    )  # fmt: skip
    ours = kappa.krippendorff("interval", (1.0, 5.0, 6.0)).of(counts)
    assert ours == pytest.approx(theirs)


@pytest.mark.slow
def test_intervals_of_kappa_and_alpha_cover_93_to_97_percent() -> None:
    """Two judges of equal skill on prompts of 1 to 4 pairs; the truth from a large sample."""

    def sample(rng: np.random.Generator, prompts: int) -> tuple[Floats, Floats, Any]:
        clusters = np.repeat(np.arange(prompts), rng.integers(1, 5, size=prompts))
        skill = rng.beta(4, 2, size=prompts)[clusters]
        truth = rng.choice(3, p=[0.5, 0.2, 0.3], size=len(clusters))
        said = [
            np.where(rng.random(len(truth)) < skill, truth, rng.integers(0, 3, len(truth)))
            for _ in range(2)
        ]
        counts: Floats = np.zeros((len(truth), 3))
        for each in said:
            counts[np.arange(len(truth)), each] += 1
        return kappa.confusion_rows(said[0], said[1], 3), counts, clusters

    alpha = kappa.krippendorff("ordinal")
    whole = sample(np.random.default_rng(1), 200_000)
    wanted = (kappa.value_of(whole[0], kappa.cohen), alpha.of(whole[1]))
    rng = np.random.default_rng(2)
    covered = np.zeros(2)
    for run in range(600):
        table, counts, clusters = sample(rng, 80)
        found = [
            kappa.estimate_of(table, kappa.cohen, clusters, seed=run, draws=400, level=0.95),
            kappa.estimate_of(
                alpha.features(counts), alpha.statistic, clusters, seed=run, draws=400, level=0.95
            ),
        ]
        for at, each in enumerate(found):
            assert each.interval is not None
            truth = wanted[at]
            assert truth is not None
            covered[at] += each.interval.low <= truth <= each.interval.high
    assert np.all(covered >= 0.93 * 600)
    assert np.all(covered <= 0.97 * 600)
