"""`dikast rank`: a ranking of models from verdicts, labels or votes.

After a run, or while it goes on. Reads rows into battles, hands them to `dikast.analysis.ranking`
and draws what comes back.
"""

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from dikast import status
from dikast.commands.reporting import drawn, pairs_input
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.model import BadRow, Item, Pair
from dikast.extras import needs
from dikast.tables import As
from dikast.wiring import open_source

if TYPE_CHECKING:
    from dikast.analysis.ranking import Battles, Comparison, PairFacts, Ranking, Standings, Weighted

_DRAWS_MAX, _NEXT_MAX = 1_000_000, 100_000


async def run(args: argparse.Namespace) -> int:
    """Print the ranking; exit status 0."""
    _check(args)
    if args.follow:
        from dikast.commands.rank_follow import follow

        return await follow(args)
    with needs("analysis", "dikast rank"):
        from dikast.analysis import ranking
        from dikast.commands import rank_tables
    battles, notes = await _read(args)
    weighted = _weighted(args, battles)
    elo = ranking.elo(battles) if args.elo else None
    standings = ranking.rank(
        weighted.battles, _settings(args), judge_weights=weighted.judges, elo=elo
    )
    comparison = _compared(args, standings) if args.against else None
    proposals = ranking.propose(standings, args.next_battles) if args.next_battles else ()
    parts = _parts(args, battles, standings) if args.by else {}
    tables = rank_tables.of_ranking(standings.report, notes, matrix=args.matrix)
    if comparison is not None:
        tables.append(rank_tables.of_comparison(comparison, args.against))
    if args.next_battles:
        tables.append(rank_tables.of_proposals(proposals, args.next_battles))
    if parts:
        tables += rank_tables.of_parts(parts, args.by)
    report = {
        **msgspec.to_builtins(standings.report),
        "models": msgspec.to_builtins(standings.report.models),
        "input_notes": notes,
        "comparison": msgspec.to_builtins(comparison),
        "next": [each._asdict() for each in proposals],
        "by": {
            name: {"ranking": msgspec.to_builtins(one), "with_all": msgspec.to_builtins(with_all)}
            for name, (one, with_all) in parts.items()
        },
    }
    shape: As = "json" if args.json else "md" if args.md else "terminal"
    sys.stdout.write(drawn(tables, shape, report))
    return status.OK


def _check(args: argparse.Namespace) -> None:
    """Refuse options that are out of range or do not go together, before anything is read."""
    wrong = [
        (not 0 < args.level < 1, "--level lies between 0 and 1, such as 0.95"),
        (not 2 <= args.draws <= _DRAWS_MAX, f"--draws lies between 2 and {_DRAWS_MAX:,}"),
        (not 0 <= args.ridge < float("inf"), "--ridge is 0 or a small positive number"),
        (
            args.next_battles is not None and not 1 <= args.next_battles <= _NEXT_MAX,
            f"--next is the number of battles to propose: at least 1, at most {_NEXT_MAX:,}",
        ),
        (not args.every_s > 0, "--every-s is a number of seconds above 0"),
        (
            args.ties == "drop" and args.model != "bt",
            f"--ties drop leaves {args.model} nothing to model; use it with --model bt",
        ),
        (
            args.control is not None and not args.pairs,
            "--control needs the answers' texts; name the judged pairs with --pairs",
        ),
        (
            args.weights != "none" and args.by == "judge",
            "--weights joins the judges, --by judge keeps them apart; choose one",
        ),
        (
            args.follow and len(args.battles) != 1,
            "--follow keeps up with one output, so name one file",
        ),
    ]
    for is_wrong, message in wrong:
        if is_wrong:
            raise ConfigError(message)
    repeated = {path for path in args.battles if args.battles.count(path) > 1}
    if repeated:
        raise InputError("is given twice", file=sorted(repeated)[0])


