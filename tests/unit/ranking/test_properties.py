"""What must not matter does not matter: order, side, names; and copies are no new evidence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dikast.analysis.ranking import Battles, RankSettings, Result, battles_of, rank
from dikast.analysis.ranking.battles import BattleLog

FLIPPED: dict[Result, Result] = {"A": "B", "B": "A", "tie": "tie", "disagree": "disagree"}
RESULTS: tuple[Result, ...] = ("A", "B", "tie", "disagree")
MODELS = ("ant", "bee", "cat", "dog")

Triples = list[tuple[str, str, Result]]
triples = st.lists(
    st.tuples(st.sampled_from(MODELS), st.sampled_from(MODELS), st.sampled_from(RESULTS)).filter(
        lambda each: each[0] != each[1]
    ),
    min_size=3,
    max_size=40,
)
models = st.sampled_from(("bt", "davidson", "rao-kupper"))


def ratings(battles: Battles, model: str, **more: object) -> dict[str, tuple[float, float, float]]:
    chosen = RankSettings(model=model, **more)  # type: ignore[arg-type]
    return {
        each.model: (each.rating, each.interval.low, each.interval.high)
        for each in rank(battles, chosen).report.models
    }


def alike(
    one: dict[str, tuple[float, float, float]], two: dict[str, tuple[float, float, float]]
) -> bool:
    assert one.keys() == two.keys()
    return all(np.allclose(one[name], two[name], atol=1e-3) for name in one)


@given(triples, models)
@settings(max_examples=40)
def test_every_number_is_finite_and_the_ranks_are_places(rows: Triples, model: str) -> None:
    report = rank(battles_of(rows), RankSettings(model=model)).report  # type: ignore[arg-type]
    for each in report.models:
        assert np.isfinite([each.rating, each.interval.low, each.interval.high]).all()
        assert 1 <= each.rank_low <= each.rank_high <= len(report.models)
        assert each.wins + each.losses + each.ties == each.battles
        assert 0 <= each.win_rate <= 1
    assert sum(each.wins for each in report.models) == sum(each.losses for each in report.models)
    assert sum(each.battles for each in report.models) == 2 * report.battles


@given(triples, models, st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_the_side_and_the_order_of_rows_do_not_matter(
    rows: Triples, model: str, rng: object
) -> None:
    turned: Triples = [(b, a, FLIPPED[result]) for a, b, result in rows]
    rng.shuffle(turned)  # type: ignore[attr-defined]
    assert alike(ratings(battles_of(rows), model), ratings(battles_of(turned), model))


@given(triples, models)
@settings(max_examples=30)
def test_other_names_are_only_other_names(rows: Triples, model: str) -> None:
    new = {"ant": "zebra", "bee": "yak", "cat": "wolf", "dog": "vole"}
    renamed: Triples = [(new[a], new[b], result) for a, b, result in rows]
    before = {new[name]: value for name, value in ratings(battles_of(rows), model).items()}
    assert alike(before, ratings(battles_of(renamed), model))


@given(triples)
@settings(max_examples=30)
def test_copies_on_the_same_prompt_change_neither_rating_nor_interval(rows: Triples) -> None:
    clusters = [str(place) for place in range(len(rows))]
    once = ratings(battles_of(rows, clusters), "bt", ridge=0.01)
    thrice = ratings(battles_of(rows * 3, clusters * 3), "bt", ridge=0.03)
    assert alike(once, thrice)


def test_copies_on_other_prompts_would_narrow_the_interval() -> None:
    rows: Triples = [("ant", "bee", result) for result in ("A", "A", "B", "tie") * 10]
    one = ratings(battles_of(rows), "bt")["ant"]
    four = ratings(battles_of(rows * 4), "bt")["ant"]
    assert (four[2] - four[1]) == pytest.approx((one[2] - one[1]) / 2, rel=0.05)


def test_the_two_orders_of_a_pair_are_one_battle() -> None:
    log = BattleLog()
    for place, (first, second) in enumerate(
        [("A", "A"), ("A", "B"), ("tie", "tie"), ("A", "tie"), ("B", "B")]
    ):
        log.add(f"p{place}", "ant", "bee", first, judge="j", order="ab")  # type: ignore[arg-type]
        log.add(f"p{place}", "ant", "bee", second, judge="j", order="ba")  # type: ignore[arg-type]
    log.add("p9", "ant", "bee", "A", judge="j", order="ba")

    report = rank(log.finish()).report

    assert report.battles == 6
    assert (report.orders_merged, report.single_order) == (5, 1)
    assert (report.ties, report.disagreements) == (1, 2)
    ant = next(each for each in report.models if each.model == "ant")
    assert (ant.wins, ant.losses, ant.ties) == (2, 1, 3)


def test_orders_of_different_judges_or_repeats_are_not_joined() -> None:
    log = BattleLog()
    log.add("p", "ant", "bee", "A", judge="j", order="ab")
    log.add("p", "ant", "bee", "A", judge="k", order="ba")
    log.add("p", "ant", "bee", "A", judge="j", order="ba", repeat=1)

    battles = log.finish()

    assert len(battles) == 3
    assert (battles.order_merged, battles.single_order) == (0, 3)


def test_a_pair_read_the_other_way_round_is_the_same_pair() -> None:
    log = BattleLog()
    log.add("p", "ant", "bee", "A", judge="j", order="ab")
    log.add("p", "bee", "ant", "B", judge="j", order="ab")  # bee shown first: the other order

    battles = log.finish()

    assert len(battles) == 1
    assert battles.result.tolist() == [0]


def test_of_a_row_given_twice_the_last_stands() -> None:
    log = BattleLog()
    log.add("p", "ant", "bee", "A", judge="j", identity="p")
    log.add("p", "ant", "bee", "B", judge="j", identity="p")
    log.add("q", "ant", "bee", "tie", judge="j", identity="q")

    battles = log.finish()

    assert battles.result.tolist() == [1, 2]
    assert battles.left_out == {"given twice": 1}
