"""`dikast report`: everything about a run on one page that opens anywhere.

The last step of a run. Reads the outcomes (three times, a row at a time), their manifests, the
labels and the pairs, and hands what the analyses say to `dikast.report`. Computes nothing itself.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dikast import status
from dikast.commands.reporting import options_of, read, share
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.files import write_whole
from dikast.extras import needs
from dikast.manifest import read_manifest, versions
from dikast.tables import text_of

if TYPE_CHECKING:
    from dikast.analysis.ranking import PairFacts, Ranking
    from dikast.analysis.ratings import Ratings
    from dikast.analysis.report_summary import Digest
    from dikast.report.data import ReportData
    from dikast.report.page import Page

_SAMPLE_MAX = 500


class _Found(NamedTuple):
    """The report as records, and as a page."""

    data: "ReportData"
    page: "Page"


async def run(args: argparse.Namespace) -> int:
    """Write the report; exit status 0."""
    _check(args)
    with needs("analysis", "dikast report"):
        found = await _found(args)
    _write(args, _shaped(args, found))
    return status.OK


def _check(args: argparse.Namespace) -> None:
    """Refuse options that do not go together, before anything is read."""
    where: str | None = args.output
    if where is None and not (args.json or args.md):
        raise ConfigError("say where the page goes with -o report.html, or use --json or --md")
    if not 0 <= args.sample <= _SAMPLE_MAX:
        raise ConfigError(f"--sample: must lie between 0 and {_SAMPLE_MAX}, not at {args.sample}")
    if where in (None, "-"):
        return
    path = Path(where or "")
    if path.is_dir():
        raise InputError("is a folder; name a file for the report", file=str(path))


async def _found(args: argparse.Namespace) -> _Found:
    from dikast.commands.bias import texts_of
    from dikast.report import browser
    from dikast.report.data import Made, Parts, report_data

    ratings = read(args)
    options = options_of(args)
    digests = tuple(_digests(args, ratings))
    samples = {digest.run.name: digest.sampled() for digest in digests}
    ids = frozenset(row.id for kinds in samples.values() for rows in kinds.values() for row in rows)
    wanted = browser.Texts(ids)
    named = ratings.clustered
    texts = await texts_of(args, ratings, wanted.take)
    ranking, no_ranking = _ranking(args, ratings, named)
    labels = ratings.truth(options.label_rule)
    pairs = browser.entries(
        samples, wanted.found, {each: int(labels[ratings.find(each) or 0]) for each in ids}
    )
    made = Made(
        dikast=versions().get("dikast", ""),
        level=options.level,
        draws=options.draws,
        seed=options.seed,
        label_rule=options.label_rule,
        labels=", ".join(args.labels) if args.labels else "those that the outcomes carry",
        pairs=tuple(args.pairs),
        pairs_with_texts=len(texts),
        clustered=ratings.clustered,
        prompts=len(set(ratings.clusters.tolist())),
    )
    parts = Parts(
        ranking=ranking,
        no_ranking=no_ranking,
        bias=_bias(args, ratings, texts),
        digests=digests,
        manifests=tuple(read_manifest(Path(path)) for path in args.outcomes),
        shown=_shown(pairs),
    )
    data = report_data(_title(args), made, ratings, parts, options)
    return _Found(data, _page(data, ratings, pairs))


def _digests(args: argparse.Namespace, ratings: "Ratings") -> "Iterator[Digest]":
    """The second pass: counts and samples of every run."""
    from dikast.analysis.report_parts import ReportRow
    from dikast.analysis.report_summary import Digest
    from dikast.analysis.rows import read_as

    labels = ratings.truth(args.label_rule)
    for run_read in ratings.runs:
        digest = Digest(run_read, ratings, labels, args.sample)
        for row in read_as(run_read.path, ReportRow):
            digest.take(row)
        yield digest


def _bias(args: argparse.Namespace, ratings: "Ratings", texts: Any) -> Any:
    from dikast.analysis.bias_report import bias
    from dikast.commands.bias import families, flips_of

    flips = flips_of(args)
    if not len(ratings):
        return None
    return bias(ratings, texts, families(args.family), flips, options_of(args))


class _Prompts(Mapping[str, "PairFacts"]):
    """The prompt of every pair by its id, as the other sections know it."""

    def __init__(self, ratings: "Ratings") -> None:
        self._ratings = ratings

    def __getitem__(self, pair_id: str) -> "PairFacts":
        from dikast.analysis.ranking import PairFacts

        row = self._ratings.find(pair_id)
        if row is None:
            raise KeyError(pair_id)
        prompt = self._ratings.prompt_of(row)
        return PairFacts(None, None, f"pair {pair_id}" if prompt is None else f"prompt {prompt}")

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return len(self._ratings)


def _ranking(
    args: argparse.Namespace, ratings: "Ratings", named: bool
) -> "tuple[Ranking | None, str | None]":
    """The third pass: battles to a ranking, or why there is none.

    Args:
        named: whether the outcomes name their prompts themselves.
    """
    from dikast.analysis.ranking import BattleLog, BattleReader, RankSettings, rank

    if len(ratings.models.names) < 2:
        return None, "the outcomes do not name two models or more (model_a, model_b)"
    log = BattleLog()
    as_elsewhere = args.cluster or (args.pairs and not named)
    reader = BattleReader(log, pairs=_Prompts(ratings) if as_elsewhere else None)
    for path in args.outcomes:
        reader.read(path)
    if args.cluster and log.clustered_by:
        rows = log.clustered_by.total()
        log.clustered_by.clear()
        log.clustered_by[f"meta.{args.cluster}"] = rows
    try:
        return rank(log.finish(), RankSettings(level=args.level, seed=args.seed)).report, None
    except InputError as error:
        return None, str(error)


def _shown(pairs: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for pair in pairs:
        for kind in pair["sampled"]:
            counts[pair["run"], kind] = counts.get((pair["run"], kind), 0) + 1
    return counts


def _title(args: argparse.Namespace) -> str:
    if args.title:
        return str(args.title)
    return "Report on " + ", ".join(Path(path).name for path in args.outcomes)


def _page(data: "ReportData", ratings: "Ratings", pairs: list[dict[str, Any]]) -> "Page":
    from dikast.analysis.report_summary import KINDS
    from dikast.report.page import Page
    from dikast.report.sections import sections_of

    no_texts = (
        "The texts of this pair are in none of the files given with --pairs."
        if data.made.pairs
        else "The report was made without the judged pairs; give them with --pairs to see texts."
    )
    return Page(
        title=data.title,
        subtitle=f"{data.pairs:,} pairs or items in {len(data.sources)} outcome file"
        f"{'' if len(data.sources) == 1 else 's'}, {data.labelled:,} with a label",
        warnings=tuple(
            f"{each.run}: {each.simulated:,} of {each.outcomes:,} outcomes are simulated."
            for each in data.verdicts
            if each.simulated
        ),
        facts=tuple(_facts(data)),
        sections=sections_of(data, ratings),
        foot=f"Made by dikast {data.made.dikast}. This file asks no address for anything.",
        browser={
            "pairs": pairs,
            "kinds": [kind for kind in KINDS if any(each.kind == kind for each in data.contested)],
            "no_texts": no_texts,
        },
    )


def _facts(data: "ReportData") -> Iterator[tuple[str, str]]:
    """The figures at the top, over all files."""
    ledgers = [
        run.ledger
        for source in data.sources
        if source.manifest is not None
        for run in source.manifest.runs
        if run.ledger is not None
    ]
    yield "verdicts", f"{sum(each.verdicts for each in data.verdicts):,}"
    if scored := sum(each.scored for each in data.verdicts):
        yield "scored answers", f"{scored:,}"
    yield "without a verdict", f"{sum(sum(each.no_verdict.values()) for each in data.verdicts):,}"
    yield "judge calls", f"{sum(each.calls for each in data.verdicts):,}"
    yield "price of the calls", f"${sum(each.cost_usd for each in data.verdicts):,.4f}"
    if ledgers:
        yield "paid by these runs", f"${sum(each.spent_usd for each in ledgers):,.4f}"
    if data.agreement is not None and len(data.sources) == 1:
        for each in data.agreement.with_labels[:1]:
            number = each.accuracy["three-way"]
            if number.value is not None:
                yield "as people (three-way)", f"{text_of(share(number))}, n {number.n:,}"


def _shaped(args: argparse.Namespace, found: _Found) -> str:
    from dikast.report.data import plain
    from dikast.report.page import html, markdown

    if args.json:
        text = msgspec.json.format(msgspec.json.encode(plain(found.data)), indent=2)
        return text.decode() + "\n"
    return markdown(found.page) if args.md else html(found.page)


def _write(args: argparse.Namespace, text: str) -> None:
    """The whole file or none of it."""
    if args.output in (None, "-"):
        sys.stdout.write(text)
        return
    write_whole(args.output, text.encode())