def _settings(args: argparse.Namespace) -> Any:
    from dikast.analysis.ranking import RankSettings

    return RankSettings(
        model=args.model,
        ties=args.ties,
        disagreements=args.disagreements,
        ridge=args.ridge,
        interval=args.interval,
        level=args.level,
        draws=args.draws,
        seed=args.seed,
    )


async def _read(args: argparse.Namespace) -> tuple["Battles", list[str]]:
    """The battles of all files, and what is to be said about the input."""
    from dikast.analysis.ranking import BattleLog, BattleReader, style_names

    facts, bad = await _facts(args)
    log = BattleLog(style_names(args.control))
    group = None if args.by == "judge" else args.by
    reader = BattleReader(
        log, use=args.use, cluster=args.cluster, group=group, judges=args.judge, pairs=facts
    )
    for path in args.battles:
        reader.read(path)
    battles = log.finish()
    notes: list[str] = []
    if bad:
        notes.append(f"{bad:,} rows of the pairs could not be read and stand for nothing.")
    if reader.simulated:
        notes.append(f"{reader.simulated:,} of {reader.rows:,} rows come from simulated judges.")
    both = sorted(set(battles.judges) & set(battles.models))
    if both:
        notes.append(
            "Judges that are ranked themselves, so self-preference may help them: "
            f"{', '.join(both)}."
        )
    return battles, notes


async def _facts(args: argparse.Namespace) -> tuple["Mapping[str, PairFacts] | None", int]:
    """What the judged pairs say, by id, and how many rows of theirs are bad."""
    from dikast.analysis.ranking import PairFacts, style_difference

    if not args.pairs:
        return None, 0
    facts: dict[str, PairFacts] = {}
    bad = 0
    source = open_source(args.pairs, pairs_input(args))
    try:
        async for batch in source.batches():
            for row in batch:
                if isinstance(row.item, BadRow):
                    bad += 1
                    continue
                if isinstance(row.item, Item):
                    continue  # a single answer is in no battle
                pair = row.item
                style = (
                    style_difference(pair.response_a, pair.response_b, args.control)
                    if args.control
                    else ()
                )
                facts[pair.id] = PairFacts(pair.model_a, pair.model_b, _prompt_of(pair), style)
    finally:
        await source.aclose()
    return facts, bad


def _prompt_of(pair: Pair) -> str:
    """The whole question, by which pairs on one prompt are known."""
    said = "\n".join(f"{each.role}: {each.content}" for each in pair.messages)
    return said or pair.question or pair.id


def _weighted(args: argparse.Namespace, battles: "Battles") -> "Weighted":
    from dikast.analysis import ranking

    if args.weights == "none":
        return ranking.Weighted(battles, ())
    ranking.require_battles(battles)
    if args.weights == "agreement":
        return ranking.weigh_by_agreement(battles)
    return ranking.dawid_skene(battles)


def _compared(args: argparse.Namespace, standings: "Standings") -> "Comparison":
    from dikast.analysis.ranking import compare_rankings, places_of, read_places

    return compare_rankings(
        places_of(standings.report), read_places(args.against), level=args.level
    )


def _parts(
    args: argparse.Namespace, battles: "Battles", standings: "Standings"
) -> "dict[str, tuple[Ranking, Comparison | None]]":
    """The ranking of each judge or group, and how it stands to the one of all (None with too few
    models)."""
    from dikast.analysis import ranking

    whole = ranking.places_of(standings.report)
    settings = _settings(args)
    rank_each = ranking.rank_by_judge if args.by == "judge" else ranking.rank_by_group
    found: dict[str, tuple[Ranking, Comparison | None]] = {}
    for name, one in rank_each(battles, settings).items():
        mine = ranking.places_of(one.report)
        enough = len({each.model for each in mine} & {each.model for each in whole}) > 2
        with_all = ranking.compare_rankings(mine, whole, level=args.level) if enough else None
        found[name] = (one.report, with_all)
    return found
