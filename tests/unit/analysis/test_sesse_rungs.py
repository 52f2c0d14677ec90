"""What each step of the ladder brought, counted by hand."""

import pytest

from dikast.analysis.sesse_rungs import Step, step_lines


def test_each_step_counts_those_that_reached_it() -> None:
    steps = [
        Step("tier1", "none", "A", 1, 0.1),
        Step("sesse", "A", "A", 4, 0.4),
        Step("tier1", "none", "A", 1, 0.1),
        Step("sesse", "tie", "A", 4, 0.4),
        Step("holistic", "B", "A", 1, 0.2),
        Step("sesse", "tie", "B", 2, 0.2),
        Step("holistic", "none", "B", 1, 0.2),
    ]
    first, second = step_lines(steps)
    assert (first.name, first.reached, first.ties, first.no_verdict) == ("sesse", 3, 2, 0)
    assert (first.right.hits, first.right.n) == (1, 1)
    assert first.calls_mean == pytest.approx(10 / 3)
    assert first.cost_usd == pytest.approx(1.0)
    assert (second.name, second.reached, second.no_verdict) == ("holistic", 2, 1)
    assert (second.right.hits, second.right.n) == (0, 1)
