"""Rows for mining and rows kept apart: by seed and text, never by the order of the file."""

import random

import pytest

from dikast.engine.errors import ConfigError
from dikast.engine.model import Pair
from dikast.strategies.sesse.library import ids_sha
from dikast.strategies.sesse.split import fingerprint, split_rows, usable


def pairs(count: int, *, questions: int | None = None) -> list[Pair]:
    return [
        Pair(
            id=f"p{n}",
            question=f"question {n % (questions or count)}",
            response_a=f"a{n}",
            response_b=f"b{n}",
            label="A" if n % 2 else "B",
            category="rare" if n % 10 == 0 else "usual",
        )
        for n in range(count)
    ]


def test_the_split_is_the_same_for_any_order_and_another_for_another_seed() -> None:
    rows = pairs(200)
    mine, rest, split = split_rows(rows, share=0.7, seed=1, stratify=False)
    shuffled = random.Random(0).sample(rows, len(rows))
    again, _, split_again = split_rows(shuffled, share=0.7, seed=1, stratify=False)
    other, _, _ = split_rows(rows, share=0.7, seed=2, stratify=False)
    assert {pair.id for pair in mine} == {pair.id for pair in again}
    assert {pair.id for pair in mine} != {pair.id for pair in other}
    assert split == split_again
    assert (len(mine), len(rest)) == (140, 60)
    assert split.calibration_ids == tuple(sorted(pair.id for pair in rest))
    assert split.mine_ids_sha == ids_sha([pair.id for pair in mine])


def test_pairs_with_one_question_stay_on_one_side() -> None:
    rows = pairs(200, questions=40)
    mine, rest, _ = split_rows(rows, share=0.6, seed=3, stratify=False)
    assert not {pair.question for pair in mine} & {pair.question for pair in rest}
    assert len(mine) == 120


def test_every_category_is_split_alike_when_asked_for() -> None:
    rows = pairs(200)
    mine, _, split = split_rows(rows, share=0.5, seed=3, stratify=True)
    assert sum(pair.category == "rare" for pair in mine) == 10
    assert len(mine) == 100
    assert split.stratified


def test_without_a_share_all_rows_are_mined() -> None:
    mine, rest, split = split_rows(pairs(9), share=1.0, seed=0, stratify=False)
    assert len(mine) == 9
    assert rest == []
    assert split.calibration_ids == ()


@pytest.mark.parametrize("share", [0.0, -0.1, 1.01, float("nan")])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match="split-dev"):
        split_rows(pairs(9), share=share, seed=0, stratify=False)


def test_rows_without_a_clear_label_are_left_out_and_counted() -> None:
    rows = [
        Pair(id="1", question="q", response_a="a", response_b="b", label="A"),
        Pair(id="2", question="q", response_a="a", response_b="b", label="tie"),
        Pair(id="3", question="q", response_a="a", response_b="b"),
        Pair(id="1", question="q", response_a="x", response_b="y", label="B"),
    ]
    found = usable(rows)
    assert [pair.id for pair in found.pairs] == ["1"]
    assert found.left_out == {"labelled a tie": 1, "no label": 1, "id seen before": 1}


def test_the_fingerprint_is_of_texts_and_labels_in_any_order() -> None:
    rows = pairs(5)
    assert fingerprint(rows) == fingerprint(rows[::-1])
    changed = [*rows[:4], rows[4].swapped()]
    assert fingerprint(changed) != fingerprint(rows)
