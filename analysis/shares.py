"""How sure a share of independent trials is. The demo tells it too, so it needs no further package.

Used by every report after the last pair has been judged; for clustered data see `intervals`. Pure:
two counts in, an interval out.
"""

from statistics import NormalDist
from typing import Final

import msgspec

_NORMAL: Final = NormalDist()


class Interval(msgspec.Struct, frozen=True):
    """A confidence interval from `low` to `high` at `level` (0.95 is 95 %), and how it was made."""

    low: float
    high: float
    level: float
    method: str


def z_of(level: float) -> float:
    """The two-sided standard normal quantile: 1.96 for 0.95.

    Raises:
        ValueError: the level is not between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a confidence level lies between 0 and 1, not at {level}")
    return _NORMAL.inv_cdf(0.5 + level / 2)


def wilson(hits: float, n: float, level: float = 0.95) -> Interval:
    """The score interval of a share; stays inside 0 to 1, and sensible at 0 and 1.

    Args:
        hits: how often it was so; may be fractional (halves for ties).
        n: how many were looked at, each independent; 0 gives the interval from 0 to 1.
        level: confidence level.

    Raises:
        ValueError: the hits are not between 0 and n, or the level is not between 0 and 1.

    Source: Wilson 1927, Journal of the American Statistical Association 22, 209-212.
    """
    if n < 0 or not 0 <= hits <= n:
        raise ValueError(f"hits lie between 0 and n: {hits} of {n}")
    z = z_of(level)
    if n == 0:
        return Interval(0.0, 1.0, level, "wilson")
    share = hits / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    high = 1.0 if hits == n else min(1.0, middle + half)
    return Interval(low, high, level, "wilson")
