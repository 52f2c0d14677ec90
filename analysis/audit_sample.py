"""Which outcomes people should look at: a seeded sample with known inclusion probabilities.

After a run, before the labelling page. The outcome file is read twice in bounded memory: once to
count the strata, once to take the drawn places out of them. Every design is a stratified simple
random sample without replacement, so a pair's probability is exactly n_h / N_h of its stratum
(Cochran 1977, Sampling Techniques, chapter 5). Pairs without a verdict are not drawn; they are
counted.
"""

import heapq
import random
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from dikast.analysis.rows import OutcomeRow, read_outcomes
from dikast.engine.ids import IdTable

How = Literal["uniform", "stratified", "uncertainty"]
By = Literal["winner", "category", "confidence"]
_BANDS: Final = (0.6, 0.8, 0.95)
_BAND_NAMES: Final = ("below 0.6", "0.6 to 0.8", "0.8 to 0.95", "0.95 up")
_EACH_MIN: Final = 2  # fewer labels than two tell nothing about a stratum's spread
_EACH_MEAN: Final = 5  # more strata than n / 5 would leave nothing to give by size
_POOLED: Final = "other"
_ERROR_MIN, _ERROR_MAX, _ERROR_UNKNOWN = 0.05, 0.5, 0.25


class Drawn(NamedTuple):
    """One drawn outcome: its place in the design and nothing of its verdict."""

    id: str
    category: str | None
    stratum: str
    inclusion_probability: float
    stratum_pairs: int


class Stratum(NamedTuple):
    """A group of outcomes: how many there are and how many were drawn."""

    name: str
    pairs: int
    drawn: int


class Sample(NamedTuple):
    """What was drawn, in the order of the file, and what from. `missing` counts the pairs without
    a verdict by reason; `unsure` says how many outcomes carry a sign of doubt at all."""

    drawn: list[Drawn]
    strata: list[Stratum]
    pairs: int
    repeated: int
    missing: dict[str, int]
    unsure: int


class _Frame(NamedTuple):
    codes: "array[int]"
    names: list[str]
    sizes: list[int]
    weights: list[float]
    repeated: int
    missing: dict[str, int]
    unsure: int


def draw(path: str, n: int, how: How, *, seed: int, by: Sequence[By] = ()) -> Sample:
    """Draw up to `n` outcomes with a verdict.

    Args:
        path: an outcome file.
        n: how many; all of them where there are not more.
        how: "uniform": every pair alike; "stratified": strata by `by`, in proportion to their
            size, at least two of each, the smallest pooled where there are more than n / 5;
            "uncertainty": strata by winner and confidence, in proportion to size times
            sqrt(p (1 - p)) where p is the chance of an error that the confidence leaves
            (Neyman's allocation).
        seed: decides which.
        by: fields of the strata; winner, category and confidence by default.

    Raises:
        InputError: the file cannot be read or is no outcome file.
        ValueError: n is below 1.
    """
    if n < 1:
        raise ValueError(f"a sample has at least one pair, not {n}")
    fields: Sequence[By] = ()
    if how == "stratified":
        fields = by or ("winner", "category", "confidence")
    elif how == "uncertainty":
        fields = ("winner", "confidence")
    frame = _scan(path, fields)
    stratum_of = _pooled(frame, n)
    names = list(dict.fromkeys(stratum_of))
    place = {name: at for at, name in enumerate(names)}
    sizes, weights = [0] * len(names), [0.0] * len(names)
    for code, name in enumerate(stratum_of):
        sizes[place[name]] += frame.sizes[code]
        weights[place[name]] += (
            frame.weights[code] if how == "uncertainty" else float(frame.sizes[code])
        )
    taken = allocate(sizes, weights, n)
    rng = random.Random(seed)
    chosen = [set(rng.sample(range(size), count)) for size, count in zip(sizes, taken, strict=True)]
    codes = array("L", (place[stratum_of[code]] for code in frame.codes))
    drawn = [
        Drawn(row.id, row.category, names[code], taken[code] / sizes[code], sizes[code])
        for row, code in _taken(path, codes, chosen)
    ]
    return Sample(
        drawn,
        [Stratum(*each) for each in zip(names, sizes, taken, strict=True)],
        len(frame.codes),
        frame.repeated,
        frame.missing,
        frame.unsure,
    )


