"""Numbers with their n and interval, counted over pairs and resampled by prompt.

Shared by the reports on agreement, bias and runs: the one place that says what a tie is worth and
how an interval is made. Pure arrays; knows no files.
"""

from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from dikast.analysis import kappa
from dikast.analysis.intervals import (
    Floats,
    Interval,
    Ints,
    Statistic,
    ratio,
    share_interval,
    wilson,
)
from dikast.analysis.kappa import Coefficient, estimate_of, summed
from dikast.analysis.ratings import CODE, Codes

TieRule = Literal["three-way", "decided", "no-ties"]
TIE_RULES: Final[dict[str, str]] = {
    "three-way": "tie is a verdict like A and B: right only where the label is a tie too",
    "half": "A against B counts 0, a tie against A or B counts 1/2, equal counts 1",
    "decided": "pairs labelled tie are left out; a verdict of tie is wrong",
    "no-ties": "pairs where label or verdict is a tie are left out",
}
POWER: Final = 0.8
TIE: Final = CODE["tie"]
LOST: Final = 3  # no verdict, where that counts as wrong
UNCLUSTERED: Final = (
    "no pair names its prompt (meta.question_id), so each is taken as a prompt of its own; if "
    "several share one, give --cluster FIELD or the intervals are too narrow"
)
Mask = npt.NDArray[np.bool_]


class Options(NamedTuple):
    """How a report is computed; `seed` decides the resamples and nothing else."""

    level: float = 0.95
    draws: int = 2000
    seed: int = 0
    tie_rule: TieRule = "three-way"
    label_rule: Literal["majority", "plurality"] = "majority"
    missing: Literal["left-out", "wrong"] = "left-out"


class Number(msgspec.Struct, frozen=True):
    """A value on n items; `value` and `interval` are None where they cannot be said."""

    n: int
    value: float | None
    interval: Interval | None = None


class Counting:
    """Numbers with intervals over the pairs of one report."""

    def __init__(self, clusters: Ints, options: Options) -> None:
        self.clusters = clusters
        self.options = options

    def share(self, hits: Floats, clusters: Ints) -> Number:
        """A share of the given rows."""
        n = len(hits)
        if n == 0:
            return Number(0, None)
        sums = summed(np.column_stack([hits, np.ones(n)]), clusters)
        interval = share_interval(
            sums[:, 0],
            sums[:, 1],
            seed=self.options.seed,
            draws=self.options.draws,
            level=self.options.level,
        )
        return Number(n, float(hits.sum() / n), interval)

    def hits(self, hits: int, n: int) -> Number:
        """A share of independent rows, with Wilson's interval."""
        return Number(n, hits / n, wilson(hits, n, self.options.level)) if n else Number(0, None)

    def mean(self, values: Floats, clusters: Ints) -> Number:
        """The mean of the given rows."""
        if not len(values):
            return Number(0, None)
        return self.estimate(np.column_stack([values, np.ones(len(values))]), ratio, clusters)

    def estimate(
        self, features: Floats, statistic: Statistic, clusters: Ints, n: int | None = None
    ) -> Number:
        """A statistic of summed features."""
        found = estimate_of(
            features,
            statistic,
            clusters,
            seed=self.options.seed,
            draws=self.options.draws,
            level=self.options.level,
        )
        return Number(len(features) if n is None else n, found.value, found.interval)

    def coefficients(self, counts: Floats) -> dict[str, Number]:
        """Every coefficient for any number of raters, on items with at least two ratings."""
        usable = counts.sum(axis=1) > 1
        kept, clusters = counts[usable], self.clusters[usable]
        if not len(kept):
            return {}
        chosen: tuple[Coefficient, ...] = (
            kappa.FLEISS,
            kappa.GWET,
            kappa.krippendorff("nominal"),
            kappa.krippendorff("ordinal"),
            kappa.krippendorff("interval"),
        )
        return {
            each.name: self.estimate(each.features(kept), each.statistic, clusters)
            for each in chosen
        }

    def compared(
        self, first: Ints, second: Ints, clusters: Ints, decided: Mask, *, ordered: bool
    ) -> tuple[Number, Number, Number, Number]:
        """Agreement and kappa of two columns, with ties and without.

        Args:
            ordered: the columns are two raters; else they are votes in no order, and each row
                counts half in either order, so that kappa does not depend on it.
        """
        rows = kappa.confusion_rows(first, second, 4)
        if not ordered:
            rows = (rows + kappa.confusion_rows(second, first, 4)) / 2
        kept, where = rows[decided], clusters[decided]
        return (
            self.estimate(rows, kappa.agreement, clusters),
            self.estimate(rows, kappa.cohen, clusters),
            self.estimate(kept, kappa.agreement, where),
            self.estimate(kept, kappa.cohen, where),
        )


def hits_by_rule(rule: str, said: Ints, truth: Ints) -> tuple[Mask, Floats]:
    """Which pairs a tie rule uses, and how right each of all is (0, 1/2 or 1)."""
    exact = (said == truth).astype(np.float64)
    if rule == "three-way":
        return np.ones(len(said), dtype=np.bool_), exact
    if rule == "half":
        near = 1.0 - np.abs(said - truth) / 2.0
        return np.ones(len(said), dtype=np.bool_), np.where(said == LOST, 0.0, near)
    if rule == "decided":
        return truth != TIE, exact
    if rule == "no-ties":
        return (truth != TIE) & (said != TIE), exact
    raise ValueError(f"there is no tie rule {rule!r}")


def design_effect(values: Floats, clusters: Ints) -> float | None:
    """Variance of the mean with clusters over that without, at least 1; None where none is known.

    Source: Kish 1965, Survey Sampling, section 8.2.
    """
    n = len(values)
    if n < 2:
        return None
    centred = values - values.mean()
    plain = float((centred**2).sum())
    sums = summed(centred[:, None], clusters)[:, 0]
    if plain == 0 or len(sums) < 2:
        return 1.0
    return max(1.0, float((sums**2).sum()) / plain)


def wide(codes: Codes) -> Ints:
    return codes.astype(np.int64)
