"""How many calls a strategy tree makes for one pair: the fewest, how many to expect, the most.

Off the journey: asked before a run, for `dikast check`. The fewest and the most are certain; what
to expect follows from stated rates. Knows the nodes and the families of the judges, no prices and
no providers.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from heapq import nlargest
from itertools import combinations
from typing import NamedTuple

from dikast.engine.model import Pick, Record
from dikast.strategies.aggregate import Rules, Tally, exact, settled, tally
from dikast.strategies.cascade import Doubt
from dikast.strategies.forecast import Counts, Forecast
from dikast.strategies.loaders import Loaders
from dikast.strategies.node import Node
from dikast.strategies.preferences.strategy import PreferencesConfig, preference_calls
from dikast.strategies.sesse.config import SesseConfig
from dikast.strategies.sesse.config import calls_of as sesse_calls
from dikast.strategies.tree import (
    CascadeConfig,
    CommitteeConfig,
    EarlyStopConfig,
    MemberConfig,
    RepeatConfig,
    SwapConfig,
    judges_of,
)

Families = Mapping[str, str | None]
_STATES_MAX = 1_000


class Rates(Record, frozen=True):
    """What is taken for granted of the judges; all are shares, 0 to 1.

    `unparsed` of the answers cannot be read, `failed` of the pairs fail, `tie` of the verdicts are
    ties, in `disagreement` of them the votes or the two orders are not all alike, `low_margin` have
    a margin below 0.5 (whatever a cascade's `margin_below` is). `votes` are the shares of votes
    like the winner's, against it, for a tie, and of no verdict. `rungs` are the shares of pairs
    that each rung of a cascade sent on, where they were measured.
    """

    unparsed: float = 0.02
    failed: float = 0.0
    tie: float = 0.15
    disagreement: float = 0.2
    low_margin: float = 0.2
    votes: tuple[float, float, float, float] = (0.76, 0.12, 0.1, 0.02)
    rungs: tuple[float, ...] = ()


ASSUMED = Rates()
"""Where nothing was measured."""


class Calls(NamedTuple):
    """Judge calls for one pair; retries are not counted."""

    fewest: int
    expected: float
    most: int


class Row(NamedTuple):
    """A node in a printed tree: how deep it stands, what it is, its calls where it is asked.

    `asked` is the expected share of pairs that reach it.
    """

    depth: int
    node: Node
    calls: Calls
    asked: float


def calls_range(config: Node, families: Families, load: Loaders | None = None) -> tuple[int, int]:
    """The fewest and the most judge calls for one pair; retries are not counted.

    Args:
        config: the tree.
        families: the family of each judge, where it is known; a committee that excludes judges
            of an answer's own family asks fewer where the pair's models are of two of them.
    """
    found = calls_of(config, families, load=load)
    return found.fewest, found.most


def calls_of(
    config: Node, families: Families, rates: Rates = ASSUMED, load: Loaders | None = None
) -> Calls:
    """The fewest, the expected and the most judge calls for one pair.

    What to expect takes pairs as alike, doubts of a cascade as independent of one another, votes as
    independent of each other given the winner, and no judge as excluded for its family.

    Args:
        config: the tree.
        families: as for `calls_range`.
        rates: what is taken for granted.
        load: finds the files that the tree names.
    """
    if isinstance(config, EarlyStopConfig):
        return _early_stop(config, families, rates, load)
    low, high = _own_calls(config, load)
    own = low + (high - low) * rates.unparsed
    below = [calls_of(child, families, rates, load) for child in config.children()]
    fewest = sum(each.fewest for each in below)
    if isinstance(config, CommitteeConfig):
        fewest = _fewest_of_committee(config, families, load)
    elif isinstance(config, CascadeConfig):
        fewest = below[0].fewest
    shares = zip(reach(config, rates), below, strict=True)
    times = _times(config)
    return Calls(
        low + times * fewest,
        own + times * sum(share * each.expected for share, each in shares),
        high + times * sum(each.most for each in below),
    )


def _own_calls(config: Node, load: Loaders | None) -> tuple[int, int]:
    """The calls that a node makes itself; some depend on what is in its file."""
    load = load or Loaders()
    if isinstance(config, SesseConfig):
        return sesse_calls(config, load.library(config.library))
    if isinstance(config, PreferencesConfig):
        return preference_calls(config, load.profile(config.profile))
    return config.calls()


def _times(config: Node) -> int:
    """How often each child is asked."""
    if isinstance(config, RepeatConfig):
        return config.n
    return 2 if isinstance(config, SwapConfig) else 1


def rows_of(
    config: Node, families: Families, rates: Rates = ASSUMED, load: Loaders | None = None
) -> list[Row]:
    """A tree from its root down, for people."""

    def walk(node: Node, depth: int, asked: float) -> list[Row]:
        out = [Row(depth, node, calls_of(node, families, rates, load), asked)]
        for child, share in zip(node.children(), reach(node, rates), strict=True):
            out += walk(child, depth + 1, asked * share)
        return out

    return walk(config, 0, 1.0)


def reach(config: Node, rates: Rates) -> list[float]:
    """The expected share of pairs that each child is asked about; 1 but for a cascade's rungs.

    Of a stopped vote's members it is not told apart: see `calls_of` for their number.
    """
    children = config.children()
    if not isinstance(config, CascadeConfig):
        return [1.0] * len(children)
    shares: list[float] = []
    share = 1.0
    for number in range(len(children)):
        shares.append(share)
        on = _doubt(config.escalate_when, rates)
        share *= rates.rungs[number] if number < len(rates.rungs) else on
    return shares


def _doubt(when: Sequence[Doubt], rates: Rates) -> float:
    """How likely at least one of the doubts is."""
    sure = 1.0
    for each in dict.fromkeys(when):
        sure *= 1 - getattr(rates, each)
    return 1 - sure


def _fewest_of_committee(config: CommitteeConfig, families: Families, load: Loaders | None) -> int:
    return min(
        sum(calls_range(each.strategy, families, load)[0] for each in seated)
        for seated in _seatings(config, families)
    )


def _seatings(config: CommitteeConfig, families: Families) -> list[tuple[MemberConfig, ...]]:
    """Every set of members that may sit on a pair: the models of a pair are of two families."""
    seated = config.seated()
    own = [each.family or _family(each.strategy, families) for each in seated]
    known = sorted({family for family in own if family is not None})
    if not config.exclude_own_family or not known:
        return [seated]
    return [seated] + [
        tuple(each for each, family in zip(seated, own, strict=True) if family not in away)
        for away in combinations(known, min(2, len(known)))
    ]


def _family(config: Node, families: Families) -> str | None:
    found = {families.get(name) for name in judges_of(config)}
    return found.pop() if len(found) == 1 else None


def _early_stop(
    config: EarlyStopConfig, families: Families, rates: Rates, load: Loaders | None
) -> Calls:
    inner = config.inner
    if isinstance(inner, RepeatConfig):
        seatings = [(1.0,) * inner.n]
        calls = [(calls_of(inner.inner, families, rates, load),) * inner.n]
    elif isinstance(inner, CommitteeConfig):
        sets = _seatings(inner, families)
        seatings = [tuple(each.weight for each in seated) for seated in sets]
        calls = [
            tuple(calls_of(each.strategy, families, rates, load) for each in seated)
            for seated in sets
        ]
    else:
        return calls_of(inner, families, rates, load)
    rules = Rules(rule=inner.rule, quorum=inner.quorum, trim=inner.trim, band=inner.band)
    stops = [_Stops(weights, rules, config.wave, config.risk) for weights in seatings]
    # A committee that stops by risk asks in an order that is drawn: any member may come first.
    drawn = config.risk is not None and isinstance(inner, CommitteeConfig)
    fewest = min(
        sum(sorted(call.fewest for call in each)[: stop.fewest()])
        if drawn
        else sum(call.fewest for call in each[: stop.fewest()])
        for stop, each in zip(stops, calls, strict=True)
    )
    asked = stops[0].asked(rates.votes)
    costs = [call.expected for call in calls[0]]
    if drawn:
        costs = [sum(costs) / len(costs)] * len(costs)
    expected = sum(share * cost for share, cost in zip(asked, costs, strict=True))
    return Calls(fewest, expected, sum(call.most for call in calls[0]))


class _Stops:
    """When a vote of members with these weights is stopped."""

    def __init__(
        self, weights: Sequence[float], rules: Rules, wave: int, risk: float | None
    ) -> None:
        self._weights = [exact(weight) for weight in weights]
        self._rules = rules
        self._quorum = rules.needed(len(weights))
        self._wave = wave
        self._risk = risk
        self._forecast = None if risk is None else Forecast(len(weights), rules)

    def fewest(self) -> int:
        """How many are asked at least: all of one mind, or all without a verdict."""
        for asked in range(self._wave, len(self._weights), self._wave):
            for pick, none in (("A", 0), ("none", asked)):
                votes = tally(("A", weight) for weight in self._weights[:asked] if pick == "A")
                if self._ends(votes, none):
                    return asked
        return len(self._weights)

    def asked(self, votes: tuple[float, float, float, float]) -> list[float]:
        """How likely each member is to be asked, in order, when votes fall with these shares.

        Exact up to fifteen members or so; beyond that the least likely counts are left out.
        """
        picks: tuple[Pick, ...] = ("A", "B", "tie", "none")
        open_: dict[tuple[Tally, int], float] = {(Tally(), 0): 1.0}
        out: list[float] = []
        for number, weight in enumerate(self._weights):
            if number and number % self._wave == 0:
                open_ = {state: p for state, p in open_.items() if not self._ends(*state)}
            out.append(sum(open_.values()))
            reached: defaultdict[tuple[Tally, int], float] = defaultdict(float)
            for (cast, none), share in open_.items():
                for pick, each in zip(picks, votes, strict=True):
                    reached[_plus(cast, pick, weight), none + (pick == "none")] += share * each
            open_ = dict(nlargest(_STATES_MAX, reached.items(), key=lambda item: item[1]))
        return out

    def _ends(self, votes: Tally, none: int) -> bool:
        left = self._weights[votes.heads + none :]
        if settled(votes, left, self._rules, self._quorum):
            return True
        if self._forecast is None or self._risk is None:
            return False
        cast = Counts(votes.heads_a, votes.heads_b, votes.heads_tie, none)
        return self._forecast.risk(cast) <= self._risk


def _plus(votes: Tally, pick: Pick, weight: Fraction) -> Tally:
    one = tally([(pick, weight)])
    return Tally(
        votes.a + one.a,
        votes.b + one.b,
        votes.tie + one.tie,
        votes.heads_a + one.heads_a,
        votes.heads_b + one.heads_b,
        votes.heads_tie + one.heads_tie,
    )
