"""How a profile does on labels it never saw: by person, by topic, across topics, beside people.

After the evaluation's calls. Every comparison is on the pairs that both sides have. Development
prompts are taken out before anything is asked; this module only counts what it is given.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from dikast.analysis.preferences_report import Arm, arm_of
from dikast.analysis.preferences_selection import chooser, select
from dikast.analysis.preferences_votes import (
    Estimate,
    Floats,
    Ints,
    Matrix,
    Signs,
    check_read,
    mean_of,
    paired,
    right,
    voted,
)

PLAIN_ARM, PROFILE_ARM, SET_ARM = "plain judge", "profile as it stands", "its preferences"


class Items(NamedTuple):
    """The held-out labels of one profile, with what was picked for them.

    `labels`: (pairs,). `groups`: (pairs,) numbers of the prompts. `plain`: (pairs, 2) picks of
    the plain judge. `chosen`: (pairs, 2) verdicts of the voting preferences. `cast`: (pairs, 2),
    whether any of them gave a pick. `uses`: (pairs,) whether the profile lets them judge.
    """

    labels: Signs
    groups: Ints
    plain: Signs
    chosen: Signs
    cast: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    uses: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


class Measured(msgspec.Struct, frozen=True):
    """One person, or one topic of one person."""

    person: str
    topic: str
    arms: tuple[Arm, ...]


def measure(person: str, topic: str, items: Items, *, seed: int) -> Measured:
    """The arms of one person or topic, on the same pairs.

    Raises:
        InputError: too many of the judge's answers gave no verdict.
    """
    check_read(items.plain, f"{person}: the plain judge")
    deployed = np.where(items.uses[:, None], items.chosen, items.plain).astype(np.int8)
    cast = np.where(items.uses[:, None], items.cast, items.plain != 0)
    base = right(items.plain, items.labels, items.plain != 0)
    arms = [arm_of(PLAIN_ARM, items.plain, items.labels, items.groups, seed=seed)]
    for name, picks, read in (
        (PROFILE_ARM, deployed, cast),
        (SET_ARM, items.chosen, items.cast),
    ):
        arms.append(
            arm_of(name, picks, items.labels, items.groups, seed=seed, base=base, cast=read)
        )
    return Measured(person=person, topic=topic, arms=tuple(arms))


class Ceiling(msgspec.Struct, frozen=True):
    """How often other people took the same answer as this person, on the same pairs."""

    person: str
    agreement: Estimate


def ceilings(
    labels: Mapping[str, Mapping[str, int]], groups: Mapping[str, int], wanted: Iterable[str]
) -> list[Ceiling]:
    """Human agreement: for each person, the mean over pairs of the share of others who agree.

    Args:
        labels: for each person, +1 or -1 by pair; ties are not there.
        groups: number of the prompt by pair.
        wanted: the people whose agreement with all others is asked for.
    """
    votes: dict[str, list[int]] = {}
    for own in labels.values():
        for pair, label in own.items():
            votes.setdefault(pair, []).append(label)
    out: list[Ceiling] = []
    for person in wanted:
        own = labels[person]
        pairs = sorted(own)
        values = np.array([_agreeing(own[pair], votes[pair]) for pair in pairs], np.float64)
        numbers = np.array([groups[pair] for pair in pairs], np.int64)
        out.append(Ceiling(person, mean_of(values, numbers, 0)))
    return out


def _agreeing(own: int, votes: Sequence[int]) -> float:
    """The share of the other votes that agree with one; NaN where nobody else voted."""
    others = len(votes) - 1
    return (votes.count(own) - 1) / others if others else float("nan")


class Ablation(msgspec.Struct, frozen=True):
    """Another rule, or fewer labels, on the same held-out pairs as the plain judge."""

    labels: int
    rule: str
    accuracy: Estimate
    gain: Estimate


def ablations(development: Matrix, held_out: Signs, items: Items, *, seed: int) -> list[Ablation]:
    """What other choices would have come to, computed from votes that are there.

    Args:
        development: votes of the preferences on the pairs they were written from, one
            preference a pair, in the same order.
        held_out: (pairs, preferences, 2) their votes on the held-out pairs.
        items: the held-out pairs.
        seed: of the bootstrap.
    """
    total = len(development.sources)
    base = right(items.plain, items.labels, items.plain != 0)
    out: list[Ablation] = []
    sizes = [n for n in (4, 8, 12) if n < total] + [total]
    for size in sizes:
        part = _first(development, size)
        for rule, weights in _rules(part).items():
            picks = voted(held_out[:, :size], weights)
            cast = (held_out[:, :size][:, weights > 0] != 0).any(axis=1)
            accuracy = right(picks, items.labels, cast)
            out.append(
                Ablation(
                    labels=size,
                    rule=rule,
                    accuracy=mean_of(accuracy, items.groups, seed),
                    gain=paired(accuracy, base, items.groups, seed),
                )
            )
    return out


def _first(matrix: Matrix, size: int) -> Matrix:
    """The first preferences, with the pairs they were written from."""
    seen = frozenset[int]().union(*matrix.sources[:size])
    rows = np.array([int(group) in seen for group in matrix.groups])
    return Matrix(
        picks=matrix.picks[rows][:, :size],
        labels=matrix.labels[rows],
        groups=matrix.groups[rows],
        sources=matrix.sources[:size],
    )


def _rules(matrix: Matrix) -> dict[str, Floats]:
    """Weights under each rule; a rule that can choose nothing is left away."""
    apart = chooser(matrix)
    inside = chooser(matrix, leave_one_out=False)
    chosen = {
        "best set, leave-one-out": select(apart),
        "best set, scored on its own pairs": select(inside),
        "share of the best sets": select(apart, weighted=True),
    }
    rules = {name: found.weights for name, found in chosen.items() if found is not None}
    single = apart.choose(matrix.labels, single=True)
    if single is not None:
        rules["best single preference"] = single.astype(np.float64)
    rules["all preferences vote"] = np.ones(len(matrix.sources))
    return rules


class Transfer(msgspec.Struct, frozen=True):
    """The entry of one topic on the pairs of another."""

    person: str
    entry: str
    topic: str
    accuracy: Estimate
    gain: Estimate


def transfer(person: str, entry: str, topic: str, items: Items, *, seed: int) -> Transfer:
    """Measure an entry's preferences on a topic's pairs, whatever the profile would use there."""
    accuracy = right(items.chosen, items.labels, items.cast)
    base = right(items.plain, items.labels, items.plain != 0)
    return Transfer(
        person=person,
        entry=entry,
        topic=topic,
        accuracy=mean_of(accuracy, items.groups, seed),
        gain=paired(accuracy, base, items.groups, seed),
    )
