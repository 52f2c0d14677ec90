"""How far judges agree with people, with each other, and people among themselves.

Counts from `Ratings` and makes a report of plain records; `dikast agree` draws it. Nothing is
scored that is not a verdict: a pair without one is left out and counted with its reason. Every
number carries its n, the tie rule and an interval by prompt clusters.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from dikast.analysis import kappa
from dikast.analysis.counting import (
    LOST,
    POWER,
    TIE_RULES,
    UNCLUSTERED,
    Counting,
    Mask,
    Number,
    Options,
    design_effect,
    hits_by_rule,
    wide,
)
from dikast.analysis.intervals import Floats, Ints, ratio
from dikast.analysis.people import People, WithVotes, among_people, with_votes
from dikast.analysis.ratings import NONE, Codes, Ratings
from dikast.analysis.significance import (
    McNemar,
    holm,
    mcnemar,
    paired_effect,
    paired_n,
    single_effect,
)


class Rater(NamedTuple):
    """One judge, or one run's results: a code for every pair, and why there is none."""

    name: str
    kind: Literal["result", "judge"]
    codes: Codes
    present: Mask
    missing: dict[str, int]


class WithLabels(msgspec.Struct, frozen=True):
    """One rater against the labels. `labelled` pairs have a label and stand in the rater's file;
    `unjudged` of them have no verdict and are left out (or wrong, by `Report.missing_rule`).
    `accuracy` is by tie rule. `detectable` is the smallest rise of accuracy (three-way) that so
    many items can show, at power 0.8; `design_effect` is how much clustering by prompt widens
    the variance.
    """

    rater: str
    kind: str
    labelled: int
    unjudged: int
    accuracy: dict[str, Number]
    kappa: Number
    gwet_ac1: Number
    macro_precision: Number
    macro_recall: Number
    macro_f1: Number
    detectable: float | None
    design_effect: float | None
    by_category: dict[str, Number]


class Between(msgspec.Struct, frozen=True):
    """Two raters on identical pairs. The second half needs labels: `right_first` pairs are right
    for the first only. `difference` is accuracy of the first minus that of the second.
    `needed` is the number of items that would show a difference as large as the one seen.
    """

    first: str
    second: str
    agreement: Number
    kappa: Number
    difference: Number | None = None
    test: McNemar | None = None
    holm_p: float | None = None
    detectable: float | None = None
    needed: int | None = None


class Report(msgspec.Struct, frozen=True):
    """All of `dikast agree`. `notes` say what was left out and why."""

    pairs: int
    labelled: int
    clusters: int
    clustered: bool
    level: float
    draws: int
    seed: int
    tie_rule: str
    label_rule: str
    missing_rule: str
    missing: dict[str, dict[str, int]]
    with_labels: tuple[WithLabels, ...]
    with_votes: tuple[WithVotes, ...]
    people: People | None
    between: tuple[Between, ...]
    among_raters: dict[str, Number]
    notes: tuple[str, ...]


def raters_of(ratings: Ratings) -> list[Rater]:
    """The results of every run, and the judges inside where a run has several."""
    raters: list[Rater] = []
    pairs = len(ratings)
    several = len(ratings.runs) > 1
    for run in ratings.runs:
        there = run.present(pairs)
        raters.append(Rater(run.name, "result", run.results(pairs), there, dict(run.missing)))
        if len(run.judges) < 2:
            continue
        for judge in run.judges:
            votes = run.votes(judge, pairs)
            asked = votes.asked(0) | votes.asked(1)
            codes = votes.verdicts()
            lost = int(np.count_nonzero(asked & (codes == NONE)))
            name = f"{run.name}: {judge}" if several else judge
            missing = {"a vote gave no readable verdict": lost} if lost else {}
            raters.append(Rater(name, "judge", codes, asked, missing))
    return raters


def agree(ratings: Ratings, options: Options) -> Report:
    """Compute the whole report.

    Args:
        ratings: at least one run, or labels of people alone.
        options: levels, seed, rules.
    """
    raters = raters_of(ratings)
    labels = ratings.truth(options.label_rule)
    count = Counting(ratings.clusters, options)
    labelled = int(np.count_nonzero(labels != NONE))
    names = ratings.categories.names
    compared = [between(count, one, two, labels) for one, two in combinations(raters, 2)]
    return Report(
        pairs=len(ratings),
        labelled=labelled,
        clusters=len(np.unique(count.clusters)),
        clustered=ratings.clustered,
        level=options.level,
        draws=options.draws,
        seed=options.seed,
        tie_rule=options.tie_rule,
        label_rule=options.label_rule,
        missing_rule=options.missing,
        missing={rater.name: rater.missing for rater in raters if rater.missing},
        with_labels=tuple(
            _with_labels(count, rater, labels, ratings.category, names)
            for rater in raters
            if np.any(rater.present & (labels != NONE))
        ),
        with_votes=with_votes(
            ratings, [(each.name, each.codes, each.present) for each in raters], count
        ),
        people=among_people(ratings, count, labels) if len(ratings.people) else None,
        between=with_holm(compared),
        among_raters=count.coefficients(_counts_of(raters)) if len(raters) > 1 else {},
        notes=_notes(ratings, labelled),
    )


