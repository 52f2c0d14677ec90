"""The pairs to look at: a sample of fixed size with texts, votes and reasons, as plain data.

Between the digest of a run and the page's script. Texts are cut where they are long, entries are
left out where the page would become too large; both are said.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from dikast.analysis.ratings import NONE
from dikast.analysis.report_parts import ReportRow
from dikast.analysis.report_summary import kinds_of
from dikast.engine.model import Item, Subject
from dikast.engine.text import scrub
from dikast.report.page import json_block

TEXT_CHARS_MAX: Final = 6_000
_REASON_CHARS_MAX: Final = 3_000
_VOTES_MAX: Final = 60
BYTES_MAX: Final = 2_000_000
_NAMES: Final = ("A", "tie", "B")


class Texts:
    """Takes the pairs as they stream by and keeps those that are in the sample."""

    def __init__(self, ids: frozenset[str]) -> None:
        self._ids = ids
        self.found: dict[str, Subject] = {}

    def take(self, subject: Subject) -> None:
        """Keep a pair or an item of the sample; the first of its id."""
        if subject.id in self._ids:
            self.found.setdefault(subject.id, subject)


def entries(
    samples: Mapping[str, Mapping[str, Sequence[ReportRow]]],
    texts: Mapping[str, Subject],
    label_of: Mapping[str, int],
) -> list[dict[str, Any]]:
    """The entries of the browser, contested ones first, then in the order of the input.

    An entry's `kinds` are all that it is of, `sampled` those that it is an example of.

    Args:
        samples: rows by run and kind.
        texts: pairs and items by id; may be empty.
        label_of: code of the label by id, -1 where there is none.
    """
    sampled: dict[int, list[str]] = {}
    for by_kind in samples.values():
        for kind, rows in by_kind.items():
            for row in rows:
                sampled.setdefault(id(row), []).append(kind)
    made: list[dict[str, Any]] = []
    done: set[int] = set()
    left = BYTES_MAX
    for run, row in _in_turn(samples):
        if id(row) in done:
            continue
        done.add(id(row))
        entry = scrub(_entry(run, row, texts.get(row.id), label_of[row.id]))
        entry["sampled"] = sampled[id(row)]
        left -= len(json_block(entry).encode())
        if left < 0:
            break
        made.append(entry)
    order = {run: place for place, run in enumerate(samples)}
    made.sort(
        key=lambda each: (
            each["kinds"] == ["uncontested"],
            *(order[each["run"]], each["file"], each["line"], each["id"]),
        )
    )
    return made


def _in_turn(
    samples: Mapping[str, Mapping[str, Sequence[ReportRow]]],
) -> Iterator[tuple[str, ReportRow]]:
    """One of every kind and run, then the next of each."""
    most = max((len(rows) for each in samples.values() for rows in each.values()), default=0)
    for place in range(most):
        for run, by_kind in samples.items():
            for rows in by_kind.values():
                if place < len(rows):
                    yield run, rows[place]


def _entry(run: str, row: ReportRow, subject: Subject | None, label: int) -> dict[str, Any]:
    file = Path(row.file).name if row.file else ""
    reason = row.rationale or row.detail or row.message
    entry: dict[str, Any] = {
        "id": row.id,
        "run": run,
        "kinds": kinds_of(row, label),
        "result": _result(row),
        "winner": row.winner,
        "reason": None if reason is None else _cut(reason, _REASON_CHARS_MAX),
        "label": None if label == NONE else _NAMES[label],
        "category": row.category,
        "strategy": row.strategy,
        "confidence": None if row.confidence is None else round(row.confidence, 6),
        "file": file,
        "line": row.line or 0,
        "where": f"{file}, line {row.line}" if file and row.line else None,
        "model_a": row.model_a or row.model,
        "model_b": row.model_b,
        "votes": [_vote(vote) for vote in row.votes[:_VOTES_MAX]],
        "more_votes": max(0, len(row.votes) - _VOTES_MAX),
        "scores": [[name, round(score, 6)] for name, score in sorted(row.scores.items())],
        "parts": [msgspec.to_builtins(part) for part in row.parts_read()[:_VOTES_MAX]],
    }
    return entry | _texts(subject)


def _vote(vote: Any) -> dict[str, Any]:
    return {
        "judge": vote.judge,
        "order": vote.order,
        "pick": vote.pick,
        "confidence": None if vote.confidence is None else round(vote.confidence, 6),
        "why": vote.why,
        "cluster": vote.cluster,
        "text": None if vote.text is None else _cut(vote.text, _REASON_CHARS_MAX),
    }


def _result(row: ReportRow) -> str:
    """The outcome in words."""
    if row.kind == "verdict":
        return f"{row.winner} ({row.basis or 'single'})"
    if row.kind == "scored":
        total = row.scores.get("total")
        return "scored" if total is None else f"scored {total:g}"
    return row.missing or row.kind


def _texts(subject: Subject | None) -> dict[str, Any]:
    """Question and answers; a single answer stands under a."""
    if subject is None:
        return dict.fromkeys(("question", "reference", "response_a", "response_b"))
    said = "\n\n".join(f"{each.role}: {each.content}" for each in subject.messages)
    first, second = (
        (subject.response, None)
        if isinstance(subject, Item)
        else (subject.response_a, subject.response_b)
    )
    texts = {
        "question": said or subject.question,
        "reference": subject.reference,
        "response_a": first,
        "response_b": second,
    }
    return {
        name: None if text is None else _cut(text, TEXT_CHARS_MAX) for name, text in texts.items()
    }


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[cut: the first {most:,} of {len(text):,} characters]"
