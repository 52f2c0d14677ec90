"""Committees: what they conclude, what a failed member does, who may not vote."""

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dikast.engine.errors import ConfigError, ProviderError, RunStopped
from dikast.engine.model import Outcome, Pair, Undecided, Verdict
from dikast.strategies import Committee, Member, Rule, committee, early_stop, repeat
from dikast.strategies.families import same_family
from tests.unit.strategies.panels import PAIR, Desk, Says, Told, panel


async def test_the_majority_wins_and_every_member_is_shown_with_its_bill() -> None:
    outcome = await committee(panel("A", "B", "A")).judge(PAIR, Desk())
    assert isinstance(outcome, Verdict)
    assert (outcome.winner, outcome.basis) == ("A", "votes")
    assert outcome.confidence == pytest.approx(2 / 3, abs=1e-6)
    assert [(p.name, p.pick, p.calls, p.cost_usd) for p in outcome.parts] == [
        ("m0", "A", 1, 1.0),
        ("m1", "B", 1, 1.0),
        ("m2", "A", 1, 1.0),
    ]
    assert [vote.pick for vote in outcome.votes] == ["A", "B", "A"]
    assert outcome.marks is not None
    assert outcome.marks.votes == 3


async def test_a_failed_member_counts_against_the_quorum_and_never_as_a_vote() -> None:
    two_of_three = await committee(panel("A", "timeout", "A")).judge(PAIR, Desk())
    assert isinstance(two_of_three, Verdict)
    assert two_of_three.winner == "A"
    assert two_of_three.marks is not None
    assert two_of_three.marks.unread == 1
    assert [(p.pick, p.why) for p in two_of_three.parts][1] == ("none", "timeout")

    alone = await committee(panel("A", "timeout", "none")).judge(PAIR, Desk())
    assert isinstance(alone, Undecided)
    assert alone.why == "no_quorum"
    assert alone.detail == "1 of 3 gave a verdict, 2 are needed"
    assert [p.why for p in alone.parts] == [None, "timeout", "unparsed"]
    assert [vote.pick for vote in alone.votes] == ["A", "none"]

    lone = await committee(panel("A", "timeout", "none"), quorum=1).judge(PAIR, Desk())
    assert isinstance(lone, Verdict)
    assert lone.winner == "A"


async def test_when_all_fail_the_error_passes_and_is_the_same_in_any_order() -> None:
    orders: tuple[tuple[Says, ...], ...] = (
        ("timeout", "refused", "bad_request"),
        ("refused", "bad_request", "timeout"),
    )
    for says in orders:
        with pytest.raises(ProviderError) as caught:
            await committee(panel(*says)).judge(PAIR, Desk())
        assert caught.value.kind == "bad_request"


async def test_the_error_of_a_failed_vote_shows_what_each_member_met() -> None:
    inner = committee(panel("timeout", "transient"))
    members = [Member(strategy=inner, name="inner"), Member(strategy=Told("refused"), name="r")]
    with pytest.raises(ProviderError) as caught:
        await committee(members).judge(PAIR, Desk())
    parts = caught.value.parts
    assert [(part.name, part.why) for part in parts] == [("inner", "timeout"), ("r", "refused")]
    assert [(part.name, part.why) for part in parts[0].parts] == [
        ("m0", "timeout"),
        ("m1", "transient"),
    ]


async def test_a_stopped_run_passes_when_the_others_have_been_paid_for() -> None:
    slow = Told("A", "slow", wait_s=5.0)
    members = [Told("timeout", "t"), Told(RunStopped("budget", "spent"), "s"), slow]
    with pytest.raises(RunStopped):
        await committee(members).judge(PAIR, Desk())
    assert slow.finished == 1


async def test_members_are_asked_at_the_same_time() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await committee([Told("A", wait_s=1.0), Told("A", wait_s=2.0)]).judge(PAIR, Desk())
    assert loop.time() - began == pytest.approx(2.0)


