"""What people's labels on a sample say about a judge on everything: the report of `dikast audit`.

Reads one run and its labels into columns, weights each labelled pair by one over its probability,
and computes agreement, the correction of win rates and accuracy, the people's agreement with
themselves and whether the judge is able enough. A pair without a verdict is not in the numbers;
it is counted with its reason.
"""

from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from dikast.analysis import kappa
from dikast.analysis.audit_checks import AgainstPeople, Check, checks_of
from dikast.analysis.audit_people import Annotator, annotators_of
from dikast.analysis.audit_rows import LabelEntry, latest
from dikast.analysis.audit_sample import error_chance
from dikast.analysis.counting import TIE_RULES, Counting, Mask, Number, Options, hits_by_rule, wide
from dikast.analysis.intervals import Floats, Ints, share_interval
from dikast.analysis.kappa import summed
from dikast.analysis.people import People, among_people
from dikast.analysis.prediction_powered import (
    Corrected,
    PassRate,
    corrected_mean,
    rogan_gladen,
)
from dikast.analysis.ratings import CODE, NONE, Ratings, Run
from dikast.analysis.rows import LabelRow, read_outcomes
from dikast.engine.errors import InputError


class StratumReport(msgspec.Struct, frozen=True):
    """One stratum: its pairs, those drawn (None where the labels do not say), agreement in it."""

    name: str
    pairs: int | None
    drawn: int | None
    labelled: int
    agreement: Number


class Rate(msgspec.Struct, frozen=True):
    """The win rate of one model (or of response_a), a tie counting half."""

    name: str
    rate: Corrected


class Report(msgspec.Struct, frozen=True):
    """All of `dikast audit report`. `pairs` have a verdict, `labelled` of them a label; the rest
    of the outcomes are in `missing` by reason. `agreement` and the coefficients are weighted.
    """

    run: str
    pairs: int
    missing: dict[str, int]
    labelled: int
    votes: int
    skipped: int
    unlabelled: int
    effective_n: float
    probability_low: float
    probability_high: float
    level: float
    draws: int
    seed: int
    label_rule: str
    tie_rule: str
    agreement: dict[str, Number]
    kappa: Number
    gwet_ac1: Number
    krippendorff_alpha: Number
    strata: tuple[StratumReport, ...]
    annotators: tuple[Annotator, ...]
    people: People | None
    against_people: AgainstPeople | None
    accuracy: Corrected
    win_rates: tuple[Rate, ...]
    pass_rate: PassRate
    checks: tuple[Check, ...]
    min_agreement: float | None
    passed: bool | None
    notes: tuple[str, ...]


class Audit(NamedTuple):
    """A run and its labels in columns. `chance` is each pair's probability, NaN where unknown."""

    ratings: Ratings
    run: Run
    entries: list[LabelEntry]
    chance: Floats
    stratum: Ints
    strata: list[str]
    stratum_pairs: list[int | None]
    drawn: list[int | None]
    confidence: Floats
    no_chance: int


def read_audit(outcomes: str, labels: Sequence[str], cluster: str | None = None) -> Audit:
    """Read a run and the labels of people on a sample of it.

    Raises:
        InputError: a file cannot be read, or there is no label in any.
    """
    ratings = Ratings(cluster)
    run = ratings.read_run(outcomes)
    entries = [entry for path in labels for entry in latest(path)]
    first = [each for each in entries if each.label is not None and not each.repeat]
    if not first:
        why = (
            "holds decisions to keep or drop and no comparison; they are for the benchmark that "
            "asked for them"
            if any(each.decision for each in entries)
            else "holds no label; a row has pair_id and label (docs/audit.md)"
        )
        raise InputError(why, file=", ".join(labels))
    for each in first:
        assert each.label is not None
        ratings.take_label(LabelRow(each.pair_id, each.annotator, each.label))
    if any(each.inclusion_probability is not None for each in first):
        known = [each for each in first if each.inclusion_probability is not None]
    else:  # no design at all: every pair had the same chance
        known = [msgspec.structs.replace(each, inclusion_probability=1.0) for each in first]
    return Audit(
        ratings, run, entries, *_design(ratings, known), _confidence(outcomes, ratings),
        len({each.pair_id for each in first}) - len({each.pair_id for each in known}),
    )  # fmt: skip


