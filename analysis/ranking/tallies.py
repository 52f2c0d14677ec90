"""Plain counting: points between models, each model's wins and losses, its win rate.

Between the battles and the fit. The win rate's interval is that of a ratio of sums by prompt; with
one battle a prompt its standard error is the plain one of a mean, as AlpacaEval prints it.
"""

import math
from typing import NamedTuple

import numpy as np

from dikast.analysis.intervals import Interval, wilson
from dikast.analysis.ranking.battles import TIE, A, B, Battles, Bools, Floats, Ints
from dikast.analysis.ranking.likelihood import Counts
from dikast.analysis.ranking.uncertainty import quantile


class Tally(NamedTuple):
    """One model's record. `win_rate` has ties as half; no interval with fewer than two prompts."""

    battles: int
    wins: int
    losses: int
    ties: int
    prompts: int
    win_rate: float
    interval: Interval | None


def counts_of(battles: Battles) -> Counts:
    """Every battle's weight as a win of A, a win of B, or a tie."""
    return Counts(
        np.where(battles.result == A, battles.weight, 0.0),
        np.where(battles.result == B, battles.weight, 0.0),
        np.where(battles.result >= TIE, battles.weight, 0.0),
    )


def matrices(battles: Battles) -> tuple[Floats, Floats]:
    """Points (ties half) and battles between every two models, weighted, shape (n, n)."""
    n = len(battles.models)
    counts = counts_of(battles)
    place, back = battles.a * n + battles.b, battles.b * n + battles.a
    points, met = np.zeros(n * n), np.zeros(n * n)
    for where, won in ((place, counts.a), (back, counts.b)):
        points += np.bincount(where, weights=won + counts.tie / 2, minlength=n * n)
        met += np.bincount(where, weights=battles.weight, minlength=n * n)
    return points.reshape(n, n), met.reshape(n, n)


def count_of(battles: Battles, marked: Bools) -> int:
    """How many battles the marked rows are."""
    return round(float(battles.weight[marked].sum())) if battles.split else int(marked.sum())


def tallies(battles: Battles, level: float) -> list[Tally]:
    """The record of every model, in the order of `battles.models`."""
    n = len(battles.models)
    model = np.concatenate([battles.a, battles.b])
    result = np.concatenate(
        [battles.result, np.where(battles.result <= B, 1 - battles.result, battles.result)]
    )
    weight = np.tile(battles.weight, 2)
    cluster = np.tile(battles.clusters()[0], 2)
    copies = weight if battles.split else np.ones(len(weight))
    score = np.where(result == A, 1.0, np.where(result == B, 0.0, 0.5))
    order = np.argsort(model, kind="stable")
    bounds = np.searchsorted(model[order], np.arange(n + 1))
    found: list[Tally] = []
    for place in range(n):
        mine = order[bounds[place] : bounds[place + 1]]
        told, share = result[mine], copies[mine]
        rate, interval, prompts = _win_rate(score[mine], weight[mine], cluster[mine], level)
        found.append(
            Tally(
                battles=round(float(share.sum())),
                wins=round(float(share[told == A].sum())),
                losses=round(float(share[told == B].sum())),
                ties=round(float(share[told >= TIE].sum())),
                prompts=prompts,
                win_rate=rate,
                interval=interval,
            )
        )
    return found


def _win_rate(
    score: Floats, weight: Floats, cluster: Ints, level: float
) -> tuple[float, Interval | None, int]:
    """A weighted mean with the interval of a ratio of cluster sums (linearised)."""
    _, codes = np.unique(cluster, return_inverse=True)
    prompts = int(codes.max()) + 1
    total = float(weight.sum())
    rate = float(score @ weight) / total if total > 0 else 0.5
    if prompts < 2 or total <= 0:
        return rate, None, prompts
    if not 0.0 < rate < 1.0:
        whole = wilson(round(rate) * prompts, prompts, level)
        return rate, Interval(whole.low, whole.high, level, "wilson over prompts"), prompts
    residual = np.bincount(codes, weights=weight * (score - rate))
    error = math.sqrt(float((residual**2).sum()) * prompts / (prompts - 1)) / total
    reach = quantile(level, prompts) * error
    low, high = max(0.0, rate - reach), min(1.0, rate + reach)
    return rate, Interval(low, high, level, "linearised by prompt"), prompts
