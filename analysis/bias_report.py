"""The report of `dikast bias`: every bias that the given files let one see, and why not the rest.

Puts the parts of `bias` and `bias_text` together; what cannot be said is a sentence in `absent`,
never an empty number.
"""

from collections.abc import Callable

import msgspec
import numpy as np

from dikast.analysis.agreement import raters_of
from dikast.analysis.bias import (
    FamilyCell,
    Noise,
    Own,
    Position,
    ScoreSpread,
    judged_of,
    noise,
    position,
    score_spread,
    self_preference,
)
from dikast.analysis.bias_text import TextBias, TextTable, text_bias
from dikast.analysis.counting import Counting, Options
from dikast.analysis.intervals import Interval, wilson
from dikast.analysis.ratings import NONE, Ratings
from dikast.engine.errors import InputError


class Flip(msgspec.Struct, frozen=True):
    """How often planted instructions of one family turned the verdict to the planted side:
    `flipped` of `n` that could have been turned; `unread` gave no verdict."""

    family: str
    n: int
    flipped: int
    unread: int
    interval: Interval


class BiasReport(msgspec.Struct, frozen=True):
    """All of `dikast bias`. `absent` says which parts are missing and what would bring them."""

    pairs: int
    labelled: int
    clusters: int
    clustered: bool
    texts: int
    level: float
    draws: int
    seed: int
    position: tuple[Position, ...]
    text: tuple[TextBias, ...]
    own_family: tuple[Own, ...]
    families: tuple[FamilyCell, ...]
    scores: tuple[ScoreSpread, ...]
    noise: tuple[Noise, ...]
    injection: tuple[Flip, ...]
    missing: dict[str, dict[str, int]]
    simulated: dict[str, int]
    absent: tuple[str, ...]


def bias(
    ratings: Ratings,
    texts: TextTable,
    family_of: Callable[[str], str | None],
    flips: tuple[Flip, ...],
    options: Options,
) -> BiasReport:
    """Compute the whole report.

    Args:
        ratings: at least one run.
        texts: numbers of the answers' texts; may be empty.
        family_of: family of a judge's or a model's name, None where unknown.
        flips: what an injection check found; may be empty.
        options: level, draws, seed, label rule.
    """
    labels = ratings.truth(options.label_rule)
    count = Counting(ratings.clusters, options)
    judges = judged_of(ratings)
    raters = raters_of(ratings)
    positions = [position(each, ratings, labels, count) for each in judges]
    noises = [noise(each, count) for each in judges]
    by_text = (
        [text_bias(each.name, each.codes, labels, texts, count) for each in raters]
        if len(texts)
        else []
    )
    own, families = self_preference(judges, ratings, labels, family_of, count)
    report = BiasReport(
        pairs=len(ratings),
        labelled=int(np.count_nonzero(labels != NONE)),
        clusters=len(np.unique(count.clusters)),
        clustered=ratings.clustered,
        texts=len(texts),
        level=options.level,
        draws=options.draws,
        seed=options.seed,
        position=tuple(each for each in positions if each is not None),
        text=tuple(each for each in by_text if each is not None),
        own_family=own,
        families=families,
        scores=tuple(each for run in ratings.runs for each in score_spread(run, options.level)),
        noise=tuple(each for each in noises if each is not None),
        injection=flips,
        missing={run.name: dict(run.missing) for run in ratings.runs if run.missing},
        simulated={run.name: run.simulated for run in ratings.runs if run.simulated},
        absent=(),
    )
    return msgspec.structs.replace(report, absent=_absent(report, ratings))


def _absent(report: BiasReport, ratings: Ratings) -> tuple[str, ...]:
    """One sentence for each part that is not there."""
    lines: list[str] = []
    if not report.position:
        lines.append(
            "position: no judge was asked in both orders; judge with the strategy swap to see it"
        )
    if not report.texts:
        lines.append("length, lists, headings, code: give the judged pairs with --pairs FILE")
    elif not report.text:
        lines.append("length, lists, headings, code: no pair of --pairs is in the outcomes")
    if not report.own_family:
        lines.append(
            "own family: no outcome names its models (model_a, model_b)"
            if not ratings.models.names
            else "own family: no judge is known to be of the family of a judged model; say it with "
            "--family JUDGE=FAMILY"
        )
    if not report.scores:
        lines.append("scores: no outcome has any; they come from the strategy score")
    if not report.noise:
        lines.append(
            "noise: no judge was asked twice in the same order; judge with the strategy repeat"
        )
    if not report.injection:
        lines.append("injection: give the report of dikast check --injection with --injection FILE")
    return tuple(lines)


class _Tally(msgspec.Struct):
    toward: int
    could: int
    unread: int = 0


class _Injection(msgspec.Struct):
    families: dict[str, _Tally]
    all: _Tally
    placebo: _Tally | None = None


def read_flips(data: bytes, file: str, level: float) -> tuple[Flip, ...]:
    """What an injection check found, from its JSON report.

    Raises:
        InputError: it is not such a report.
    """
    try:
        found = msgspec.json.decode(data, type=_Injection)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"is not the JSON of dikast check --injection --json ({error})", file=file
        ) from error
    named = {"all": found.all, **found.families}
    if found.placebo is not None:
        named["placebo (no instruction)"] = found.placebo
    return tuple(
        Flip(
            name, tally.could, tally.toward, tally.unread, wilson(tally.toward, tally.could, level)
        )
        for name, tally in named.items()
        if 0 <= tally.toward <= tally.could
    )