def _design(
    ratings: Ratings, entries: Sequence[LabelEntry]
) -> tuple[Floats, Ints, list[str], list[int | None], list[int | None]]:
    """Probabilities and strata of the labelled pairs."""
    chance: Floats = np.full(len(ratings), np.nan)
    stratum = np.full(len(ratings), -1, dtype=np.int64)
    names: dict[str, int] = {}
    sizes: list[int | None] = []
    drawn: list[int | None] = []
    for each in entries:
        pair = ratings.find(each.pair_id)
        assert pair is not None
        assert each.inclusion_probability is not None
        code = names.setdefault(each.stratum or "all", len(names))
        if code == len(sizes):
            size = each.stratum_pairs
            sizes.append(size)
            drawn.append(None if size is None else round(size * each.inclusion_probability))
        chance[pair], stratum[pair] = each.inclusion_probability, code
    return chance, stratum, list(names), sizes, drawn


def _confidence(path: str, ratings: Ratings) -> Floats:
    """(pairs,) how likely each outcome is right by its own signs, NaN where it has none."""
    found = array("d", [np.nan]) * len(ratings)
    for row in read_outcomes(path):
        pair = ratings.find(row.id)
        doubt = error_chance(row, clip=False) if row.missing is None else None
        if pair is not None and doubt is not None and np.isnan(found[pair]):
            found[pair] = 1 - doubt
    return np.array(found, dtype=np.float64)


def report(
    audit: Audit,
    options: Options,
    *,
    min_agreement: float | None = None,
    ranking: Mapping[str, tuple[float, float, float]] | None = None,
    judges: Sequence[str] = (),
) -> Report:
    """Compute the whole report.

    Args:
        audit: what was read.
        options: level, seed, rules.
        min_agreement: the smallest agreement (by the tie rule) that passes the gate.
        ranking: rating, low and high of models, to see whether the judge is outranked.
        judges: models behind the judge, besides the names in the votes.

    Raises:
        InputError: no labelled pair has a verdict, or the labels are of several samples.
    """
    ratings, run = audit.ratings, audit.run
    said, truth = wide(run.results(len(ratings))), wide(ratings.truth(options.label_rule))
    judged = said != NONE
    seen = judged & (truth != NONE) & ~np.isnan(audit.chance)
    if not np.any(seen):
        raise InputError(
            "no labelled pair has a verdict in it and a label that the rule of "
            f"{options.label_rule} gives; are these labels of this run?",
            file=run.path,
        )
    _one_sample(audit, seen, int(np.count_nonzero(judged)))
    chance = _answered(audit, seen)
    count = Counting(ratings.clusters, options)
    weights = np.where(seen, 1 / np.where(seen, chance, 1.0), 0.0)
    weights *= np.count_nonzero(seen) / weights.sum()
    sample = _Sample(count, said[seen], truth[seen], weights[seen], count.clusters[seen])
    agreement = {rule: sample.agreement(rule) for rule in TIE_RULES}
    people = among_people(ratings, count, ratings.truth(options.label_rule))
    against = _against_people(ratings, count, said, seen, weights)
    value = agreement[options.tie_rule].value
    return Report(
        run=run.name,
        pairs=int(np.count_nonzero(judged)),
        missing={name: number for name, number in run.missing.items() if number},
        labelled=int(np.count_nonzero(seen)),
        votes=len(ratings.people),
        skipped=sum(each.skipped and not each.repeat for each in audit.entries),
        unlabelled=_unlabelled(audit, seen),
        effective_n=_kish(weights[seen]),
        probability_low=float(audit.chance[seen].min()),
        probability_high=float(audit.chance[seen].max()),
        level=options.level,
        draws=options.draws,
        seed=options.seed,
        label_rule=options.label_rule,
        tie_rule=options.tie_rule,
        agreement=agreement,
        kappa=sample.coefficient("kappa"),
        gwet_ac1=sample.coefficient("gwet_ac1"),
        krippendorff_alpha=sample.alpha(),
        strata=_strata(audit, count, said, truth, seen, options),
        annotators=annotators_of(audit.entries, options.level),
        people=people if people.pairs_with_two_votes else None,
        against_people=against,
        accuracy=_accuracy(audit, said, truth, seen, judged, chance, count),
        win_rates=_win_rates(audit, said, judged, chance, count),
        pass_rate=_passes(said, truth, seen, judged, chance, count),
        checks=checks_of(
            agreement[options.tie_rule],
            sample.over_constant(),
            against,
            min_agreement,
            ranking,
            {*run.judges, *judges},
            ratings.models.names,
        ),
        min_agreement=min_agreement,
        passed=None if min_agreement is None else value is not None and value >= min_agreement,
        notes=_notes(audit, seen, judged),
    )


