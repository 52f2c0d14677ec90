"""What a report shows beside agreement and bias: verdicts, confusion, and a sample to look at.

`Digest` takes the outcomes of one run as they stream by, after `Ratings` has read them, and keeps
counts, one number for each labelled verdict and a sample of fixed size of each kind of pair; the
outcomes themselves are forgotten, so a million of them fit. Knows no files and draws nothing.
"""

import heapq
from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from dikast.analysis.agreement import Rater
from dikast.analysis.calibration_curve import Curve, curve
from dikast.analysis.counting import Counting, Number
from dikast.analysis.ratings import CODE, NONE, Codes, Ratings, Run
from dikast.analysis.report_parts import PreferenceCounts, QuestionCounts, ReportRow
from dikast.engine.ids import digest_of

KINDS: Final[dict[str, str]] = {
    "orders disagree": "the two orders of the answers gave different picks",
    "votes split": "judges or samples gave different picks",
    "against the label": "the verdict is not what people say",
    "no verdict": "the judges answered, and no verdict could be read",
    "failed": "no answer could be had",
    "scored": "single answers with scores",
    "uncontested": "all votes agree, and with the label where there is one",
}
CONFIDENCES: Final = ("confidence", "margin", "majority_share")
_MOST: Final = 0.5
_FAILED, _DONE = 1, 2


class VerdictShares(msgspec.Struct, frozen=True):
    """One run's verdicts by what they say. `outcomes` counts pairs and items, each once;
    `no_verdict` those that are left out of the shares, by reason."""

    run: str
    outcomes: int
    repeated_lines: int
    verdicts: int
    scored: int
    a: Number
    tie: Number
    b: Number
    bases: dict[str, int]
    no_verdict: dict[str, int]
    simulated: int
    cost_usd: float
    calls: int


class Confusion(msgspec.Struct, frozen=True):
    """Labels (rows: A, tie, B) against verdicts (columns: A, tie, B, none) of one judge."""

    judge: str
    n: int
    counts: tuple[tuple[int, int, int, int], ...]


class SampleCount(msgspec.Struct, frozen=True):
    """How many pairs of a run are of a kind, and how many of them are shown."""

    run: str
    kind: str
    total: int
    shown: int


class Sample:
    """The `size` rows with the smallest digests of their ids: drawn at random without
    replacement, and the same ones for any order of the lines.

    Source: bottom-k sampling, Cohen and Kaplan 2007, Summarizing data using bottom-k sketches.
    """

    def __init__(self, size: int) -> None:
        self.total = 0
        self._size = size
        self._heap: list[tuple[int, int, ReportRow]] = []

    def offer(self, digest: int, row: ReportRow) -> None:
        """Count a row, and keep it if its digest is small enough."""
        self.total += 1
        if len(self._heap) < self._size:
            heapq.heappush(self._heap, (-digest, self.total, row))
        elif self._heap and digest < -self._heap[0][0]:
            heapq.heapreplace(self._heap, (-digest, self.total, row))

    def rows(self) -> list[ReportRow]:
        """The kept rows, smallest digest first."""
        return [row for _, _, row in sorted(self._heap, key=lambda each: (-each[0], each[1]))]


