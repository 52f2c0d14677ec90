"""How far confidences are from what people say: the reliability curve of one run.

Counts in the report of a run. Bins of equal width, each with its n and an interval; the measures
over all of them are those of `dikast.analysis.calibration`. Pure.
"""

import msgspec
import numpy as np

from dikast.analysis.calibration import BINS, measures
from dikast.analysis.counting import Counting, Number
from dikast.analysis.intervals import Floats, Ints


class CurveBin(msgspec.Struct, frozen=True):
    """Verdicts with a confidence from `low` to `high`: their mean, and how many people share."""

    low: float
    high: float
    confidence: float
    agreed: Number


class Curve(msgspec.Struct, frozen=True):
    """The curve of one run. `number` says which number stands for the confidence, `calibrated`
    that a calibration had made it. `ece` is the expected calibration error over the bins, `brier`
    the mean squared gap; both 0 (best) to 1. `left_out` counts verdicts by why they are not in it.
    """

    run: str
    number: str
    calibrated: bool
    n: int
    left_out: dict[str, int]
    agreed: Number
    ece: float
    brier: Number
    bins: tuple[CurveBin, ...]


def curve(
    run: str,
    number: str,
    confidence: Floats,
    agreed: Floats,
    clusters: Ints,
    count: Counting,
    *,
    calibrated: bool,
    left_out: dict[str, int],
) -> Curve:
    """Bin the verdicts of a run.

    Args:
        run: its name.
        number: what the confidence is, in words.
        confidence: (n,) from 0 to 1; what lies outside is taken as the nearer end. n is above 0.
        agreed: (n,) 1 where people say the same, else 0.
        clusters: (n,) prompt of each verdict.
        count: how intervals are made.
        calibrated: whether a calibration made the confidence.
        left_out: verdicts that are not among them, by reason.

    Source: reliability diagrams, Guo et al. 2017, On Calibration of Modern Neural Networks,
    section 2.
    """
    inside = np.clip(confidence, 0.0, 1.0)
    place = np.minimum((inside * BINS).astype(np.int64), BINS - 1)
    bins: list[CurveBin] = []
    for at in range(BINS):
        mine = place == at
        if np.any(mine):
            share = count.share(agreed[mine], clusters[mine])
            bins.append(CurveBin(at / BINS, (at + 1) / BINS, float(inside[mine].mean()), share))
    return Curve(
        run=run,
        number=number,
        calibrated=calibrated,
        n=len(inside),
        left_out=left_out,
        agreed=count.share(agreed, clusters),
        ece=measures(inside, agreed).ece,
        brier=count.mean((inside - agreed) ** 2, clusters),
        bins=tuple(bins),
    )
