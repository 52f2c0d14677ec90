"""Stopping at a stated risk: the forecast by hand, by exact enumeration, and in simulated votes."""

import asyncio
import itertools
import random
from collections.abc import Iterator
from math import comb, prod

import pytest

from dikast.engine.errors import ConfigError
from dikast.engine.model import Pair, Undecided, Verdict
from dikast.strategies import Member, committee, early_stop, parse_strategy, repeat
from dikast.strategies.aggregate import Rule, Rules, decide, plain_tally
from dikast.strategies.forecast import Counts, Forecast
from tests.unit.strategies.panels import PAIR, Desk, Says, Told, panel


def test_the_risk_is_that_of_the_formula_worked_out_by_hand() -> None:
    # One A of three cast; a majority is two. Two votes to come over A, B, tie, none with
    # pseudo-counts 2, 1, 1, 1 (sum 5): P(AA) = 2/5 x 3/6 = 1/5; P(exactly one A) is twice
    # 2/5 x 3/6 = 2/5; P(no A) = 3/5 x 4/6 = 2/5.
    # A stays the result with AA, with one A (two votes of A among two or three), and never
    # without: one A and one other is a level tie, A and two without a verdict is below quorum.
    assert Forecast(3, Rules()).risk(Counts(a=1)) == pytest.approx(2 / 5)
    # A tie so far (one each), one to come: it stays a tie unless A or B come: pseudo-counts 2, 2,
    # 1, 1: 2/6 for tie or none (two votes reach the quorum).
    assert Forecast(3, Rules()).risk(Counts(a=1, b=1)) == pytest.approx(4 / 6)
    assert Forecast(3, Rules()).risk(Counts(a=2)) == 0
    assert Forecast(3, Rules()).risk(Counts(none=1)) == 1


def compositions(total: int) -> Iterator[tuple[int, int, int, int]]:
    for a, b, tie in itertools.product(range(total + 1), repeat=3):
        if a + b + tie <= total:
            yield a, b, tie, total - a - b - tie


def chance(counts: tuple[int, ...], shares: tuple[float, ...]) -> float:
    """The multinomial probability of counts."""
    ways, left = 1, sum(counts)
    for count in counts:
        ways *= comb(left, count)
        left -= count
    return ways * prod(share**count for share, count in zip(shares, counts, strict=True))


def stops_wrong(
    seats: int, rule: Rule, risk: float, shares: tuple[float, ...]
) -> tuple[float, float]:
    """The exact probability that the early result is not the full one, and the mean asked."""
    rules = Rules(rule=rule)
    forecast, quorum = Forecast(seats, rules), rules.needed(seats)
    open_: dict[Counts, float] = {Counts(): 1.0}
    wrong = asked = 0.0
    for number in range(1, seats + 1):
        reached: dict[Counts, float] = {}
        for cast, share in open_.items():
            for at, each in enumerate(shares):
                if each:
                    more = Counts(*(n + (place == at) for place, n in enumerate(cast)))
                    reached[more] = reached.get(more, 0.0) + share * each
        open_ = {}
        for cast, share in reached.items():
            if number == seats or forecast.risk(cast) <= risk:
                asked += share * number
                now = forecast.so_far(cast)
                if number < seats:
                    wrong += share * sum(
                        chance(more, shares)
                        for more in compositions(seats - number)
                        if full_result(cast, more, rules, quorum) != now
                    )
            else:
                open_[cast] = share
    return wrong, asked


def full_result(cast: Counts, more: tuple[int, ...], rules: Rules, quorum: int) -> object:
    a, b, tie, _ = (n + x for n, x in zip(cast, more, strict=True))
    return decide(plain_tally(a, b, tie), rules, quorum).winner


GRID = [(a / 5, b / 5, tie / 5, none / 5) for a, b, tie, none in compositions(5) if none <= 2]


@pytest.mark.parametrize(
    ("seats", "rule", "risk"),
    [(5, "majority", 0.05), (9, "majority", 0.05), (9, "plurality", 0.05), (7, "median", 0.1)],
)
def test_whatever_the_shares_are_the_disagreement_stays_within_the_risk(
    seats: int, rule: Rule, risk: float
) -> None:
    wrong = [stops_wrong(seats, rule, risk, shares)[0] for shares in GRID]
    assert max(wrong) <= risk
    assert (max(wrong) > 0) == (seats > 5)


def test_a_vote_that_leans_saves_calls_that_an_exact_stop_would_make() -> None:
    shares = (0.9, 0.05, 0.03, 0.02)
    wrong, asked = stops_wrong(15, "majority", 0.05, shares)
    _, exactly = stops_wrong(15, "majority", 0.0, shares)
    assert wrong < 0.001
    assert asked < 6 < 8 < exactly < 9


