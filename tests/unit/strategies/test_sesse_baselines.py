"""The simpler ways: what each asks, and that the shuffled library is worse where themes matter."""

from collections import Counter

import msgspec
import pytest

from dikast.engine.model import Call, Completion, Judge, Params, Verdict
from dikast.strategies import SesseConfig
from dikast.strategies.sesse.baselines import BASELINES, Baseline, make, rubric, shuffled
from tests.unit.strategies.sesse_worlds import JUDGES, World, pairs, plain_library, planted

PAIRS = pairs(120)
ONE = planted("tone", applies=0.5, skill=0.9)
TWO = planted("facts", applies=0.5, skill=0.9)
LIBRARY = plain_library((ONE, TWO), 4)
CONFIG = SesseConfig(judge="j", library="x")


def way(name: Baseline, judge: Judge = JUDGES["j"], calls: int = 1):  # type: ignore[no-untyped-def]
    return make(name, judge, LIBRARY, CONFIG, seed=3, calls=calls)


@pytest.mark.parametrize("name", BASELINES)
async def test_every_way_judges_and_has_a_spec_of_its_own(name: Baseline) -> None:
    world = World(PAIRS, ONE, TWO)
    outcome = await way(name, calls=3).judge(PAIRS[0], world)
    assert outcome.id == PAIRS[0].id
    specs = [str(way(each, calls=3).spec()) for each in BASELINES]
    assert len(set(specs)) == len(BASELINES)


async def test_samples_are_as_many_as_the_budget_and_warm() -> None:
    world = World(PAIRS, ONE, TWO)
    await way("self-consistency", calls=7).judge(PAIRS[0], world)
    assert len(world.calls) == 7
    assert {call.judge.params.temperature for call in world.calls} == {0.7}
    assert len({call.key() for call in world.calls}) == 7


async def test_the_direct_way_asks_for_one_letter_even_of_a_judge_in_json_mode() -> None:
    seen: list[Call] = []

    async def ask(call: Call) -> Completion:
        seen.append(call)
        return Completion(text="B")

    judge = msgspec.structs.replace(JUDGES["j"], params=Params(json_mode=True))
    outcome = await way("direct", judge).judge(PAIRS[0], ask)
    assert isinstance(outcome, Verdict)
    assert not seen[0].judge.params.json_mode
    assert "analysis" not in seen[0].messages[-1].content.casefold()


async def test_all_clauses_stand_in_the_one_prompt_and_key_points_of_the_pair_do_not() -> None:
    world = World(PAIRS, ONE, TWO)
    pair = msgspec.structs.replace(PAIRS[0], key_points=("a point of its own",))
    await way("labels").judge(pair, world)
    text = world.calls[0].messages[-1].content
    assert len(world.calls) == 1
    assert all(cluster.label in text for cluster in LIBRARY.clusters)
    assert "a point of its own" not in text


def test_the_rubric_is_general_and_by_hand() -> None:
    found = rubric(LIBRARY)
    assert (found.question_count, found.params.n_max, found.builder) == (10, 10, "by hand")
    assert len({each.qid for each in found.clusters[0].questions}) == 10


def test_shuffling_keeps_the_questions_and_the_sizes_and_nothing_else() -> None:
    found = shuffled(LIBRARY, 1)
    assert [len(each.questions) for each in found.clusters] == [4, 4]
    before = Counter(each.qid for cluster in LIBRARY.clusters for each in cluster.questions)
    assert Counter(each.qid for cluster in found.clusters for each in cluster.questions) == before
    assert found.clusters[0].questions != LIBRARY.clusters[0].questions
    assert shuffled(LIBRARY, 1) == found
    assert shuffled(LIBRARY, 2) != found


async def test_a_shuffled_library_has_more_na_where_routing_matters() -> None:
    world = World(PAIRS, ONE, TWO)
    na: dict[str, int] = {}
    for name in ("sesse", "random"):
        strategy = way(name)
        na[name] = 0
        for pair in PAIRS:
            na[name] += (await strategy.judge(pair, world)).notes["na"]
    assert na["sesse"] == 0
    assert na["random"] > 50
