"""What a report keeps of a stream of outcomes: kinds, samples, curves, counts."""

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from dikast.analysis.calibration_curve import curve
from dikast.analysis.counting import Counting, Options
from dikast.analysis.report_parts import ReportRow, ReportVote
from dikast.analysis.report_summary import Sample, kinds_of
from dikast.engine.ids import digest_of
from dikast.engine.model import Winner

A, TIE, B, NO_LABEL = 0, 1, 2, -1


def row(winner: Winner | None = "A", *picks: str, **more: Any) -> ReportRow:
    votes = tuple(ReportVote("j", "ab", pick) for pick in picks)
    return ReportRow(kind=more.pop("kind", "verdict"), id="p", winner=winner, votes=votes, **more)


@pytest.mark.parametrize(
    ("outcome", "label", "kinds"),
    [
        (row("A", "A", "A", basis="agree"), NO_LABEL, ["uncontested"]),
        (row("A", "A", "A", basis="agree"), A, ["uncontested"]),
        (row("A", "A", "A", basis="agree"), TIE, ["against the label"]),
        (row("tie", "A", "B", basis="disagree"), NO_LABEL, ["orders disagree"]),
        (row("tie", "A", "B", basis="disagree"), B, ["orders disagree", "against the label"]),
        (row("A", "A", "A", "tie", basis="votes"), A, ["votes split"]),
        (row("A", "A", "none", "na", basis="votes"), A, ["uncontested"]),
        (row(None, "none", kind="undecided", why="unparsed"), A, ["no verdict"]),
        (row(None, kind="failed", reason="auth"), A, ["failed"]),
        (row(None, kind="scored"), A, ["scored"]),
    ],
)
def test_a_pair_is_of_the_kinds_that_its_votes_and_label_make(
    outcome: ReportRow, label: int, kinds: list[str]
) -> None:
    assert kinds_of(outcome, label) == kinds


def sampled(ids: list[str], size: int) -> list[str]:
    sample = Sample(size)
    for each in ids:
        sample.offer(digest_of(each), ReportRow(kind="verdict", id=each))
    assert sample.total == len(ids)
    return [kept.id for kept in sample.rows()]


def test_a_sample_does_not_depend_on_the_order_and_is_all_where_it_fits() -> None:
    ids = [f"pair {k}" for k in range(300)]
    turned = random.Random(1).sample(ids, len(ids))

    assert sampled(ids, 20) == sampled(turned, 20) == sorted(ids, key=digest_of)[:20]
    assert sorted(sampled(ids[:5], 20)) == ids[:5]
    assert sampled(ids, 0) == []


def test_every_pair_is_as_likely_to_be_sampled() -> None:
    hits: Counter[int] = Counter()
    for world in range(400):
        names = [f"{world}:{k}" for k in range(20)]
        hits.update(int(name.partition(":")[2]) for name in sampled(names, 5))

    # 400 draws with probability 1/4: mean 100, standard deviation 8.7.
    assert sum(hits.values()) == 2000
    assert all(65 <= hits[k] <= 135 for k in range(20))


def test_the_curve_of_a_calibrated_judge_lies_on_the_diagonal() -> None:
    rng = np.random.default_rng(2)
    confidence = rng.uniform(0, 1, 20_000)
    agreed = (rng.uniform(0, 1, 20_000) < confidence).astype(np.float64)
    clusters = np.arange(20_000)
    count = Counting(clusters, Options(draws=200))
    found = curve(
        "run", "confidence", confidence, agreed, clusters, count, calibrated=False, left_out={}
    )

    assert found.ece < 0.02
    assert found.brier.value == pytest.approx(1 / 6, abs=0.01)
    assert sum(each.agreed.n for each in found.bins) == found.n == 20_000
    inside = 0
    for each in found.bins:
        assert each.low <= each.confidence <= each.high
        assert each.agreed.interval is not None
        inside += each.agreed.interval.low <= each.confidence <= each.agreed.interval.high
    assert inside >= 8


def test_a_confidence_outside_zero_to_one_is_taken_as_the_nearer_end() -> None:
    clusters = np.arange(2)
    count = Counting(clusters, Options(draws=200))
    found = curve(
        *("run", "margin", np.array([-0.5, 1.5]), np.array([0.0, 1.0]), clusters, count),
        calibrated=False,
        left_out={},
    )

    assert [each.confidence for each in found.bins] == [0.0, 1.0]
    assert (found.ece, found.brier.value) == (0.0, 0.0)
