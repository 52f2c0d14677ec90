"""Fits the map from a raw confidence to the chance of agreeing with people, and measures it.

After a run on labelled pairs. Pure: arrays and a seed in, a fit out; knows no files, no outcomes
and no strategies. The formulas are those of docs/confidence.md.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

Floats = npt.NDArray[np.float64]
Method = Literal["isotonic", "platt"]
BINS: Final = 10
_PLACES: Final = 9  # raw numbers closer than this are equal


class Fit(NamedTuple):
    """A fitted map: corners of an isotonic one (flat outside), or Platt's slope and intercept."""

    method: Method
    knots: tuple[tuple[float, float], ...] = ()
    slope: float = 0.0
    intercept: float = 0.0

    def probabilities(self, raw: Floats) -> Floats:
        """The map at every `raw`."""
        if self.method == "platt":
            return _expit(self.slope * raw + self.intercept)
        x, y = np.array(self.knots, dtype=np.float64).T
        return cast(Floats, np.interp(raw, x, y))


class Measures(NamedTuple):
    """Expected calibration error and Brier score, both 0 (best) to 1."""

    ece: float
    brier: float


class Validated(NamedTuple):
    """The measures of the raw confidence and of maps on what they were not fitted on."""

    before: Measures
    after: Measures
    folds: int


def fit(method: Method, raw: Sequence[float] | Floats, agreed: Sequence[float] | Floats) -> Fit:
    """Fit a map.

    Args:
        method: "isotonic" (never decreasing, no shape assumed) or "platt" (a sigmoid).
        raw: raw confidences, shape (n,).
        agreed: 1.0 where people agreed, else 0.0, shape (n,).

    Raises:
        ValueError: no data, unequal shapes, or numbers that are not finite.
    """
    x, y = np.asarray(raw, dtype=np.float64), np.asarray(agreed, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1 or not len(x):
        raise ValueError("raw and agreed are two equally long lists of at least one number")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("raw and agreed must be finite")
    return _isotonic(x, y) if method == "isotonic" else _platt(x, y)


def _isotonic(raw: Floats, agreed: Floats) -> Fit:
    """Least squares under monotony, equal raw values pooled first.

    Source: Barlow et al. 1972, Statistical Inference under Order Restrictions (pool adjacent
    violators); Zadrozny and Elkan 2002, KDD (for calibration).
    """
    x, places, counts = np.unique(raw.round(_PLACES), return_inverse=True, return_counts=True)
    means = np.bincount(places, weights=agreed) / counts
    fitted = optimize.isotonic_regression(means, weights=counts.astype(np.float64)).x
    knots = [(float(at), float(value)) for at, value in zip(x, fitted, strict=True)]
    kept = [
        knot
        for number, knot in enumerate(knots)
        if number in (0, len(knots) - 1)
        or not knots[number - 1][1] == knot[1] == knots[number + 1][1]
    ]
    return Fit("isotonic", knots=tuple((at, min(1.0, max(0.0, value))) for at, value in kept))


def _platt(raw: Floats, agreed: Floats) -> Fit:
    """Maximum likelihood of a sigmoid, with Platt's targets in the place of 0 and 1.

    Source: Platt 1999, Probabilistic outputs for support vector machines, section 2.2.
    """
    hits = float(agreed.sum())
    misses = len(agreed) - hits
    target = np.where(agreed > 0.5, (hits + 1) / (hits + 2), 1 / (misses + 2))
    # Centred and scaled, so that the search does not depend on the unit of the raw number.
    middle, spread = float(raw.mean()), float(raw.std()) or 1.0
    scaled = (raw - middle) / spread

    def loss(at: Floats) -> tuple[float, Floats]:
        value = at[0] * scaled + at[1]
        off = _expit(value) - target
        total = float(np.sum(np.logaddexp(0.0, value) - target * value))
        return total, np.array([float(off @ scaled), float(np.sum(off))])

    start = np.array([0.0, float(np.log((hits + 1) / (misses + 1)))])
    found = optimize.minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9})
    slope = float(found.x[0]) / spread
    return Fit("platt", slope=slope, intercept=float(found.x[1]) - slope * middle)


def measures(probability: Floats, agreed: Floats, bins: int = BINS) -> Measures:
    """How far probabilities are from what happened.

    The expected calibration error is the mean over bins of equal width, weighted by their number,
    of |mean probability - share that agreed| (Naeini et al. 2015, AAAI; Guo et al. 2017, ICML).
    Probabilities outside 0 to 1 are taken as the nearer end.
    """
    clipped = np.clip(probability, 0.0, 1.0)
    place = np.minimum((clipped * bins).astype(np.int64), bins - 1)
    gap = np.bincount(place, weights=clipped - agreed, minlength=bins)
    return Measures(
        ece=float(np.abs(gap).sum() / len(agreed)), brier=float(np.mean((clipped - agreed) ** 2))
    )


def cross_validate(
    method: Method,
    raw: Sequence[float] | Floats,
    agreed: Sequence[float] | Floats,
    *,
    folds: int = 5,
    bins: int = BINS,
    seed: int = 0,
) -> Validated:
    """Measure the raw confidence, and maps on the verdicts that each was not fitted on.

    Each part is measured by itself and the means are given: over all parts together, a map that is
    too high on one would be set off by one that is too low on another. Few verdicts in a part make
    the calibration error larger than it is, before and after alike.

    Args:
        method: as for `fit`.
        raw: raw confidences.
        agreed: as for `fit`.
        folds: into how many parts the verdicts are cut at random; at least 2.
        bins: of the calibration error.
        seed: decides the parts.

    Raises:
        ValueError: fewer verdicts than folds, or fewer than two folds.
    """
    if not 2 <= folds <= len(raw):
        raise ValueError(f"{folds} folds need at least 2, and as many verdicts as folds")
    x, y = np.asarray(raw, dtype=np.float64), np.asarray(agreed, dtype=np.float64)
    part = np.random.default_rng(seed).permutation(len(x)) % folds
    before: list[Measures] = []
    after: list[Measures] = []
    sizes: list[int] = []
    for number in range(folds):
        held = part == number
        mapped = fit(method, x[~held], y[~held]).probabilities(x[held])
        before.append(measures(x[held], y[held], bins))
        after.append(measures(mapped, y[held], bins))
        sizes.append(int(np.count_nonzero(held)))
    return Validated(_mean(before, sizes), _mean(after, sizes), folds)


def _mean(each: Sequence[Measures], sizes: Sequence[int]) -> Measures:
    return Measures(
        float(np.average([one.ece for one in each], weights=sizes)),
        float(np.average([one.brier for one in each], weights=sizes)),
    )


def _expit(value: Floats) -> Floats:
    return special.expit(value)
