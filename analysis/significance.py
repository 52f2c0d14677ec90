"""Whether a difference can be chance: tests on paired verdicts, and what a sample can show.

Used by reports that set two judges or two runs beside each other. All tests are paired: they look
at identical pairs only. Pure; randomness only from a seed argument.
"""

from collections.abc import Sequence
from math import asin, ceil, sqrt
from statistics import NormalDist
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import special

_NORMAL: Final = NormalDist()
_BATCH_CELLS: Final = 1 << 22


class McNemar(msgspec.Struct, frozen=True):
    """McNemar's test of two paired yes-or-no results.

    `b` pairs are right for the first only, `c` for the second only; the rest say nothing.
    `exact_p` is conditional and never too small, `mid_p` is less conservative and the one to
    read, `chi2_p` and `chi2_cc_p` (continuity corrected) are the large-sample forms, None when
    b + c = 0.
    """

    b: int
    c: int
    exact_p: float
    mid_p: float
    chi2_p: float | None
    chi2_cc_p: float | None


def mcnemar(b: int, c: int) -> McNemar:
    """Test whether two judges are right equally often, from the pairs where only one is.

    exact p = min(1, 2 sum_{i <= min(b, c)} C(n, i) / 2^n) with n = b + c, two-sided;
    mid-p = exact - C(n, min(b, c)) / 2^n.

    Raises:
        ValueError: a count is negative.

    Source: Fagerland, Lydersen, Laake 2013, BMC Medical Research Methodology 13:91.
    """
    if b < 0 or c < 0:
        raise ValueError(f"counts are not negative: b = {b}, c = {c}")
    n, least = b + c, min(b, c)
    if n == 0:
        return McNemar(b, c, 1.0, 1.0, None, None)
    tail = float(special.bdtr(least, n, 0.5))
    point = tail - (float(special.bdtr(least - 1, n, 0.5)) if least else 0.0)
    gap = abs(b - c)
    return McNemar(
        b=b,
        c=c,
        exact_p=min(1.0, 2 * tail),
        mid_p=min(1.0, 2 * tail - point),
        chi2_p=float(special.chdtrc(1, gap * gap / n)),
        chi2_cc_p=float(special.chdtrc(1, max(0, gap - 1) ** 2 / n)),
    )


