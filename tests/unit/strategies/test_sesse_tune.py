"""Tuning: depth by replay, weights, gates, muting and the threshold, on planted judges."""

import math
from collections.abc import Sequence

import msgspec
import pytest

from dikast.engine.errors import ConfigError, InputError
from dikast.engine.model import Outcome, Pair, Verdict, Winner
from dikast.strategies.sesse.config import SesseConfig
from dikast.strategies.sesse.library import Library
from dikast.strategies.sesse.plan import Plan
from dikast.strategies.sesse.pool import Cast
from dikast.strategies.sesse.prompts import holistic_template
from dikast.strategies.sesse.replay import Logged, Replay, logged, without
from dikast.strategies.sesse.selffix import SelfFix, fixes, sources_of
from dikast.strategies.sesse.tier_prompts import tier_prompts
from dikast.strategies.sesse.tune import (
    NEVER,
    DepthPoint,
    chosen_depth,
    chosen_threshold,
    depth_curve,
    threshold_curve,
    tune,
)
from dikast.strategies.sesse.weights import Gate, Tally, effects, muted, tallies, turned_away
from tests.unit.strategies.sesse_worlds import (
    JUDGES,
    World,
    library_of,
    pairs,
    plain_library,
    planted,
    question,
)

PAIRS = pairs(450, subsets=("s", "t"))
GOOD = planted("substance", applies=0.9, skill=0.85)
WEAK = planted("style", applies=0.9, skill=0.6)
BAD = planted("bluster", applies=0.9, skill=0.2)


async def log_of(
    library: Library, world: World, rows: Sequence[Pair], holistic: dict[str, Winner] | None = None
) -> list[Logged]:
    outcomes: list[Outcome] = []
    for pair in rows:
        outcome = await world.judge(library, pair)
        outcomes.append(
            msgspec.structs.replace(
                outcome, label=pair.label, category=pair.category, strategy="sesse@1"
            )
        )
    found, left_out = logged(outcomes, holistic or {})
    assert left_out == {}
    return found


async def test_a_replayed_depth_is_what_a_run_at_that_depth_says() -> None:
    library = plain_library((GOOD, WEAK), 5)
    world = World(PAIRS, GOOD, WEAK)
    rows = await log_of(library, world, PAIRS[:60])
    for depth in (1, 2, 4):
        for pair, row in zip(PAIRS[:60], rows, strict=True):
            asked = await world.judge(library, pair, depth=depth)
            assert isinstance(asked, Verdict)
            replayed = Replay(library).pooled(row, depth)
            assert (replayed.winner, replayed.reason) == (asked.winner, asked.notes.get("tie"))


async def test_the_right_depth_is_found_where_deeper_questions_do_harm() -> None:
    # Three good questions, then seven of a criterion that is worse than chance.
    found = {"c": [question(GOOD, n) for n in range(3)] + [question(BAD, n) for n in range(7)]}
    library = library_of(found, {"c": GOOD})
    rows = await log_of(library, World(PAIRS, GOOD, BAD), PAIRS)
    curve = depth_curve(library, rows)
    assert len(curve) == 10
    assert chosen_depth(curve) == 3
    assert curve[2].score > curve[9].score + 0.1
    assert [point.rows for point in curve] == [len(PAIRS)] * 10


async def test_an_even_number_of_votes_makes_the_ties_that_arithmetic_foretells() -> None:
    always = planted("always", applies=1.0, skill=0.8)
    library = plain_library((always,), 4)
    curve = depth_curve(library, await log_of(library, World(PAIRS, always), PAIRS))
    expected = [0.0, 2 * 0.8 * 0.2, 0.0, 6 * 0.8**2 * 0.2**2]
    for point, share in zip(curve, expected, strict=True):
        assert point.ties / point.rows == pytest.approx(share, abs=0.05)
        assert point.calls == point.effective == point.depth
        assert point.na_rate == 0
        decided = point.rows - point.ties
        hits = (point.non_tie_accuracy or 0.0) * decided
        assert point.score == pytest.approx((hits + point.ties / 2) / point.rows)


def test_the_smallest_depth_within_half_a_standard_error_is_taken() -> None:
    def at(depth: int, score: float) -> DepthPoint:
        return DepthPoint(
            depth=depth,
            rows=100,
            score=score,
            score_se=0.04,
            ties=0,
            non_tie_accuracy=score,
            na_rate=0.0,
            calls=1.0,
            effective=1.0,
        )

    assert chosen_depth([at(1, 0.77), at(2, 0.785), at(3, 0.80)]) == 2
    assert chosen_depth([at(1, 0.77), at(2, 0.77), at(3, 0.80)]) == 3
    assert chosen_depth([at(1, 0.80), at(2, 0.80)]) == 1