class Digest:
    """What is kept of one run.

    Args:
        run: as `Ratings` has read it.
        ratings: where its pairs stand.
        labels: (pairs,) labels, -1 where there is none.
        size: how many pairs of each kind to keep.
    """

    def __init__(self, run: Run, ratings: Ratings, labels: Codes, size: int) -> None:
        self.run = run
        self.samples = {kind: Sample(size) for kind in KINDS}
        self.questions = QuestionCounts()
        self.preferences = PreferenceCounts()
        self.strategies: Counter[str] = Counter()
        self._find = ratings.find
        self._labels = labels
        self._done = bytearray(len(ratings))
        self._calibrated = False
        self._rows = array("q")
        self._agreed = array("b")
        self._numbers = {name: array("d") for name in CONFIDENCES}

    def take(self, row: ReportRow) -> None:
        """Enter one outcome; a later line of a pair counts only where the earlier one failed."""
        pair = self._find(row.id)
        if pair is None:
            return  # written since `Ratings` read the file
        before = self._done[pair]
        if before == _DONE or (before == _FAILED and row.kind == "failed"):
            return
        if before == _FAILED:
            self.samples["failed"].total -= 1
        self._done[pair] = _FAILED if row.kind == "failed" else _DONE
        label = int(self._labels[pair])
        digest = digest_of(row.id)
        for kind in kinds_of(row, label):
            self.samples[kind].offer(digest, row)
        self.strategies[row.strategy] += 1
        if row.kind == "verdict" and label != NONE:
            self._take_confidence(pair, label, row)
        self.questions.take(row, label)
        self.preferences.take(row, label)

    def _take_confidence(self, pair: int, label: int, row: ReportRow) -> None:
        self._calibrated = self._calibrated or row.raw_confidence is not None
        self._rows.append(pair)
        self._agreed.append(CODE[row.winner or "tie"] == label)
        marks = row.marks
        numbers = (
            row.confidence,
            None if marks is None else marks.margin,
            None if marks is None else marks.majority_share,
        )
        for name, number in zip(CONFIDENCES, numbers, strict=True):
            self._numbers[name].append(float("nan") if number is None else number)

    def sampled(self) -> dict[str, list[ReportRow]]:
        """The kept rows by kind; a failure that a later line made good is gone."""
        return {
            kind: [
                row
                for row in sample.rows()
                if kind != "failed" or self._done[self._find(row.id) or 0] == _FAILED
            ]
            for kind, sample in self.samples.items()
        }

    def curve(self, count: Counting) -> Curve | None:
        """The reliability of the first number that most labelled verdicts have; None without."""
        agreed = np.array(self._agreed, dtype=np.float64)
        rows = np.array(self._rows, dtype=np.int64)
        for name in CONFIDENCES:
            numbers = np.array(self._numbers[name], dtype=np.float64)
            there = np.isfinite(numbers)
            if np.count_nonzero(there) <= _MOST * len(rows):
                continue
            reasons = {
                "without a label": self.run.bases.total() - len(rows),
                f"without {name}": int(np.count_nonzero(~there)),
            }
            return curve(
                self.run.name,
                name,
                numbers[there],
                agreed[there],
                count.clusters[rows[there]],
                count,
                calibrated=self._calibrated and name == "confidence",
                left_out={why: n for why, n in reasons.items() if n},
            )
        return None


def kinds_of(row: ReportRow, label: int) -> list[str]:
    """What a pair is an example of; never empty.

    Args:
        label: code of what people say, -1 where nobody does.
    """
    if row.kind in ("failed", "scored"):
        return [row.kind]
    if row.kind == "undecided":
        return ["no verdict"]
    found: list[str] = []
    if row.basis == "disagree":
        found.append("orders disagree")
    elif len({vote.pick for vote in row.votes if vote.pick in CODE}) > 1:
        found.append("votes split")
    if label != NONE and CODE[row.winner or "tie"] != label:
        found.append("against the label")
    return found or ["uncontested"]


def verdict_shares(ratings: Ratings, count: Counting) -> tuple[VerdictShares, ...]:
    """Every run's shares of A, tie and B among its verdicts, with intervals by prompt."""
    pairs = len(ratings)
    found: list[VerdictShares] = []
    for run in ratings.runs:
        codes = run.results(pairs) if pairs else np.zeros(0, dtype=np.int8)
        there = codes != NONE
        a, tie, b = (
            count.share((codes[there] == code).astype(np.float64), count.clusters[there])
            for code in range(3)
        )
        scored = run.bases["scored"]
        found.append(
            VerdictShares(
                run=run.name,
                outcomes=run.rows - run.repeated,
                repeated_lines=run.repeated,
                verdicts=int(np.count_nonzero(there)),
                scored=scored,
                a=a,
                tie=tie,
                b=b,
                bases={name: n for name, n in sorted(run.bases.items()) if n},
                no_verdict={why: n for why, n in sorted(run.missing.items()) if n},
                simulated=run.simulated,
                cost_usd=run.cost_usd,
                calls=run.calls,
            )
        )
    return tuple(found)


def confusions(raters: Iterable[Rater], labels: Codes) -> tuple[Confusion, ...]:
    """Labels against verdicts, for every judge that has labelled pairs."""
    found: list[Confusion] = []
    for rater in raters:
        use = rater.present & (labels != NONE)
        if not np.any(use):
            continue
        said = np.where(rater.codes[use] == NONE, 3, rater.codes[use]).astype(np.int64)
        table = np.bincount(labels[use].astype(np.int64) * 4 + said, minlength=12).reshape(3, 4)
        rows: list[tuple[int, int, int, int]] = [
            (int(row[0]), int(row[1]), int(row[2]), int(row[3])) for row in table
        ]
        found.append(Confusion(rater.name, int(np.count_nonzero(use)), tuple(rows)))
    return tuple(found)
