"""Samples: seeded, every probability true, nothing drawn twice, small strata not forgotten."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dikast.analysis.audit_sample import Sample, allocate, draw
from tests.unit.analysis.test_ratings import outcome


def run_of(tmp_path: Path, rows: list[dict[str, Any]]) -> str:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def mixed(n: int = 300) -> list[dict[str, Any]]:
    """Winners of unequal number, a rare category, some doubt."""
    return [
        outcome(
            f"p{k}",
            "A" if k % 10 else "tie" if k % 20 else "B",
            category="rare" if k % 100 == 7 else "common",
            confidence=0.5 if k % 6 == 0 else 0.9 if k % 2 else 1.0,
        )
        for k in range(n)
    ]


def ids(sample: Sample) -> list[str]:
    return [each.id for each in sample.drawn]


@pytest.mark.parametrize("how", ["uniform", "stratified", "uncertainty"])
def test_probabilities_are_those_of_the_strata_and_add_up(tmp_path: Path, how: Any) -> None:
    sample = draw(run_of(tmp_path, mixed()), 60, how, seed=1)
    assert len(set(ids(sample))) == 60
    assert sum(each.pairs for each in sample.strata) == sample.pairs == 300
    drawn = Counter(each.stratum for each in sample.drawn)
    assert drawn == {each.name: each.drawn for each in sample.strata}
    for each in sample.drawn:
        assert each.inclusion_probability == drawn[each.stratum] / each.stratum_pairs
    # Horvitz and Thompson: the inverse probabilities count the file.
    assert sum(1 / each.inclusion_probability for each in sample.drawn) == pytest.approx(300)


def test_a_seed_decides_and_nothing_else(tmp_path: Path) -> None:
    path = run_of(tmp_path, mixed())
    assert ids(draw(path, 30, "stratified", seed=1)) == ids(draw(path, 30, "stratified", seed=1))
    assert ids(draw(path, 30, "uniform", seed=1)) != ids(draw(path, 30, "uniform", seed=2))


@pytest.mark.parametrize("how", ["uniform", "stratified", "uncertainty"])
def test_the_order_of_lines_does_not_matter(tmp_path: Path, how: Any) -> None:
    rows = mixed()
    one = draw(run_of(tmp_path, rows), 47, how, seed=1)
    two = draw(run_of(tmp_path, rows[::-1]), 47, how, seed=1)
    assert one == two
    assert ids(one) != sorted(ids(one))


def test_every_pair_is_drawn_as_often_as_it_says(tmp_path: Path) -> None:
    path = run_of(tmp_path, mixed(60))
    met: Counter[str] = Counter()
    chances: dict[str, float] = {}
    draws = 600
    for seed in range(draws):
        for each in draw(path, 20, "uncertainty", seed=seed).drawn:
            met[each.id] += 1
            chances[each.id] = each.inclusion_probability
    assert len(chances) == 60
    for name, chance in chances.items():
        error = (chance * (1 - chance) / draws) ** 0.5
        assert abs(met[name] / draws - chance) <= 4.5 * error


def test_doubt_is_drawn_more_often_and_rare_strata_are_there(tmp_path: Path) -> None:
    path = run_of(tmp_path, mixed())
    unsure = draw(path, 60, "uncertainty", seed=1)
    chance = {each.stratum: each.inclusion_probability for each in unsure.drawn}
    sure, doubtful = (
        chance["winner A, confidence 0.95 up"],
        chance["winner A, confidence below 0.6"],
    )
    assert doubtful > 1.8 * sure
    stratified = draw(path, 60, "stratified", seed=1, by=("category",))
    assert {each.name: each.drawn for each in stratified.strata}["category rare"] >= 2


def test_more_strata_than_the_sample_can_hold_are_pooled(tmp_path: Path) -> None:
    rows = [outcome(f"p{k}", category=f"c{k % 40 if k < 80 else 0}") for k in range(400)]
    sample = draw(run_of(tmp_path, rows), 20, "stratified", seed=1, by=("category",))
    assert len(sample.strata) == 4
    assert all(each.drawn >= 2 for each in sample.strata)
    assert sum(each.pairs for each in sample.strata) == 400


def test_pairs_without_a_verdict_are_counted_and_not_drawn(tmp_path: Path) -> None:
    rows = [
        *mixed(10),
        outcome("u", None),
        {"kind": "failed", "id": "later", "reason": "timeout", "message": ""},
        outcome("later", "B"),
        outcome("p1", "B"),
    ]
    sample = draw(run_of(tmp_path, rows), 100, "uniform", seed=1)
    assert sorted(ids(sample)) == sorted([f"p{k}" for k in range(10)] + ["later"])
    assert (sample.pairs, sample.repeated) == (11, 1)
    assert sample.missing == {"undecided: unparsed": 1}
    assert {each.inclusion_probability for each in sample.drawn} == {1.0}


def test_two_seats_each_then_by_weight() -> None:
    assert allocate([100, 100, 3, 1], [300.0, 100.0, 0.0, 0.0], 45) == [32, 10, 2, 1]
    assert allocate([5, 5], [1.0, 1.0], 100) == [5, 5]
    assert allocate([5, 5, 9], [1.0, 1.0, 1.0], 1) == [0, 0, 1]


def test_no_doubt_in_the_file_is_said(tmp_path: Path) -> None:
    path = run_of(tmp_path, [outcome(f"p{k}") for k in range(9)])
    assert draw(path, 3, "uncertainty", seed=0).unsure == 0
    with pytest.raises(ValueError, match="at least one"):
        draw(path, 0, "uniform", seed=0)
