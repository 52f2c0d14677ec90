"""`rank`: battles in, standings out. The one way from counted battles to ratings with intervals.

Battles become counts for each pair of models (and, with covariates, stay one row each), the fit
finds the strengths, the sandwich or the bootstrap by prompt says how sure they are, and a
`Ranking` says it in points. `Standings` keeps the numbers that matchmaking and comparisons need.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dikast.analysis.intervals import Interval, expanded_tail
from dikast.analysis.ranking.battles import (
    DISAGREE,
    TIE,
    Battles,
    Bools,
    Floats,
    Ints,
    require_battles,
)
from dikast.analysis.ranking.fitting import Design, Fit, fit
from dikast.analysis.ranking.likelihood import TIE_START, Counts, Model
from dikast.analysis.ranking.report import (
    SCALE,
    Effect,
    JudgeWeight,
    ModelRating,
    Ranking,
    RankSettings,
)
from dikast.analysis.ranking.structure import Structure, structure_of
from dikast.analysis.ranking.tallies import count_of, counts_of, matrices, tallies
from dikast.analysis.ranking.uncertainty import (
    Cells,
    bootstrap,
    centred,
    quantile,
    sandwich,
)
from dikast.engine.errors import InputError

POINTS_A_LOGIT = 400 / math.log(10)
MEAN_POINTS = 1000.0
_FEW_CLUSTERS = 30
_NO_SPREAD = 1e-9


@dataclass(frozen=True)
class Standings:
    """A fitted ranking with its arrays, models in the order of `battles.models`.

    `strengths` in logits, `covariance` of them by prompt, `model_covariance` from the curvature
    alone (what one more battle would change), `draws` the bootstrap's strengths if it was asked
    for, `points[i, j]` what i took from j, `met[i, j]` how often they met.
    """

    battles: Battles
    settings: RankSettings
    structure: Structure
    strengths: Floats
    covariance: Floats
    model_covariance: Floats
    tie_parameter: float | None
    draws: Floats | None
    points: Floats
    met: Floats
    report: Ranking

    @property
    def models(self) -> tuple[str, ...]:
        """The names, in the order of the arrays."""
        return self.battles.models


@dataclass(frozen=True)
class _Fitted:
    """What the numbers behind a report are; `used` has the battles that counted."""

    used: Battles
    model: Model
    design: Design
    cells: Cells
    fit: Fit
    clusters: int
    scales: Floats


def rank(
    battles: Battles,
    settings: RankSettings | None = None,
    *,
    judge_weights: Sequence[JudgeWeight] = (),
    elo: Mapping[str, float] | None = None,
) -> Standings:
    """Rank the models of these battles.

    Args:
        battles: who met whom; one judge's alone for a personal leaderboard (`by_judge`).
        settings: the model, the tie rule, the penalty, the interval.
        judge_weights: what the battles' weights came from, for the report.
        elo: sequential ratings by model, for comparison.

    Raises:
        InputError: no battle is left, or there is no penalty and the data set no bound.
    """
    settings = settings or RankSettings()
    require_battles(battles)
    used, rule_notes = _apply_rules(battles, settings)
    require_battles(used, "what the tie rule left")
    points, met = matrices(used)
    structure = structure_of(points)
    notes = [*rule_notes, *_structure_notes(used, structure)]
    if settings.ridge <= 0 and structure.separated:
        raise InputError(
            f"{notes[-1]} Without a penalty there is no finite rating; use a ridge such as 0.01"
        )
    fitted = _fit(used, settings, structure, notes)
    strengths = _centre(fitted.fit.parameters[0, : len(used.models)], structure.groups)
    n = len(used.models)
    robust = sandwich(fitted.design, fitted.fit, fitted.cells)
    covariance = centred(robust[:n, :n], structure.groups)
    curvature: Floats = np.asarray(np.linalg.inv(fitted.fit.information), dtype=np.float64)
    draws = _draws(fitted, settings, structure, notes)
    numbers = (strengths, covariance, draws)
    if not fitted.fit.converged:
        notes.append("The fit did not settle; treat the ratings as rough.")
    if fitted.clusters < _FEW_CLUSTERS:
        notes.append(
            f"Only {fitted.clusters} prompts: intervals by prompt are rough below "
            f"{_FEW_CLUSTERS}, and likely too narrow."
        )
    tie = float(fitted.fit.parameters[0, -1]) if fitted.model in TIE_START else None
    models = _ratings(fitted, settings, structure, numbers, (points, met), elo)
    order = [used.models.index(each.model) for each in models]
    report = Ranking(
        models=models,
        settings=settings,
        battles=used.count,
        prompts=fitted.clusters,
        judges=len(judge_weights) or len(used.judges),
        ties=count_of(used, used.result == TIE),
        disagreements=count_of(used, used.result == DISAGREE),
        orders_merged=used.order_merged,
        single_order=used.single_order,
        groups=structure.group_count,
        tie_parameter=tie,
        effects=_effects(fitted, robust, settings),
        judge_weights=tuple(judge_weights),
        left_out={name: count for name, count in (used.left_out or {}).items() if count},
        clustered_by=dict(used.clustered_by or {}),
        scale=SCALE,
        notes=tuple(notes),
        win_matrix=_rows(points[np.ix_(order, order)]),
        met_matrix=tuple(tuple(map(round, row)) for row in _rows(met[np.ix_(order, order)])),
    )
    return Standings(
        battles=used,
        settings=settings,
        structure=structure,
        strengths=strengths,
        covariance=covariance,
        model_covariance=centred(curvature[:n, :n], structure.groups),
        tie_parameter=tie,
        draws=draws,
        points=points,
        met=met,
        report=report,
    )


def rank_by_judge(battles: Battles, settings: RankSettings | None = None) -> dict[str, Standings]:
    """Personal leaderboards: the same battles ranked before each judge, profile or annotator.

    A judge without a battle between two models has no entry.
    """
    return {name: rank(mine, settings) for name, mine in battles.by_judge().items()}


def rank_by_group(battles: Battles, settings: RankSettings | None = None) -> dict[str, Standings]:
    """The ranking of each group that the battles were entered with: a topic, a profile."""
    return {name: rank(mine, settings) for name, mine in battles.by_group().items()}


def _apply_rules(battles: Battles, settings: RankSettings) -> tuple[Battles, list[str]]:
    """Leave out what the tie rule leaves out; models that meet nobody then are gone too."""
    used = battles
    if settings.disagreements == "drop" or settings.ties == "drop":
        used = used.where(used.result != DISAGREE, "the two orders disagreed")
    if settings.ties == "drop":
        used = used.where(used.result != TIE, "ties")
    gone = sorted(set(battles.models) - set(used.compact().models))
    used = used.compact()
    notes: list[str] = []
    if gone:
        notes.append(f"Not ranked, for no battle of theirs counts: {', '.join(gone)}.")
    if len(used) and bool((used.result >= TIE).all()):
        notes.append("Every battle is a tie: all ratings are equal and say nothing of an order.")
    return used, notes


def _structure_notes(used: Battles, structure: Structure) -> list[str]:
    notes: list[str] = []
    if structure.group_count > 1:
        notes.append(
            f"The models fall into {structure.group_count} groups that never met: ratings and "
            "ranks compare within a group only."
        )
    words = {"above": "never lost to", "below": "never won against", "apart": "is one-sided with"}
    for side, word in words.items():
        names = [name for name, at in zip(used.models, structure.sides, strict=True) if at == side]
        if names:
            notes.append(
                f"Separation: {', '.join(names)} {word} the others, directly or through third "
                "models, so the data set no bound on that rating; the figure rests on the penalty."
            )
    return notes


def _fit(used: Battles, settings: RankSettings, structure: Structure, notes: list[str]) -> _Fitted:
    model = settings.model
    if model in TIE_START and not bool((used.result >= TIE).any()):
        notes.append(f"There are no ties, so {model} is plain Bradley-Terry here.")
        model = "bt"
    counts = counts_of(used)
    cluster, clusters = used.clusters()
    x, scales = _standardised(used)
    ridge = max(settings.ridge, 0.0)
    design = Design(used.a, used.b, structure.groups, model, ridge, x)
    cells = Cells(np.arange(len(used)), cluster, clusters, counts)
    if x is not None:
        one = Counts(*(column[None, :] for column in counts))
        return _Fitted(used, model, design, cells, fit(design, one), clusters, scales)
    pairs, cell, total = _by_pair(used, counts)
    small = Design(
        pairs // len(used.models), pairs % len(used.models), structure.groups, model, ridge
    )
    found = fit(small, Counts(*(column[None, :] for column in total)))
    flipped = used.a > used.b
    turned = Counts(
        np.where(flipped, counts.b, counts.a), np.where(flipped, counts.a, counts.b), counts.tie
    )
    cells = Cells(cell, cluster, clusters, turned)
    return _Fitted(used, model, small, cells, found, clusters, scales)


def _by_pair(used: Battles, counts: Counts) -> tuple[Ints, Ints, Counts]:
    """Which two models met (as low * n + high), each battle's place among them, and the sums."""
    n = len(used.models)
    low, high = np.minimum(used.a, used.b), np.maximum(used.a, used.b)
    pairs, cell = np.unique(low * n + high, return_inverse=True)
    flipped = used.a > used.b
    size = len(pairs)
    wins_low = np.where(flipped, counts.b, counts.a)
    wins_high = np.where(flipped, counts.a, counts.b)
    total = Counts(
        *(
            np.asarray(np.bincount(cell, weights=column, minlength=size), dtype=np.float64)
            for column in (wins_low, wins_high, counts.tie)
        )
    )
    return pairs, cell, total