async def test_a_cancelled_pair_leaves_no_member_behind() -> None:
    slow = Told("A", wait_s=60.0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await committee([slow, Told("A")]).judge(PAIR, Desk())
    assert slow.finished == 0


async def test_weights_count_under_weighted_and_are_refused_elsewhere() -> None:
    a, b, c = panel("A", "B", "B")
    members = [Member(strategy=a, weight=2.5), Member(strategy=b), Member(strategy=c)]
    outcome = await committee(members, "weighted").judge(PAIR, Desk())
    assert isinstance(outcome, Verdict)
    assert outcome.winner == "A"
    with pytest.raises(ConfigError, match="weights have no effect under rule = 'majority'"):
        committee(members)
    with pytest.raises(ConfigError, match=r"members\[0\].weight = 0 must be above 0"):
        committee([Member(strategy=a, weight=0), b], "weighted")
    with pytest.raises(ConfigError, match="at least one member"):
        committee([])


async def test_scores_are_combined_by_dimension_and_their_spread_is_marked() -> None:
    members = [
        Told("A", scores={"clarity": 4, "safety": 9}),
        Told("A", scores={"clarity": 8, "safety": 9}),
        Told("timeout"),
    ]
    outcome = await committee(members, "median").judge(PAIR, Desk())
    assert isinstance(outcome, Verdict)
    assert outcome.scores == {"clarity": 6.0, "safety": 9.0}
    assert outcome.marks is not None
    assert outcome.marks.score_spread == {"clarity": 2.0, "safety": 0.0}


def families(says: tuple[Says, ...]) -> list[Member]:
    return [
        Member(strategy=each, family=family)
        for each, family in zip(panel(*says), ("openai", "claude", None), strict=True)
    ]


async def test_no_judge_votes_on_an_answer_of_its_own_family() -> None:
    pair = Pair(id="p", response_a="a", response_b="b", model_a="gpt-4o-mini", model_b="vicuna-13b")
    members = families(("A", "B", "B"))
    outcome = await committee(members).judge(pair, Desk())
    assert isinstance(outcome, Verdict)
    assert outcome.winner == "B"
    assert [part.name for part in outcome.parts] == ["m1", "m2"]
    assert outcome.marks is not None
    assert outcome.marks.excluded == 1

    everybody = await committee(members, exclude_own_family=False).judge(pair, Desk())
    assert len(everybody.parts) == 3
    unknown = await committee(members).judge(PAIR, Desk())
    assert len(unknown.parts) == 3


async def test_when_exclusion_leaves_too_few_the_pair_is_undecided_and_says_why() -> None:
    pair = Pair(id="p", response_a="a", response_b="b", model_a="gpt-4", model_b="claude-2")
    outcome = await committee(families(("A", "B", "A")), quorum=2).judge(pair, Desk())
    assert isinstance(outcome, Undecided)
    assert outcome.detail is not None
    assert outcome.detail.endswith("2 excluded as of the same family as an answer")
    nobody = await committee([Member(strategy=Told("A"), family="gpt")]).judge(pair, Desk())
    assert isinstance(nobody, Undecided)


@pytest.mark.parametrize(
    ("family", "model", "same"),
    [
        ("openai", "gpt-4-0613", True),
        ("gpt", "ChatGPT", True),
        ("openai", "openai/o1-mini", True),
        ("gpt", "chatglm-6b", False),
        ("llama", "meta-llama/Llama-2-70b", True),
        ("meta", "llama2_70b_chat", True),
        ("claude", "claude-3-opus", True),
        ("vicuna", "vicuna-13b-v1.3", True),
        ("vicuna", "llama-13b", False),
        (None, "gpt-4", False),
        ("gpt", None, False),
    ],
)
def test_families_are_told_by_whole_words(
    family: str | None, model: str | None, same: bool
) -> None:
    assert same_family(family, model) is same


SAYS: st.SearchStrategy[Says] = st.sampled_from(["A", "B", "tie", "none", "timeout", "refused"])
RULES: st.SearchStrategy[Rule] = st.sampled_from(
    ["majority", "plurality", "median", "mean", "trimmed_mean", "weighted"]
)


def seated(says: list[Says], weights: list[float], rule: Rule) -> list[Member]:
    return [
        Member(strategy=Told(each, f"m{at}"), weight=weights[at] if rule == "weighted" else 1.0)
        for at, each in enumerate(says)
    ]


async def ended(strategy: object) -> Outcome | tuple[str, str]:
    try:
        return await strategy.judge(PAIR, Desk())  # type: ignore[attr-defined,no-any-return]
    except ProviderError as error:
        return error.kind, error.message


WEIGHTS = st.lists(st.sampled_from([0.1, 0.2, 0.3, 1.0, 2.0]), min_size=6, max_size=6)


@given(st.lists(SAYS, min_size=1, max_size=6), WEIGHTS, RULES, st.integers(0, 5), st.data())
def test_permuting_the_members_never_changes_the_result_or_the_spec(
    says: list[Says], weights: list[float], rule: Rule, quorum: int, data: st.DataObject
) -> None:
    members = seated(says, weights, rule)
    mixed = data.draw(st.permutations(members))
    needed = min(quorum, len(says)) or None
    first, second = committee(members, rule, needed), committee(mixed, rule, needed)
    assert first.spec() == second.spec()
    one, two = asyncio.run(both(first, second))
    if isinstance(one, tuple) or isinstance(two, tuple):
        assert one == two
        return
    plain, other = (msgspec.structs.replace(each, votes=(), parts=()) for each in (one, two))
    assert plain == other
    assert sorted(one.parts, key=repr) == sorted(two.parts, key=repr)


async def both(first: object, second: object) -> list[Outcome | tuple[str, str]]:
    return [await ended(first), await ended(second)]


def concluded(outcome: Outcome | tuple[str, str]) -> object:
    if isinstance(outcome, Verdict):
        return outcome.winner
    return (
        outcome
        if isinstance(outcome, tuple)
        else outcome.why
        if isinstance(outcome, Undecided)
        else None
    )


@given(st.lists(SAYS, min_size=1, max_size=6), WEIGHTS, RULES, st.integers(0, 5), st.integers(1, 3))
def test_an_early_stop_concludes_what_the_full_vote_concludes(
    says: list[Says], weights: list[float], rule: Rule, quorum: int, wave: int
) -> None:
    vote = committee(seated(says, weights, rule), rule, min(quorum, len(says)) or None)
    full, early = asyncio.run(both(vote, early_stop(vote, wave)))
    assert concluded(full) == concluded(early)
    if not isinstance(early, tuple):
        assert early.marks is not None
        assert len(early.parts) + early.marks.spared == len(says)


async def test_an_early_stop_asks_nobody_whose_vote_cannot_matter() -> None:
    members = panel("A", "A", "B")
    outcome = await early_stop(committee(members)).judge(PAIR, Desk())
    assert isinstance(outcome, Verdict)
    assert [each.asked for each in members] == [1, 1, 0]
    assert outcome.marks is not None
    assert outcome.marks.spared == 1
    contested = panel("A", "B", "B")
    await early_stop(committee(contested)).judge(PAIR, Desk())
    assert [each.asked for each in contested] == [1, 1, 1]


async def test_an_early_stop_ends_when_the_quorum_is_out_of_reach() -> None:
    members = panel("none", "none", "A")
    outcome = await early_stop(committee(members)).judge(PAIR, Desk())
    assert isinstance(outcome, Undecided)
    assert [each.asked for each in members] == [1, 1, 0]


async def test_waves_are_asked_together_and_samples_can_be_spared_too() -> None:
    loop = asyncio.get_running_loop()
    inner = Told("A", wait_s=1.0)
    began = loop.time()
    await early_stop(repeat(inner, 5), wave=2).judge(PAIR, Desk())
    assert loop.time() - began == pytest.approx(2.0)
    assert inner.asked == 4
    with pytest.raises(ConfigError, match="wave = 0"):
        early_stop(repeat(inner, 5), wave=0)


def test_a_committee_tells_members_of_one_name_apart() -> None:
    assert committee([Told("A"), Told("B")]).names() == ["told", "told"]
    assert isinstance(committee(panel("A")), Committee)
    named = [Member(strategy=Told("A"), name="x"), Member(strategy=Told("B"), name="x")]
    assert committee(named).names() == ["x#1", "x#2"]