def told(shares: tuple[float, ...], rng: random.Random, seats: int) -> list[Told]:
    picks: tuple[Says, ...] = ("A", "B", "tie", "none")
    drawn = rng.choices(picks, shares, k=seats)
    return [Told(each, f"m{at}") for at, each in enumerate(drawn)]


def winner_of(outcome: object) -> object:
    return outcome.winner if isinstance(outcome, Verdict) else type(outcome)


async def test_simulated_committees_differ_from_their_full_vote_within_the_risk() -> None:
    rng = random.Random(11)
    seats, risk, pairs = 9, 0.05, 250
    differ = spared = 0
    for number in range(pairs):
        # Pairs of every difficulty: the shares themselves are drawn.
        weights = [rng.expovariate(1) for _ in range(3)]
        shares = (*(each / sum(weights) * 0.97 for each in weights), 0.03)
        vote = committee(told(shares, rng, seats))
        pair = Pair(id=f"p{number}", question="q", response_a="a", response_b="b")
        full, early = await vote.judge(pair, Desk()), None
        early = await early_stop(vote, risk=risk).judge(pair, Desk())
        assert early.marks is not None
        differ += winner_of(full) != winner_of(early)
        spared += early.marks.spared
        assert early.marks.risk <= risk
    assert 0 < differ / pairs <= risk
    assert spared / (pairs * seats) > 0.25


async def test_the_marks_say_that_it_was_stopped_by_risk_and_at_which() -> None:
    inner = Told("A")
    outcome = await early_stop(repeat(inner, 15), risk=0.05).judge(PAIR, Desk())
    assert isinstance(outcome, Verdict)
    assert outcome.winner == "A"
    assert inner.asked == 4
    assert outcome.marks is not None
    assert (outcome.marks.votes, outcome.marks.spared) == (4, 11)
    assert outcome.marks.stopped == "risk"
    assert 0 < outcome.marks.risk <= 0.05
    exact = await early_stop(repeat(Told("A"), 15)).judge(PAIR, Desk())
    assert exact.marks is not None
    assert (exact.marks.votes, exact.marks.stopped, exact.marks.risk) == (8, "exact", 0.0)
    full = await early_stop(repeat(Told("A"), 1), risk=0.5).judge(PAIR, Desk())
    assert full.marks is not None
    assert full.marks.stopped is None


async def test_no_verdict_is_given_up_on_by_risk() -> None:
    inner = Told("none")
    outcome = await early_stop(repeat(inner, 7), risk=0.5).judge(PAIR, Desk())
    assert isinstance(outcome, Undecided)
    assert inner.asked == 4
    assert outcome.marks is not None
    assert outcome.marks.stopped == "exact"


async def test_a_committees_order_is_drawn_from_the_pair_and_the_same_for_its_mirror() -> None:
    first: set[str] = set()
    for number in range(20):
        pair = Pair(id=f"p{number}", question="q", response_a="a", response_b="b")
        stop = early_stop(committee(panel("A", "A", "A")), risk=0.05)
        plain, mirrored = await stop.judge(pair, Desk()), await stop.judge(pair.swapped(), Desk())
        assert [p.name for p in plain.parts] == [p.name for p in mirrored.parts]
        first.add(plain.parts[0].name)
    assert first == {"m0", "m1", "m2"}
    stop = early_stop(committee(panel("A", "A", "A")))
    assert [p.name for p in (await stop.judge(PAIR, Desk())).parts] == ["m0", "m1"]


def test_risks_that_cannot_be_forecast_are_refused() -> None:
    vote = committee(panel("A", "B", "A"))
    for risk in (0.0, 0.6, float("nan")):
        with pytest.raises(ConfigError, match=r"above 0 and at most 0\.5"):
            early_stop(vote, risk=risk)
    weighted = committee([Member(strategy=each) for each in panel("A", "B")], "weighted")
    with pytest.raises(ConfigError, match="cannot forecast rule = 'weighted'"):
        early_stop(weighted, risk=0.05)
    with pytest.raises(ConfigError, match="at most 25 members, not of 26"):
        early_stop(repeat(Told("A"), 26), risk=0.05)


def test_the_risk_is_part_of_the_spec_and_its_absence_leaves_the_spec_alone() -> None:
    vote = committee(panel("A", "B", "A"))
    assert early_stop(vote, risk=0.05).spec() == {**early_stop(vote).spec(), "risk": 0.05}
    node = {"kind": "repeat", "n": 3, "inner": {"kind": "pairwise", "judge": "j"}}
    config = parse_strategy({"kind": "early_stop", "risk": 0.1, "inner": node})
    assert config.risk == 0.1  # type: ignore[union-attr]


def test_two_pairs_at_once_share_a_forecast_and_nothing_else() -> None:
    async def both() -> list[object]:
        stop = early_stop(committee(panel("A", "A", "B")), risk=0.2)
        return list(await asyncio.gather(stop.judge(PAIR, Desk()), stop.judge(PAIR, Desk())))

    one, two = asyncio.run(both())
    assert one == two
