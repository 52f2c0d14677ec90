"""The ratings are those of other people's programs, and of the formulas."""

import warnings
from typing import Any

import evalica
import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from dikast.analysis.ranking import BattleLog, Battles, RankSettings, elo, rank
from dikast.analysis.ranking.likelihood import LIKELIHOODS, Counts, Model
from dikast.analysis.ranking.standings import POINTS_A_LOGIT
from tests.unit.ranking.worlds import play

STRENGTHS = [1.0, 0.6, 0.0, -0.4, -1.2]
FREE = RankSettings(ridge=0.0)


def contrasts(battles: Battles) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """+1 for A and -1 for B, one row a battle."""
    x = np.zeros((len(battles), len(battles.models)))
    x[np.arange(len(battles)), battles.a] = 1
    x[np.arange(len(battles)), battles.b] = -1
    return x


def test_without_ties_it_is_the_logistic_regression_of_statsmodels_and_its_clustered_errors() -> (
    None
):
    battles = play(STRENGTHS, prompts=90, repeats=2, prompt_sd=0.8)

    ours = rank(battles, FREE)

    x = contrasts(battles)[:, 1:]  # the first model is the reference
    won = (battles.result == 0).astype(float)
    theirs = sm.Logit(won, x).fit(
        disp=0, cov_type="cluster", cov_kwds={"groups": battles.cluster, "use_correction": False}
    )
    groups = len(np.unique(battles.cluster))
    assert ours.strengths[1:] - ours.strengths[0] == pytest.approx(theirs.params, abs=1e-8)
    of_differences = np.hstack([-np.ones((4, 1)), np.eye(4)])
    covariance = of_differences @ ours.covariance @ of_differences.T
    assert covariance == pytest.approx(theirs.cov_params() * groups / (groups - 1), rel=1e-6)


def test_the_ridge_is_the_one_of_scikit_learn() -> None:
    battles = play(STRENGTHS, prompts=40)

    ours = rank(battles, RankSettings(ridge=0.5))

    theirs = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-12, max_iter=1000)
    theirs.fit(contrasts(battles), battles.result == 0)
    assert ours.strengths == pytest.approx(theirs.coef_[0], abs=1e-5)


def test_with_ties_as_halves_it_is_bradley_terry_and_elo_of_evalica() -> None:
    battles = play(STRENGTHS, prompts=100, tie_logit=0.2)
    winners = [
        (evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw)[result]
        for result in battles.result
    ]
    left = [battles.models[place] for place in battles.a]
    right = [battles.models[place] for place in battles.b]

    ours = rank(battles, FREE)

    theirs = evalica.bradley_terry(left, right, winners, tolerance=1e-12, limit=10_000).scores
    shares = np.exp(ours.strengths) / np.exp(ours.strengths).sum()
    wanted = np.array([theirs[name] for name in ours.models])
    assert shares == pytest.approx(wanted / wanted.sum(), abs=1e-8)
    assert elo(battles) == pytest.approx(dict(evalica.elo(left, right, winners).scores))


@pytest.mark.parametrize("model", ["davidson", "rao-kupper"])
def test_the_models_of_ties_find_the_maximum_that_scipy_finds(model: Model) -> None:
    battles = play(STRENGTHS, prompts=100, tie_logit=0.2)
    n = len(battles.models)
    counts = Counts(*((battles.result == code).astype(float) for code in (0, 1, 2)))

    def loss(parameters: "np.ndarray[Any, np.dtype[np.float64]]") -> float:
        d = contrasts(battles) @ parameters[:n]
        terms = LIKELIHOODS[model](d, np.full(len(d), parameters[n]), counts)
        return float(-terms.value.sum() + 1e-8 * (parameters**2).sum())

    ours = rank(battles, RankSettings(model=model, ridge=0.0))

    start = np.append(np.zeros(n), 0.5)
    bounds = [(None, None)] * n + [(1e-6 if model == "rao-kupper" else None, None)]
    theirs = minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15})
    assert ours.strengths == pytest.approx(theirs.x[:n] - theirs.x[:n].mean(), abs=2e-3)
    assert ours.tie_parameter == pytest.approx(theirs.x[n], abs=2e-3)
    mine = np.append(ours.strengths, float(ours.tie_parameter or 0.0))
    assert loss(mine) <= loss(theirs.x) + 1e-6


@pytest.mark.parametrize("model", ["bt", "davidson", "rao-kupper"])
@pytest.mark.parametrize("d", [-1.3, 0.0, 0.7])
def test_the_derivatives_are_those_of_finite_differences(model: Model, d: float) -> None:
    counts = Counts(np.array([3.0]), np.array([1.5]), np.array([2.0]))
    step = 1e-5

    def at(x: float, t: float) -> Any:
        return LIKELIHOODS[model](np.array([x]), np.array([t]), counts)

    t = 0.6
    terms = at(d, t)
    assert terms.d[0] == pytest.approx(
        (at(d + step, t).value[0] - at(d - step, t).value[0]) / (2 * step), abs=1e-6
    )
    assert terms.dd[0] == pytest.approx(
        -(at(d + step, t).d[0] - at(d - step, t).d[0]) / (2 * step), abs=1e-6
    )
    if model != "bt":
        assert terms.t[0] == pytest.approx(
            (at(d, t + step).value[0] - at(d, t - step).value[0]) / (2 * step), abs=1e-6
        )
        assert terms.dt[0] == pytest.approx(
            -(at(d, t + step).d[0] - at(d, t - step).d[0]) / (2 * step), abs=1e-6
        )
        assert terms.tt[0] == pytest.approx(
            -(at(d, t + step).t[0] - at(d, t - step).t[0]) / (2 * step), abs=1e-6
        )


