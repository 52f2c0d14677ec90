"""Judges of unequal reliability: who is good is found, and using it ranks better."""

import numpy as np
import pytest

from dikast.analysis.ranking import (
    BattleLog,
    Battles,
    Result,
    dawid_skene,
    rank,
    weigh_by_agreement,
)
from dikast.engine.errors import InputError

ACCURACY = {"good": 0.9, "fair": 0.75, "also fair": 0.75, "coin": 0.34, "also coin": 0.34}
STRENGTHS = {"a": 0.6, "b": 0.2, "c": -0.2, "d": -0.6}
RESULTS: tuple[Result, ...] = ("A", "B", "tie")


def world(seed: int, pairs: int = 250) -> Battles:
    rng = np.random.default_rng(seed)
    log = BattleLog()
    names = list(STRENGTHS)
    for pair in range(pairs):
        i, j = sorted(rng.choice(4, size=2, replace=False).tolist())
        p = 1 / (1 + np.exp(-(STRENGTHS[names[i]] - STRENGTHS[names[j]])))
        truth: Result = "tie" if rng.random() < 0.2 else "A" if rng.random() < p else "B"
        for judge, accuracy in ACCURACY.items():
            others: list[Result] = [each for each in RESULTS if each != truth]
            said = truth if rng.random() < accuracy else others[int(rng.integers(2))]
            log.add(str(pair), names[i], names[j], said, judge=judge)
    return log.finish()


def test_dawid_skene_finds_how_good_each_judge_is() -> None:
    found = {each.judge: each for each in dawid_skene(world(1, pairs=1500)).judges}

    for judge in ("good", "fair", "also fair"):
        assert found[judge].accuracy == pytest.approx(ACCURACY[judge], abs=0.06)
    assert found["good"].weight > 0.75
    assert found["coin"].weight < 0.1
    assert found["coin"].battles == 1500


def test_dawid_skene_makes_one_battle_of_a_pair() -> None:
    battles = dawid_skene(world(1)).battles

    report = rank(battles).report

    assert battles.weight.sum() == pytest.approx(250, abs=0.01)
    assert report.battles == 250
    assert sum(each.battles for each in report.models) == pytest.approx(500, abs=2)


def test_agreement_gives_the_coins_next_to_nothing() -> None:
    weighted = weigh_by_agreement(world(2))
    found = {each.judge: each.weight for each in weighted.judges}

    assert min(found["good"], found["fair"], found["also fair"]) > 3 * max(
        found["coin"], found["also coin"]
    )
    assert weighted.battles.weight.mean() == pytest.approx(1.0)


def test_both_ways_rank_nearer_to_the_truth_than_counting_all_alike() -> None:
    def error(battles: Battles) -> float:
        found = rank(battles)
        by_name = dict(zip(found.models, found.strengths, strict=True))
        return float(sum((by_name[name] - want) ** 2 for name, want in STRENGTHS.items()))

    worlds = [world(seed) for seed in range(20)]
    alike = np.mean([error(each) for each in worlds])
    weighed = np.mean([error(weigh_by_agreement(each).battles) for each in worlds])
    hidden = np.mean([error(dawid_skene(each).battles) for each in worlds])

    assert weighed < 0.8 * alike
    assert hidden < 0.8 * alike


def test_judges_that_share_no_pair_cannot_be_weighed() -> None:
    log = BattleLog()
    log.add("p", "a", "b", "A", judge="x")
    log.add("q", "a", "b", "A", judge="y")
    for weigh in (weigh_by_agreement, dawid_skene):
        with pytest.raises(InputError, match=r"decided by two|several judges"):
            weigh(log.finish())


def test_judges_that_contradict_each_other_cannot_be_weighed() -> None:
    log = BattleLog()
    for place in range(40):
        log.add(str(place), "a", "b", "A" if place % 2 else "B", judge="x")
        log.add(str(place), "a", "b", "B" if place % 2 else "A", judge="y")
    with pytest.raises(InputError, match="no better than by chance"):
        weigh_by_agreement(log.finish())