def _standardised(used: Battles) -> tuple[Floats | None, Floats]:
    """Covariates in standard deviations about zero (a difference of none stays zero)."""
    if not used.covariate_names:
        return None, np.zeros(0)
    scales = np.sqrt((used.covariates**2).mean(axis=0))
    return used.covariates / np.where(scales > _NO_SPREAD, scales, 1.0), scales


def _centre(strengths: Floats, groups: Ints) -> Floats:
    sums = np.bincount(groups, weights=strengths)
    return strengths - (sums / np.bincount(groups))[groups]


def _draws(
    fitted: _Fitted, settings: RankSettings, structure: Structure, notes: list[str]
) -> Floats | None:
    if settings.interval != "bootstrap":
        return None
    if fitted.design.x is not None:
        notes.append("With covariates the interval is the sandwich; the bootstrap is for counts.")
        return None
    if settings.ridge <= 0:
        notes.append("A resample may leave a model without a loss; those use a ridge of 0.000001.")
    ridge = max(settings.ridge, 1e-6)
    design = Design(fitted.design.i, fitted.design.j, structure.groups, fitted.model, ridge)
    rng = np.random.default_rng(settings.seed)
    return bootstrap(design, fitted.fit, fitted.cells, draws=settings.draws, rng=rng)


def _ratings(
    fitted: _Fitted,
    settings: RankSettings,
    structure: Structure,
    numbers: tuple[Floats, Floats, Floats | None],
    matrices: tuple[Floats, Floats],
    elo: Mapping[str, float] | None,
) -> tuple[ModelRating, ...]:
    used = fitted.used
    strengths, covariance, draws = numbers
    intervals = _intervals(settings, fitted.clusters, strengths, covariance, draws)
    better = _told_apart(settings, fitted.clusters, strengths, covariance, draws)
    counted = tallies(used, settings.level)
    controlled = _controlled(fitted, matrices[1]) if fitted.design.x is not None else None
    models: list[ModelRating] = []
    for group in range(structure.group_count):
        members = np.flatnonzero(structure.groups == group)
        names = [used.models[place] for place in members]
        order = sorted(range(len(members)), key=lambda k: (-strengths[members[k]], names[k]))
        for number, k in enumerate(order, start=1):
            place = int(members[k])
            models.append(
                ModelRating(
                    model=used.models[place],
                    rank=number,
                    rating=_points(strengths[place]),
                    interval=intervals[place],
                    rank_low=1 + int(better[members, place].sum()),
                    rank_high=len(members) - int(better[place, members].sum()),
                    group=group,
                    side=structure.sides[place],
                    controlled_win_rate=None if controlled is None else float(controlled[place]),
                    elo=None if elo is None else elo.get(used.models[place]),
                    battles=counted[place].battles,
                    wins=counted[place].wins,
                    losses=counted[place].losses,
                    ties=counted[place].ties,
                    prompts=counted[place].prompts,
                    win_rate=counted[place].win_rate,
                    win_rate_interval=counted[place].interval,
                )
            )
    return tuple(models)


