"""Judges of unequal reliability: what each one's battles should count for.

Two ways, both from the verdicts alone, without labels. By agreement: a judge's weight is how much
better than chance it agrees with the other judges on the same pairs. By Dawid and Skene: judges
have confusion matrices and pairs a hidden result, both found by EM; the battles are then the
pairs with the probabilities of their results. Sources: Dawid and Skene 1979 (Applied Statistics
28); chance-corrected agreement as in Cohen 1960.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dikast.analysis.ranking.battles import TIE, Battles, Floats, Ints
from dikast.analysis.ranking.report import JudgeWeight
from dikast.engine.errors import InputError

_RESULTS = 3
_ROUNDS_MAX = 200
_TOLERANCE = 1e-5
_SMOOTHING = 0.1
_KAPPA_PRIOR = 10.0
_SMALL = 1e-300


class Weighted(NamedTuple):
    """Battles with weights, and what each judge's was."""

    battles: Battles
    judges: tuple[JudgeWeight, ...]


def weigh_by_agreement(battles: Battles) -> Weighted:
    """Weight each judge by its chance-corrected agreement with the others.

    The agreement is over all pairs of verdicts on one item by two judges, shrunk towards the mean
    of all judges by ten comparisons; below zero counts as zero. Weights have mean 1 over battles.

    Raises:
        InputError: no pair was decided by two judges, or nobody agrees better than chance.
    """
    told = np.minimum(battles.result, TIE)
    counts = _item_counts(battles, told)
    size = counts.sum(axis=1)
    others = size[battles.item] - 1
    alike = counts[battles.item, told] - 1
    shares = np.bincount(told, minlength=_RESULTS) / len(told)
    chance = shares[told]
    judges = len(battles.judges)
    seen = np.bincount(battles.judge, weights=others, minlength=judges)
    agreed = np.bincount(battles.judge, weights=alike, minlength=judges)
    lucky = np.bincount(battles.judge, weights=others * chance, minlength=judges)
    if seen.sum() == 0:
        raise InputError(
            "judges cannot be weighed against each other: no pair was decided by two of them"
        )
    excess, room = agreed - lucky, seen - lucky
    mean = excess.sum() / max(room.sum(), _SMALL)
    kappa = np.maximum(0.0, (excess + _KAPPA_PRIOR * mean) / (room + _KAPPA_PRIOR))
    per_battle = kappa[battles.judge]
    if per_battle.sum() <= 0:
        raise InputError(
            "judges cannot be weighed: they agree with each other no better than by chance"
        )
    scale = len(per_battle) / per_battle.sum()
    accuracy = np.divide(agreed, seen, out=np.full(judges, np.nan), where=seen > 0)
    return Weighted(
        replace(battles, weight=battles.weight * per_battle * scale),
        _described(battles, kappa * scale, accuracy),
    )


def dawid_skene(battles: Battles) -> Weighted:
    """One battle for each pair, split over its results by their probabilities.

    A pair's battles become up to three, whose weights sum to 1. Judges' weights in the report are
    the accuracies that their confusion matrices imply, as a chance-corrected share.

    Raises:
        InputError: there is one judge only, or no pair was decided by two.
    """
    told = np.minimum(battles.result, TIE)
    counts = _item_counts(battles, told)
    if len(battles.judges) < 2 or counts.sum(axis=1).max() < 2:
        raise InputError(
            "Dawid-Skene needs pairs that several judges decided; here no pair has two"
        )
    posterior, confusion, prior = _expectation_maximisation(battles, told, counts)
    diagonal = np.einsum("jkk,k->j", confusion, prior)
    chance = float((prior**2).sum())
    weights = np.maximum(0.0, (diagonal - chance) / max(1 - chance, _SMALL))
    return Weighted(_split(battles, posterior), _described(battles, weights, diagonal))


def _item_counts(battles: Battles, told: Ints) -> Floats:
    """How often every item was given each result, shape (items, 3)."""
    items = int(battles.item.max()) + 1
    flat = np.bincount(battles.item * _RESULTS + told, minlength=items * _RESULTS)
    return flat.reshape(items, _RESULTS).astype(float)


def _expectation_maximisation(
    battles: Battles, told: Ints, counts: Floats
) -> tuple[Floats, Floats, Floats]:
    """Results' probabilities per item, confusion matrices (judge, truth, told), and the prior.

    A judge's matrix is smoothed towards the one of all judges: few verdicts say little.
    """
    present = counts.sum(axis=1) > 0
    posterior = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    judges = len(battles.judges)
    place = battles.judge * _RESULTS + told
    confusion = np.zeros((judges, _RESULTS, _RESULTS))
    prior = np.full(_RESULTS, 1 / _RESULTS)
    for _ in range(_ROUNDS_MAX):
        of_battle = posterior[battles.item]
        for truth in range(_RESULTS):
            confusion[:, truth, :] = np.bincount(
                place, weights=of_battle[:, truth], minlength=judges * _RESULTS
            ).reshape(judges, _RESULTS)
        pooled = confusion.sum(axis=0) + _SMOOTHING
        pooled /= pooled.sum(axis=1, keepdims=True)
        confusion += _KAPPA_PRIOR * pooled / _RESULTS
        confusion /= confusion.sum(axis=2, keepdims=True)
        prior = posterior[present].mean(axis=0)
        logs = np.log(np.maximum(confusion, _SMALL))[battles.judge, :, told]
        score = np.stack(
            [
                np.bincount(battles.item, weights=logs[:, truth], minlength=len(counts))
                for truth in range(_RESULTS)
            ],
            axis=1,
        ) + np.log(np.maximum(prior, _SMALL))
        score -= score.max(axis=1, keepdims=True)
        fresh = np.exp(score)
        fresh /= fresh.sum(axis=1, keepdims=True)
        moved = float(np.abs(fresh - posterior)[present].max())
        posterior = fresh
        if moved < _TOLERANCE:
            break
    return posterior, confusion, prior


def _split(battles: Battles, posterior: Floats) -> Battles:
    _, first = np.unique(battles.item, return_index=True)
    rows = np.repeat(np.sort(first), _RESULTS)
    weight = posterior[battles.item[rows[::_RESULTS]]].ravel()
    keep = weight > 1e-6
    rows = rows[keep]
    return replace(
        battles,
        a=battles.a[rows],
        b=battles.b[rows],
        result=np.tile(np.arange(_RESULTS), len(keep) // _RESULTS)[keep],
        cluster=battles.cluster[rows],
        item=battles.item[rows],
        judge=np.zeros(len(rows), dtype=np.int64),
        group=battles.group[rows],
        judges=("Dawid-Skene",),
        weight=weight[keep],
        covariates=battles.covariates[rows],
        split=True,
    )


def _described(battles: Battles, weights: Floats, accuracy: Floats) -> tuple[JudgeWeight, ...]:
    counts = np.bincount(battles.judge, minlength=len(battles.judges))
    return tuple(
        JudgeWeight(
            judge=name,
            battles=int(counts[place]),
            weight=float(weights[place]),
            accuracy=None if np.isnan(accuracy[place]) else float(accuracy[place]),
        )
        for place, name in enumerate(battles.judges)
    )