def allocate(sizes: Sequence[int], weights: Sequence[float], n: int) -> list[int]:
    """How many to draw from each stratum: two each where they fit, the rest by weight.

    Seats are given one by one to the largest weight / (2 seats + 1) (Webster's divisors), never
    more than a stratum has.

    Args:
        sizes: pairs of each stratum.
        weights: what the shares of the sample should be proportional to.
        n: how many in all; all pairs where there are not more.
    """
    taken = [0] * len(sizes)
    left = min(n, sum(sizes))
    for at in sorted(range(len(sizes)), key=lambda at: -sizes[at]):
        taken[at] = min(_EACH_MIN, sizes[at], left)
        left -= taken[at]
    queue = [
        (-weights[at] / (2 * taken[at] + 1), at)
        for at in range(len(sizes))
        if taken[at] < sizes[at]
    ]
    heapq.heapify(queue)
    for _ in range(left):
        _, at = heapq.heappop(queue)
        taken[at] += 1
        if taken[at] < sizes[at]:
            heapq.heappush(queue, (-weights[at] / (2 * taken[at] + 1), at))
    return taken


def _verdicts(path: str) -> Iterator[OutcomeRow | tuple[str, str]]:
    """Outcomes with a verdict, each id once; else why there is none, or "" for a repeated id."""
    ids = IdTable()
    for row in read_outcomes(path):
        if row.missing is not None:
            yield row.id, row.missing
        elif ids.add(row.id, 0) is not None:
            yield row.id, ""
        else:
            yield row


def _scan(path: str, fields: Sequence[By]) -> _Frame:
    names: dict[str, int] = {}
    codes = array("L")
    sizes: list[int] = []
    weights: list[float] = []
    without: dict[str, str] = {}
    repeated = unsure = 0
    for row in _verdicts(path):
        if isinstance(row, tuple):
            name, why = row
            if why:
                without[name] = why
            else:
                repeated += 1
            continue
        without.pop(row.id, None)
        code = names.setdefault(_stratum(row, fields), len(names))
        if code == len(sizes):
            sizes.append(0)
            weights.append(0.0)
        sizes[code] += 1
        known = error_chance(row)
        unsure += known is not None
        p = _ERROR_UNKNOWN if known is None else known
        weights[code] += (p * (1 - p)) ** 0.5
        codes.append(code)
    missing = dict(sorted(Counter(without.values()).items()))
    return _Frame(codes, list(names), sizes, weights, repeated, missing, unsure)


def _taken(
    path: str, codes: "array[int]", chosen: Sequence[set[int]]
) -> Iterator[tuple[OutcomeRow, int]]:
    """The rows at the chosen places of every stratum, in the order of the file."""
    met = [0] * len(chosen)
    rows = (row for row in _verdicts(path) if not isinstance(row, tuple))
    for row, code in zip(rows, codes, strict=False):
        if met[code] in chosen[code]:
            yield row, code
        met[code] += 1


def _pooled(frame: _Frame, n: int) -> list[str]:
    """The stratum of every code: the smallest are pooled until five of the sample fall on each."""
    names = list(frame.names)
    room = max(1, n // _EACH_MEAN)
    if len(names) <= room:
        return names
    by_size = sorted(range(len(names)), key=lambda code: (frame.sizes[code], names[code]))
    for code in by_size[: len(names) - room + 1]:
        names[code] = _POOLED
    return names


def _stratum(row: OutcomeRow, fields: Sequence[By]) -> str:
    parts = {
        "winner": row.winner or "-",
        "category": row.category or "-",
        "confidence": _band(row),
    }
    return ", ".join(f"{field} {parts[field]}" for field in fields) or "all"


def _band(row: OutcomeRow) -> str:
    p = error_chance(row, clip=False)
    if p is None:
        return "unknown"
    at = sum(1 - p >= bound for bound in _BANDS)
    return _BAND_NAMES[at]


def error_chance(row: OutcomeRow, *, clip: bool = True) -> float | None:
    """The chance of an error that an outcome's own doubt suggests; None where it shows none.

    Two orders that disagree are a coin's toss. Confidence is agreement of votes and no
    probability: the floor keeps sure verdicts in the sample.
    """
    if row.basis == "disagree":
        return _ERROR_MAX
    if row.confidence is None:
        return _ERROR_MIN if row.basis in ("agree", "both_tie") else None
    p = 1 - row.confidence
    return min(_ERROR_MAX, max(_ERROR_MIN, p)) if clip else p
