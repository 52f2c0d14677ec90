"""Which comparisons would sharpen the ranking most: active matchmaking.

One more battle between i and j shrinks the covariance of the strengths by a known amount. What
counts is the variance of those differences whose sign is still open, so each pair of models (k, l)
is weighted by the normal density at its z-score: near 0 the order is undecided and the weight is
large, far out it is settled and the weight vanishes. The best battle is the one that takes most
from the weighted sum of variances; it is entered as if played, and the next one is looked for.

The one-step gain is that of Bayesian A-optimal design for logistic models (Chaloner and Verdinelli
1995, Statistical Science 10) with ordering weights of our own.
"""

from typing import NamedTuple, cast

import numpy as np
from scipy.stats import norm

from dikast.analysis.ranking.battles import Floats
from dikast.analysis.ranking.standings import Standings
from dikast.engine.errors import InputError

_NO_SPREAD = 1e-12
_PRIOR_SD = 1.0


class Proposal(NamedTuple):
    """Compare these two models `battles` more times.

    `wrong_order` is the probability that the present order of the two is wrong, and `gain` the
    share of all that is still open which these battles are expected to settle.
    """

    model_a: str
    model_b: str
    battles: int
    wrong_order: float
    met: int
    gain: float


def propose(standings: Standings, battles: int) -> tuple[Proposal, ...]:
    """The next battles that are expected to sharpen the ranking most.

    Args:
        standings: the ranking so far.
        battles: how many to hand out, at least 1. The costs grow with its product with models^3.

    Returns:
        Pairs of models, those with most battles first; the numbers sum to `battles`.

    Raises:
        InputError: fewer than one battle asked for, or fewer than two models.
    """
    n = len(standings.models)
    if battles < 1:
        raise InputError("the number of battles to propose is at least 1")
    if n < 2:
        raise InputError("matchmaking needs at least two models")
    strengths, covariance = standings.strengths, _bridged(standings)
    gap = strengths[:, None] - strengths[None, :]
    before = _open(gap, covariance)
    p = 1 / (1 + np.exp(-gap))
    information = p * (1 - p)
    chosen = np.zeros((n, n), dtype=np.int64)
    gains = np.zeros((n, n))
    for _ in range(battles):
        gain = _gains(gap, covariance, information)
        best = int(np.argmax(np.triu(gain, 1)))
        i, j = divmod(best, n)
        chosen[i, j] += 1
        gains[i, j] += gain[i, j]
        covariance = _after(covariance, i, j, float(information[i, j]))
    wrong = _wrong_order(gap, _bridged(standings))
    found: list[Proposal] = []
    for i, j in cast("list[tuple[int, int]]", np.argwhere(chosen).tolist()):
        first, second = sorted((standings.models[i], standings.models[j]))
        found.append(
            Proposal(
                first,
                second,
                battles=int(chosen[i, j]),
                wrong_order=float(wrong[i, j]),
                met=round(float(standings.met[i, j])),
                gain=float(gains[i, j]) / max(before, _NO_SPREAD),
            )
        )
    return tuple(sorted(found, key=lambda each: (-each.battles, each.model_a, each.model_b)))


def _bridged(standings: Standings) -> Floats:
    """The covariance from curvature; groups that never met are open by a prior's width."""
    groups = standings.structure.groups
    covariance = standings.model_covariance.copy()
    for group in range(standings.structure.group_count if groups.max() else 0):
        mine = (groups == group).astype(float)
        covariance += _PRIOR_SD**2 * np.outer(mine, mine)
    return covariance


def _variance(covariance: Floats) -> Floats:
    spread = np.diag(covariance)
    return np.maximum(spread[:, None] + spread[None, :] - 2 * covariance, _NO_SPREAD)


def _weights(gap: Floats, covariance: Floats) -> Floats:
    """How open the order of every two models is."""
    weights = np.asarray(norm.pdf(gap / np.sqrt(_variance(covariance))))
    np.fill_diagonal(weights, 0.0)
    return weights


def _open(gap: Floats, covariance: Floats) -> float:
    return float((_weights(gap, covariance) * _variance(covariance)).sum())


def _gains(gap: Floats, covariance: Floats, information: Floats) -> Floats:
    """What one battle between i and j takes from the weighted sum of variances, shape (n, n).

    With u = V (e_i - e_j) the battle takes h / (1 + h v_ij) times the weighted sum of
    (u_k - u_l)^2, which is 2 u' L u with the Laplacian L of the weights.
    """
    weights = _weights(gap, covariance)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    spread = covariance @ laplacian @ covariance
    quadratic = np.diag(spread)[:, None] + np.diag(spread)[None, :] - 2 * spread
    return np.asarray(2 * quadratic * information / (1 + information * _variance(covariance)))


def _after(covariance: Floats, i: int, j: int, information: float) -> Floats:
    """The covariance once the battle is played (Sherman and Morrison)."""
    u = covariance[:, i] - covariance[:, j]
    return np.asarray(covariance - information * np.outer(u, u) / (1 + information * (u[i] - u[j])))


def _wrong_order(gap: Floats, covariance: Floats) -> Floats:
    return np.asarray(norm.cdf(-np.abs(gap) / np.sqrt(_variance(covariance))))
