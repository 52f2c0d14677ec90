"""Three models of a battle: Bradley-Terry, Davidson and Rao-Kupper, as log-likelihoods.

Each says how likely A wins, B wins or a tie is, given d = (strength of A) - (strength of B) and a
tie parameter; each returns the first and second derivatives that the fit and the sandwich need.

Sources: Bradley and Terry 1952 (Biometrika 39); Davidson 1970 (JASA 65, section 2); Rao and Kupper
1967 (JASA 62, section 2). With half a win for a tie, Bradley-Terry is a quasi-likelihood, as in
Chatbot Arena (Chiang et al. 2024, section 4).
"""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import numpy as np
from scipy.special import expit as _expit

from dikast.analysis.ranking.battles import Floats

Model = Literal["bt", "davidson", "rao-kupper"]

TIE_START: Final[dict[Model, float]] = {"davidson": 0.0, "rao-kupper": 0.5}
_SMALL = 1e-300


class Counts(NamedTuple):
    """Weighted wins of A, wins of B and ties; arrays of one shape."""

    a: Floats
    b: Floats
    tie: Floats


class Terms(NamedTuple):
    """Log-likelihood, gradient and negative second derivatives in d and the tie parameter t."""

    value: Floats
    d: Floats
    dd: Floats
    t: Floats
    dt: Floats
    tt: Floats


def bradley_terry(d: Floats, _: Floats, n: Counts) -> Terms:
    """P(A) = 1 / (1 + exp(-d)); a tie is half a win for each."""
    a, b = n.a + n.tie / 2, n.b + n.tie / 2
    p = sigmoid(d)
    zero = np.broadcast_to(0.0, d.shape)
    value = a * d - (a + b) * _softplus(d)
    slope = (a + b) * p
    return Terms(value, a - slope, slope * (1 - p), zero, zero, zero)


def davidson(d: Floats, t: Floats, n: Counts) -> Terms:
    """P(A) : P(tie) : P(B) = exp(d/2) : exp(t) : exp(-d/2)."""
    top = np.maximum(np.abs(d) / 2, t)
    a, b, tie = np.exp(d / 2 - top), np.exp(-d / 2 - top), np.exp(t - top)
    whole = a + b + tie
    a, b, tie = a / whole, b / whole, tie / whole
    total = n.a + n.b + n.tie
    return Terms(
        value=(n.a - n.b) * d / 2 + n.tie * t - total * (top + np.log(whole)),
        d=(n.a - n.b - total * (a - b)) / 2,
        dd=total * (a + b - (a - b) ** 2) / 4,
        t=n.tie - total * tie,
        dt=-total * (a - b) * tie / 2,
        tt=total * tie * (1 - tie),
    )


def rao_kupper(d: Floats, t: Floats, n: Counts) -> Terms:
    """P(A) = 1 / (1 + exp(t - d)), P(B) = 1 / (1 + exp(t + d)); t > 0 is the threshold."""
    a, b = sigmoid(d - t), sigmoid(-d - t)
    tie = np.maximum(1 - a - b, _SMALL)
    qa, qb = a * (1 - a), b * (1 - b)
    ca, cb = qa * (1 - 2 * a), qb * (1 - 2 * b)
    slope_d, slope_t = (qb - qa) / tie, (qa + qb) / tie
    value = n.tie * np.log(tie) - n.a * _softplus(t - d) - n.b * _softplus(t + d)
    return Terms(
        value=value,
        d=n.a * (1 - a) - n.b * (1 - b) + n.tie * slope_d,
        dd=n.a * qa + n.b * qb + n.tie * (slope_d**2 + (ca + cb) / tie),
        t=-n.a * (1 - a) - n.b * (1 - b) + n.tie * slope_t,
        dt=n.b * qb - n.a * qa + n.tie * (slope_d * slope_t - (ca - cb) / tie),
        tt=n.a * qa + n.b * qb + n.tie * (slope_t**2 + (ca + cb) / tie),
    )


LIKELIHOODS: Final[dict[Model, Callable[[Floats, Floats, Counts], Terms]]] = {
    "bt": bradley_terry,
    "davidson": davidson,
    "rao-kupper": rao_kupper,
}


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)) without overflow."""
    return np.asarray(_expit(x), dtype=np.float64)


def _softplus(x: Floats) -> Floats:
    """log(1 + exp(x)) without overflow."""
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))
