"""`dikast preferences evaluate`: profiles on labels they were not fitted on.

The pairs of a profile's own prompts are taken out before anything is asked. The plain judge and
every preference that votes are asked in both orders; the figures are computed in
`dikast.analysis.preferences_evaluation`.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from dikast import status
from dikast.analysis.preferences_evaluation import (
    Ablation,
    Ceiling,
    Items,
    Measured,
    Transfer,
    ablations,
    ceilings,
    measure,
    transfer,
)
from dikast.analysis.preferences_votes import Estimate, Matrix, group_numbers, paired, right, voted
from dikast.commands.preferences_calls import Setup, open_calls, read_book
from dikast.commands.preferences_files import Cell, load_votes, store_beside, votes_beside
from dikast.commands.preferences_fit import PLAIN, signs_of
from dikast.commands.preferences_tables import evaluation_tables
from dikast.commands.reporting import drawn
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.model import Pair
from dikast.engine.ports import Strategy
from dikast.strategies.preferences import (
    CellPicks,
    Entry,
    LabelBook,
    Labelled,
    Preference,
    Profile,
    load_profile,
    preference_judge,
    preferences_text,
)
from dikast.tables import As

NO_ENTRY = Entry(use="plain")


class Evaluated(NamedTuple):
    """A profile with its held-out labels and the picks for them, by pair and column."""

    path: Path
    profile: Profile
    held_out: list[Labelled]
    on_development: int
    picks: dict[tuple[str, str], CellPicks]

    def items(self, labels: Sequence[Labelled], entry: Entry | None = None) -> Items:
        """Some of the labels as arrays; `entry` judges instead of the one of the topic."""
        chosen, cast, uses = [], [], []
        for each in labels:
            mine = entry or self.profile.entry_for(each.topic) or NO_ENTRY
            voting = mine.voting()
            picks = np.array(
                [[self.of(each, column_of(mine, one)) for one in voting]], np.int8
            ).reshape(1, len(voting), 2)
            weights = np.array([one.share for one in voting], np.float64)
            chosen.append(voted(picks, weights)[0])
            cast.append((picks != 0).any(axis=1)[0])
            uses.append(mine.use == "preferences")
        count = len(labels)
        return Items(
            labels=np.array([1 if each.winner == "A" else -1 for each in labels], np.int8),
            groups=group_numbers([each.group for each in labels]),
            plain=np.array([self.of(each, PLAIN) for each in labels], np.int8).reshape(count, 2),
            chosen=np.array(chosen, np.int8).reshape(count, 2),
            cast=np.array(cast, np.bool_).reshape(count, 2),
            uses=np.array(uses, np.bool_),
        )

    def of(self, each: Labelled, column: str) -> tuple[int, int]:
        """The picks of one cell as signs."""
        return signs_of(self.picks.get((each.pair.id, column)))


def column_of(entry: Entry, preference: Preference) -> str:
    """The name of a preference among all entries."""
    return f"{entry.topic}\x1f{preference.id}"


async def run(args: argparse.Namespace) -> int:
    """Measure; see `dikast preferences evaluate --help`.

    Raises:
        InputError: labels or votes cannot be read, or the judge gave too few verdicts.
        ConfigError: a profile cannot be used.
        RunStopped: budget, quota, key, store or a signal; the same command resumes.
    """
    setup = Setup(args)
    book = await read_book(args)
    jobs: list[tuple[Evaluated, dict[str, tuple[Pair, Strategy]], dict[str, tuple[str, str]]]] = []
    for path in dict.fromkeys(args.profile):
        found = held_out_of(Path(path), load_profile(path), book, args.limit)
        if found.profile.judge.model != setup.judge.model:
            raise ConfigError(
                f"{path} was fitted with the model {found.profile.judge.model!r}, and the judge is "
                f"{setup.judge.model!r}; evaluate it with its own"
            )
        jobs.append((found, *cells_of(found, setup, args)))
    if args.dry_run:
        for found, cells, _ in jobs:
            print(
                f"{found.path}: {len(found.held_out)} held-out pairs, "
                f"{found.on_development} on development prompts left out, "
                f"{2 * len(cells):,} judge calls"
            )
        print(f"in all: {sum(2 * len(c) for _, c, _ in jobs):,} calls at most; nothing was asked")
        return status.OK
    done: list[Evaluated] = []
    for found, cells, columns in jobs:
        if not args.quiet:
            print(f"dikast: evaluating {found.path}", file=sys.stderr, flush=True)
        async with open_calls(setup, args, store_beside(found.path)) as calls:
            picks = await calls.cells(cells, columns)
        done.append(found._replace(picks={(p.pair, p.column): p for p in picks.values()}))
    return _tell(args, done, book, setup.seed)


def held_out_of(path: Path, profile: Profile, book: LabelBook, limit: int | None) -> Evaluated:
    """The labels of a profile's person on prompts that none of its entries was fitted on.

    Raises:
        InputError: there are none.
    """
    labels = book.people.get(profile.person)
    if labels is None:
        raise InputError(f"{path}: nobody called {profile.person!r} has labelled a pair")
    known = {prompt for entry in profile.entries for prompt in entry.prompts}
    pairs = {pair for entry in profile.entries for pair in entry.development}
    fresh = [e for e in labels.labels if e.group not in known and e.pair.id not in pairs]
    if not fresh:
        raise InputError(
            f"{path}: all {len(labels.labels)} labels are on prompts the profile was fitted on; "
            "label other prompts, or fit with a smaller --development"
        )
    return Evaluated(path, profile, fresh[:limit], len(labels.labels) - len(fresh), {})


def cells_of(
    found: Evaluated, setup: Setup, args: argparse.Namespace
) -> tuple[dict[str, tuple[Pair, Strategy]], dict[str, tuple[str, str]]]:
    """What has to be judged: pair and wording by name, pair id and column by the same name."""
    plain = preference_judge(setup.judge, setup.templates, seed=setup.seed)
    strategies: dict[str, Strategy] = {PLAIN: plain}
    wanted: dict[str, list[str]] = {}
    for entry in found.profile.entries:
        asked = entry.voting()
        if args.ablations:
            asked = tuple(one for one in entry.preferences if not one.deleted)
        for one in asked:
            strategies[column_of(entry, one)] = preference_judge(
                setup.judge, setup.templates, seed=setup.seed, preferences=preferences_text([one])
            )
        wanted[entry.topic] = [column_of(entry, one) for one in asked]
    cells: dict[str, tuple[Pair, Strategy]] = {}
    columns: dict[str, tuple[str, str]] = {}
    for each in found.held_out:
        mine = found.profile.entry_for(each.topic)
        own = wanted.get(mine.topic, []) if mine is not None else []
        if args.transfer:
            own = [column for columns_ in wanted.values() for column in columns_]
        for column in (PLAIN, *own):
            name = f"{each.pair.id}\x1f{column}"
            cells[name] = each.pair, strategies[column]
            columns[name] = each.pair.id, column
    return cells, columns


def _tell(args: argparse.Namespace, done: Sequence[Evaluated], book: LabelBook, seed: int) -> int:
    measured: list[Measured] = []
    moved: list[Transfer] = []
    changed: dict[str, list[Ablation]] = {}
    for found in done:
        name = found.profile.person if len(done) == len(_people(done)) else str(found.path)
        measured.append(measure(name, "all", found.items(found.held_out), seed=seed))
        for topic, labels in _by_topic(found.held_out).items():
            if len(_by_topic(found.held_out)) > 1:
                measured.append(measure(name, topic, found.items(labels), seed=seed))
            if args.transfer:
                for entry in found.profile.entries:
                    if entry.voting():
                        items = found.items(labels, entry)
                        moved.append(transfer(name, entry.topic, topic, items, seed=seed))
        if args.ablations:
            changed[name] = _ablations(found, seed)
    people = _ceilings(book, {found.profile.person for found in done})
    between = _between(done, seed)
    left_out = {
        str(found.path): {"held_out": len(found.held_out), "on_development": found.on_development}
        for found in done
    }
    report: dict[str, Any] = {
        "measured": msgspec.to_builtins(measured),
        "people": msgspec.to_builtins(people),
        "transfer": msgspec.to_builtins(moved),
        "ablations": msgspec.to_builtins(changed),
        "profiles_compared": [
            {"first": a, "second": b, "difference": msgspec.to_builtins(gain)}
            for a, b, gain in between
        ],
        "pairs": left_out,
    }
    as_: As = "json" if args.json else "md" if args.md else "terminal"
    tables = evaluation_tables(measured, people, moved, changed, between, left_out)
    print(drawn(tables, as_, report), end="")
    return status.OK


def _people(done: Sequence[Evaluated]) -> set[str]:
    return {found.profile.person for found in done}


def _by_topic(labels: Sequence[Labelled]) -> dict[str, list[Labelled]]:
    out: dict[str, list[Labelled]] = defaultdict(list)
    for each in labels:
        out[each.topic].append(each)
    return {topic: out[topic] for topic in sorted(out)}


def _ablations(found: Evaluated, seed: int) -> list[Ablation]:
    """Other rules and fewer labels, for the first entry that was fitted on pairs."""
    cells = load_votes(votes_beside(found.path))
    out: list[Ablation] = []
    for entry in found.profile.entries:
        single = [p for p in entry.preferences if len(p.sources) == 1 and not p.deleted]
        order = [p for pair in entry.development for p in single if p.sources == (pair,)]
        labels = [
            e for e in found.held_out if (found.profile.entry_for(e.topic) or NO_ENTRY) == entry
        ]
        if not order or not labels:
            continue
        development = _development(entry, order, [c for c in cells if c.topic == entry.topic])
        picks = np.array(
            [[found.of(each, column_of(entry, one)) for one in order] for each in labels], np.int8
        )
        out += ablations(development, picks, found.items(labels), seed=seed)
    return out


def _development(entry: Entry, order: Sequence[Preference], cells: Sequence[Cell]) -> Matrix:
    """The votes of the fit as a matrix, preferences in the order of their pairs."""
    signs = {"A": 1, "B": -1, "none": 0}
    table = {(c.pair, c.column): (signs[c.ab], signs[c.ba]) for c in cells}
    about: Mapping[str, Cell] = {c.pair: c for c in cells}
    pairs = [pair for pair in entry.development if pair in about]
    groups = group_numbers([about[pair].prompt for pair in pairs])
    number = {pair: int(group) for pair, group in zip(pairs, groups, strict=True)}
    return Matrix(
        picks=np.array([[table.get((p, one.id), (0, 0)) for one in order] for p in pairs], np.int8),
        labels=np.array([signs[about[pair].label] for pair in pairs], np.int8),
        groups=groups,
        sources=tuple(frozenset({number[one.sources[0]]}) for one in order),
    )


def _ceilings(book: LabelBook, wanted: set[str]) -> list[Ceiling]:
    """Agreement of each wanted person with all others of the book."""
    labels: dict[str, dict[str, int]] = {}
    prompts: dict[str, str] = {}
    for person, own in book.people.items():
        labels[person] = {e.pair.id: 1 if e.winner == "A" else -1 for e in own.labels}
        prompts.update({e.pair.id: e.group for e in own.labels})
    numbers = group_numbers(list(prompts.values()))
    groups = {pair: int(number) for pair, number in zip(prompts, numbers, strict=True)}
    return ceilings(labels, groups, sorted(wanted))


def _between(done: Sequence[Evaluated], seed: int) -> list[tuple[str, str, Estimate]]:
    """Profiles of the same person (another writer, other labels) on the pairs both may judge."""
    out: list[tuple[str, str, Estimate]] = []
    for at, first in enumerate(done):
        for second in done[at + 1 :]:
            if first.profile.person != second.profile.person:
                continue
            ids = {each.pair.id for each in second.held_out}
            labels = [each for each in first.held_out if each.pair.id in ids]
            scores = []
            for found in (first, second):
                items = found.items(labels)
                scores.append(right(items.chosen, items.labels, items.cast))
            groups = group_numbers([each.group for each in labels])
            gain = paired(scores[0], scores[1], groups, seed)
            out.append((str(first.path), str(second.path), gain))
    return out
