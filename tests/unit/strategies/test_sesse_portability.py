"""Whether a library fits another judge: the figures, the gates and their limits."""

import math
import random
from typing import Any

import msgspec
import pytest

from dikast.engine.model import Failed, Outcome, Undecided, Verdict, Vote
from dikast.strategies.sesse.portability import (
    NONE,
    Canary,
    canary_of,
    compare,
    count_row,
    differences,
    psi,
    psi_by_chance,
)
from tests.unit.strategies.test_sesse_library import library_of


def votes(picks: str) -> tuple[Vote, ...]:
    named: dict[str, Any] = {"A": "A", "B": "B", "n": "na", "x": "none"}
    return tuple(
        Vote(judge="j", order="ab", pick=named[pick], question=f"q{at}", cluster="c01", rank=at)
        for at, pick in enumerate(picks)
    )


def verdict(winner: Any, picks: str = "A", **more: Any) -> Outcome:
    notes = {"selected": more.pop("selected", ["c01"])}
    return Verdict(id="p", winner=winner, votes=votes(picks), notes=notes, **more)


def canary(**changes: Any) -> Canary:
    made = Canary(
        judge="m",
        judge_params={},
        depth=3,
        rows=100,
        ties=20,
        undecided=0,
        asked=1000,
        na=300,
        invalid=2,
        selected={"c01": 60, "c02": 40},
        labelled=100,
        score=80.0,
    )
    return msgspec.structs.replace(made, **changes)


def test_outcomes_are_counted_by_row_question_and_cluster() -> None:
    outcomes: list[Outcome] = [
        verdict("A", "AnnB", label="A", selected=["c01", "c02"]),
        verdict("tie", "nn", label="B"),
        verdict("B", "BxB", label="A"),
        Undecided(id="p", why="unparsed", votes=votes("xx"), label="A"),
        verdict("tie", "", selected=[]),
    ]
    rows = [counted for each in outcomes if (counted := count_row(each)) is not None]
    found = canary_of(rows, judge="m", judge_params={}, depth=2, ids_sha="")
    assert (found.rows, found.ties, found.undecided) == (5, 2, 1)
    assert (found.asked, found.na, found.invalid) == (11, 4, 3)
    assert found.selected == {NONE: 2, "c01": 3, "c02": 1}
    assert (found.labelled, found.score) == (4, 1.5)


def test_a_failure_is_no_row_and_a_holistic_vote_no_question() -> None:
    assert count_row(Failed(id="p", reason="timeout", message="late")) is None
    whole = Vote(judge="j", order="ab", pick="A")
    counted = count_row(Verdict(id="p", winner="A", votes=(whole, *votes("A"))))
    assert counted is not None
    assert counted.votes == 1


def test_a_judge_is_the_librarys_only_with_its_parameters() -> None:
    library = library_of(judge_params={"temperature": 0.0, "max_tokens": 64})
    assert differences(library, "m", {"temperature": 0.0, "max_tokens": 64}) == []
    assert differences(library, "n", {"temperature": 0.7, "max_tokens": 64}) == [
        "model m -> n",
        "temperature 0.0 -> 0.7",
    ]


def test_the_index_is_zero_for_equal_shares_and_symmetric() -> None:
    assert psi({"a": 5, "b": 5}, {"a": 5, "b": 5}) == 0.0
    one, other = {"a": 90, "b": 10}, {"a": 50, "b": 50}
    expected = (0.5 - 0.9) * math.log(0.5 / 0.9) + (0.5 - 0.1) * math.log(0.5 / 0.1)
    assert psi(one, other) == pytest.approx(expected, abs=0.05)
    assert psi(one, other) == pytest.approx(psi(other, one))
    assert math.isfinite(psi({"a": 10}, {"b": 10}))
    assert psi({}, {}) == 0.0


def test_the_index_by_chance_is_what_two_equal_samples_show() -> None:
    rng = random.Random(1)
    names = [f"c{number}" for number in range(8)]

    def sample(size: int) -> dict[str, int]:
        drawn = rng.choices(names, k=size)
        return {name: drawn.count(name) for name in names}

    pairs = [(sample(200), sample(300)) for _ in range(300)]
    mean = sum(psi(*pair) for pair in pairs) / len(pairs)
    assert mean == pytest.approx(psi_by_chance(*pairs[0]), rel=0.1)


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ({}, []),
        ({"ties": 29}, []),
        ({"ties": 31}, ["ties"]),
        ({"na": 150}, ["NA votes"]),
        ({"invalid": 10}, []),
        ({"invalid": 11}, ["invalid votes"]),
        ({"score": 71.0}, []),
        ({"score": 69.0}, ["right (ties one half)"]),
        ({"score": 99.0}, []),
        ({"selected": {"c01": 50, "c02": 50}}, []),
        ({"selected": {"c01": 20, "c02": 80}}, ["Tier 1 shift (PSI)"]),
        ({"labelled": 0, "score": 0.0}, []),
    ],
)
def test_each_gate_fails_beyond_its_limit_and_only_there(
    change: dict[str, Any], failed: list[str]
) -> None:
    findings = compare(canary(), canary(**change))
    assert [each.name for each in findings if each.failed] == failed


def test_without_a_reference_only_readability_is_judged() -> None:
    assert [each.name for each in compare(None, canary(ties=90))] == ["invalid votes"]