class _Sample(NamedTuple):
    """The labelled pairs, weighted; weights have mean 1."""

    counting: Counting
    said: Ints
    truth: Ints
    weights: Floats
    clusters: Ints

    def agreement(self, rule: str) -> Number:
        """Weighted agreement by a tie rule."""
        used, hits = hits_by_rule(rule, self.said, self.truth)
        return _share(self.counting, hits[used], self.weights[used], self.clusters[used])

    def coefficient(self, name: str) -> Number:
        """Weighted agreement beyond chance."""
        rows = kappa.confusion_rows(self.truth, self.said, 3) * self.weights[:, None]
        statistic = kappa.cohen if name == "kappa" else kappa.gwet_of_two
        return self.counting.estimate(rows, statistic, self.clusters)

    def alpha(self) -> Number:
        """Weighted Krippendorff's alpha (nominal) of the judge and the label as two raters."""
        counts = np.zeros((len(self.said), 3))
        for codes in (self.said, self.truth):
            counts[np.arange(len(codes)), codes] += 1
        chosen = kappa.krippendorff("nominal")
        rows = chosen.features(counts) * self.weights[:, None]
        return self.counting.estimate(rows, chosen.statistic, self.clusters)

    def over_constant(self) -> Number:
        """How much more often the judge is right than always the commonest label."""
        hits = (self.said == self.truth)[:, None]
        labels = self.truth[:, None] == np.arange(3)[None, :]
        rows = np.hstack([hits, labels]) * self.weights[:, None]
        return self.counting.estimate(
            rows, lambda sums: (sums[:, 0] - sums[:, 1:].max(axis=1)) / sums[:, 1:].sum(axis=1),
            self.clusters,
        )  # fmt: skip


def _share(count: Counting, hits: Floats, weights: Floats, clusters: Ints) -> Number:
    if not len(hits):
        return Number(0, None)
    sums = summed(np.column_stack([hits * weights, weights]), clusters)
    options = count.options
    interval = share_interval(
        sums[:, 0], sums[:, 1], seed=options.seed, draws=options.draws, level=options.level
    )
    return Number(len(hits), float(sums[:, 0].sum() / sums[:, 1].sum()), interval)


def _against_people(
    ratings: Ratings, count: Counting, said: Ints, seen: Mask, weights: Floats
) -> AgainstPeople | None:
    """On pairs with two votes or more: the judge and a person, two people, and the difference."""
    votes = ratings.people.counts(len(ratings))
    total = votes.sum(axis=1)
    both = seen & (total > 1)
    if not np.any(both):
        return None
    kept, n, w = votes[both], total[both], weights[both]
    judge = kept[np.arange(len(kept)), said[both]] / n
    people = (kept * (kept - 1)).sum(axis=1) / (n * (n - 1))
    rows, clusters = np.column_stack([judge * w, people * w, w]), count.clusters[both]
    return AgainstPeople(
        _share(count, judge, w, clusters),
        _share(count, people, w, clusters),
        count.estimate(rows, lambda sums: (sums[:, 0] - sums[:, 1]) / sums[:, 2], clusters),
    )


def _answered(audit: Audit, seen: Mask) -> Floats:
    """Probability of being drawn and answered: in a stratum, answers over pairs where both are
    known. Drawn pairs without an answer are taken to be like the others of their stratum."""
    chance = audit.chance.copy()
    for code, size in enumerate(audit.stratum_pairs):
        mine = seen & (audit.stratum == code)
        if size and np.any(mine):
            chance[mine] = min(1.0, float(np.count_nonzero(mine)) / size)
    return chance


def _unlabelled(audit: Audit, seen: Mask) -> int:
    drawn = sum(each or 0 for each in audit.drawn)
    return max(0, drawn - int(np.count_nonzero(seen))) if drawn else 0


def _covered(audit: Audit, seen: Mask) -> int | None:
    """How many pairs the strata with a label have; None where the labels do not say."""
    codes = {int(code) for code in audit.stratum[seen]}
    sizes = [audit.stratum_pairs[code] for code in codes]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _one_sample(audit: Audit, seen: Mask, pairs: int) -> None:
    covered = _covered(audit, seen)
    if covered is not None and covered > pairs:
        raise InputError(
            f"the strata of the labels hold {covered:,} pairs and the run has {pairs:,} with a "
            "verdict: these are labels of several samples, or of another run; report on one "
            "sample at a time",
            file=audit.run.path,
        )


def _kish(weights: Floats) -> float:
    return float(weights.sum() ** 2 / (weights @ weights))


