"""Recorded judges written as outcome files, the way `dikast judge` writes them."""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dikast.engine.model import Outcome, Undecided, Verdict, Vote

Row = dict[str, Any]


def rows(path: Path) -> Iterator[Row]:
    """The rows of a packed file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def by_id(path: Path) -> dict[str, Row]:
    """Rows of a file by their id."""
    return {row["id"]: row for row in rows(path)}


def write_outcomes(path: Path, outcomes: Iterable[Outcome]) -> Path:
    """A file of outcomes, a line each."""
    encode = msgspec.json.Encoder().encode
    path.write_bytes(b"".join(encode(outcome) + b"\n" for outcome in outcomes))
    return path


def verdict_rows(records: Iterable[Row], pairs: Mapping[str, Row]) -> Iterator[Outcome]:
    """One outcome for every published verdict."""
    for row in records:
        pair = pairs.get(row["pair_id"], {})
        question = pair.get("question_id")
        shared: dict[str, Any] = {
            "id": row["pair_id"],
            "votes": (Vote(judge=row["judge"], order="ab", pick=row["verdict"] or "none"),),
            "label": pair.get("label"),
            "category": pair.get("category"),
            "model_a": pair.get("model_a"),
            "model_b": pair.get("model_b"),
            "meta": {} if question is None else {"question_id": question},
        }
        if row["verdict"] is None:
            yield Undecided(why="unparsed", **shared)
        else:
            yield Verdict(winner=row["verdict"], **shared)


def both_orders(records: Iterable[Row]) -> Iterator[Outcome]:
    """One outcome for every pair from the rows of its orders and repeats, by the rule of swap."""
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in records:
        grouped[row["pair_id"]].append(row)
    for pair_id, mine in grouped.items():
        votes = tuple(
            Vote(judge=row["judge"], order=row["order"], pick=row["verdict"] or "none")
            for row in mine
        )
        shared: dict[str, Any] = {
            "id": pair_id,
            "votes": votes,
            "model_a": mine[0].get("model_a"),
            "model_b": mine[0].get("model_b"),
            "category": mine[0].get("category"),
            "meta": {"question_id": mine[0].get("question_id") or pair_id.split(":")[1]},
        }
        picks = {vote.pick for vote in votes}
        if "none" in picks:
            yield Undecided(why="unparsed", **shared)
        elif len(picks) == 1:
            yield Verdict(winner=mine[0]["verdict"], basis="agree", **shared)
        else:
            yield Verdict(winner="tie", basis="disagree", **shared)