async def test_weights_are_ordered_as_the_skills_were_planted() -> None:
    library = plain_library((GOOD, WEAK, BAD), 3)
    rows = await log_of(library, World(PAIRS, GOOD, WEAK, BAD), PAIRS)
    tuned = tune(library, rows, gate=None, mute=False)
    weights = [[each.weight for each in cluster.questions] for cluster in tuned.library.clusters]
    assert min(weights[0]) > max(weights[1])
    assert min(weights[1]) > max(weights[2])
    assert max(weights[2]) < 0
    for found, skill in zip(weights, (0.85, 0.6, 0.2), strict=True):
        for each in found:
            assert each == pytest.approx(math.log(skill / (1 - skill)), abs=0.35)


def test_a_weight_is_the_smoothed_log_odds_within_two() -> None:
    assert Tally(asked=9, votes=8, hits=6).weight == pytest.approx(math.log(8 / 4))
    assert Tally(asked=9, votes=0, hits=0).weight == 0
    assert Tally(asked=900, votes=800, hits=800).weight == 2
    assert Tally(asked=900, votes=800, hits=0).weight == -2
    assert Tally(asked=9, votes=8, hits=6).accuracy == pytest.approx(8 / 12)
    assert Tally(asked=10, votes=4, hits=0, invalid=2).non_na_rate == 0.5


def row(number: int, picks: dict[str, str], label: Winner = "A", subset: str = "s") -> Logged:
    casts = tuple(Cast(qid, "c", 0, pick) for qid, pick in picks.items())  # type: ignore[arg-type]
    return Logged(
        id=f"r{number}", label=label, winner=None, selected=("c",), casts=casts, subset=subset
    )


def test_a_question_is_not_credited_with_its_own_source_row() -> None:
    own = question(GOOD, 0, source_id="r1")
    library = library_of({"c": [own]}, {"c": GOOD})
    rows = [row(number, {own.qid: "A"}) for number in range(4)]
    assert tallies(library, rows)[own.qid] == Tally(asked=3, votes=3, hits=3)


def test_gates_turn_away_by_what_was_measured() -> None:
    gate = Gate()
    assert turned_away(Tally(asked=50, votes=40, hits=30), gate) is None
    assert turned_away(Tally(asked=50, votes=40, hits=20), gate) == "no better than chance"
    assert turned_away(Tally(asked=50, votes=2, hits=2), gate) == "hardly ever applies"
    assert turned_away(Tally(asked=9, votes=9, hits=0), gate) is None
    why = turned_away(Tally(asked=50, votes=40, hits=30, fixed=False), gate)
    assert why == "does not fix its own source row"
    loose = Gate(self_fix=False)
    assert turned_away(Tally(asked=50, votes=40, hits=30, fixed=False), loose) is None


async def test_self_fix_asks_each_question_once_on_its_source() -> None:
    found = {"c": [question(GOOD, n, source_id=PAIRS[n % 3].id) for n in range(7)]}
    library = library_of(found, {"c": GOOD})
    world = World(PAIRS, GOOD)
    plan = Plan(
        JUDGES["j"],
        library,
        tier_prompts(),
        holistic_template(),
        SesseConfig(judge="j", library="x"),
    )
    outcomes: list[Outcome] = []
    for pair in PAIRS[:5]:
        outcome = await SelfFix(plan).judge(pair, world)
        outcomes.append(msgspec.structs.replace(outcome, label=pair.label))
    assert sources_of(library) == {each.id for each in PAIRS[:3]}
    fixed = fixes(outcomes)
    assert set(fixed) == {each.qid for each in found["c"]}
    assert world.asked("sesse-tier2") == len(world.calls) == 7
    picks = {vote.question: vote.pick for outcome in outcomes for vote in outcome.votes}
    label_of = {each.qid: PAIRS[n % 3].label for n, each in enumerate(found["c"])}
    assert fixed == {qid: picks[qid] == label for qid, label in label_of.items()}
    assert any(fixed.values())


async def test_a_harmful_cluster_is_muted_where_it_does_harm() -> None:
    library = plain_library((GOOD, BAD), 3)
    rows = await log_of(library, World(PAIRS, GOOD, BAD), PAIRS)
    tuned = tune(library, rows, gate=None)
    assert [cluster.muted for cluster in tuned.library.clusters] == [False, True]
    kept = tune(library, rows, gate=None, mute=False)
    assert tuned.curve[2].score > kept.curve[2].score + 0.05


def test_muting_knows_categories() -> None:
    own = question(GOOD, 0)
    library = library_of({"c": [own]}, {"c": GOOD})
    rows = [row(n, {own.qid: "A"}, subset="good") for n in range(40)]
    rows += [row(100 + n, {own.qid: "B"}, subset="bad") for n in range(12)]
    found = {(each.cid, each.subset): each for each in effects(library, rows)}
    assert (found["c", "bad"].decided, found["c", "bad"].right) == (12, 0)
    assert found["c", "bad"].harm_p == pytest.approx(2**-12)
    assert found["c", None].right == 40
    assert muted(library, found.values()).clusters[0].muted == ("bad",)


