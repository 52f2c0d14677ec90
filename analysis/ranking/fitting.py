"""The fit: penalised maximum likelihood by Newton's method, one ranking or a thousand at once.

Parameters stand in one row: a strength for each model, a coefficient for each covariate, and the
tie parameter where the model has one. The penalty is a ridge, ridge / 2 times the sum of squares,
which keeps every rating finite. Within a group of models that met, the strengths sum to zero.
Bootstrap draws are fitted together, as rows of one array.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dikast.analysis.ranking.battles import Bools, Floats, Ints
from dikast.analysis.ranking.likelihood import LIKELIHOODS, TIE_START, Counts, Model, Terms

STEPS_MAX = 200
_HALVINGS_MAX = 40
_SLACK = 1e-12
_CHORDS_MAX = 12
_DRAW_TOLERANCE = 1e-11
_NUMBERS_AT_ONCE = 500_000


class Fit(NamedTuple):
    """`parameters` of shape (draws, p); `information` is the penalised one, (p, p) of the last."""

    parameters: Floats
    information: Floats
    converged: bool


@dataclass(frozen=True)
class Design:
    """What the counts refer to: cell c is models i[c] against j[c], with covariates x[c].

    `groups` numbers the groups of models that met (strengths compare within a group only).
    """

    i: Ints
    j: Ints
    groups: Ints
    model: Model
    ridge: float
    x: Floats | None = None

    @property
    def models(self) -> int:
        """How many strengths there are."""
        return len(self.groups)

    @property
    def covariates(self) -> int:
        """How many coefficients there are."""
        return 0 if self.x is None else self.x.shape[1]

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return self.models + self.covariates + (self.model in TIE_START)

    def start(self, draws: int) -> Floats:
        """Everybody equal."""
        parameters = np.zeros((draws, self.size))
        if self.model in TIE_START:
            parameters[:, -1] = TIE_START[self.model]
        return parameters

    def terms(self, parameters: Floats, counts: Counts) -> Terms:
        """The likelihood's terms of every draw and cell, shape (draws, cells)."""
        d = parameters[:, self.i] - parameters[:, self.j]
        if self.x is not None:
            d = d + parameters[:, self.models : self.models + self.covariates] @ self.x.T
        tie = parameters[:, -1:] if self.model in TIE_START else np.zeros((len(parameters), 1))
        return LIKELIHOODS[self.model](d, np.broadcast_to(tie, d.shape), counts)

    def gradient(self, parameters: Floats, terms: Terms) -> Floats:
        """Of the penalised log-likelihood, shape (draws, p)."""
        draws, n = len(parameters), self.models
        gradient = np.empty_like(parameters)
        gradient[:, :n] = self._sum_by_model(terms.d, -1.0)
        if self.x is not None:
            gradient[:, n : n + self.covariates] = terms.d @ self.x
        if self.model in TIE_START:
            gradient[:, -1] = terms.t.sum(axis=1)
        assert gradient.shape == (draws, self.size)
        penalised: Floats = gradient - self.ridge * parameters
        return penalised

    def information(self, terms: Terms) -> Floats:
        """Negative second derivatives with the penalty, shape (draws, p, p).

        The strengths' free common shift is held by a constant on each group's block.
        """
        draws, n, k = len(terms.dd), self.models, self.covariates
        out = np.zeros((draws, self.size, self.size))
        flat = np.zeros((draws, n * n))
        for row, weights in zip(flat, terms.dd, strict=True):
            row += np.bincount(self.i * n + self.j, weights=weights, minlength=n * n)
        met = flat.reshape(draws, n, n)
        out[:, :n, :n] = -met - met.transpose(0, 2, 1)
        every = np.arange(n)
        out[:, every, every] = self._sum_by_model(terms.dd, 1.0)
        if self.x is not None:
            cross = np.stack(
                [self._sum_by_model(terms.dd * column, -1.0) for column in self.x.T], axis=2
            )
            out[:, :n, n : n + k] = cross
            out[:, n : n + k, :n] = cross.transpose(0, 2, 1)
            out[:, n : n + k, n : n + k] = np.einsum("dc,ck,cl->dkl", terms.dd, self.x, self.x)
        if self.model in TIE_START:
            out[:, :n, -1] = out[:, -1, :n] = self._sum_by_model(terms.dt, -1.0)
            out[:, -1, -1] = terms.tt.sum(axis=1)
            if self.x is not None:
                out[:, n : n + k, -1] = out[:, -1, n : n + k] = terms.dt @ self.x
        out[:, np.arange(self.size), np.arange(self.size)] += self.ridge
        out[:, :n, :n] += self.groups[:, None] == self.groups[None, :]
        return out

    def value(self, parameters: Floats, terms: Terms) -> Floats:
        """The penalised log-likelihood of every draw."""
        penalty: Floats = self.ridge / 2 * (parameters**2).sum(axis=1)
        value: Floats = terms.value.sum(axis=1)
        return value - penalty

    def _sum_by_model(self, values: Floats, sign: float) -> Floats:
        """For every draw and model, values where it is i plus `sign` times those where it is j."""
        n = self.models
        return np.stack(
            [
                np.bincount(self.i, weights=row, minlength=n)
                + sign * np.bincount(self.j, weights=row, minlength=n)
                for row in values
            ]
        )


