"""The report of agreement: laws that hold whatever the data, and what a comparison can show."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dikast.analysis.agreement import Report, WithLabels, agree
from dikast.analysis.counting import Number, Options
from dikast.analysis.ratings import Ratings

WINNER = st.sampled_from(["A", "tie", "B"])
ROWS = st.lists(st.tuples(WINNER, WINNER, WINNER), min_size=4, max_size=40)
OTHER = {"A": "B", "B": "A", "tie": "tie"}
Triple = tuple[str, str, str]
fast = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def report_of(folder: Path, rows: list[Triple], *, per_prompt: int = 1, copies: int = 1) -> Report:
    """Two judges on the same labelled pairs; the triples are label, first and second verdict."""
    ratings = Ratings()
    for at, name in ((1, "one"), (2, "two")):
        lines: list[dict[str, Any]] = [
            {
                "kind": "verdict",
                "id": f"{copy}-{n}",
                "label": row[0],
                "winner": row[at],
                "meta": {"question_id": f"{copy}-{n // per_prompt}"},
            }
            for copy in range(copies)
            for n, row in enumerate(rows)
        ]
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        ratings.read_run(str(path))
    return agree(ratings, Options(draws=100))


def value(number: Number) -> Any:
    return None if number.value is None else pytest.approx(number.value, abs=1e-9)


def figures(found: WithLabels) -> list[Number]:
    return [*found.accuracy.values(), found.kappa, found.gwet_ac1, found.macro_f1]


@fast
@given(rows=ROWS)
def test_exchanging_the_answers_of_every_pair_changes_no_figure(
    tmp_path: Path, rows: list[Triple]
) -> None:
    one = report_of(tmp_path, rows)
    two = report_of(tmp_path, [(OTHER[a], OTHER[b], OTHER[c]) for a, b, c in rows])
    for plain, turned in zip(one.with_labels, two.with_labels, strict=True):
        for left, right in zip(figures(plain), figures(turned), strict=True):
            assert (left.n, left.value) == (right.n, value(right))
    first, second = one.between[0], two.between[0]
    assert first.test == second.test
    assert first.kappa.value == value(second.kappa)


@fast
@given(rows=ROWS)
def test_exchanging_the_judges_turns_the_difference(tmp_path: Path, rows: list[Triple]) -> None:
    one = report_of(tmp_path, rows).between[0]
    two = report_of(tmp_path, [(label, b, a) for label, a, b in rows]).between[0]
    assert one.test is not None
    assert two.test is not None
    assert (one.test.b, one.test.c) == (two.test.c, two.test.b)
    assert one.test.mid_p == two.test.mid_p
    assert one.difference is not None
    assert two.difference is not None
    assert one.difference.value is not None
    assert two.difference.value == pytest.approx(-one.difference.value)


@fast
@given(rows=ROWS)
def test_twice_the_same_data_changes_no_value(tmp_path: Path, rows: list[Triple]) -> None:
    one, two = report_of(tmp_path, rows), report_of(tmp_path, rows, copies=2)
    for single, double in zip(one.with_labels, two.with_labels, strict=True):
        for left, right in zip(figures(single), figures(double), strict=True):
            assert (2 * left.n, left.value) == (right.n, value(right))


def test_every_value_lies_in_its_interval(tmp_path: Path) -> None:
    rows: list[Triple] = [("A", "A", "B"), ("B", "B", "B"), ("tie", "A", "tie"), ("A", "tie", "A")]
    found = report_of(tmp_path, rows * 15)
    for number in [*figures(found.with_labels[0]), *found.among_raters.values()]:
        assert number.value is not None
        assert number.interval is not None
        assert number.interval.low <= number.value <= number.interval.high


def test_pairs_that_share_prompts_widen_intervals_and_what_can_be_detected(tmp_path: Path) -> None:
    rows: list[Triple] = [("A", "A" if n // 10 % 2 else "B", "A") for n in range(200)]
    alone, shared = report_of(tmp_path, rows), report_of(tmp_path, rows, per_prompt=10)
    one, many = alone.with_labels[0], shared.with_labels[0]
    assert one.design_effect == pytest.approx(1.0)
    assert many.design_effect == pytest.approx(10.0)
    assert one.detectable is not None
    assert many.detectable is not None
    assert many.detectable > 2 * one.detectable
    assert alone.between[0].needed is not None
    assert shared.between[0].needed == pytest.approx(10 * alone.between[0].needed, rel=0.2)


def test_the_tie_rules_are_what_they_say(tmp_path: Path) -> None:
    rows: list[Triple] = [("A", "A", "A"), ("A", "tie", "A"), ("A", "B", "A"), ("tie", "A", "A")]
    found = report_of(tmp_path, rows).with_labels[0].accuracy
    assert {rule: (number.n, number.value) for rule, number in found.items()} == {
        "three-way": (4, 0.25),
        "half": (4, 0.5),
        "decided": (3, pytest.approx(1 / 3)),
        "no-ties": (2, 0.5),
    }
