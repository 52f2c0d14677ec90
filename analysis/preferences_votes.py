"""The vote matrix of a person as arrays, and the measures that are read off it.

After the fit's or the evaluation's calls: what each wording of the judge picked, in both orders,
against what the person took. A pick is +1 for the pair's A, -1 for its B, 0 for none; it is
never stored as right or wrong, so that a judge that says nothing can never look like one that is
always wrong. Definitions of consistency and bias are ours; the paper gives none.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from dikast.analysis.intervals import (
    Interval,
    cluster_bootstrap,
    ratio,
    sums_by_cluster,
    wilson,
)
from dikast.engine.errors import InputError

Signs = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
DIFFERENCE = (-1.0, 1.0)
"""The bounds of a difference of two shares."""
_NO_SPREAD = 1e-12
UNREAD_MAX = 0.2
"""The largest share of picks that may be missing; above it nothing is computed."""


class Matrix(NamedTuple):
    """Votes of preferences on labelled pairs.

    `picks`: (pairs, preferences, 2), the last axis being A shown first, then B shown first.
    `labels`: (pairs,), +1 where the person took A, -1 for B. `groups`: (pairs,) numbers of the
    prompts. `sources`: for each preference the groups it was written from.
    """

    picks: Signs
    labels: Signs
    groups: Ints
    sources: tuple[frozenset[int], ...]

    def allowed(self) -> npt.NDArray[np.bool_]:
        """(pairs, preferences): whether the preference may be scored on the pair, having seen
        no choice of the pair's prompt."""
        return np.array(
            [[int(group) not in own for own in self.sources] for group in self.groups],
            dtype=np.bool_,
        ).reshape(len(self.groups), len(self.sources))


def check_read(picks: Signs, what: str, limit: float = UNREAD_MAX) -> float:
    """The share of picks that are missing.

    Raises:
        InputError: there is nothing to count, or more than `limit` of it is missing.
    """
    missing = 1 - int(np.count_nonzero(picks)) / picks.size if picks.size else 1.0
    if missing > limit:
        raise InputError(
            f"{what}: {missing:.0%} of the judge's answers gave no verdict (at most {limit:.0%} "
            "are accepted); nothing is computed from such a judge: look at its answers, its "
            "max_tokens and the template"
        )
    return missing


def right(verdicts: npt.NDArray[Any], labels: Signs, read: npt.NDArray[np.bool_]) -> Floats:
    """How right each pair's verdicts are, 0 to 1: the mean over its orders, level votes ½.

    Args:
        verdicts: (pairs, 2) of +1, 0, -1.
        labels: (pairs,).
        read: (pairs, 2), whether there was any pick behind the verdict; orders without one are
            left out, and a pair without any is NaN.
    """
    score = (1 + verdicts.astype(np.float64) * labels[:, None]) / 2
    count = read.sum(axis=1)
    total = np.where(read, score, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


class Estimate(msgspec.Struct, frozen=True):
    """A mean over pairs, and what it was computed on.

    The interval (95 %) comes from resampling prompts. `left_out` pairs had no verdict to count.
    """

    value: float | None
    interval: Interval | None
    pairs: int
    left_out: int
    prompts: int


class Positions(msgspec.Struct, frozen=True):
    """What the order of the answers does to a judge; see `positions`."""

    consistency_strict: Estimate
    consistency_lenient: Estimate
    position_bias: Estimate
    consistent: int
    always_first: int
    always_second: int
    level_or_missing: int


def mean_of(
    values: Floats, groups: Ints, seed: int, *, bounds: tuple[float, float] = (0.0, 1.0)
) -> Estimate:
    """A mean over pairs; NaN stands for a pair that is left out.

    Where all prompts say the same, resampling knows no doubt: then the interval is as wide as
    Wilson's would be for that many prompts that all agree.

    Args:
        values: (pairs,) of numbers.
        groups: (pairs,) numbers of the prompts.
        seed: of the bootstrap.
        bounds: what the values lie between.
    """
    kept = np.isfinite(values)
    pairs = int(kept.sum())
    prompts = int(np.unique(groups[kept]).size)
    value, interval = None, None
    if pairs:
        table = sums_by_cluster(groups[kept], np.column_stack([values[kept], np.ones(pairs)]))
        value = float(values[kept].mean())
        interval = cluster_bootstrap(table, ratio, seed=seed)
    if interval is not None and value is not None:
        low, high, method = float(interval.low), float(interval.high), interval.method
        if high - low < _NO_SPREAD and not _same_judge(values[kept], bounds):
            doubt = (bounds[1] - bounds[0]) * (1 - wilson(prompts, prompts).low)
            low, high = max(bounds[0], value - doubt), min(bounds[1], value + doubt)
            method = "wilson over clusters"
        interval = Interval(low, high, interval.level, method)
    return Estimate(
        value=value,
        interval=interval,
        pairs=pairs,
        left_out=int((~kept).sum()),
        prompts=prompts,
    )


def _same_judge(values: Floats, bounds: tuple[float, float]) -> bool:
    """Whether a difference is nothing at all: both sides gave the same verdicts throughout."""
    return bounds == DIFFERENCE and not values.any()


def positions(picks: Signs, groups: Ints, seed: int) -> Positions:
    """Consistency and position bias of verdicts in two orders.

    Consistency is the share of pairs whose two orders pick the same answer: strict counts a pair
    with a missing or level order as inconsistent, lenient leaves it out. Bias is the share of
    picks for the answer shown first less one half: positive favours the first.

    Args:
        picks: (pairs, 2) of +1 (A), -1 (B) and 0.
        groups: (pairs,) numbers of the prompts.
        seed: of the bootstrap.
    """
    ab, ba = picks[:, 0].astype(np.float64), picks[:, 1].astype(np.float64)
    both = (ab != 0) & (ba != 0)
    same = both & (ab == ba)
    count = (ab != 0).astype(np.float64) + (ba != 0)
    first = ((ab == 1).astype(np.float64) + (ba == -1)) - count / 2
    bias = np.where(count > 0, first / np.maximum(count, 1), np.nan)
    alike = same.astype(np.float64)
    return Positions(
        consistency_strict=mean_of(alike, groups, seed),
        consistency_lenient=mean_of(np.where(both, alike, np.nan), groups, seed),
        position_bias=mean_of(bias, groups, seed, bounds=(-0.5, 0.5)),
        consistent=int(same.sum()),
        always_first=int((both & (ab == 1) & (ba == -1)).sum()),
        always_second=int((both & (ab == -1) & (ba == 1)).sum()),
        level_or_missing=int((~both).sum()),
    )


def voted(picks: npt.NDArray[Any], weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Verdicts of a weighted vote: (pairs, preferences, 2) picks to (pairs, 2) of +1, 0, -1.

    Sums of decimal weights are rounded to 9 places first, so that level votes are level.
    """
    total = np.tensordot(picks.astype(np.float64), weights.astype(np.float64), axes=([1], [0]))
    return np.sign(np.round(total, 9)).astype(np.int8)


def paired(first: Floats, second: Floats, groups: Ints, seed: int) -> Estimate:
    """The mean of first minus second, over the pairs that both have: the same items only."""
    return mean_of(first - second, groups, seed, bounds=DIFFERENCE)


def group_numbers(groups: Sequence[str]) -> Ints:
    """Numbers for names of prompts, alike for alike names."""
    known: dict[str, int] = {}
    return np.array([known.setdefault(each, len(known)) for each in groups], dtype=np.int64)
