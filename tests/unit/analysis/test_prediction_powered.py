"""Correction by a sample: it covers what it promises, in clustered data and with any judge."""

import numpy as np
import pytest

from dikast.analysis.intervals import Floats, Ints
from dikast.analysis.prediction_powered import corrected_mean, rogan_gladen

RUNS = 1200
COVERED = (0.93, 0.97)


def world(
    rng: np.random.Generator, *, accuracy: float, clusters: int = 400
) -> tuple[Floats, Floats, Floats, Ints]:
    """Prompts of 1 to 5 pairs with a common leaning: what the judge says, what people would say,
    the chance to be drawn (doubt and the judge's verdict decide it), and the prompts."""
    rows = rng.integers(1, 6, size=clusters)
    where = np.repeat(np.arange(clusters), rows)
    leaning = rng.beta(3.0, 2.0, size=clusters)[where]
    truth = (rng.random(len(where)) < leaning).astype(np.float64)
    right = rng.random(len(where)) < accuracy
    said = np.where(right, truth, 1 - truth)
    chance = np.where(said > 0.5, 0.12, 0.25)
    return said, truth, chance, where


def labelled(rng: np.random.Generator, truth: Floats, chance: Floats) -> Floats:
    seen = rng.random(len(truth)) < chance
    return np.where(seen, truth, np.nan)


@pytest.mark.parametrize("accuracy", [0.5, 0.8, 0.95])
def test_the_corrected_mean_covers_the_truth_whatever_the_judge(accuracy: float) -> None:
    rng = np.random.default_rng(7)
    hit = alone = 0
    for _ in range(RUNS):
        said, truth, chance, where = world(rng, accuracy=accuracy)
        found = corrected_mean(said, labelled(rng, truth, chance), chance, where)
        assert found.interval is not None
        assert found.predicted_interval is not None
        hit += found.interval.low <= 0.6 <= found.interval.high
        alone += found.predicted_interval.low <= 0.6 <= found.predicted_interval.high
    assert COVERED[0] <= hit / RUNS <= COVERED[1]
    # The judge alone is sure of the wrong thing, the more so the worse it is.
    assert alone / RUNS < (0.92 if accuracy > 0.9 else 0.4)


def test_a_good_judge_narrows_the_interval_and_a_coin_does_not_widen_it() -> None:
    rng = np.random.default_rng(8)
    said, truth, chance, where = world(rng, accuracy=0.95, clusters=2000)
    labels = labelled(rng, truth, chance)
    good = corrected_mean(said, labels, chance, where)
    coin = corrected_mean(rng.integers(0, 2, len(said)).astype(float), labels, chance, where)
    assert good.interval is not None
    assert good.labels_only_interval is not None
    assert coin.interval is not None
    own = good.labels_only_interval.high - good.labels_only_interval.low
    assert good.interval.high - good.interval.low < 0.75 * own
    assert coin.interval.high - coin.interval.low < 1.02 * own
    assert good.power > 0.8
    assert coin.power < 0.1


def test_weights_undo_a_sample_that_prefers_one_verdict() -> None:
    """Labels alone: without weights the mean would be off by how the sample leans."""
    rng = np.random.default_rng(9)
    said, truth, _, where = world(rng, accuracy=0.8, clusters=20_000)
    chance = np.where(said > 0.5, 0.05, 0.8)
    labels = labelled(rng, truth, chance)
    found = corrected_mean(said, labels, chance, where)
    assert found.labels_only == pytest.approx(0.6, abs=0.02)
    assert abs(float(np.nanmean(labels)) - 0.6) > 0.1
    assert found.effective_n < found.labelled


def test_clusters_count_as_one_look() -> None:
    """Ten copies of every pair say no more than one."""
    rng = np.random.default_rng(10)
    said, truth, _, _ = world(rng, accuracy=0.8, clusters=100)
    labels = labelled(rng, truth, np.full(len(truth), 0.4))
    chance = np.full(len(truth), 0.4)
    own = np.arange(len(said))
    once = corrected_mean(said, labels, chance, own)
    tenfold = corrected_mean(
        np.tile(said, 10), np.tile(labels, 10), np.tile(chance, 10), np.tile(own, 10)
    )
    assert tenfold.interval is not None
    assert once.interval is not None
    assert tenfold.interval.low == pytest.approx(once.interval.low)
    assert tenfold.interval.high == pytest.approx(once.interval.high)
    assert tenfold.value == pytest.approx(once.value)


@pytest.mark.parametrize("accuracy", [0.75, 0.92])
def test_rogan_gladen_covers_the_true_share(accuracy: float) -> None:
    rng = np.random.default_rng(11)
    hit = 0
    for _ in range(RUNS):
        said, truth, chance, where = world(rng, accuracy=accuracy)
        found = rogan_gladen(said, labelled(rng, truth, chance), chance, where)
        assert found.interval is not None
        hit += found.interval.low <= 0.6 <= found.interval.high
    assert COVERED[0] <= hit / RUNS <= COVERED[1]


def test_rogan_gladen_is_the_textbook_formula() -> None:
    said = np.array([1.0] * 30 + [0.0] * 70)
    truth = np.full(100, np.nan)
    truth[:10] = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
    truth[30:50] = [1, 1] + [0] * 18
    found = rogan_gladen(said, truth, np.ones(100), np.arange(100))
    assert found.sensitivity == pytest.approx(8 / 10)
    assert found.specificity == pytest.approx(18 / 20)
    assert found.value == pytest.approx((0.3 + 0.9 - 1) / (0.8 + 0.9 - 1))


def test_degenerate_samples_are_explained_and_never_sure() -> None:
    one = np.ones(50)
    half = np.array([0.0, 1.0] * 25)
    where = np.arange(50)
    nothing = corrected_mean(one, np.full(50, np.nan), one, where)
    assert (nothing.value, nothing.interval, nothing.why) == (None, None, "no labelled pair")
    assert corrected_mean(one[:0], one[:0], one[:0], where[:0]).why == "no pair"
    alike = corrected_mean(half, np.where(where < 20, 1.0, np.nan), one, where)
    assert alike.interval is not None
    assert alike.interval.low == pytest.approx(20 / (20 + 1.959964**2))
    assert alike.why is not None
    assert "alike" in alike.why
    agreeing = corrected_mean(half, np.where(where < 20, half, np.nan), one, where)
    assert agreeing.interval == agreeing.labels_only_interval
    assert agreeing.why is not None
    assert "no label differs" in agreeing.why
    lonely = corrected_mean(half, np.where(where < 4, half, np.nan), one, np.zeros(50, int))
    assert lonely.interval is None
    assert lonely.why is not None
    assert "two prompts" in lonely.why
    assert rogan_gladen(half, np.where(where < 20, 1.0, np.nan), one, where).why is not None
    chance = rogan_gladen(half, np.where(where < 20, where % 4 // 2, np.nan), one, where)
    assert chance.value is None
    assert chance.why is not None
    assert "chance" in chance.why
    perfect = rogan_gladen(half, np.where(where < 20, half, np.nan), one, where)
    plain = rogan_gladen(half, half, one, where)
    assert perfect.interval is not None
    assert plain.interval is not None
    assert perfect.interval.high - perfect.interval.low > plain.interval.high - plain.interval.low
