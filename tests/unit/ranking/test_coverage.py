"""An interval that says 95 % holds the truth in 93 to 97 % of the worlds, also when battles on
one prompt are alike; intervals that take battles for independent do not."""

from dataclasses import replace

import numpy as np
import pytest

from dikast.analysis.ranking import RankSettings, rank
from dikast.analysis.ranking.battles import Floats
from dikast.analysis.ranking.fitting import Design, fit
from dikast.analysis.ranking.likelihood import Counts
from dikast.analysis.ranking.standings import MEAN_POINTS, POINTS_A_LOGIT
from tests.unit.ranking.worlds import play

STRENGTHS = [0.8, 0.3, 0.0, -0.3, -0.8]
PROMPT_SD = 1.2
WORLDS = 300


def truth() -> Floats:
    """Ratings that endless data would give: prompts' favours flatten the differences."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    i, j = np.triu_indices(len(STRENGTHS), 1)
    gap = np.array(STRENGTHS)[i] - np.array(STRENGTHS)[j]
    shifted = gap[:, None] + np.sqrt(2) * PROMPT_SD * nodes
    p = (1 / (1 + np.exp(-shifted))) @ (weights / weights.sum())
    design = Design(i, j, np.zeros(len(STRENGTHS), dtype=np.int64), "bt", 0.0)
    counts = Counts(p[None], 1 - p[None], np.zeros((1, len(p))))
    strengths: Floats = fit(design, counts).parameters[0]
    return MEAN_POINTS + POINTS_A_LOGIT * strengths


def coverage(*, by_prompt: bool, settings: RankSettings, worlds: int) -> float:
    want = truth()
    inside = 0
    for seed in range(worlds):
        battles = play(
            STRENGTHS, prompts=80, battles_a_prompt=4, repeats=3, prompt_sd=PROMPT_SD, seed=seed
        )
        if not by_prompt:
            battles = replace(battles, cluster=np.arange(len(battles), dtype=np.int64))
        found = {each.model: each.interval for each in rank(battles, settings).report.models}
        for name, rating in zip(sorted(found), want.tolist(), strict=True):
            inside += found[name].low <= rating <= found[name].high

    return inside / (worlds * len(STRENGTHS))


@pytest.mark.slow
def test_the_sandwich_by_prompt_covers_and_without_prompts_it_does_not() -> None:
    assert 0.93 <= coverage(by_prompt=True, settings=RankSettings(), worlds=WORLDS) <= 0.97
    assert coverage(by_prompt=False, settings=RankSettings(), worlds=40) < 0.88


@pytest.mark.slow
def test_the_bootstrap_by_prompt_covers() -> None:
    settings = RankSettings(interval="bootstrap", draws=200)
    assert 0.925 <= coverage(by_prompt=True, settings=settings, worlds=100) <= 0.975
