"""Whom a person preferred: labels of one or more people, cleaned, counted and split.

Off the journey: read once by `dikast preferences`. A label names a person, a pair and the answer
the person took. What cannot be used is counted with its reason and never quietly dropped. Knows
no judge and no profile.
"""

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from dikast.engine.errors import InputError
from dikast.engine.model import BadRow, Item, Pair, Record, Row

PAIRS_PER_PROMPT = 2
"""The most development pairs of one prompt: more would leave too few that a preference of that
prompt may be scored on."""

_PERSON = ("annotator", "user", "judge", "labeler", "annotator_id")
_WINNER = ("winner", "label", "preferred")
_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("a", "model_a", "response_a", "r1", "1"), "A"),
    **dict.fromkeys(("b", "model_b", "response_b", "r2", "2"), "B"),
    **dict.fromkeys(("tie", "both", "draw", "tie (bothbad)", "tie (both bad)", "both_bad"), "tie"),
}


class Labelled(Record, frozen=True):
    """One pair with the answer that one person took. `group` stands for the prompt."""

    pair: Pair
    winner: Literal["A", "B"]
    topic: str
    group: str


class PersonLabels(Record, frozen=True):
    """The usable labels of one person, and what was left out.

    `ties` had no winner. `identical` have the same answer twice. `repeated` said again what was
    said before. `contradictory` lists the ids of pairs (the same two answers to the same prompt)
    that got both answers as winner; none of their labels is used.
    """

    person: str
    labels: tuple[Labelled, ...]
    ties: int = 0
    identical: int = 0
    repeated: int = 0
    contradictory: tuple[str, ...] = ()


class LabelBook(Record, frozen=True):
    """All people of a file; `bad_rows` says what is no pair, `unlabelled` pairs have no label."""

    people: dict[str, PersonLabels]
    bad_rows: tuple[str, ...] = ()
    unlabelled: int = 0


class Split(Record, frozen=True):
    """A person's labels, cut by prompt: no prompt stands on both sides.

    `set_aside` are further pairs of the development prompts; they are used nowhere.
    """

    development: tuple[Labelled, ...]
    held_out: tuple[Labelled, ...]
    set_aside: tuple[Labelled, ...]


def read_labels(rows: Iterable[Row], *, person: str | None = None) -> LabelBook:
    """The labels in rows of pairs.

    A pair's labels stand in its `votes` (a list of objects with `annotator` and `label`), or in
    its own label with a field `annotator`; without such a field the label is that of `person`.

    Args:
        rows: of a source.
        person: whose labels those without a name are; None: "me".

    Raises:
        InputError: a label is no winner, or a vote names nobody; with file and line.
    """
    found: dict[str, list[tuple[Pair, str]]] = defaultdict(list)
    bad: list[str] = []
    unlabelled = 0
    for row in rows:
        if isinstance(row.item, Item):
            bad.append(f"{row.file}, line {row.line}: is a single answer; labels are of pairs")
            continue
        if isinstance(row.item, BadRow):
            field = f"{row.item.field} " if row.item.field else ""
            bad.append(f"{row.file}, line {row.line}: {field}{row.item.message}")
            continue
        votes = list(_votes(row.item, row, person or "me"))
        unlabelled += not votes
        for who, winner in votes:
            found[who].append((row.item, winner))
    people = {who: _cleaned(who, found[who]) for who in sorted(found)}
    return LabelBook(people=people, bad_rows=tuple(bad), unlabelled=unlabelled)


def _votes(pair: Pair, row: Row, person: str) -> Iterable[tuple[str, str]]:
    votes = pair.meta.get("votes")
    if votes is None:
        if pair.label is not None:
            named = next((pair.meta[name] for name in _PERSON if pair.meta.get(name)), person)
            yield str(named), pair.label
        return
    if not isinstance(votes, list):
        raise InputError("must be a list", file=row.file, line=row.line, field="votes")
    for vote in cast(list[object], votes):
        table = cast(dict[str, Any], vote) if isinstance(vote, dict) else {}
        who = next((table[name] for name in _PERSON if table.get(name)), None)
        said = next((table[name] for name in _WINNER if table.get(name) is not None), None)
        winner = _WORDS.get(str(said).strip().lower())
        if who is None or winner is None:
            raise InputError(
                "a vote needs annotator and label (A, B or tie)",
                file=row.file,
                line=row.line,
                field="votes",
            )
        yield str(who), winner