def fit(
    design: Design, counts: Counts, start: Floats | None = None, *, tolerance: float = 1e-15
) -> Fit:
    """The most likely parameters for every draw.

    Args:
        design: the cells and the model.
        counts: weighted wins and ties, each of shape (draws, cells).
        start: where to begin, shape (p,); everybody equal by default.
        tolerance: end when a step promises less gain in log-likelihood than this a battle.
    """
    draws, cells = counts.a.shape
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, cells + design.size**2))
    parts: list[Fit] = []
    for first in range(0, draws, at_once):
        part = Counts(*(column[first : first + at_once] for column in counts))
        begin = design.start(len(part.a))
        if start is not None:
            begin[:] = start
        parts.append(_newton(design, part, begin, tolerance))
    return Fit(
        parameters=np.concatenate([part.parameters for part in parts]),
        information=parts[-1].information,
        converged=all(part.converged for part in parts),
    )


def refit(design: Design, counts: Counts, whole: Fit) -> Floats:
    """The parameters of many resamples, each close to the fit on the whole, shape (draws, p).

    All steps use the information of the whole, inverted once; a draw that has not settled after a
    few of them is fitted by Newton's method.
    """
    inverse = np.linalg.inv(whole.information)
    scale: Floats = 1.0 + (counts.a + counts.b + counts.tie).sum(axis=1)
    parameters = np.repeat(whole.parameters[:1], len(scale), axis=0)
    settled = np.zeros(len(scale), dtype=np.bool_)
    for _ in range(_CHORDS_MAX):
        gradient = design.gradient(parameters, design.terms(parameters, counts))
        step: Floats = gradient @ inverse
        settled = np.abs((step * gradient).sum(axis=1)) < _DRAW_TOLERANCE * scale
        settled &= _allowed(design, parameters)
        if settled.all():
            return parameters
        tried = parameters + step
        parameters = np.where(_allowed(design, tried)[:, None], tried, parameters)
    rest = np.flatnonzero(~settled)
    few = Counts(*(column[rest] for column in counts))
    parameters[rest] = fit(design, few, whole.parameters[0], tolerance=_DRAW_TOLERANCE).parameters
    return parameters


def _newton(design: Design, counts: Counts, parameters: Floats, tolerance: float) -> Fit:
    """Newton's method with step halving, all draws together."""
    terms = design.terms(parameters, counts)
    scale: Floats = 1.0 + (counts.a + counts.b + counts.tie).sum(axis=1)
    information = design.information(terms)
    converged = False
    for _ in range(STEPS_MAX):
        gradient = design.gradient(parameters, terms)
        solved = np.linalg.solve(information, gradient[:, :, None])
        step: Floats = np.asarray(solved[:, :, 0], dtype=np.float64)
        if float((np.abs((step * gradient).sum(axis=1)) / scale).max()) < tolerance:
            parameters = parameters + step
            converged = True
            break
        floor = design.value(parameters, terms) - _SLACK * scale
        parameters, terms = _search(design, counts, parameters, step, floor)
        information = design.information(terms)
    return Fit(parameters, information[-1], converged)


def _search(
    design: Design, counts: Counts, parameters: Floats, step: Floats, floor: Floats
) -> tuple[Floats, Terms]:
    """Go along the step, halved until the likelihood is not below `floor`; or stay."""
    length = np.ones((len(parameters), 1))
    for _ in range(_HALVINGS_MAX):
        tried = parameters + length * step
        allowed = _allowed(design, tried)
        terms = design.terms(np.where(allowed[:, None], tried, parameters), counts)
        good = allowed & (design.value(tried, terms) >= floor)
        if good.all():
            return tried, terms
        length[~good] /= 2
    stay = np.where(length > 0.5**_HALVINGS_MAX, parameters + length * step, parameters)
    return stay, design.terms(stay, counts)


def _allowed(design: Design, parameters: Floats) -> Bools:
    """Rao and Kupper's threshold is positive; everything else may be any number."""
    if design.model == "rao-kupper":
        return parameters[:, -1] > 0
    return np.ones(len(parameters), dtype=np.bool_)