def _strata(
    audit: Audit, count: Counting, said: Ints, truth: Ints, seen: Mask, options: Options
) -> tuple[StratumReport, ...]:
    if len(audit.strata) < 2:
        return ()
    found: list[StratumReport] = []
    for code, name in enumerate(audit.strata):
        mine = seen & (audit.stratum == code)
        used, hits = hits_by_rule(options.tie_rule, said[mine], truth[mine])
        share = count.share(hits[used], count.clusters[mine][used])
        labelled = int(np.count_nonzero(mine))
        found.append(
            StratumReport(name, audit.stratum_pairs[code], audit.drawn[code], labelled, share)
        )
    return tuple(sorted(found, key=lambda each: each.name))


def _accuracy(
    audit: Audit,
    said: Ints,
    truth: Ints,
    seen: Mask,
    judged: Mask,
    chance: Floats,
    count: Counting,
) -> Corrected:
    """Accuracy of all verdicts (three-way); the judge's own confidence is the prediction."""
    confidence = audit.confidence[judged]
    known = ~np.isnan(confidence)
    filled = np.where(known, confidence, confidence[known].mean() if np.any(known) else 0.0)
    right = np.where(seen, (said == truth).astype(np.float64), np.nan)[judged]
    return corrected_mean(
        filled, right, chance[judged], count.clusters[judged], level=count.options.level
    )


def _win_rates(
    audit: Audit, said: Ints, judged: Mask, chance: Floats, count: Counting
) -> tuple[Rate, ...]:
    """Of every model, or of response_a where models have no names; people's votes are averaged."""
    ratings = audit.ratings
    votes = ratings.people.counts(len(ratings))
    total = votes.sum(axis=1)
    shares = (votes[:, CODE["A"]] + votes[:, CODE["tie"]] / 2) / np.where(total > 0, total, 1.0)
    labels = np.where((total > 0) & ~np.isnan(chance), shares, np.nan)
    judge = 1 - said / 2
    names = ratings.models.names
    a, b = ratings.model_a, ratings.model_b

    def rate(name: str, mine: Mask, as_b: Mask) -> Rate:
        f, y = np.where(as_b, 1 - judge, judge)[mine], np.where(as_b, 1 - labels, labels)[mine]
        level = count.options.level
        return Rate(name, corrected_mean(f, y, chance[mine], count.clusters[mine], level=level))

    if not names:
        return (rate("response_a", judged, np.zeros_like(judged)),)
    rates = [
        rate(name, judged & ((a == code) | (b == code)) & (a != b), b == code)
        for code, name in enumerate(names)
    ]
    rates.sort(key=lambda each: -1.0 if each.rate.value is None else each.rate.value, reverse=True)
    return tuple(rates)


def _passes(
    said: Ints, truth: Ints, seen: Mask, judged: Mask, chance: Floats, count: Counting
) -> PassRate:
    """The share of pairs that response_a wins outright."""
    return rogan_gladen(
        (said == CODE["A"])[judged].astype(np.float64),
        np.where(seen, (truth == CODE["A"]).astype(np.float64), np.nan)[judged],
        chance[judged],
        count.clusters[judged],
        level=count.options.level,
    )


def _notes(audit: Audit, seen: Mask, judged: Mask) -> tuple[str, ...]:
    ratings, notes = audit.ratings, list[str]()
    pairs, labelled = int(np.count_nonzero(judged)), int(np.count_nonzero(seen))
    voted = ratings.people.counts(len(ratings)).sum(axis=1) > 0
    unknown = ratings.people.unknown_pairs
    verdictless = int(np.count_nonzero(voted & ~judged)) - unknown
    split = int(np.count_nonzero(voted & judged & ~np.isnan(audit.chance))) - labelled
    told = [
        (unknown, "labelled pairs are in no outcome and are left out"),
        (verdictless, "labelled pairs have no verdict and are left out"),
        (split, "labelled pairs have votes but no label by the label rule; they count in win "
                "rates only"),
        (audit.no_chance, "labelled pairs carry no inclusion probability and are left out"),
        (audit.run.simulated, "outcomes are simulated"),
        (audit.run.repeated, "lines of the run repeat an id; the first that did not fail counts"),
    ]  # fmt: skip
    notes += [f"{number:,} {what}" for number, what in told if number > 0]
    if not any(each.inclusion_probability is not None for each in audit.entries):
        notes.append(
            "the labels carry no inclusion probability: every pair is taken to have had the same "
            "chance to be labelled; if that is not so, all numbers are biased"
        )
    covered = _covered(audit, seen)
    if covered is not None and covered < pairs:
        notes.append(
            f"{pairs - covered:,} pairs are in strata without a label, or were judged after the "
            "sample was drawn; no number speaks for them"
        )
    if not ratings.clustered:
        notes.append(
            "no pair names its prompt (meta.question_id), so each is taken as a prompt of its "
            "own; if several share one, give --cluster FIELD or the intervals are too narrow"
        )
    return tuple(notes)
