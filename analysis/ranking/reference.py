"""One ranking against another: do they order the models alike, and how surely does each?

Separability and agreement with confidence are those of Arena-Hard (Li et al. 2024, section 3):
the share of model pairs whose intervals do not overlap, and the share of all pairs that both
rankings separate in the same direction minus the share that they separate in opposite ones.
Intervals of the rank correlations: Fieller, Hartley and Pearson 1957 (Biometrika 44).
"""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from scipy.stats import kendalltau, spearmanr

from dikast.analysis.intervals import Interval, normal
from dikast.analysis.ranking.battles import Floats, Ints
from dikast.analysis.ranking.report import Ranking
from dikast.engine.errors import InputError
from dikast.engine.model import Record

_MODELS_MIN = 3
_PERFECT = 1e-9  # of a perfect correlation no interval can be said
_MODEL_COLUMNS = ("model", "item", "name")
_RATING_COLUMNS = ("rating", "score", "elo")
_LOW_COLUMNS = ("low", "lower")
_HIGH_COLUMNS = ("high", "upper")
_TAU_VARIANCE, _TAU_LOST = 0.437, 4
_RHO_VARIANCE, _RHO_LOST = 1.06, 3


class Place(NamedTuple):
    """A model's rating, with its interval where one is known."""

    model: str
    rating: float
    low: float | None = None
    high: float | None = None


class Comparison(Record, frozen=True):
    """How one ranking stands to a reference, over the models that are in both.

    `same_order` is the share of the pairs that both order, ordered alike; tied ratings order
    nothing. The four figures of separation are None where intervals are missing. Intervals of the
    correlations treat the models as a sample; None with too few models. `only_here` and
    `only_there` name the models that could not be compared.
    """

    models: int
    pairs: int
    kendall_tau_b: float | None
    kendall_interval: Interval | None
    spearman: float | None
    spearman_interval: Interval | None
    same_order: float | None
    separability: float | None
    reference_separability: float | None
    agreement_with_confidence: float | None
    agree: int | None
    disagree: int | None
    only_here: tuple[str, ...]
    only_there: tuple[str, ...]
    notes: tuple[str, ...] = ()


def compare_rankings(
    ranking: Sequence[Place], reference: Sequence[Place], *, level: float = 0.95
) -> Comparison:
    """Compare two rankings of overlapping sets of models.

    Raises:
        InputError: fewer than three models are in both.
    """
    here, there = {each.model: each for each in ranking}, {each.model: each for each in reference}
    shared = [name for name in here if name in there]
    if len(shared) < _MODELS_MIN:
        raise InputError(
            f"{len(shared)} of {len(here)} models are in the reference too, and a comparison "
            f"needs {_MODELS_MIN}; are the models named alike?"
        )
    mine, theirs = [here[name] for name in shared], [there[name] for name in shared]
    x = np.array([each.rating for each in mine])
    y = np.array([each.rating for each in theirs])
    notes: list[str] = []
    tau = rho = None
    if np.ptp(x) > 0 and np.ptp(y) > 0:
        tau = float(kendalltau(x, y).statistic)
        rho = float(spearmanr(x, y).statistic)
    else:
        notes.append("One of the rankings has all models equal: no rank correlation exists.")
    pairs = len(shared) * (len(shared) - 1) // 2
    separate_here, separate_there = _separated(mine), _separated(theirs)
    agree = disagree = None
    if separate_here is None or separate_there is None:
        notes.append("Without intervals on both sides there is no agreement with confidence.")
    else:
        both = np.triu(separate_here * separate_there, 1)
        agree, disagree = int((both > 0).sum()), int((both < 0).sum())
    return Comparison(
        models=len(shared),
        pairs=pairs,
        kendall_tau_b=tau,
        kendall_interval=_interval(tau, len(shared), _TAU_VARIANCE, _TAU_LOST, level),
        spearman=rho,
        spearman_interval=_interval(rho, len(shared), _RHO_VARIANCE, _RHO_LOST, level),
        same_order=_same_order(x, y),
        separability=_share(separate_here, pairs),
        reference_separability=_share(separate_there, pairs),
        agreement_with_confidence=(
            None if agree is None or disagree is None else (agree - disagree) / pairs
        ),
        agree=agree,
        disagree=disagree,
        only_here=tuple(sorted(set(here) - set(there))),
        only_there=tuple(sorted(set(there) - set(here))),
        notes=tuple(notes),
    )


