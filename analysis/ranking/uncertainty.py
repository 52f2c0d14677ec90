"""How sure a rating is: the sandwich and the bootstrap, both by prompt.

All battles on one prompt share its luck, so the prompt is what is resampled and what the squared
scores are summed over. Sources: Liang and Zeger 1986 (Biometrika 73) for the clustered sandwich,
with the factor G / (G - 1) and Student's t with G - 1 degrees of freedom; Field and Welsh 2007
(JRSS B 69) for the cluster bootstrap.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from dikast.analysis.intervals import student_quantile
from dikast.analysis.ranking.battles import Floats, Ints
from dikast.analysis.ranking.fitting import Design, Fit, refit
from dikast.analysis.ranking.likelihood import TIE_START, Counts

_DRAWS_AT_ONCE = 64


class Cells(NamedTuple):
    """One row a battle: its cell in the design, its prompt, and what it counts for."""

    cell: Ints
    cluster: Ints
    clusters: int
    counts: Counts


def sandwich(design: Design, fitted: Fit, cells: Cells) -> Floats:
    """Covariance of the parameters when battles on one prompt are dependent, shape (p, p).

    Args:
        design: what `fitted` was fitted with.
        fitted: the fit on the whole.
        cells: the battles.
    """
    counts = Counts(*(column[None, :] for column in cells.counts))
    design = replace(design, i=design.i[cells.cell], j=design.j[cells.cell])
    terms = design.terms(fitted.parameters[:1], counts)
    n, k = design.models, design.covariates
    rows, columns, values = (
        [cells.cluster, cells.cluster],
        [design.i, design.j],
        [terms.d[0], -terms.d[0]],
    )
    if design.x is not None:
        for place, column in enumerate(design.x.T):
            rows.append(cells.cluster)
            columns.append(np.full(len(cells.cluster), n + place))
            values.append(terms.d[0] * column)
    if design.model in TIE_START:
        rows.append(cells.cluster)
        columns.append(np.full(len(cells.cluster), n + k))
        values.append(terms.t[0])
    scores = csr_array(
        coo_array(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
            shape=(cells.clusters, design.size),
        )
    )
    meat: Floats = (scores.T @ scores).toarray()
    bread = np.linalg.inv(fitted.information)
    factor = cells.clusters / max(1, cells.clusters - 1)
    covariance: Floats = bread @ meat @ bread * factor
    return covariance


def centred(covariance: Floats, groups: Ints) -> Floats:
    """The covariance of strengths that sum to zero in each group, shape (n, n)."""
    same = (groups[:, None] == groups[None, :]).astype(float)
    centre = np.eye(len(groups)) - same / same.sum(axis=1, keepdims=True)
    out: Floats = centre @ covariance @ centre.T
    return out


def quantile(level: float, clusters: int) -> float:
    """How many standard errors a two-sided interval of `level` reaches, with G clusters."""
    return student_quantile(level, max(1, clusters - 1))


def bootstrap(
    design: Design, fitted: Fit, cells: Cells, *, draws: int, rng: np.random.Generator
) -> Floats:
    """Strengths of `draws` resamples of the prompts, shape (draws, n).

    Args:
        design: the design on pairs of models, without covariates.
        fitted: the fit on the whole, where every draw begins.
        cells: the battles; `cell` is the pair of models.
        draws: how many resamples.
        rng: decides which prompts.
    """
    totals, copies, clusters = _kinds(cells, len(design.i))
    parts: list[Floats] = []
    for first in range(0, draws, _DRAWS_AT_ONCE):
        size = min(_DRAWS_AT_ONCE, draws - first)
        if len(copies) < clusters:
            times = rng.multinomial(clusters, copies / clusters, size=size) / copies
        else:
            times = np.stack(
                [
                    np.bincount(rng.integers(0, clusters, clusters), minlength=clusters)
                    for _ in range(size)
                ]
            )
        drawn = np.asarray(times @ totals)
        counts = Counts(*np.split(drawn, 3, axis=1))
        parts.append(refit(design, counts, fitted)[:, : design.models])
    strengths = np.concatenate(parts)
    for group in range(int(design.groups.max()) + 1):
        mine = design.groups == group
        strengths[:, mine] -= strengths[:, mine].mean(axis=1, keepdims=True)
    return strengths


def _kinds(cells: Cells, pairs: int) -> tuple[csr_array, Floats, int]:
    """The counts of every kind of prompt, how many prompts are of a kind, and how many in all.

    Prompts with a single battle that ended alike are one kind: they are drawn together, which is
    the same experiment and takes far less time where every prompt was used once.
    """
    shares = np.stack(cells.counts)
    sizes = np.bincount(cells.cluster, minlength=cells.clusters)
    alone = sizes[cells.cluster] == 1
    alike = np.column_stack([cells.cell[alone], shares[:, alone].T])
    kinds, kind, copies = np.unique(alike, axis=0, return_inverse=True, return_counts=True)
    _, others = np.unique(cells.cluster[~alone], return_inverse=True)
    row = np.empty(len(cells.cluster), dtype=np.int64)
    row[alone] = kind.reshape(-1)
    row[~alone] = others + len(kinds)
    count = len(kinds) + int((sizes > 1).sum())
    place = np.concatenate([cells.cell + column * pairs for column in range(3)])
    totals = csr_array(
        coo_array(
            (shares.ravel(), (np.tile(row, 3), place)),
            shape=(count, 3 * pairs),
        )
    )
    weights = np.concatenate([copies.astype(float), np.ones(count - len(kinds))])
    return totals, weights, int((sizes > 0).sum())
