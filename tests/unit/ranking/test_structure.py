"""Data that cannot carry a ranking get an explanation, and never an infinite number."""

import numpy as np
import pytest

from dikast.analysis.ranking import BattleLog, RankSettings, battles_of, rank
from dikast.engine.errors import InputError


def test_no_battle_is_an_error_that_counts_the_reasons() -> None:
    log = BattleLog()
    log.add("p", "ant", "ant", "A")
    with pytest.raises(InputError, match=r"no battle between two models.*1 a model against itself"):
        rank(log.finish())
    with pytest.raises(InputError, match="it holds no rows"):
        rank(BattleLog().finish())


def test_a_model_that_never_lost_is_named_and_its_rating_is_finite() -> None:
    rows = [("ant", "bee", "A")] * 9 + [("bee", "cat", "A"), ("bee", "cat", "B")] * 5
    battles = battles_of(rows)  # type: ignore[arg-type]

    report = rank(battles).report

    assert report.models[0].model == "ant"
    assert report.models[0].side == "above"
    assert [each.side for each in report.models[1:]] == [None, None]
    assert 1200 < report.models[0].rating < 3000
    assert any("ant never lost to the others" in note for note in report.notes)
    with pytest.raises(InputError, match=r"Without a penalty there is no finite rating"):
        rank(battles, RankSettings(ridge=0))


def test_a_model_that_never_won_is_below_and_a_draw_bounds_it() -> None:
    rows = [("ant", "bee", "A"), ("ant", "bee", "B")] * 3 + [("bee", "cat", "A")] * 4
    below = rank(battles_of(rows)).report  # type: ignore[arg-type]
    bound = rank(battles_of([*rows, ("ant", "cat", "tie")])).report  # type: ignore[list-item]

    assert below.models[-1].side == "below"
    assert any("cat never won against" in note for note in below.notes)
    assert [each.side for each in bound.models] == [None] * 3


def test_separation_through_third_models_is_seen() -> None:
    ring = [("a", "b", "A"), ("b", "c", "A"), ("c", "a", "A")]
    other = [("x", "y", "A"), ("y", "x", "A")]
    bridge = [("a", "x", "A")]

    report = rank(battles_of(ring + other + bridge)).report  # type: ignore[arg-type]

    assert {each.model: each.side for each in report.models} == {
        "a": None, "b": None, "c": None, "x": "below", "y": "below",
    }  # fmt: skip


def test_groups_that_never_met_are_ranked_apart() -> None:
    rows = [("a", "b", "A"), ("a", "b", "B"), ("b", "c", "tie"), ("x", "y", "A"), ("x", "y", "B")]

    report = rank(battles_of(rows)).report  # type: ignore[arg-type]

    assert report.groups == 2
    assert [(each.group, each.rank) for each in report.models] == [
        (0, 1), (0, 2), (0, 3), (1, 1), (1, 2),
    ]  # fmt: skip
    for group in (0, 1):
        mine = [each.rating for each in report.models if each.group == group]
        assert np.mean(mine) == pytest.approx(1000)
    assert any("2 groups that never met" in note for note in report.notes)


def test_all_ties_are_equal_ratings_and_a_sentence() -> None:
    battles = battles_of([("a", "b", "tie"), ("b", "c", "tie"), ("a", "c", "disagree")])
    for model in ("bt", "davidson", "rao-kupper"):
        report = rank(battles, RankSettings(model=model)).report
        assert [each.rating for each in report.models] == pytest.approx([1000] * 3)
        assert [(each.rank_low, each.rank_high) for each in report.models] == [(1, 3)] * 3
        assert any("Every battle is a tie" in note for note in report.notes)
    with pytest.raises(InputError, match="2 ties"):
        rank(battles, RankSettings(ties="drop"))


def test_ties_can_be_left_out_and_are_counted() -> None:
    rows = [("a", "b", "A"), ("a", "b", "B"), ("a", "b", "tie"), ("a", "b", "disagree")]

    report = rank(battles_of(rows), RankSettings(ties="drop")).report  # type: ignore[arg-type]

    assert report.battles == 2
    assert report.left_out == {"the two orders disagreed": 1, "ties": 1}


def test_disagreements_can_be_left_out_while_ties_stay() -> None:
    rows = [("a", "b", "A"), ("a", "b", "tie"), ("a", "b", "disagree"), ("a", "c", "disagree")]

    report = rank(battles_of(rows), RankSettings(disagreements="drop")).report  # type: ignore[arg-type]

    assert (report.battles, report.ties, report.disagreements) == (2, 1, 0)
    assert any("Not ranked" in note and "c" in note for note in report.notes)


def test_a_model_of_ties_without_ties_is_bradley_terry_and_says_so() -> None:
    battles = battles_of([("a", "b", "A"), ("a", "b", "B"), ("a", "b", "A")])

    plain = rank(battles)
    with_ties = rank(battles, RankSettings(model="davidson"))

    assert with_ties.strengths == pytest.approx(plain.strengths)
    assert with_ties.tie_parameter is None
    assert any("no ties" in note for note in with_ties.report.notes)


def test_few_prompts_are_warned_of() -> None:
    report = rank(battles_of([("a", "b", "A"), ("a", "b", "B")], ["p", "p"])).report

    assert any("Only 1 prompts" in note for note in report.notes)
    assert report.models[0].win_rate_interval is None
