"""`dikast preferences leaderboard`: the same battles under each person's profile, ranked alike.

Every pair is judged with every profile as it stands; only pairs that all of them decided are
ranked, so that two leaderboards differ by taste and by nothing else. The ranking is that of
`dikast rank`.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from dikast import status
from dikast.analysis.ranking import (
    BattleLog,
    Comparison,
    Place,
    Ranking,
    RankSettings,
    Result,
    compare_rankings,
    places_of,
    rank,
)
from dikast.beside import loaders
from dikast.commands.preferences_calls import Setup, open_calls
from dikast.commands.preferences_files import store_beside
from dikast.commands.preferences_tables import leaderboard_tables
from dikast.commands.reporting import drawn
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.model import Outcome, Pair, Verdict
from dikast.strategies import build
from dikast.strategies.preferences import PreferencesConfig, Profile, load_profile
from dikast.strategies.preferences.labels import group_of
from dikast.tables import As
from dikast.wiring import read_pairs

_MODELS_MIN = 3
"""Fewer models have no order that could be compared."""


async def run(args: argparse.Namespace) -> int:
    """Rank; see `dikast preferences leaderboard --help`.

    Raises:
        InputError: the pairs cannot be read, or name no models.
        ConfigError: a profile cannot be used.
        RunStopped: budget, quota, key, store or a signal; the same command resumes.
    """
    setup = Setup(args)
    pairs = (await read_pairs(args.pairs, args.format))[: args.limit]
    battles = [each for each in pairs if each.model_a and each.model_b]
    if not battles:
        raise InputError("no pair names its two models; give rows with model_a and model_b")
    profiles = {path: load_profile(path) for path in dict.fromkeys(args.profile)}
    names = _names(profiles)
    if args.dry_run:
        most = max(2, *(2 * len(e.voting()) for p in profiles.values() for e in p.entries))
        total = most * len(battles) * len(profiles)
        print(f"{len(battles)} pairs, {len(profiles)} profiles: {total:,} judge calls at most")
        return status.OK
    outcomes: dict[str, list[Outcome]] = {}
    for path, name in names.items():
        if not args.quiet:
            print(f"dikast: judging as {name}", file=sys.stderr, flush=True)
        config = PreferencesConfig(
            judge=setup.judge.name, profile=path, template=args.template or ""
        )
        strategy = build(
            config,
            {setup.judge.name: setup.judge},
            seed=setup.seed,
            loaders=loaders(setup.settings),
        )
        async with open_calls(setup, args, store_beside(Path(path))) as calls:
            outcomes[name] = await calls.judge(strategy, battles)
    return _tell(args, battles, outcomes, setup.seed)


def _names(profiles: dict[str, Profile]) -> dict[str, str]:
    """What to call each profile: the person, or the path where a person has several."""
    people = [profile.person for profile in profiles.values()]
    return {
        path: profile.person if people.count(profile.person) == 1 else path
        for path, profile in profiles.items()
    }


def _tell(
    args: argparse.Namespace,
    battles: Sequence[Pair],
    outcomes: dict[str, list[Outcome]],
    seed: int,
) -> int:
    decided = [
        at
        for at in range(len(battles))
        if all(isinstance(each[at], Verdict) for each in outcomes.values())
    ]
    if not decided:
        raise ConfigError("no pair was decided under all profiles; look at the judge's answers")
    rankings: dict[str, Ranking] = {}
    for name, found in outcomes.items():
        log = BattleLog()
        for at in decided:
            pair, verdict = battles[at], found[at]
            assert isinstance(verdict, Verdict)
            assert pair.model_a is not None
            assert pair.model_b is not None
            log.add(pair.id, pair.model_a, pair.model_b, _result(verdict), cluster=group_of(pair))
        rankings[name] = rank(log.finish(), RankSettings(seed=seed)).report
    places = {name: places_of(found) for name, found in rankings.items()}
    compared = [(a, b, _compared(places[a], places[b])) for a, b in combinations(places, 2)]
    report: dict[str, Any] = {
        "battles": len(decided),
        "left_out": len(battles) - len(decided),
        "rankings": msgspec.to_builtins(rankings),
        "compared": [
            {"first": a, "second": b, **msgspec.to_builtins(found)}
            for a, b, found in compared
            if found is not None
        ],
    }
    as_: As = "json" if args.json else "md" if args.md else "terminal"
    tables = leaderboard_tables(rankings, compared, len(decided), len(battles) - len(decided))
    print(drawn(tables, as_, report), end="")
    return status.OK


def _result(verdict: Verdict) -> Result:
    """A verdict as a battle's result; orders that differ and leave no winner are no tie."""
    if verdict.winner == "tie" and verdict.consistent is False:
        return "disagree"
    return verdict.winner


def _compared(first: Sequence[Place], second: Sequence[Place]) -> Comparison | None:
    return compare_rankings(first, second) if len(first) >= _MODELS_MIN else None
