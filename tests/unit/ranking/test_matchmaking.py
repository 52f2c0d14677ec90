"""The proposed battles settle more than random ones, and go where the order is open."""

import numpy as np
import pytest

from dikast.analysis.ranking import BattleLog, battles_of, propose, rank
from dikast.engine.errors import InputError
from tests.unit.ranking.worlds import names, outcome

STRENGTHS = np.array([2.0, 1.7, 0.9, 0.6, 0.0, -0.2, -1.0, -1.2, -1.9, -2.1])
BATTLES, STEP = 400, 40


def wrong_pairs(active: bool, seed: int) -> float:
    """Share of model pairs in the wrong order after so many battles."""
    rng = np.random.default_rng(seed)
    models = names(len(STRENGTHS))
    log = BattleLog()

    def battle(i: int, j: int) -> None:
        log.add(
            str(len(log)), models[i], models[j], outcome(STRENGTHS[i] - STRENGTHS[j], None, rng)
        )

    for i in range(len(models)):
        battle(i, (i + 1) % len(models))
    while len(log) < BATTLES:
        if active:
            for each in propose(rank(log.finish()), STEP):
                for _ in range(each.battles):
                    battle(models.index(each.model_a), models.index(each.model_b))
        else:
            for _ in range(STEP):
                i, j = rng.choice(len(models), size=2, replace=False)
                battle(int(i), int(j))
    found = rank(log.finish())
    by_name = dict(zip(found.models, found.strengths, strict=True))
    guessed = np.array([by_name[name] for name in models])
    gap = np.sign(guessed[:, None] - guessed[None, :])
    truth = np.sign(STRENGTHS[:, None] - STRENGTHS[None, :])
    return float((np.triu(gap * truth, 1) < 0).sum() / 45)


@pytest.mark.slow
def test_active_matchmaking_leaves_fewer_models_in_the_wrong_order_than_chance() -> None:
    seeds = range(24)
    active = np.array([wrong_pairs(True, seed) for seed in seeds])
    random = np.array([wrong_pairs(False, seed) for seed in seeds])
    assert active.mean() < 0.85 * random.mean()
    error = (active - random).std(ddof=1) / np.sqrt(len(active))
    assert active.mean() - random.mean() < -2 * error


def test_the_battles_go_to_neighbours_and_not_to_settled_pairs() -> None:
    rows = [("a", "b", "A"), ("a", "b", "B")] * 10
    rows += [("b", "c", "A")] * 60 + [("b", "c", "B")] * 2
    rows += [("c", "d", "A"), ("c", "d", "B")] * 10
    standings = rank(battles_of(rows))  # type: ignore[arg-type]

    found = propose(standings, 30)

    assert sum(each.battles for each in found) == 30
    assert {(each.model_a, each.model_b) for each in found} == {("a", "b"), ("c", "d")}
    assert all(0.3 < each.wrong_order <= 0.5 and each.met == 20 for each in found)
    assert 0 < sum(each.gain for each in found) < 1


def test_groups_that_never_met_are_brought_together_first() -> None:
    rows = [("a", "b", "A"), ("a", "b", "B")] * 20 + [("x", "y", "A"), ("x", "y", "B")] * 20
    first = propose(rank(battles_of(rows)), 1)[0]  # type: ignore[arg-type]

    assert {first.model_a, first.model_b} & {"a", "b"}
    assert {first.model_a, first.model_b} & {"x", "y"}


def test_no_battle_to_propose_is_an_error() -> None:
    standings = rank(battles_of([("a", "b", "A"), ("a", "b", "B")]))
    with pytest.raises(InputError, match="at least 1"):
        propose(standings, 0)