def _points(strength: float) -> float:
    return MEAN_POINTS + POINTS_A_LOGIT * float(strength)


def _intervals(
    settings: RankSettings,
    clusters: int,
    strengths: Floats,
    covariance: Floats,
    draws: Floats | None,
) -> list[Interval]:
    if draws is not None:
        tail = expanded_tail(settings.level, max(2, clusters))
        low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
        method = f"bootstrap by prompt, expanded percentile, {len(draws)} draws"
    else:
        reach = quantile(settings.level, clusters) * np.sqrt(np.maximum(np.diag(covariance), 0.0))
        low, high, method = strengths - reach, strengths + reach, "sandwich by prompt"
    return [
        Interval(_points(lower), _points(upper), settings.level, method)
        for lower, upper in zip(low, high, strict=True)
    ]


def _told_apart(
    settings: RankSettings,
    clusters: int,
    strengths: Floats,
    covariance: Floats,
    draws: Floats | None,
) -> Bools:
    """[i, j]: i is better than j, told by the interval of their difference."""
    if draws is not None:
        tail = expanded_tail(settings.level, max(2, clusters))
        low = np.stack(
            [np.quantile(draws[:, [k]] - draws, tail, axis=0) for k in range(len(strengths))]
        )
        return np.asarray(low > _NO_SPREAD)
    variance = np.diag(covariance)[:, None] + np.diag(covariance)[None, :] - 2 * covariance
    reach = quantile(settings.level, clusters) * np.sqrt(np.maximum(variance, 0.0))
    gap = strengths[:, None] - strengths[None, :]
    return np.asarray(gap - reach > _NO_SPREAD)


