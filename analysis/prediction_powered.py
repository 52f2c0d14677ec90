"""A judge on everything and people on a sample, put together: estimates that owe the judge nothing.

Used by `dikast audit report`. What is said about all pairs comes from the judge and is moved by
how far people differ from it on the sample, each labelled pair weighted by one over the
probability with which it was drawn. A bad judge makes an interval wide, never wrong. Intervals
are robust to pairs that share a prompt. Pure arrays: (pairs,) columns with NaN where there is no
label.
"""

from typing import Final

import msgspec
import numpy as np
from scipy import special

from dikast.analysis.intervals import Floats, Interval, Ints, finite, wilson, z_of
from dikast.analysis.kappa import summed

_TINY: Final = 1e-12
_YOUDEN_MIN: Final = 0.1


class Corrected(msgspec.Struct, frozen=True):
    """A mean over all pairs. `pairs` of them have a prediction, `labelled` a label too.

    `predicted` is what the judge alone says, `labels_only` what the weighted labels alone say,
    `value` is prediction-powered, each with its interval. `power` is the weight lambda that the
    predictions were given (0: they did not help). `effective_n` is Kish's effective number of
    labelled prompts. `why` says why there is no value or what the interval is instead.
    """

    pairs: int
    labelled: int
    predicted: float | None
    predicted_interval: Interval | None
    labels_only: float | None
    labels_only_interval: Interval | None
    value: float | None
    interval: Interval | None
    power: float
    effective_n: float
    why: str | None = None


class PassRate(msgspec.Struct, frozen=True):
    """A share corrected for the judge's sensitivity and specificity; `apparent` is what it says."""

    pairs: int
    labelled: int
    apparent: float | None
    sensitivity: float | None
    specificity: float | None
    value: float | None
    interval: Interval | None
    why: str | None = None


