"""A calibration as a file: a map from a raw confidence to the chance that people agree.

Written by `dikast calibrate`, read once before the first pair by the strategy `calibrated`. The
content hash is checked on reading, so that a map that was edited by hand is noticed. Knows no pair
and no judge.
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import Literal, get_args

import msgspec

from dikast.engine.errors import InputError
from dikast.engine.model import Record, Verdict
from dikast.strategies.files import record_hash
from dikast.strategies.record_files import RecordFile

FORMAT = "dikast-calibration@1"
Method = Literal["isotonic", "platt"]
Raw = Literal["confidence", "margin", "majority_share", "lead"]
RAWS: tuple[Raw, ...] = get_args(Raw)


class Metrics(Record, frozen=True):
    """How far a probability is from what happened: calibration error and Brier score, 0 to 1.

    `ece` is the expected calibration error over bins of equal width.
    """

    ece: float
    brier: float


class Calibration(Record, frozen=True):
    """A fitted map and where it comes from.

    `raw` names the number that it maps (see `raw_of`). `knots` are the corners of an isotonic map,
    (raw, probability), straight lines between them and flat outside. `slope` and `intercept` are
    Platt's: 1 / (1 + exp(-(slope x raw + intercept))). `spec` and `strategy` are those of the
    outcomes it was fitted on, `fitted_on` their number, `agreed` how many of them agreed with
    people, `left_out` how many others there were and why. `before` and `after` are measured by
    cross-validation over `folds`, each on verdicts that its map had not seen. `date` is the
    caller's and no part of the hash.
    """

    format: str
    method: Method
    raw: Raw
    spec: str
    strategy: str
    fitted_on: int
    agreed: int
    left_out: dict[str, int]
    before: Metrics
    after: Metrics
    folds: int
    bins: int
    seed: int
    simulated: bool = False
    knots: tuple[tuple[float, float], ...] = ()
    slope: float = 0.0
    intercept: float = 0.0
    date: str = ""
    hash: str = ""

    def probability(self, raw: float) -> float:
        """The probability that people agree with a verdict of this raw confidence."""
        if self.method == "platt":
            return _sigmoid(self.slope * raw + self.intercept)
        at = bisect_right(self.knots, (raw, math.inf))
        if at == 0:
            return self.knots[0][1]
        if at == len(self.knots):
            return self.knots[-1][1]
        (x0, y0), (x1, y1) = self.knots[at - 1], self.knots[at]
        return y0 + (y1 - y0) * (raw - x0) / (x1 - x0)

    def hashed(self) -> "Calibration":
        """The same with its own content hash."""
        return msgspec.structs.replace(self, hash=_hash_of(self))


CalibrationLoader = Callable[[str], Calibration]


def raw_of(
    raw: Raw,
    confidence: float | None,
    marks: tuple[float, float] | None,
    scores: dict[str, float],
) -> float | None:
    """The raw number of a verdict; None where it has none.

    Args:
        raw: "confidence" (the share of the votes behind the winner, or the verdict token's
            probability), "margin" and "majority_share" (of the marks), "lead" (the distance
            between the totals of two scored answers).
        confidence: the verdict's.
        marks: its margin and majority share.
        scores: its scores.
    """
    if raw == "confidence":
        return confidence
    if raw == "lead":
        a, b = scores.get("A.total"), scores.get("B.total")
        return None if a is None or b is None else abs(a - b)
    if marks is None:
        return None
    return marks[0] if raw == "margin" else marks[1]


def raw_of_verdict(raw: Raw, verdict: Verdict) -> float | None:
    """As `raw_of`, of a verdict as a strategy makes it."""
    marks = verdict.marks
    both = None if marks is None else (marks.margin, marks.majority_share)
    return raw_of(raw, verdict.confidence, both, verdict.scores)


def load_calibration(name: str) -> Calibration:
    """Read a calibration and check it.

    Args:
        name: path of the file.

    Raises:
        InputError: it cannot be read, is none, or its content does not fit its hash.
    """
    return _FILE.load(name)


def _check(found: Calibration, where: str) -> None:
    if found.method == "isotonic" and not found.knots:
        raise InputError("has no knots; make it anew with dikast calibrate", file=where)


def _hash_of(calibration: Calibration) -> str:
    return record_hash(calibration, "hash", "date")[:16]


def _sigmoid(value: float) -> float:
    """Written so that no exponential overflows."""
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    return math.exp(value) / (1 + math.exp(value))


_FILE = RecordFile(
    what="calibration",
    made_by="dikast calibrate",
    type=Calibration,
    formats={"format": FORMAT},
    hash_of=_hash_of,
    check=_check,
)