def group_of(pair: Pair) -> str:
    """What stands for a pair's prompt: 16 hex digits of its question or conversation."""
    asked = [f"{each.role}\x1f{each.content}" for each in pair.messages] or [pair.question]
    return _digest("\x1e".join(asked))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _cleaned(person: str, said: Sequence[tuple[Pair, str]]) -> PersonLabels:
    """One label for each unordered pair of answers; contradictions are named and left out."""
    ties = identical = 0
    first: dict[tuple[str, str, str], tuple[Pair, str]] = {}
    winners: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    count = 0
    for pair, winner in said:
        if winner == "tie":
            ties += 1
            continue
        a, b = _digest(pair.response_a), _digest(pair.response_b)
        if a == b:
            identical += 1
            continue
        key = (group_of(pair), min(a, b), max(a, b))
        winners[key].add(a if winner == "A" else b)
        first.setdefault(key, (pair, winner))
        count += 1
    clean = [(key, *first[key]) for key in first if len(winners[key]) == 1]
    contradictory = tuple(first[key][0].id for key in first if len(winners[key]) > 1)
    return PersonLabels(
        person=person,
        labels=tuple(
            Labelled(
                pair=pair,
                winner="A" if winner == "A" else "B",
                topic=pair.category or "",
                group=key[0],
            )
            for key, pair, winner in clean
        ),
        ties=ties,
        identical=identical,
        repeated=count - len(first),
        contradictory=contradictory,
    )


def split_labels(labels: Sequence[Labelled], *, pairs: int, seed: int) -> Split:
    """Cut labels into development and held-out ones, by prompt, over all topics alike.

    Topics take turns, each with the next of its prompts in a seeded order, until the development
    side has `pairs`; of one prompt at most `PAIRS_PER_PROMPT` are used. The order of `labels` does
    not matter.

    Args:
        labels: of one person.
        pairs: how many development pairs are wanted.
        seed: decides the order of the prompts.
    """
    prompts: dict[str, dict[str, list[Labelled]]] = defaultdict(lambda: defaultdict(list))
    for each in sorted(labels, key=lambda each: each.pair.id):
        prompts[each.topic][each.group].append(each)
    # A prompt belongs to one topic only: the same prompt under two topics must not be split.
    taken: set[str] = set()
    queues: list[list[list[Labelled]]] = []
    for topic in sorted(prompts):
        groups = [group for group in sorted(prompts[topic]) if group not in taken]
        taken.update(groups)
        random.Random(f"{seed}:{topic}").shuffle(groups)
        queues.append([prompts[topic][group] for group in groups])
    development: list[Labelled] = []
    aside: list[Labelled] = []
    chosen: set[str] = set()
    while len(development) < pairs and any(queues):
        for queue in queues:
            if not queue or len(development) >= pairs:
                continue
            group = queue.pop(0)
            room = min(PAIRS_PER_PROMPT, pairs - len(development))
            development += group[:room]
            aside += group[room:]
            chosen.add(group[0].group)
    used = {id(each) for each in (*development, *aside)}
    rest = [each for topic in sorted(prompts) for each in _flat(prompts[topic])]
    rest = [each for each in rest if id(each) not in used]
    return Split(
        development=tuple(development),
        held_out=tuple(each for each in rest if each.group not in chosen),
        set_aside=(*aside, *(each for each in rest if each.group in chosen)),
    )


def _flat(groups: Mapping[str, list[Labelled]]) -> list[Labelled]:
    return [each for group in sorted(groups) for each in groups[group]]