def holm(ps: Sequence[float]) -> list[float]:
    """p-values adjusted for having looked at all of them, in the order given.

    Source: Holm 1979, Scandinavian Journal of Statistics 6, 65-70.
    """
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    adjusted = [0.0] * len(ps)
    floor = 0.0
    for rank, i in enumerate(order):
        floor = max(floor, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = floor
    return adjusted


def permutation_p(differences: npt.ArrayLike, *, seed: int, draws: int = 9999) -> float:
    """Two-sided p of "no difference" by turning the sign of whole clusters at random.

    p = (1 + draws at least as far from zero) / (1 + draws), so it is never 0. Up to 13 clusters
    every sign pattern is looked at instead, and p is exact.

    Args:
        differences: (clusters,) sum of first minus second in each cluster; those at 0 say nothing.
        seed: seed of the signs.
        draws: sign patterns drawn.

    Source: Good 2005, Permutation, Parametric and Bootstrap Tests of Hypotheses, chapter 3.
    """
    values = np.asarray(differences, dtype=np.float64)
    values = values[values != 0]
    if values.size == 0:
        return 1.0
    seen = abs(values.sum()) - 1e-9 * np.abs(values).sum()
    if values.size <= 13:
        patterns = np.arange(1 << values.size)[:, None] >> np.arange(values.size) & 1
        reached = int(np.count_nonzero(np.abs((1 - 2 * patterns) @ values) >= seen))
        return reached / float(len(patterns))
    rng = np.random.default_rng(seed)
    batch = max(1, min(draws, _BATCH_CELLS // values.size))
    count = 0
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        signs = rng.integers(0, 2, size=(size, values.size), dtype=np.int8)
        far = np.abs(values.sum() - 2 * (signs @ values)) >= seen
        count += int(np.count_nonzero(far))
    return (1 + count) / (1 + draws)


# -- planning ---------------------------------------------------------------------------------


def _quantiles(level: float, power: float) -> tuple[float, float]:
    if not (0 < level < 1 and 0 < power < 1):
        raise ValueError(f"level and power lie between 0 and 1: {level}, {power}")
    return _NORMAL.inv_cdf(0.5 + level / 2), _NORMAL.inv_cdf(power)


def paired_effect(n: int, discordant: float, *, level: float = 0.95, power: float = 0.8) -> float:
    """The smallest difference between two judges' accuracies that n paired items can show.

    Solves `paired_n` for the difference; it cannot exceed the share of discordant pairs, and is
    that share where n is too small to show any.

    Args:
        n: paired items.
        discordant: share of items that only one of the two gets right, 0 to 1.
        level, power: 1 - two-sided error of the first kind; chance to find what is there.
    """
    if n <= 0 or discordant <= 0:
        return min(1.0, max(discordant, 0.0)) if n > 0 else 1.0
    low, high = 0.0, discordant
    z_level, z_power = _quantiles(level, power)
    for _ in range(60):
        middle = (low + high) / 2
        if _paired_need(middle, discordant, z_level, z_power) > n:
            low = middle
        else:
            high = middle
    return high


def paired_n(
    difference: float, discordant: float, *, level: float = 0.95, power: float = 0.8
) -> int:
    """Items needed to show a difference between two judges on the same items.

    n = (z_level sqrt(psi) + z_power sqrt(psi - d^2))^2 / d^2, with psi the discordant share.

    Raises:
        ValueError: the difference is 0 or larger than the discordant share.

    Source: Connor 1987, Biometrics 43, 207-211.
    """
    if not 0 < abs(difference) <= discordant <= 1:
        raise ValueError("the difference lies above 0 and not above the share of discordant items")
    z_level, z_power = _quantiles(level, power)
    return ceil(_paired_need(abs(difference), discordant, z_level, z_power) - 1e-9)


def _paired_need(difference: float, discordant: float, z_level: float, z_power: float) -> float:
    if difference <= 0:
        return float("inf")
    inside = max(0.0, discordant - difference**2)
    return (z_level * sqrt(discordant) + z_power * sqrt(inside)) ** 2 / difference**2


def single_effect(n: int, share: float, *, level: float = 0.95, power: float = 0.8) -> float:
    """The smallest rise of one accuracy above `share` that n items can show.

    Solves `single_n` for the difference; 1 - share where n is too small to show any.
    """
    z_level, z_power = _quantiles(level, power)
    room = 1 - share
    if n <= 0 or room <= 0:
        return max(0.0, room)
    low, high = 0.0, room
    for _ in range(60):
        middle = (low + high) / 2
        if middle <= 0 or _single_need(share, share + middle, z_level, z_power) > n:
            low = middle
        else:
            high = middle
    return high


def single_n(share: float, other: float, *, level: float = 0.95, power: float = 0.8) -> int:
    """Items needed to tell an accuracy of `other` from a fixed `share`.

    n = ((z_level + z_power) / h)^2 with h = 2 asin sqrt(other) - 2 asin sqrt(share).

    Raises:
        ValueError: the two are equal, or not between 0 and 1.

    Source: Cohen 1988, Statistical Power Analysis for the Behavioral Sciences, section 6.4.
    """
    if share == other or not (0 <= share <= 1 and 0 <= other <= 1):
        raise ValueError(f"two different shares between 0 and 1 are needed: {share}, {other}")
    z_level, z_power = _quantiles(level, power)
    return ceil(_single_need(share, other, z_level, z_power) - 1e-9)


def _single_need(share: float, other: float, z_level: float, z_power: float) -> float:
    h = 2 * asin(sqrt(other)) - 2 * asin(sqrt(share))
    return float("inf") if h == 0 else ((z_level + z_power) / h) ** 2
