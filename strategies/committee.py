"""Several judges, one verdict: every member judges the pair, a stated rule counts the votes.

A combinator over any strategies. A failed member gives no vote and is counted against the
quorum; the order of the members never matters. Knows no judge, no prompt and no provider.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from dikast.engine.errors import ConfigError
from dikast.engine.model import Item, Outcome, Pair, Record, Subject
from dikast.engine.ports import Ask, Strategy
from dikast.strategies.aggregate import Rule, Rules
from dikast.strategies.ballot import Seat, conclude, conclude_item, take
from dikast.strategies.families import same_family
from dikast.strategies.subjects import takes_items

VERSION = "1"


class Member(Record, frozen=True):
    """A strategy with a seat. `family`: of its judge, to keep it from voting on its own kind.

    `weight` counts under rule "weighted" only. `name` is shown in outcomes; by default the names
    of the judges that the strategy asks.
    """

    strategy: Strategy
    weight: float = 1.0
    family: str | None = None
    name: str = ""


class Committee:
    """Puts every pair to several members; see `committee`."""

    def __init__(
        self,
        members: Sequence[Member],
        rules: Rules,
        exclude_own_family: bool,
        measured: str | None = None,
    ) -> None:
        if not members:
            raise ConfigError("committee: at least one member is needed")
        rules.check("committee", len(members))
        _check_weights(members, rules.rule)
        self._members = tuple(members)
        self._rules = rules
        self._exclude = exclude_own_family
        self._measured = measured
        names = distinct([each.name or judges_named(each.strategy.spec()) for each in members])
        self._seats = tuple(
            Seat(name=name or each.strategy.name, strategy=each.strategy, weight=each.weight)
            for name, each in zip(names, members, strict=True)
        )

    @property
    def name(self) -> str:
        """`committee@version`; who sits in it is in `spec()`."""
        return f"committee@{VERSION}"

    @property
    def rules(self) -> Rules:
        """How the votes are counted."""
        return self._rules

    def spec(self) -> dict[str, Any]:
        """All that decides the result; members are sorted, as their order never matters."""
        members = [
            {
                "strategy": dict(each.strategy.spec()),
                "weight": each.weight,
                **({"family": each.family} if self._exclude else {}),
            }
            for each in self._members
        ]
        return {
            "kind": "committee",
            "version": VERSION,
            "members": sorted(members, key=lambda each: json.dumps(each, sort_keys=True)),
            "rules": msgspec.to_builtins(self._rules),
            "exclude_own_family": self._exclude,
            **({"weights": self._measured} if self._measured else {}),
        }

    def seats(self, pair: Subject) -> tuple[Seat, ...]:
        """Who votes on this pair or item: all but those of the family of one of its models."""
        if not self._exclude:
            return self._seats
        models = (pair.model_a, pair.model_b) if isinstance(pair, Pair) else (pair.model,)
        return tuple(
            seat
            for seat, member in zip(self._seats, self._members, strict=True)
            if not any(same_family(member.family, model) for model in models)
        )

    def names(self) -> list[str]:
        """Who is asked, in order."""
        return [seat.name for seat in self._seats]

    def excluded(self, pair: Pair) -> int:
        """How many members are kept from voting on this pair."""
        return len(self._seats) - len(self.seats(pair))

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Ask all members at the same time.

        Returns:
            A verdict by the rule, with `confidence` the share of the votes behind it; undecided
            ("no_quorum") where too few members gave a verdict.

        Raises:
            ProviderError: every member failed.
            RunStopped: the run ends.
        """
        seats = self.seats(pair)
        ballots = await take(seats, pair, ask)
        return conclude(pair, ballots, self._rules, excluded=len(self._seats) - len(seats))

    def takes_items(self) -> bool:
        """It does where all of its members do."""
        return all(takes_items(each.strategy) for each in self._members)

    async def judge_item(self, item: Item, ask: Ask) -> Outcome:
        """Let all members score one answer; each dimension is combined by the rule.

        Raises:
            ProviderError: every member failed.
            RunStopped: the run ends.
        """
        seats = self.seats(item)
        ballots = await take(seats, item, ask)
        return conclude_item(item, ballots, self._rules, excluded=len(self._seats) - len(seats))

    def __repr__(self) -> str:
        return f"Committee({list(self._members)!r}, {self._rules!r})"


def committee(
    members: Sequence[Member | Strategy],
    rule: Rule = "majority",
    quorum: int | None = None,
    exclude_own_family: bool = True,
    *,
    trim: float = 0.2,
    band: float = 0.0,
    measured: str | None = None,
) -> Committee:
    """Let several strategies vote on every pair.

    Args:
        members: strategies, or `Member` where one has a weight, a family or a name.
        rule: "majority" (more than half, else a tie), "plurality" (ties abstain), "median",
            "mean", "trimmed_mean", or "weighted" (the mean by the members' weights).
        quorum: how many members must give a verdict; None is more than half of those entitled.
        exclude_own_family: a member whose family made one of the two answers does not vote;
            where the pair names no models, or a member no family, nobody is excluded.
        trim: share cut off at each end by "trimmed_mean", 0 to below 0.5.
        band: how far from 0 a mean or median must be to be no tie, 0 to below 1.
        measured: hash of the measurement that the weights come from; it becomes part of the spec.

    Raises:
        ConfigError: no member, or numbers that cannot work.
    """
    seated = [each if isinstance(each, Member) else Member(strategy=each) for each in members]
    rules = Rules(rule=rule, quorum=quorum, trim=trim, band=band)
    return Committee(seated, rules, exclude_own_family, measured)


def judges_named(spec: Mapping[str, Any]) -> str:
    """The names of the judges in a strategy's spec, each once, joined by "+"."""
    names: dict[str, None] = {}
    waiting: list[object] = [spec]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Mapping):
            table = cast(Mapping[str, object], here)
            judge = table.get("judge")
            if isinstance(judge, Mapping):
                names[str(cast(Mapping[str, object], judge).get("name"))] = None
            waiting += reversed(list(table.values()))
        elif isinstance(here, list | tuple):
            waiting += reversed(cast(Sequence[object], here))
    return "+".join(names)


def distinct(names: Sequence[str]) -> list[str]:
    """The same names, numbered where one comes more than once."""
    count = Counter(names)
    seen: Counter[str] = Counter()
    out: list[str] = []
    for name in names:
        seen[name] += 1
        out.append(f"{name}#{seen[name]}" if name and count[name] > 1 else name)
    return out


def _check_weights(members: Sequence[Member], rule: Rule) -> None:
    for at, each in enumerate(members):
        if not 0 < each.weight < float("inf"):
            raise ConfigError(f"committee: members[{at}].weight = {each.weight} must be above 0")
    if rule != "weighted" and any(each.weight != 1 for each in members):
        raise ConfigError(
            f"committee: weights have no effect under rule = {rule!r}; use rule = 'weighted', or "
            "leave them out"
        )
