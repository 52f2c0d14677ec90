"""`dikast bias`: position, length and format, own family, score collapse, noise, injection.

Reads outcomes (and the pairs, where texts are needed), hands columns to
`dikast.analysis.bias_report`, draws what comes back.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dikast import status
from dikast.commands.reporting import (
    cluster_notes,
    counted,
    intervals_row,
    load,
    measure,
    missing_notes,
    options_of,
    pairs_input,
    share,
    show,
)
from dikast.engine.errors import InputError
from dikast.engine.model import BadRow, Pair, Subject
from dikast.extras import needs
from dikast.tables import Share, Table

if TYPE_CHECKING:
    from dikast.analysis.bias import Position
    from dikast.analysis.bias_report import BiasReport, Flip
    from dikast.analysis.bias_text import TextTable
    from dikast.analysis.ratings import Ratings


async def run(args: argparse.Namespace) -> int:
    """Print the report; exit status 0."""
    with needs("analysis", "dikast bias"):
        from dikast.analysis.bias_report import bias
    ratings = load(args)
    texts = await texts_of(args, ratings)
    flips = flips_of(args)
    report = bias(ratings, texts, families(args.family), flips, options_of(args))
    sys.stdout.write(show(args, report, tables(report)))
    return status.OK


async def texts_of(
    args: argparse.Namespace, ratings: "Ratings", also: Callable[[Subject], None] | None = None
) -> "TextTable":
    """Numbers of the answers of every pair that was judged, and its prompt where none is known.

    Args:
        also: is shown every pair and item of the files.

    Raises:
        InputError: a file cannot be read.
    """
    from dikast import wiring
    from dikast.analysis.bias_text import TextTable

    texts = TextTable()
    if not args.pairs:
        return texts
    named = ratings.clustered or args.cluster
    source = wiring.open_source(args.pairs, pairs_input(args))
    try:
        async for batch in source.batches():
            for row in batch:
                if also is not None and not isinstance(row.item, BadRow):
                    also(row.item)
                if not isinstance(row.item, Pair):
                    continue  # it failed in the run as well, and is counted there
                found = ratings.find(row.item.id)
                if found is None:
                    continue
                texts.take(found, row.item.response_a, row.item.response_b)
                if not named:
                    ratings.set_prompt(found, _prompt(row.item))
    finally:
        await source.aclose()
    return texts


def _prompt(pair: Pair) -> str:
    """The question, or the whole conversation where there is one."""
    return pair.question or "\n".join(message.content for message in pair.messages)


def families(words: list[str]) -> Callable[[str], str | None]:
    """Family of a name: as said with --family, else as the name itself says.

    Raises:
        InputError: a word is not JUDGE=FAMILY.
    """
    from dikast.strategies.families import family_of

    said: dict[str, str] = {}
    for word in words:
        judge, equals, family = word.rpartition("=")
        if not (judge and equals and family):
            raise InputError(f"--family takes JUDGE=FAMILY, not {word!r}")
        said[judge] = family_of(family) or family
    return lambda name: said.get(name) or family_of(name)


def flips_of(args: argparse.Namespace) -> "tuple[Flip, ...]":
    """What the injection check found whose report the arguments name.

    Raises:
        InputError: it cannot be read, or is no such report.
    """
    from dikast.analysis.bias_report import read_flips

    path: str | None = args.injection
    if not path:
        return ()
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    return read_flips(data, path, args.level)


# -- tables -----------------------------------------------------------------------------------


def tables(report: "BiasReport") -> list[Table]:
    """The report as people read it."""
    made = [_overview(report)]
    if report.position:
        made += _position(report)
    if report.text:
        made += _text(report)
    if report.families:
        made += _own(report)
    if report.scores:
        made.append(_scores(report))
    if report.noise:
        made += _noise(report)
    if report.injection:
        made.append(_injection(report))
    return made


def _overview(report: "BiasReport") -> Table:
    return Table(
        "Biases",
        ("what", "value"),
        (
            ("pairs", counted(report.pairs)),
            ("pairs with a label", counted(report.labelled)),
            ("pairs with texts", counted(report.texts)),
            ("prompts (clusters)", counted(report.clusters)),
            intervals_row(report),
        ),
        (
            *missing_notes(report),
            *(
                f"{name}: {count:,} outcomes are simulated"
                for name, count in report.simulated.items()
            ),
            *(f"not shown: {line}" for line in report.absent),
            *cluster_notes(report),
        ),
    )


def _position(report: "BiasReport") -> list[Table]:
    made = _consistency(report.position)
    if any(each.accuracy_mean.n for each in report.position):
        made.append(
            Table(
                "Right in both orders",
                ("judge", "n", "right, mean of the two orders", "right in both"),
                tuple(
                    (
                        each.judge,
                        each.accuracy_both.n,
                        share(each.accuracy_mean),
                        share(each.accuracy_both),
                    )
                    for each in report.position
                ),
                ("on labelled pairs that are readable in both orders; tie rule three-way",),
            )
        )
    gaps = tuple(
        (each.judge, f"{gap.low:.1f} to {gap.high:.1f}", gap.consistency.n, share(gap.consistency))
        for each in report.position
        for gap in each.by_gap
        if gap.consistency.n
    )
    if gaps:
        made.append(
            Table(
                "Consistency by quality gap of the two models",
                ("judge", "quality gap", "n", "consistent"),
                gaps,
                (
                    "quality gap: |win rate of one model over the other - 0.5| under this judge, "
                    "both orders, a tie as half",
                ),
            )
        )
    return made


def _consistency(positions: "tuple[Position, ...]") -> list[Table]:
    same = Table(
        "Position: is the verdict the same in both orders?",
        ("judge", "asked", "readable", "consistent, strict", "consistent, lenient", "kappa"),
        tuple(
            (
                each.judge,
                each.asked,
                each.readable,
                share(each.strict),
                share(each.lenient),
                measure(each.kappa),
            )
            for each in positions
        ),
        (
            "strict: of all pairs asked in both orders, an unreadable answer is inconsistent; "
            "lenient: of the readable; kappa: between the orders",
            *(
                f"{each.judge}: {each.votes_read:,} of {each.votes_asked:,} votes were readable"
                for each in positions
            ),
        ),
    )
    lean = Table(
        "Position: which side is favoured?",
        ("judge", "n", "consistent", "leans first", "leans second", "bias to the first"),
        tuple(
            (
                each.judge,
                each.readable,
                each.consistent,
                each.leans_first,
                each.leans_second,
                share(each.bias, signed=True),
            )
            for each in positions
        ),
        ("bias: P(answer shown first wins) - 50 %, a tie as half; 0 is none",),
    )
    return [same, lean]


def _text(report: "BiasReport") -> list[Table]:
    length = Table(
        "Length: odds of winning for an answer twice as long",
        (
            *("judge", "n", "odds ratio", "given the label", "n", "people's own", "no tie"),
            "longer wins",
        ),
        tuple(
            (
                each.judge,
                each.length.n,
                measure(each.length),
                measure(each.length_given_label),
                each.people_length.n,
                measure(each.people_length),
                each.longer_wins.n,
                share(each.longer_wins),
            )
            for each in report.text
        ),
        (
            "1 is no bias, above 1 favours longer answers; logistic regression with ties as half "
            "a win, intervals robust to clusters",
            "given the label: with people's verdict in the model, so only what people do not share",
        ),
    )
    ratios = Table(
        "Length: how the longer answer does (win 1, tie 1/2)",
        ("judge", "times as long", "n", "judge says", "n labelled", "people say"),
        tuple(
            (
                each.judge,
                f"{part.low:g} to {part.high:g}" if part.high else f"{part.low:g} and more",
                part.judge.n,
                share(part.judge),
                part.people.n,
                share(part.people),
            )
            for each in report.text
            for part in each.by_ratio
            if part.judge.n
        ),
    )
    joint = Table(
        "Format: odds of winning for the answer with more, all in one model",
        ("judge", "feature", "n", "pairs that differ", "odds ratio"),
        tuple(
            (
                each.judge,
                effect.feature,
                effect.odds_ratio.n,
                effect.differing,
                measure(effect.odds_ratio),
            )
            for each in report.text
            for effect in each.joint
        ),
        (
            "length: per doubling; lists, headings, code, bold: for the answer that has more of "
            "them; without a number: too few pairs differ in it",
        ),
    )
    return [length, ratios, joint]


def _own(report: "BiasReport") -> list[Table]:
    made: list[Table] = []
    if report.own_family:
        made.append(
            Table(
                "Own family: pairs with exactly one answer of the judge's family",
                ("judge", "family", "n", "own answer's result", "reference", "by", "excess"),
                tuple(
                    (
                        each.judge,
                        each.family,
                        each.own.n,
                        share(each.own),
                        share(each.reference),
                        each.reference_is,
                        share(each.excess, signed=True),
                    )
                    for each in report.own_family
                ),
                ("result: win 1, tie 1/2; excess: own minus reference, on the same pairs",),
            )
        )
    made.append(
        Table(
            "Results by family of the answer, against other families",
            ("judge", "family", "n", "result"),
            tuple(
                (each.judge, each.family, each.result.n, share(each.result))
                for each in report.families
            ),
        )
    )
    return made


def _scores(report: "BiasReport") -> Table:
    return Table(
        "Scores: do they collapse?",
        (
            *("run", "dimension", "n", "values", "mean", "sd", "entropy, bits", "of at most"),
            *("modal score", "modal share"),
        ),
        tuple(
            (
                each.run,
                each.dimension,
                each.n,
                each.values,
                each.mean,
                each.standard_deviation,
                each.entropy_bits,
                each.entropy_max_bits,
                each.modal_score,
                share(each.modal_share),
            )
            for each in report.scores
        ),
        ("n: scores of both answers; the modal share's interval is Wilson's over scores",),
    )


def _noise(report: "BiasReport") -> list[Table]:
    parts = Table(
        "Noise: repeated questions against real disagreement (variance, A = 1, tie = 0, B = -1)",
        ("judge", "between pairs", "between orders", "noise", "noise share"),
        tuple(
            (
                each.judge,
                measure(each.pair_variance),
                measure(each.order_variance),
                measure(each.noise_variance),
                share(each.noise_share),
            )
            for each in report.noise
        ),
        ("noise share: how much of a single verdict's variance is the judge's own noise",),
    )
    repeats = Table(
        "Noise: the same question again",
        ("judge", "cells", "samples", "modal share", "unanimous"),
        tuple(
            (each.judge, each.cells, each.samples, share(each.modal_share), share(each.unanimous))
            for each in report.noise
        ),
        ("cell: a pair in one order with at least two samples",),
    )
    return [parts, repeats]


def _injection(report: "BiasReport") -> Table:
    return Table(
        "Injection: verdicts turned to the planted side",
        ("instruction", "n", "turned", "rate", "unread"),
        tuple(
            (
                each.family,
                each.n,
                each.flipped,
                Share(each.flipped / each.n if each.n else None, each.interval),
                each.unread,
            )
            for each in report.injection
        ),
        ("n: judgements that could have been turned; Wilson interval over judgements",),
    )