def places_of(ranking: Ranking) -> list[Place]:
    """A ranking's models as places. Ratings of groups that never met do not compare; the largest
    group stands for the ranking."""
    return [
        Place(each.model, each.rating, each.interval.low, each.interval.high)
        for each in ranking.models
        if each.group == 0
    ]


def read_places(path: str | Path) -> list[Place]:
    """A reference ranking: what `dikast rank --json` printed, or CSV with model and rating.

    A CSV file has the columns model (or item, name), rating (or score, elo) and, if known, low
    and high (or lower, upper).

    Raises:
        InputError: it cannot be read or holds no ranking.
    """
    try:
        text = Path(path).read_text("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError("is not text in UTF-8", file=str(path)) from error
    if text.lstrip().startswith("{"):
        try:
            saved = msgspec.json.decode(text, type=_Saved)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(
                f"is not a ranking printed by dikast rank --json ({error})", file=str(path)
            ) from error
        return [
            Place(each.model, each.rating, each.interval.low, each.interval.high)
            for each in saved.models
            if each.group == 0
        ]
    reader = csv.DictReader(text.splitlines())
    places = [_place(row, str(path), reader.line_num) for row in reader]
    if not places:
        raise InputError("holds no ranking; a CSV has a header model,rating", file=str(path))
    return places


class _SavedModel(msgspec.Struct):
    model: str
    rating: float
    interval: Interval
    group: int = 0


class _Saved(msgspec.Struct):
    models: list[_SavedModel]


def _place(row: Mapping[str, Any], file: str, line: int) -> Place:
    model = next((row[name] for name in _MODEL_COLUMNS if row.get(name)), None)
    rating = _number(row, _RATING_COLUMNS, file, line)
    if model is None or rating is None:
        raise InputError(
            "is no place in a ranking; a CSV has the columns model and rating", file=file, line=line
        )
    return Place(
        str(model),
        rating,
        _number(row, _LOW_COLUMNS, file, line),
        _number(row, _HIGH_COLUMNS, file, line),
    )


def _number(row: Mapping[str, Any], names: Sequence[str], file: str, line: int) -> float | None:
    for name in names:
        if row.get(name) not in (None, ""):
            try:
                number = float(row[name])
            except ValueError:
                number = math.nan
            if not math.isfinite(number):
                raise InputError("is not a number", file=file, line=line, field=name)
            return number
    return None


def separability(places: Sequence[Place]) -> float | None:
    """The share of model pairs whose intervals do not overlap; None where intervals are missing."""
    return _share(_separated(places), len(places) * (len(places) - 1) // 2)


def _separated(places: Sequence[Place]) -> Ints | None:
    """[i, j]: 1 where i's interval lies above j's, -1 where below, 0 where they overlap."""
    lows = [each.low for each in places if each.low is not None]
    highs = [each.high for each in places if each.high is not None]
    if len(lows) < len(places) or len(highs) < len(places):
        return None
    low, high = np.array(lows), np.array(highs)
    above = (low[:, None] > high[None, :]).astype(np.int64)
    signs: Ints = above - above.T
    return signs


def _share(signs: Ints | None, pairs: int) -> float | None:
    return (
        None if signs is None or not pairs else float(np.count_nonzero(np.triu(signs, 1)) / pairs)
    )


def _same_order(x: Floats, y: Floats) -> float | None:
    product = np.triu(np.sign(x[:, None] - x[None, :]) * np.sign(y[:, None] - y[None, :]), 1)
    ordered = int(np.count_nonzero(product))
    return float((product > 0).sum() / ordered) if ordered else None


def _interval(
    value: float | None, models: int, variance: float, lost: int, level: float
) -> Interval | None:
    if value is None or models <= lost or abs(value) > 1 - _PERFECT:
        return None
    on_z = normal(math.atanh(value), math.sqrt(variance / (models - lost)), level)
    return Interval(math.tanh(on_z.low), math.tanh(on_z.high), level, "Fisher z over models")
