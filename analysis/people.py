"""People against people, and judges against every single vote of people.

The ceiling of a judge: how often two people who saw the same pair said the same. Counts from the
votes in `Ratings`; part of the report of `dikast agree`.
"""

from typing import Final

import msgspec
import numpy as np

from dikast.analysis import kappa
from dikast.analysis.counting import LOST, TIE, Counting, Mask, Number, wide
from dikast.analysis.intervals import Ints
from dikast.analysis.ratings import NONE, Codes, Ratings

_ANNOTATOR_PAIRS_MAX: Final = 45
_SHARED_MIN: Final = 10


class WithVotes(msgspec.Struct, frozen=True):
    """One rater against every single vote of people; `no_ties` leaves out both sides' ties."""

    rater: str
    agreement: Number
    kappa: Number
    agreement_no_ties: Number
    kappa_no_ties: Number


class AnnotatorPair(msgspec.Struct, frozen=True):
    """Two annotators on the pairs both labelled."""

    first: str
    second: str
    agreement: Number
    kappa: Number


class People(msgspec.Struct, frozen=True):
    """Agreement of people among themselves: the ceiling for a judge.

    `comparisons` are pairs of votes on one pair of answers. `annotator_pairs` are those with at
    least 10 shared pairs, the most shared first.
    """

    annotators: int
    votes: int
    pairs: int
    pairs_with_two_votes: int
    no_majority: int
    comparisons: Number
    kappa: Number
    comparisons_no_ties: Number
    kappa_no_ties: Number
    coefficients: dict[str, Number]
    annotator_pairs: tuple[AnnotatorPair, ...]


def with_votes(
    ratings: Ratings, raters: list[tuple[str, Codes, Mask]], count: Counting
) -> tuple[WithVotes, ...]:
    people = ratings.people
    if not len(people):
        return ()
    wrong = count.options.missing == "wrong"
    found: list[WithVotes] = []
    for name, codes, present in raters:
        said = wide(codes[people.pairs])
        judged = present[people.pairs] & ((said != NONE) | wrong)
        said = np.where(said == NONE, LOST, said)[judged]
        truth = people.codes[judged]
        if not len(said):
            continue
        clusters = count.clusters[people.pairs[judged]]
        decided = (said != TIE) & (said != LOST) & (truth != TIE)
        found.append(WithVotes(name, *count.compared(truth, said, clusters, decided)))
    return tuple(found)


def among_people(ratings: Ratings, count: Counting, labels: Codes) -> People:
    people = ratings.people
    counts = people.counts(len(ratings))
    total = counts.sum(axis=1)
    pairs, first, second, who_one, who_two = _vote_pairs(people.pairs, people.codes, people.who)
    decided = (first != TIE) & (second != TIE)
    compared = count.compared(first, second, count.clusters[pairs], decided)
    return People(
        annotators=len(people.annotators.names),
        votes=len(people),
        pairs=int(np.count_nonzero(total > 0)),
        pairs_with_two_votes=int(np.count_nonzero(total > 1)),
        no_majority=int(np.count_nonzero((total > 0) & (labels == NONE))),
        comparisons=compared[0],
        kappa=compared[1],
        comparisons_no_ties=compared[2],
        kappa_no_ties=compared[3],
        coefficients=count.coefficients(counts),
        annotator_pairs=_annotator_pairs(
            people.annotators.names, pairs, first, second, who_one, who_two, count
        ),
    )


def _vote_pairs(pairs: Ints, codes: Ints, who: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Every two votes on one pair: pair, code and annotator of the earlier and the later."""
    order = np.argsort(pairs, kind="stable")
    pairs, codes, who = pairs[order], codes[order], who[order]
    lefts: list[Ints] = []
    rights: list[Ints] = []
    most = int(np.bincount(pairs).max()) if len(pairs) else 0
    for gap in range(1, most):
        at = np.flatnonzero(pairs[:-gap] == pairs[gap:])
        lefts.append(at)
        rights.append(at + gap)
    left = np.concatenate(lefts) if lefts else np.zeros(0, dtype=np.int64)
    right = np.concatenate(rights) if rights else np.zeros(0, dtype=np.int64)
    return pairs[left], codes[left], codes[right], who[left], who[right]


def _annotator_pairs(
    names: list[str], pairs: Ints, first: Ints, second: Ints, one: Ints, two: Ints, count: Counting
) -> tuple[AnnotatorPair, ...]:
    """Two named annotators at a time, each always on the same side."""
    turned = one > two
    left, right = np.where(turned, two, one), np.where(turned, one, two)
    said, heard = np.where(turned, second, first), np.where(turned, first, second)
    keys = np.where(left == right, -1, left * len(names) + right)
    found, shared = np.unique(keys[keys >= 0], return_counts=True)
    chosen = [(int(key), int(n)) for key, n in zip(found, shared, strict=True) if n >= _SHARED_MIN]
    chosen.sort(key=lambda each: (-each[1], each[0]))
    result: list[AnnotatorPair] = []
    for key, _ in chosen[:_ANNOTATOR_PAIRS_MAX]:
        mine = keys == key
        rows = kappa.confusion_rows(said[mine], heard[mine], 3)
        clusters = count.clusters[pairs[mine]]
        result.append(
            AnnotatorPair(
                names[key // len(names)],
                names[key % len(names)],
                count.estimate(rows, kappa.agreement, clusters),
                count.estimate(rows, kappa.cohen, clusters),
            )
        )
    return tuple(result)