async def test_gates_drop_the_questions_of_a_bad_criterion_and_the_library_remembers() -> None:
    mixed = {"c": [question(GOOD, n) for n in range(3)] + [question(BAD, n) for n in range(3)]}
    library = library_of(mixed, {"c": GOOD})
    rows = await log_of(library, World(PAIRS, GOOD, BAD), PAIRS[:300])
    tuned = tune(library, rows, gate=Gate())
    left = [each.qid for each in tuned.library.clusters[0].questions]
    assert left == [each.qid for each in mixed["c"][:3]]
    assert set(tuned.dropped.values()) == {"no better than chance"}
    assert tuned.library.parent == library.hash
    assert tuned.library.hash != library.hash
    assert tuned.library.stats["tune"]["dropped"] == {"no better than chance": 3}
    assert len(tuned.curve) == 3


def test_nothing_left_is_one_clear_sentence() -> None:
    own = question(GOOD, 0)
    library = library_of({"c": [own]}, {"c": GOOD})
    rows = [row(n, {own.qid: "B"}) for n in range(30)]
    with pytest.raises(ConfigError, match="none of 1 questions passes"):
        tune(library, rows, gate=Gate())


async def test_the_threshold_follows_the_planted_trust() -> None:
    library = plain_library((GOOD,), 5)
    rows = await log_of(library, World(PAIRS, GOOD), PAIRS)
    label_of = {pair.id: pair.label for pair in PAIRS}
    flip: dict[str | None, Winner] = {"A": "B", "B": "A"}
    perfect = [msgspec.structs.replace(each, holistic=label_of[each.id]) for each in rows]
    useless = [msgspec.structs.replace(each, holistic=flip[label_of[each.id]]) for each in rows]
    assert chosen_threshold(threshold_curve(library, perfect, 5)) == NEVER
    lowest = min(point.threshold for point in threshold_curve(library, useless, 5))
    assert chosen_threshold(threshold_curve(library, useless, 5)) == lowest
    assert chosen_threshold(threshold_curve(library, rows, 5)) is None


async def test_votes_that_were_stopped_early_are_refused() -> None:
    library = plain_library((GOOD,), 5)
    rows = await log_of(library, World(PAIRS, GOOD), PAIRS[:20])
    cut = [msgspec.structs.replace(each, spared=1) for each in rows]
    with pytest.raises(ConfigError, match="early_stop = false"):
        tune(library, cut)


async def test_what_cannot_be_tuned_on_is_counted_and_other_outcomes_are_refused() -> None:
    library = plain_library((GOOD,), 2)
    outcome = await World(PAIRS, GOOD).judge(library, PAIRS[0])
    unlabelled = msgspec.structs.replace(outcome, strategy="sesse@1")
    tie = msgspec.structs.replace(unlabelled, label="tie")
    assert logged([unlabelled, tie], {}) == ([], {"no label": 1, "labelled a tie": 1})
    plain = Verdict(id="x", winner="A", label="A", strategy="pairwise@1")
    with pytest.raises(InputError, match="not an outcome of the strategy sesse"):
        logged([plain], {}, "out.jsonl")


def test_a_library_without_questions_keeps_its_order_and_radii() -> None:
    library = plain_library((GOOD, WEAK), 3)
    first = library.clusters[0]
    radii = msgspec.structs.replace(first, insertion_radius=(0.0, 0.5, 0.2))
    library = msgspec.structs.replace(library, clusters=(radii, library.clusters[1]))
    gone = {first.questions[1].qid, *(each.qid for each in library.clusters[1].questions)}
    left = without(library, gone)
    assert [cluster.cid for cluster in left.clusters] == ["c0"]
    assert left.clusters[0].questions == (first.questions[0], first.questions[2])
    assert left.clusters[0].insertion_radius == (0.0, 0.2)


async def test_a_rung_that_asked_again_does_not_count_for_a_depth() -> None:
    library = plain_library((GOOD,), 2)
    world = World(PAIRS, planted("substance", applies=1.0, skill=0.5))
    plain = await log_of(library, world, PAIRS[:40])
    climbed: list[Logged] = []
    for pair in PAIRS[:40]:
        outcome = await world.judge(library, pair, ladder=("swapped",))
        named = msgspec.structs.replace(outcome, label=pair.label, strategy="sesse@1")
        climbed += logged([named], {})[0]
    assert any(len(row.casts) == 4 for row in climbed)
    replay = Replay(library)
    assert [replay.pooled(row, 2) for row in climbed] == [replay.pooled(row, 2) for row in plain]


async def test_the_log_keeps_the_pooled_votes_as_the_run_weighed_them() -> None:
    library = plain_library((GOOD,), 1)
    heavy = msgspec.structs.replace(library.clusters[0].questions[0], weight=0.25)
    library = msgspec.structs.replace(
        library, clusters=(msgspec.structs.replace(library.clusters[0], questions=(heavy,)),)
    )
    world = World(PAIRS, planted("substance", applies=1.0, skill=1.0))
    outcome = await world.judge(library, PAIRS[0], weights=True)
    named = msgspec.structs.replace(outcome, label=PAIRS[0].label, strategy="sesse@1")
    found = logged([named], {})[0][0]
    assert sorted([found.a or 0.0, found.b or 0.0]) == [0.0, 0.25]