def _controlled(fitted: _Fitted, met: Floats) -> Floats:
    """Expected points against the opponents met, with every covariate's difference at zero."""
    n = fitted.design.models
    strengths = fitted.fit.parameters[0, :n]
    d = strengths[:, None] - strengths[None, :]
    none = np.zeros_like(d)
    tie = np.full_like(d, fitted.fit.parameters[0, -1])
    expected = expected_points(fitted.model, d, tie if fitted.model in TIE_START else none)
    rates: Floats = (expected * met).sum(axis=1) / np.maximum(met.sum(axis=1), _NO_SPREAD)
    return rates


def expected_points(model: Model, d: Floats, tie: Floats) -> Floats:
    """What the stronger by d logits takes from a battle on average, a tie being half."""
    if model == "davidson":
        win, loss, draw = np.exp(d / 2), np.exp(-d / 2), np.exp(tie)
        return np.asarray((win + draw / 2) / (win + loss + draw))
    if model == "rao-kupper":
        return np.asarray((1 + 1 / (1 + np.exp(tie - d)) - 1 / (1 + np.exp(tie + d))) / 2)
    return np.asarray(1 / (1 + np.exp(-d)))


def _effects(fitted: _Fitted, robust: Floats, settings: RankSettings) -> tuple[Effect, ...]:
    reach = quantile(settings.level, fitted.clusters)
    effects: list[Effect] = []
    for place, name in enumerate(fitted.used.covariate_names):
        at = fitted.design.models + place
        estimate = float(fitted.fit.parameters[0, at])
        error = math.sqrt(max(0.0, float(robust[at, at])))
        interval = Interval(
            estimate - reach * error, estimate + reach * error, settings.level, "sandwich by prompt"
        )
        effects.append(
            Effect(
                name=name,
                estimate=estimate,
                interval=interval,
                standard_deviation=float(fitted.scales[place]),
            )
        )
    return tuple(effects)


def _rows(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(value) for value in row) for row in matrix)
