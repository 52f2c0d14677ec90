"""A ranking that keeps up with a running job: verdicts are added as they come.

Between the sink and a screen. `LiveRanking.add` takes one outcome in constant time and memory (it
keeps counts for each pair of models, no verdicts); `strengths` refits from where the last fit
ended. Intervals need the prompts and come from `rank` over the finished output.
"""

from collections import Counter

import numpy as np

from dikast.analysis.ranking.battles import Floats
from dikast.analysis.ranking.fitting import Design, fit
from dikast.analysis.ranking.likelihood import Counts
from dikast.analysis.ranking.standings import MEAN_POINTS, POINTS_A_LOGIT
from dikast.analysis.ranking.structure import structure_of
from dikast.engine.errors import InputError, SinkError
from dikast.engine.model import Outcome, Record, Verdict


class LiveRow(Record, frozen=True):
    """One model at this moment. `error` is one standard error in points, from the curvature."""

    model: str
    rating: float
    error: float
    battles: int
    win_rate: float
    group: int = 0


class LiveRanking:
    """Bradley-Terry ratings of what has been judged so far; ties and disagreements are halves.

    A sink of the engine: hand it to `FanoutSink` beside the output, or call `add` yourself. Two
    orders are one battle here as everywhere, because an outcome is one verdict.

    Args:
        ridge: penalty on squared strengths, in logits; above 0, so that every rating is finite.
    """

    def __init__(self, *, ridge: float = 0.01) -> None:
        if not ridge > 0:
            raise InputError("the ridge of a live ranking is above 0: early on somebody never lost")
        self._ridge = ridge
        self._models: dict[str, int] = {}
        self._points: Counter[tuple[int, int]] = Counter()
        self._strengths: dict[str, float] = {}
        self._closed = False
        self.battles = 0
        self.left_out: Counter[str] = Counter()

    def afresh(self) -> "LiveRanking":
        """An empty one with the same settings."""
        return LiveRanking(ridge=self._ridge)

    def add(self, outcome: Outcome) -> None:
        """Count one outcome; what is no battle between two models is counted as left out."""
        if not isinstance(outcome, Verdict):
            self.left_out["without a verdict"] += 1
        elif not outcome.model_a or not outcome.model_b:
            self.left_out["without model names"] += 1
        elif outcome.model_a == outcome.model_b:
            self.left_out["a model against itself"] += 1
        else:
            i = self._models.setdefault(outcome.model_a, len(self._models))
            j = self._models.setdefault(outcome.model_b, len(self._models))
            twice = {"A": 2, "tie": 1, "B": 0}[outcome.winner]
            self._points[i, j] += twice
            self._points[j, i] += 2 - twice
            self.battles += 1

    async def write(self, outcome: Outcome) -> None:
        """As `add`: the port of a sink.

        Raises:
            SinkError: it is closed.
        """
        if self._closed:
            raise SinkError("the live ranking is closed")
        self.add(outcome)

    async def flush(self) -> None:
        """Nothing is buffered."""

    async def aclose(self) -> None:
        """Take no more; the ranking stays readable."""
        self._closed = True

    def rows(self) -> tuple[LiveRow, ...]:
        """The ranking now, best first; empty before the first battle."""
        if not self._models:
            return ()
        n = len(self._models)
        points: Floats = np.zeros((n, n))
        for (i, j), twice in self._points.items():
            points[i, j] = twice / 2
        structure = structure_of(points)
        low, high = np.nonzero(np.triu(points + points.T, 1))
        design = Design(low, high, structure.groups, "bt", self._ridge)
        counts = Counts(points[low, high][None], points[high, low][None], np.zeros((1, len(low))))
        start = np.array([self._strengths.get(name, 0.0) for name in self._models])
        found = fit(design, counts, start)
        strengths = found.parameters[0]
        errors = np.sqrt(np.maximum(np.diag(np.linalg.inv(found.information)), 0.0))
        self._strengths = dict(zip(self._models, strengths.tolist(), strict=True))
        met = points.sum(axis=1) + points.sum(axis=0)
        rows = [
            LiveRow(
                model=name,
                rating=MEAN_POINTS + POINTS_A_LOGIT * float(strengths[place]),
                error=POINTS_A_LOGIT * float(errors[place]),
                battles=round(float(met[place])),
                win_rate=float(points[place].sum() / met[place]),
                group=int(structure.groups[place]),
            )
            for name, place in self._models.items()
        ]
        return tuple(sorted(rows, key=lambda row: (row.group, -row.rating, row.model)))