def test_a_planted_davidson_world_is_found_again() -> None:
    battles = play(STRENGTHS, prompts=3000, tie_logit=0.4, seed=4)

    found = rank(battles, RankSettings(model="davidson"))

    centred = np.array(STRENGTHS) - np.mean(STRENGTHS)
    by_name = dict(zip(found.models, found.strengths, strict=True))
    assert [by_name[name] for name in sorted(by_name)] == pytest.approx(centred, abs=0.12)
    assert found.tie_parameter == pytest.approx(0.4, abs=0.08)


def test_covariates_are_those_of_statsmodels_and_take_the_bias_out() -> None:
    rng = np.random.default_rng(5)
    log = BattleLog(("length",))
    for place in range(6000):
        i, j = rng.choice(4, size=2, replace=False)
        longer = float(np.clip(rng.normal(0.3 * (i - j), 0.4), -1, 1))  # later models talk more
        p = 1 / (1 + np.exp(-(0.3 * (j - i) + 2.0 * longer)))  # and are worse
        log.add(
            str(place), f"m{i}", f"m{j}", "A" if rng.random() < p else "B", covariates=(longer,)
        )
    battles = log.finish()

    raw = rank(battles.where(battles.item >= 0), FREE)
    plain = BattleLog()
    for a, b, result, item in zip(battles.a, battles.b, battles.result, battles.item, strict=True):
        plain.add(str(item), battles.models[a], battles.models[b], "A" if result == 0 else "B")
    uncontrolled = rank(plain.finish(), FREE)

    scale = raw.report.effects[0].standard_deviation
    x = np.column_stack([contrasts(battles)[:, 1:], battles.covariates[:, 0] / scale])
    theirs = sm.Logit((battles.result == 0).astype(float), x).fit(disp=0)
    assert raw.report.effects[0].estimate == pytest.approx(theirs.params[-1], abs=1e-7)
    assert raw.strengths[1:] - raw.strengths[0] == pytest.approx(theirs.params[:-1], abs=1e-7)
    assert [each.model for each in raw.report.models] == ["m0", "m1", "m2", "m3"]
    assert [each.model for each in uncontrolled.report.models] == ["m3", "m2", "m1", "m0"]
    controlled = {each.model: each.controlled_win_rate or 0.0 for each in raw.report.models}
    rates = {each.model: each.win_rate for each in raw.report.models}
    assert controlled["m0"] > 0.5 > controlled["m3"]
    assert rates["m0"] < 0.5 < rates["m3"]


def test_points_are_elo_like_and_a_lead_of_400_is_ten_to_one() -> None:
    log = BattleLog()
    for place in range(11):
        log.add(str(place), "x", "y", "A" if place else "B")

    first, second = rank(log.finish(), FREE).report.models

    assert first.rating - second.rating == pytest.approx(400.0)
    assert first.rating + second.rating == pytest.approx(2000.0)
    assert pytest.approx(400 / np.log(10)) == POINTS_A_LOGIT


def test_a_win_rate_has_the_standard_error_of_a_mean() -> None:
    battles = play([1.0, 0.0], prompts=200, battles_a_prompt=1, tie_logit=0.0)

    best = rank(battles).report.models[0]

    score = np.array([1.0, 0.0, 0.5])[battles.result]
    assert best.win_rate == pytest.approx(score.mean())
    assert best.win_rate_interval is not None
    error = score.std(ddof=1) / np.sqrt(len(score))
    width = best.win_rate_interval.high - best.win_rate_interval.low
    assert width == pytest.approx(2 * 1.9719565 * error, rel=1e-4)  # t with 199 degrees of freedom


def test_the_bootstrap_and_the_sandwich_agree_where_there_is_much_data() -> None:
    battles = play(STRENGTHS, prompts=400, repeats=2, prompt_sd=0.5)

    sandwich = rank(battles)
    bootstrap = rank(battles, RankSettings(interval="bootstrap", draws=600, seed=3))

    assert bootstrap.draws is not None
    assert bootstrap.draws.std(axis=0) == pytest.approx(
        np.sqrt(np.diag(sandwich.covariance)), rel=0.12
    )


def test_prompts_with_one_battle_are_drawn_together_and_give_the_same_spread() -> None:
    battles = play(STRENGTHS, prompts=800, battles_a_prompt=1)

    sandwich = rank(battles)
    bootstrap = rank(battles, RankSettings(interval="bootstrap", draws=600, seed=3))

    assert bootstrap.draws is not None
    assert bootstrap.draws.std(axis=0) == pytest.approx(
        np.sqrt(np.diag(sandwich.covariance)), rel=0.12
    )


def test_the_same_seed_gives_the_same_interval_and_another_one_another() -> None:
    battles = play(STRENGTHS, prompts=60)

    def low(seed: int) -> float:
        settings = RankSettings(interval="bootstrap", draws=50, seed=seed)
        return rank(battles, settings).report.models[0].interval.low

    assert low(1) == low(1)
    assert low(1) != low(2)


def test_nothing_warns_on_extreme_strengths() -> None:
    log = BattleLog()
    for place in range(2000):
        log.add(str(place), "x", "y", "A")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in ("bt", "davidson", "rao-kupper"):
            found = rank(log.finish(), RankSettings(model=model)).report
            assert all(np.isfinite(each.rating) for each in found.models)
