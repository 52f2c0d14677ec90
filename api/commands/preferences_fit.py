"""`dikast preferences fit`: labels in, one profile a person out, with what it is worth.

For each person: labels are cut by prompt, a writer makes a sentence of every labelled pair, the
judge applies each sentence to every development pair in both orders, a set is chosen, and the
report beside the profile says whether that beats the plain judge. Composes; computes nothing.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from dikast import status
from dikast.analysis.preferences_report import FitReport, Measured, fit_report
from dikast.analysis.preferences_selection import Selection, chooser, select
from dikast.analysis.preferences_votes import Matrix, group_numbers
from dikast.commands.preferences_calls import Calls, Setup, open_calls, read_book
from dikast.commands.preferences_files import (
    Cell,
    keep_votes,
    make_folder,
    profile_path,
    store_path,
    votes_path,
    write_whole,
)
from dikast.commands.preferences_tables import fit_tables
from dikast.commands.reporting import drawn
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.files import check_output
from dikast.engine.model import Pair
from dikast.engine.ports import Strategy
from dikast.strategies.preferences import (
    WRITER_PROMPT,
    CellPicks,
    Entry,
    Example,
    Labelled,
    PersonLabels,
    Preference,
    Profile,
    Split,
    Written,
    WrittenWith,
    encode_profile,
    examples_text,
    load_profile,
    preference_judge,
    preferences_text,
    split_labels,
)
from dikast.tables import As

PLAIN, ONE_PROMPT, FEW_SHOT = "plain", "one_prompt", "few_shot"
ALL = "all"
"""Id of the preference that is written from all development pairs."""


class Topic(NamedTuple):
    """One entry to be fitted: its labels, and what an earlier profile says must stay."""

    name: str
    split: Split
    kept: tuple[Preference, ...]

    def fresh(self) -> list[tuple[str, Labelled]]:
        """Development pairs to write a preference from, each under the id it will have.

        Not those whose preference a person has pinned (it stays) or deleted (it is not wanted).
        """
        spoken_for = {source for each in self.kept for source in each.sources}
        taken = {each.id for each in self.kept}
        out: list[tuple[str, Labelled]] = []
        number = 0
        for each in self.split.development:
            if each.pair.id in spoken_for:
                continue
            number += 1
            while f"p{number}" in taken:
                number += 1
            out.append((f"p{number}", each))
        return out

    def writes_all(self) -> bool:
        """Whether a preference from all pairs is to be written."""
        return all(each.id != ALL for each in self.kept)


class Skipped(NamedTuple):
    """A person or topic without a profile, and why."""

    person: str
    topic: str
    why: str


async def run(args: argparse.Namespace) -> int:
    """Fit every person; see `dikast preferences fit --help`.

    Raises:
        InputError: the labels or the configuration cannot be read.
        ConfigError: the configuration cannot work.
        RunStopped: budget, quota, key, store or a signal; the same command resumes.
    """
    for name, least in (("development", 2), ("min_labels", 4), ("shuffles", 0)):
        if getattr(args, name) < least:
            option = name.replace("_", "-")
            raise ConfigError(f"--{option}: must be at least {least}, not {getattr(args, name)}")
    setup = Setup(args, args.writer)
    book = await read_book(args)
    folder = Path(args.output)
    plans: dict[str, tuple[list[Topic], Profile | None]] = {}
    skipped: list[Skipped] = []
    for person, labels in book.people.items():
        old = _old_profile(folder, person)
        topics, left = plan(labels, old, args, setup.seed)
        skipped += left
        if topics:
            plans[person] = topics, old
    if not book.people:
        raise InputError("no pair has a label; give labelled pairs (docs/preferences.md)")
    if args.dry_run:
        return _dry_run(plans, skipped)
    make_folder(folder)
    for person in plans:
        for path in (profile_path(folder, person), votes_path(folder, person)):
            check_output(path)
    reports: dict[str, dict[str, FitReport]] = {}
    people: dict[str, Any] = {}
    for person, (topics, old) in plans.items():
        if not args.quiet:
            print(f"dikast: fitting {person}", file=sys.stderr, flush=True)
        try:
            async with open_calls(setup, args, store_path(folder, person)) as calls:
                profile, reports[person] = await fit(person, topics, old, calls, setup, args)
        except InputError as error:
            skipped.append(Skipped(person, "", str(error)))
            continue
        path = profile_path(folder, person)
        write_whole(path, encode_profile(profile))
        people[person] = _account(profile, reports[person], path, book.people[person], calls)
    return _tell(args, people, reports, skipped, book.bad_rows)


def plan(
    labels: PersonLabels, old: Profile | None, args: argparse.Namespace, seed: int
) -> tuple[list[Topic], list[Skipped]]:
    """The entries of one person, and the topics that have too few labels."""
    by_topic: dict[str, list[Labelled]] = {"": list(labels.labels)}
    if args.by_topic:
        by_topic = {}
        for each in labels.labels:
            by_topic.setdefault(each.topic, []).append(each)
    entries = {} if old is None else {entry.topic: entry for entry in old.entries}
    topics: list[Topic] = []
    skipped: list[Skipped] = []
    for name in sorted(by_topic):
        usable = by_topic[name]
        if len(usable) < args.min_labels:
            why = f"{len(usable)} usable labels, fewer than {args.min_labels}"
            skipped.append(Skipped(labels.person, name, why))
            continue
        split = split_labels(usable, pairs=args.development, seed=seed)
        if len({each.group for each in split.development}) < 2:
            why = "all labels are on one prompt: nothing could be scored apart from its origin"
            skipped.append(Skipped(labels.person, name, why))
            continue
        before = entries.get(name)
        kept = () if before is None else before.preferences
        topics.append(Topic(name, split, tuple(p for p in kept if p.pinned or p.deleted)))
    return topics, skipped


def calls_of(topic: Topic) -> tuple[int, int]:
    """Writer calls and judge calls of one entry, before anything is found in a store."""
    pairs = len(topic.split.development)
    written = len(topic.fresh()) + topic.writes_all()
    columns = 3 + written + sum(each.pinned for each in topic.kept)
    return written, 2 * pairs * columns


def _dry_run(
    plans: Mapping[str, tuple[list[Topic], Profile | None]], skipped: Sequence[Skipped]
) -> int:
    writer, judge = 0, 0
    for person, (topics, _) in plans.items():
        for topic in topics:
            written, judged = calls_of(topic)
            writer, judge = writer + written, judge + judged
            where = f"{person}, topic {topic.name}" if topic.name else person
            print(
                f"{where}: {len(topic.split.development)} development pairs, "
                f"{len(topic.split.held_out)} held out, {written} writer calls, "
                f"{judged} judge calls"
            )
    for each in skipped:
        print(f"{each.person}{', topic ' + each.topic if each.topic else ''}: none: {each.why}")
    print(f"in all: {writer:,} writer calls and {judge:,} judge calls at most; nothing was asked")
    return status.OK


async def fit(
    person: str,
    topics: Sequence[Topic],
    old: Profile | None,
    calls: Calls,
    setup: Setup,
    args: argparse.Namespace,
) -> tuple[Profile, dict[str, FitReport]]:
    """Make one person's profile.

    Raises:
        InputError: the judge gave too few verdicts.
        RunStopped: the run had to stop.
    """
    written = await calls.write(setup.writer, _jobs(topics), setup.seed)
    tell_unwritten(written)
    candidates = {topic.name: _candidates(topic, written) for topic in topics}
    cells: dict[str, tuple[Pair, Strategy]] = {}
    columns: dict[str, tuple[str, str]] = {}
    for topic in topics:
        for each in topic.split.development:
            for column, strategy in columns_of(topic, each, candidates[topic.name], setup):
                name = f"{topic.name}\x1f{each.pair.id}\x1f{column}"
                cells[name] = each.pair, strategy
                columns[name] = each.pair.id, column
    picks = await calls.cells(cells, columns)
    entries: list[Entry] = []
    reports: dict[str, FitReport] = {}
    kept: list[Cell] = []
    for topic in topics:
        found = {key: p for key, p in picks.items() if key.split("\x1f")[0] == topic.name}
        entry, report = _entry(topic, candidates[topic.name], found, setup, args)
        entries.append(entry)
        reports[topic.name] = report
        kept += _kept_cells(topic, found)
    if not args.by_topic and old is not None:
        entries += [each for each in old.entries if each.topic]
    keep_votes(votes_path(Path(args.output), person), kept)
    prompt = "+".join(template.id for template in setup.templates)
    profile = Profile(
        person=person,
        version=1 if old is None else old.version + 1,
        made=SystemClock().stamp(),
        seed=setup.seed,
        judge=WrittenWith(name=setup.judge.name, model=setup.judge.model, prompt=prompt),
        writer=WrittenWith(name=setup.writer.name, model=setup.writer.model, prompt=WRITER_PROMPT),
        entries=tuple(entries),
    )
    return profile, reports


def tell_unwritten(written: Mapping[str, Written]) -> None:
    """A pair without a sentence is no candidate; that is said, and not passed over."""
    whys = Counter(each.why for each in written.values() if each.sentence is None)
    if whys:
        told = ", ".join(f"{count} {why}" for why, count in whys.most_common())
        print(
            f"dikast: {whys.total()} of {len(written)} sentences could not be had: {told}",
            file=sys.stderr,
        )


def _jobs(topics: Sequence[Topic]) -> dict[str, Sequence[Example]]:
    jobs: dict[str, Sequence[Example]] = {}
    for topic in topics:
        for name, each in topic.fresh():
            jobs[f"{topic.name}\x1f{name}"] = [example_of(each)]
        if topic.writes_all():
            jobs[f"{topic.name}\x1f{ALL}"] = [example_of(e) for e in topic.split.development]
    return jobs


def example_of(each: Labelled) -> Example:
    """A labelled pair as a choice of the person."""
    pair = each.pair
    asked = "\n\n".join(f"{turn.role}: {turn.content}" for turn in pair.messages) or pair.question
    taken, left = pair.response_a, pair.response_b
    return Example(asked, *((taken, left) if each.winner == "A" else (left, taken)))


def _candidates(topic: Topic, written: Mapping[str, Written]) -> list[Preference]:
    """What may be chosen: pinned sentences first, then those that the writer gave."""
    out = [each for each in topic.kept if each.pinned]
    sources: list[tuple[str, tuple[str, ...]]] = [
        (name, (each.pair.id,)) for name, each in topic.fresh()
    ]
    if topic.writes_all():
        sources.append((ALL, tuple(each.pair.id for each in topic.split.development)))
    for name, origin in sources:
        sentence = written[f"{topic.name}\x1f{name}"].sentence
        if sentence:
            out.append(Preference(id=name, text=sentence, sources=origin))
    return out


def columns_of(
    topic: Topic, each: Labelled, candidates: Sequence[Preference], setup: Setup
) -> list[tuple[str, Strategy]]:
    """The wordings that one development pair is judged under."""

    def judge(**given: str) -> Strategy:
        return preference_judge(setup.judge, setup.templates, seed=setup.seed, **given)

    out = [(PLAIN, judge())]
    out += [(one.id, judge(preferences=preferences_text([one]))) for one in candidates]
    groups = {other.pair.id: other.group for other in topic.split.development}
    apart = [
        one
        for one in candidates
        if one.id != ALL and all(groups.get(source) != each.group for source in one.sources)
    ]
    if apart:
        out.append((ONE_PROMPT, judge(preferences=preferences_text(apart))))
    others = [example_of(o) for o in topic.split.development if o.group != each.group]
    if others and all("examples" in template.fields for template in setup.templates):
        out.append((FEW_SHOT, judge(examples=examples_text(others, setup.seed))))
    return out


def _entry(
    topic: Topic,
    candidates: Sequence[Preference],
    picks: Mapping[str, CellPicks],
    setup: Setup,
    args: argparse.Namespace,
) -> tuple[Entry, FitReport]:
    """Choose and measure; the entry with the report inside."""
    development = topic.split.development
    table = {(found.pair, found.column): found for found in picks.values()}

    def column(name: str) -> Any:
        rows = [signs_of(table.get((each.pair.id, name))) for each in development]
        return np.array(rows, dtype=np.int8).reshape(len(rows), 2)

    numbers = group_numbers([each.group for each in development])
    number_of = {each.pair.id: int(n) for each, n in zip(development, numbers, strict=True)}
    matrix = Matrix(
        picks=np.stack([column(each.id) for each in candidates], axis=1)
        if candidates
        else np.zeros((len(development), 0, 2), dtype=np.int8),
        labels=np.array([1 if each.winner == "A" else -1 for each in development], np.int8),
        groups=numbers,
        sources=tuple(
            frozenset(number_of[s] for s in each.sources if s in number_of) for each in candidates
        ),
    )
    search = chooser(matrix, [each.pinned for each in candidates])
    selection = select(search, weighted=args.weighted) if candidates else None
    asked = {found.column for found in picks.values()}
    measured = Measured(
        matrix=matrix,
        plain=column(PLAIN),
        one_prompt=column(ONE_PROMPT) if ONE_PROMPT in asked else None,
        few_shot=column(FEW_SHOT) if FEW_SHOT in asked else None,
    )
    report = fit_report(measured, search, selection, seed=setup.seed, shuffles=args.shuffles)
    voting = _weighed(candidates, selection)
    gone = tuple(each for each in topic.kept if each.deleted)
    entry = Entry(
        topic=topic.name,
        use=report.use if any(each.votes for each in voting) else "plain",
        preferences=(*voting, *gone),
        development=tuple(each.pair.id for each in development),
        prompts=tuple(dict.fromkeys(each.group for each in development)),
        statistics=msgspec.to_builtins(report),
    )
    return entry, report


def _weighed(
    candidates: Sequence[Preference], selection: Selection | None
) -> tuple[Preference, ...]:
    weights = [0.0] * len(candidates) if selection is None else selection.weights.tolist()
    return tuple(
        msgspec.structs.replace(each, weight=weight)
        for each, weight in zip(candidates, weights, strict=True)
    )


def signs_of(found: CellPicks | None) -> tuple[int, int]:
    """The two picks of a cell as signs; what was not asked is none."""
    signs = {"A": 1, "B": -1, "none": 0}
    return (0, 0) if found is None else (signs[found.ab], signs[found.ba])


def _kept_cells(topic: Topic, picks: Mapping[str, CellPicks]) -> list[Cell]:
    labels = {each.pair.id: each for each in topic.split.development}
    return [
        Cell(
            topic=topic.name,
            pair=found.pair,
            prompt=labels[found.pair].group,
            label=labels[found.pair].winner,
            column=found.column,
            ab=found.ab,
            ba=found.ba,
            why=found.why,
        )
        for found in picks.values()
    ]


def _old_profile(folder: Path, person: str) -> Profile | None:
    path = profile_path(folder, person)
    return load_profile(str(path)) if path.exists() else None


def _account(
    profile: Profile,
    reports: Mapping[str, FitReport],
    path: Path,
    labels: PersonLabels,
    calls: Calls,
) -> dict[str, Any]:
    return {
        "profile": str(path),
        "version": profile.version,
        "labels": len(labels.labels),
        "left_out": {
            "ties": labels.ties,
            "identical": labels.identical,
            "repeated": labels.repeated,
            "contradictory": list(labels.contradictory),
        },
        **calls.spent,
        "topics": {topic: msgspec.to_builtins(report) for topic, report in reports.items()},
    }


def _tell(
    args: argparse.Namespace,
    people: Mapping[str, Any],
    reports: Mapping[str, Mapping[str, FitReport]],
    skipped: Sequence[Skipped],
    bad_rows: Sequence[str],
) -> int:
    report = {
        "people": people,
        "without_profile": [each._asdict() for each in skipped],
        "bad_rows": list(bad_rows),
    }
    as_: As = "json" if args.json else "md" if args.md else "terminal"
    tables = fit_tables(people, reports, skipped, bad_rows)
    print(drawn(tables, as_, report), end="")
    return status.OK if people and not bad_rows else status.FAILURES
