"""What a ranking says, as records: nothing infinite, everything with its n and its interval.

The last step of a ranking; commands draw tables of it and write it as JSON.
"""

from typing import Literal

from dikast.analysis.intervals import Interval
from dikast.analysis.ranking.likelihood import Model
from dikast.analysis.ranking.structure import Side
from dikast.engine.model import Record

Ties = Literal["half", "drop"]
IntervalMethod = Literal["sandwich", "bootstrap"]

SCALE = "400 / ln 10 points a logit, mean 1000 within a group (a lead of 400 is 10 wins to 1)"


class RankSettings(Record, frozen=True):
    """How to rank.

    `ties` says what a tie (and two orders that disagree) is worth under Bradley-Terry: half a win
    for each, or nothing ("drop"); the other models have a tie parameter. `disagreements` may be
    left out while ties stay. `ridge` is the penalty on squared strengths (in logits); 0 is none,
    and refused where the data set no bound. `interval` by prompt: the sandwich, or `draws`
    bootstrap resamples.
    """

    model: Model = "bt"
    ties: Ties = "half"
    disagreements: Literal["tie", "drop"] = "tie"
    ridge: float = 0.01
    interval: IntervalMethod = "sandwich"
    level: float = 0.95
    draws: int = 1000
    seed: int = 0


class ModelRating(Record, frozen=True):
    """One model's place.

    `rank` counts within its `group`; `rank_low` to `rank_high` are the places that the data leave
    open (pairs of models told apart at the level, not corrected for their number). `battles`,
    `wins`, `losses` and `ties` are counts, `prompts` how many prompts they were on; `win_rate` has
    ties as half. `side` says where the data set the rating no bound, see `Structure`.
    """

    model: str
    rank: int
    rating: float
    interval: Interval
    rank_low: int
    rank_high: int
    battles: int
    wins: int
    losses: int
    ties: int
    prompts: int
    win_rate: float
    win_rate_interval: Interval | None
    group: int = 0
    side: Side | None = None
    controlled_win_rate: float | None = None
    elo: float | None = None


class Effect(Record, frozen=True):
    """A covariate's coefficient, in logits for one standard deviation of its difference."""

    name: str
    estimate: float
    interval: Interval
    standard_deviation: float


class JudgeWeight(Record, frozen=True):
    """What one judge's battles count for. `agreement` is with the other judges' verdicts."""

    judge: str
    battles: int
    weight: float
    accuracy: float | None = None


class Ranking(Record, frozen=True):
    """A whole ranking with what it was computed on.

    `win_matrix` has for row i and column j the points i took from j (ties half) and `met_matrix`
    the battles between them, models in the order of `models`.
    """

    models: tuple[ModelRating, ...]
    settings: RankSettings
    battles: int
    prompts: int
    judges: int
    ties: int
    disagreements: int
    orders_merged: int
    single_order: int
    groups: int
    tie_parameter: float | None
    effects: tuple[Effect, ...]
    judge_weights: tuple[JudgeWeight, ...]
    left_out: dict[str, int]
    clustered_by: dict[str, int]
    scale: str
    notes: tuple[str, ...]
    win_matrix: tuple[tuple[float, ...], ...] = ()
    met_matrix: tuple[tuple[int, ...], ...] = ()