def corrected_mean(
    predictions: Floats,
    labels: Floats,
    probabilities: Floats,
    clusters: Ints,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Corrected:
    """The mean label of all pairs: lambda mean(f) + weighted mean of (y - lambda f) on the sample.

    lambda is the value in 0 to 1 with the smallest estimated variance, so that predictions never
    do harm in large samples. The variance sums the influence of each pair by cluster, with
    m / (m - 1) for m labelled clusters, and the interval takes Student's t with m - 1 degrees.
    Where no label differs from its prediction the sample shows no doubt of its own, and the
    interval is that of the labels alone; where those are all alike too, it is Wilson's.

    Args:
        predictions: (n,) what the judge says of every pair.
        labels: (n,) what people say, NaN where nobody looked.
        probabilities: (n,) chance of each labelled pair to be labelled; others are not looked at.
        clusters: (n,) prompt of every pair.
        level: confidence level.
        bounds: the smallest and the largest label there can be.

    Source: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, Science 382, 669-674;
    Angelopoulos, Duchi and Zrnic 2023, PPI++, arXiv 2311.01453; weights: Hajek 1971.
    """
    n, seen = len(predictions), ~np.isnan(labels)
    labelled = int(np.count_nonzero(seen))
    if not n or not labelled:
        nothing = "no pair" if not n else "no labelled pair"
        return Corrected(n, labelled, None, None, None, None, None, None, 0.0, 0.0, nothing)
    weights = _weights(seen, probabilities)
    f, y = predictions, np.where(seen, labels, 0.0)
    mean_f, seen_f, seen_y = float(f.mean()), float(weights @ f), float(weights @ y)
    judge = (f - mean_f) / n
    influence = np.column_stack([weights * (y - seen_y), judge - weights * (f - seen_f)])
    a, b = summed(influence, clusters).T
    m, effective = _cluster_sizes(weights, clusters)
    # The estimate's influence is a + lambda b: the smallest sum of squares gives lambda.
    room = float(b @ b)
    power = min(1.0, max(0.0, -float(a @ b) / room)) if room > _TINY**2 else 0.0
    own = _t_interval(seen_y, a, m, level, bounds)
    alone = _t_interval(mean_f, summed(judge[:, None], clusters)[:, 0], 0, level, bounds)
    residual = np.abs(weights * (y - power * f - (seen_y - power * seen_f))).max()
    why: str | None = None
    value, interval = seen_y + power * (mean_f - seen_f), own
    if m < 2:
        why = "labels of at least two prompts are needed for an interval"
        interval = own = None
    elif np.ptp(labels[seen]) <= _TINY:
        why = "all labels are alike: Wilson's interval over labelled prompts"
        value, power = seen_y, 0.0
        interval = own = _alike(seen_y, effective, level, bounds)
    elif residual <= _TINY:
        why = "no label differs from its prediction: the interval of the labels alone"
        value, power = seen_y, 0.0
    else:
        interval = _t_interval(value, a + power * b, m, level, bounds)
    value = min(bounds[1], max(bounds[0], value))
    return Corrected(
        n, labelled, mean_f, alone, seen_y, own, value, interval, power, effective, why
    )


def rogan_gladen(
    passes: Floats,
    truth: Floats,
    probabilities: Floats,
    clusters: Ints,
    *,
    level: float = 0.95,
) -> PassRate:
    """The true share of passes from the judge's, its sensitivity and its specificity.

    (apparent + specificity - 1) / (sensitivity + specificity - 1), both rates from the weighted
    labels; the variance by the delta method over clusters. A rate of 0 or 1 in the sample gets
    the doubt of one more case each way (Lang and Reiczigel 2014, Preventive Veterinary Medicine
    113, 13-22).

    Args:
        passes: (n,) 1 where the judge lets a pair pass, else 0.
        truth: (n,) what people say, NaN where nobody looked.
        probabilities: as in `corrected_mean`.
        clusters: (n,) prompt of every pair.
        level: confidence level.

    Source: Rogan and Gladen 1978, American Journal of Epidemiology 107, 71-76.
    """
    n, seen = len(passes), ~np.isnan(truth)
    labelled = int(np.count_nonzero(seen))
    good, bad = seen & (truth > 0.5), seen & (truth <= 0.5)
    if not n or not np.any(good) or not np.any(bad):
        why = "needs labelled pairs of both kinds"
        apparent = float(passes.mean()) if n else None
        return PassRate(n, labelled, apparent, None, None, None, None, why)
    apparent = float(passes.mean())
    w_good, w_bad = _weights(good, probabilities), _weights(bad, probabilities)
    sensitivity, specificity = float(w_good @ passes), float(w_bad @ (1 - passes))
    youden = sensitivity + specificity - 1
    if youden < _YOUDEN_MIN:
        why = "the judge tells passes from failures hardly better than chance"
        return PassRate(n, labelled, apparent, sensitivity, specificity, None, None, why)
    value = (apparent + specificity - 1) / youden
    to_sensitivity, to_specificity = -value / youden, (1 - value) / youden
    influence = (
        (passes - apparent) / n / youden
        + to_sensitivity * w_good * (passes - sensitivity)
        + to_specificity * w_bad * (1 - passes - specificity)
    )
    sums = summed(influence[:, None], clusters)[:, 0]
    m, _ = _cluster_sizes(_weights(seen, probabilities), clusters)
    if m < 2:
        why = "labels of at least two prompts are needed for an interval"
        return PassRate(n, labelled, apparent, sensitivity, specificity, value, None, why)
    variance = float(sums @ sums) * m / (m - 1)
    for rate, slope, part in (
        (sensitivity, to_sensitivity, w_good),
        (specificity, to_specificity, w_bad),
    ):
        if rate <= _TINY or rate >= 1 - _TINY:
            cases = _cluster_sizes(part, clusters)[1]
            smoothed = 1 / (cases + 2)
            variance += slope**2 * smoothed * (1 - smoothed) / (cases + 2)
    half = _t(m - 1, level) * variance**0.5
    low, high = max(0.0, value - half), min(1.0, value + half)
    interval = Interval(low, high, level, "Rogan-Gladen, delta method over prompts")
    return PassRate(
        n, labelled, apparent, sensitivity, specificity, min(1.0, max(0.0, value)), interval
    )


def _weights(seen: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]", chance: Floats) -> Floats:
    """One over the probability for those seen, scaled to sum 1; 0 for the rest."""
    raw = np.where(seen, 1.0 / np.where(seen, chance, 1.0), 0.0)
    result: Floats = raw / raw.sum()
    return result


def _cluster_sizes(weights: Floats, clusters: Ints) -> tuple[int, float]:
    """How many clusters have weight, and Kish's effective number of them."""
    mass = summed(weights[:, None], clusters)[:, 0]
    return int(np.count_nonzero(mass)), float(mass.sum() ** 2 / (mass @ mass))


def _t(degrees: int, level: float) -> float:
    z_of(level)
    return float(special.stdtrit(float(degrees), 0.5 + level / 2))


def _t_interval(
    value: float, influence: Floats, m: int, level: float, bounds: tuple[float, float]
) -> Interval | None:
    """Around `value`, from influence sums by cluster; m labelled clusters, 0 for all of them."""
    count = m or len(influence)
    if count < 2:
        return None
    error = (float(influence @ influence) * count / (count - 1)) ** 0.5
    half = _t(count - 1, level) * error
    low, high = max(bounds[0], value - half), min(bounds[1], value + half)
    return Interval(low, high, level, f"cluster-robust, Student's t of {count - 1:,}")


def _alike(
    value: float, effective: float, level: float, bounds: tuple[float, float]
) -> Interval | None:
    """All labels have one value: how far the mean of others could be from it."""
    low, high = bounds
    share = finite((value - low) / (high - low))
    if share is None:
        return None
    found = wilson(min(1.0, max(0.0, share)) * effective, effective, level)
    scale = high - low
    return Interval(low + scale * found.low, low + scale * found.high, level, "wilson over prompts")
