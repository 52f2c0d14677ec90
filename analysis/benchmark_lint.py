"""`dikast benchmark lint`: everything wrong with an existing benchmark file, with line and field.

Looks at the form of the file, at the dialogues as a build does, for personal data, and for near
duplicates. What can be put right is put right in a copy; what cannot is left out of it and named.
Composes the checks of the build; has none of its own.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from dikast.analysis.benchmark_file import BenchmarkFile, Placed, shape_findings, topic_of
from dikast.analysis.benchmark_format import CHARS_MAX, Dialogue, Finding, examine
from dikast.analysis.benchmark_logs import Misfit, read_turns
from dikast.analysis.benchmark_privacy import masked, personal_in
from dikast.analysis.near_duplicates import NearDuplicates
from dikast.engine.model import Message


class Place(NamedTuple):
    """A finding with its place: dialogue and turn count from 1 here, as people count."""

    line: int
    dialogue: int
    turn: int | None
    field: str
    kind: str
    message: str
    fixable: bool


class Linted(NamedTuple):
    """A dialogue after the checks: `fixed` is None where it cannot be put right."""

    findings: tuple[Place, ...]
    fixed: tuple[tuple[Message, ...], str] | None


def lint(
    file: BenchmarkFile, *, threshold: float, chars_max: int = CHARS_MAX, seed: int = 0
) -> Iterator[Linted]:
    """Check every dialogue of a file, in its order.

    Args:
        file: opened by name.
        threshold: similarity from which a dialogue counts as a duplicate of an earlier one.
        chars_max: the most characters of a dialogue.
        seed: of the search for duplicates.

    Raises:
        InputError: the file's JSON is malformed.
        ValueError: the threshold is out of range.
    """
    with NearDuplicates(threshold, seed=seed) as table:
        for placed in file.dialogues():
            found, fixed = _checked(placed, chars_max)
            if fixed is not None:
                asked = Dialogue(id="", messages=fixed[0]).asked()
                twin = table.add(str(placed.number), asked)
                if twin is not None:
                    message = f"as good as dialogue {twin.of} (similarity {twin.similarity:.2f})"
                    found.append(Finding("near_duplicate", message, fixable=False))
                    fixed = None
            places = sorted((_placed(file, placed, each) for each in found), key=lambda at: at.line)
            yield Linted(tuple(places), fixed)


def _checked(
    placed: Placed, chars_max: int
) -> tuple[list[Finding], tuple[tuple[Message, ...], str] | None]:
    found = shape_findings(placed.turns)
    messages = read_turns(placed.turns)
    if isinstance(messages, Misfit):
        # Where the shape has already said so, nothing is said twice.
        if all(each.fixable for each in found):
            found.append(
                Finding(
                    messages.reason,
                    messages.message,
                    messages.turn,
                    "from" if messages.reason == "unknown_role" else "content",
                    fixable=False,
                )
            )
        return found, None
    seen = examine(messages, chars_max=chars_max)
    found += seen.findings
    for each in personal_in(messages):
        message = f"personal data or a secret ({each.kind}) at character {each.start + 1}"
        found.append(Finding(f"personal_{each.kind}", message, each.turn, "content"))
    topic = _topic(placed.turns)
    if topic is None or any(not each.fixable for each in found):
        return found, None
    return found, (masked(seen.messages), topic)


def _topic(turns: Sequence[Any]) -> str | None:
    first: Any = turns[0]
    return topic_of(cast(dict[str, Any], first).get("topic")) if isinstance(first, dict) else None


def _placed(file: BenchmarkFile, placed: Placed, each: Finding) -> Place:
    return Place(
        line=file.line_of_field(placed, each.turn, each.field),
        dialogue=placed.number,
        turn=None if each.turn is None else each.turn + 1,
        field=each.field,
        kind=each.kind,
        message=each.message,
        fixable=each.fixable,
    )