def _with_labels(
    count: Counting, rater: Rater, labels: Codes, category: Ints, categories: list[str]
) -> WithLabels:
    labelled = rater.present & (labels != NONE)
    judged = labelled & (rater.codes != NONE)
    unjudged = int(np.count_nonzero(labelled & ~judged))
    if count.options.missing == "wrong":
        judged = labelled
    said, truth = wide(rater.codes[judged]), wide(labels[judged])
    said = np.where(said == NONE, LOST, said)
    clusters = count.clusters[judged]
    confusion = kappa.confusion_rows(truth, said, 4)
    accuracy = {rule: _accuracy(count, rule, said, truth, clusters) for rule in TIE_RULES}
    effect = design_effect((said == truth).astype(np.float64), clusters)
    value = accuracy["three-way"].value
    return WithLabels(
        rater=rater.name,
        kind=rater.kind,
        labelled=int(np.count_nonzero(labelled)),
        unjudged=unjudged,
        accuracy=accuracy,
        kappa=count.estimate(confusion, kappa.cohen, clusters),
        gwet_ac1=count.estimate(confusion, kappa.gwet_of_two, clusters),
        macro_precision=count.estimate(confusion, kappa.macro("precision"), clusters),
        macro_recall=count.estimate(confusion, kappa.macro("recall"), clusters),
        macro_f1=count.estimate(confusion, kappa.macro("f1"), clusters),
        detectable=None
        if value is None or effect is None
        else single_effect(
            max(1, int(len(said) / effect)), value, level=count.options.level, power=POWER
        ),
        design_effect=effect,
        by_category={
            name: _accuracy(count, "three-way", said[mine], truth[mine], clusters[mine])
            for name, code in sorted((name, code) for code, name in enumerate(categories))
            if np.any(mine := category[judged] == code)
        },
    )


def _accuracy(count: Counting, rule: str, said: Ints, truth: Ints, clusters: Ints) -> Number:
    used, hits = hits_by_rule(rule, said, truth)
    return count.share(hits[used], clusters[used])


def between(count: Counting, first: Rater, second: Rater, labels: Codes) -> Between:
    both = (first.codes != NONE) & (second.codes != NONE)
    one, two = wide(first.codes[both]), wide(second.codes[both])
    clusters = count.clusters[both]
    confusion = kappa.confusion_rows(one, two, 3)
    agreed = count.share((one == two).astype(np.float64), clusters)
    beyond = count.estimate(confusion, kappa.cohen, clusters)
    truth = wide(labels[both])
    known = truth != NONE
    if not np.any(known):
        return Between(first.name, second.name, agreed, beyond)
    one, two, truth, clusters = one[known], two[known], truth[known], clusters[known]
    used_one, hits_one = hits_by_rule(count.options.tie_rule, one, truth)
    used_two, hits_two = hits_by_rule(count.options.tie_rule, two, truth)
    used = used_one & used_two
    gaps, clusters = (hits_one - hits_two)[used], clusters[used]
    b, c = int(np.count_nonzero(gaps > 0)), int(np.count_nonzero(gaps < 0))
    n = len(gaps)
    discordant = (b + c) / n if n else 0.0
    effect = design_effect(gaps, clusters) or 1.0
    options = count.options
    return Between(
        first=first.name,
        second=second.name,
        agreement=agreed,
        kappa=beyond,
        difference=count.estimate(np.column_stack([gaps, np.ones(n)]), ratio, clusters),
        test=mcnemar(b, c),
        detectable=paired_effect(
            max(1, int(n / effect)), discordant, level=options.level, power=POWER
        )
        if b + c
        else None,
        needed=int(effect * paired_n(abs(b - c) / n, discordant, level=options.level, power=POWER))
        if b != c
        else None,
    )


def _counts_of(raters: list[Rater]) -> Floats:
    """(pairs, 3) verdicts of all judges, or of all results where no run has several judges."""
    inside = [rater for rater in raters if rater.kind == "judge"]
    counts: Floats = np.zeros((len(raters[0].codes), 3))
    for rater in inside or raters:
        for code in range(3):
            counts[:, code] += rater.codes == code
    return counts


def with_holm(found: Sequence[Between]) -> tuple[Between, ...]:
    """The same comparisons with their mid-p adjusted for all of them."""
    tested = [each for each in found if each.test is not None]
    adjusted = iter(holm([each.test.mid_p for each in tested if each.test is not None]))
    return tuple(
        each if each.test is None else msgspec.structs.replace(each, holm_p=next(adjusted))
        for each in found
    )


def _notes(ratings: Ratings, labelled: int) -> tuple[str, ...]:
    notes: list[str] = []
    if not labelled:
        notes.append(
            "no pair has a label: give --labels FILE, or judge pairs that carry one; only the "
            "agreement between judges can be said"
        )
    if not ratings.clustered:
        notes.append(UNCLUSTERED)
    for run in ratings.runs:
        if run.repeated:
            notes.append(
                f"{run.name}: {run.repeated:,} lines repeat an id; the first that did not fail "
                "counts"
            )
        if run.simulated:
            notes.append(f"{run.name}: {run.simulated:,} of {run.rows:,} outcomes are simulated")
        if not run.rows:
            notes.append(f"{run.name}: the file is empty")
    if ratings.label_conflicts:
        notes.append(
            f"{ratings.label_conflicts:,} outcomes carry another label than an earlier one of the "
            "same pair; the first counts"
        )
    if ratings.people.unknown_pairs and ratings.runs:
        notes.append(
            f"{ratings.people.unknown_pairs:,} labelled pairs are in no outcome file; they count "
            "for the agreement of people only"
        )
    return tuple(notes)
