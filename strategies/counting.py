"""How many calls a strategy tree makes for one pair: the fewest and the most.

Off the journey: asked before a run, for `dikast check`. Knows the nodes and the families of the
judges, no prices and no providers.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from dikast.strategies.aggregate import Rules, exact, settled, tally
from dikast.strategies.factory import (
    CascadeConfig,
    CommitteeConfig,
    EarlyStopConfig,
    MemberConfig,
    PairwiseConfig,
    RepeatConfig,
    StrategyConfig,
    judges_of,
)
from dikast.strategies.preferences.profile import ProfileLoader, load_profile
from dikast.strategies.preferences.strategy import PreferencesConfig, preference_calls
from dikast.strategies.score import ScoreConfig

Families = Mapping[str, str | None]


def calls_range(
    config: StrategyConfig, families: Families, profiles: ProfileLoader = load_profile
) -> tuple[int, int]:
    """The fewest and the most judge calls for one pair; retries are not counted.

    Args:
        config: the tree.
        families: the family of each judge, where it is known; a committee that excludes judges
            of an answer's own family asks fewer where the pair's models are of two of them.
        profiles: reads the profiles that are named.
    """
    if isinstance(config, PairwiseConfig):
        return 1, 1
    if isinstance(config, ScoreConfig):
        return 2, 4 if config.repair else 2
    if isinstance(config, PreferencesConfig):
        return preference_calls(config, profiles(config.profile))
    if isinstance(config, EarlyStopConfig):
        return _early_stop(config, families, profiles)
    if isinstance(config, CommitteeConfig):
        return _committee(config, families, profiles)
    if isinstance(config, CascadeConfig):
        rungs = [calls_range(rung, families, profiles) for rung in config.rungs]
        return rungs[0][0], sum(most for _, most in rungs)
    times = config.n if isinstance(config, RepeatConfig) else 2
    fewest, most = calls_range(config.inner, families, profiles)
    return times * fewest, times * most


def _committee(
    config: CommitteeConfig, families: Families, profiles: ProfileLoader
) -> tuple[int, int]:
    most = sum(calls_range(each.strategy, families, profiles)[1] for each in config.seated())
    fewest = min(
        sum(calls_range(each.strategy, families, profiles)[0] for each in seated)
        for seated in _seatings(config, families)
    )
    return fewest, most


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


def _family(config: StrategyConfig, families: Families) -> str | None:
    found = {families.get(name) for name in judges_of(config)}
    return found.pop() if len(found) == 1 else None


def _early_stop(
    config: EarlyStopConfig, families: Families, profiles: ProfileLoader
) -> tuple[int, int]:
    inner = config.inner
    _, most = calls_range(inner, families, profiles)
    if isinstance(inner, RepeatConfig):
        seatings = [(1.0,) * inner.n]
        calls = [(calls_range(inner.inner, families, profiles)[0],) * inner.n]
    elif isinstance(inner, CommitteeConfig):
        sets = _seatings(inner, families)
        seatings = [tuple(each.weight for each in seated) for seated in sets]
        calls = [
            tuple(calls_range(each.strategy, families, profiles)[0] for each in seated)
            for seated in sets
        ]
    else:
        return calls_range(inner, families, profiles)
    rules = Rules(rule=inner.rule, quorum=inner.quorum, trim=inner.trim, band=inner.band)
    return min(
        sum(each[: _asked(weights, rules, config.wave)])
        for weights, each in zip(seatings, calls, strict=True)
    ), most


def _asked(weights: Sequence[float], rules: Rules, wave: int) -> int:
    """How many are asked at least: all of one mind, or all without a verdict."""
    left = [exact(weight) for weight in weights]
    quorum = rules.needed(len(left))
    for asked in range(0, len(left), wave):
        if asked and any(_ends(left, asked, pick, rules, quorum) for pick in ("A", "none")):
            return asked
    return len(left)


def _ends(weights: list[Fraction], asked: int, pick: str, rules: Rules, quorum: int) -> bool:
    votes = tally(("A", weight) for weight in weights[:asked] if pick == "A")
    return settled(votes, weights[asked:], rules, quorum)
