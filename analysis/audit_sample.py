"""Which outcomes people should look at: a seeded sample with known inclusion probabilities.

After a run, before the labelling page. The outcome file is read twice, with some thirty bytes for
each pair: once to count the strata, once to take those drawn. Drawn are the pairs of a stratum
whose ids have the smallest digests under the seed, so the order of lines, which differs from run
to run, does not matter. Every design is a stratified simple
random sample without replacement, so a pair's probability is exactly n_h / N_h of its stratum
(Cochran 1977, Sampling Techniques, chapter 5). Pairs without a verdict are not drawn; they are
counted.
"""

import hashlib
import heapq
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
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
_WEIGHT_UNIT: Final = 1_000_000
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
    """What was drawn, in random order, and what from. `missing` counts the pairs without
    a verdict by reason; `unsure` says how many outcomes carry a sign of doubt at all."""

    drawn: list[Drawn]
    strata: list[Stratum]
    pairs: int
    repeated: int
    missing: dict[str, int]
    unsure: int


class _Group:
    """Outcomes of one stratum before pooling: a digest of each, and their weight.

    Weights are whole numbers, so that their sum does not depend on the order of the lines.
    """

    def __init__(self) -> None:
        self.digests = array("Q")
        self.weight = 0


class _Frame(NamedTuple):
    groups: dict[str, _Group]
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
    frame = _scan(path, fields, str(seed).encode())
    pooled = _pooled(frame.groups, n)
    strata = sorted(set(pooled.values()))
    members = {
        name: [group for each, group in sorted(frame.groups.items()) if pooled[each] == name]
        for name in strata
    }
    sizes = [sum(len(group.digests) for group in members[name]) for name in strata]
    weights = [
        float(sum(group.weight for group in members[name])) if how == "uncertainty" else float(size)
        for name, size in zip(strata, sizes, strict=True)
    ]
    taken = dict(zip(strata, allocate(sizes, weights, n), strict=True))
    limits = {
        name: heapq.nsmallest(taken[name], chain.from_iterable(g.digests for g in members[name]))
        for name in strata
    }
    chosen = {digest: name for name, digests in limits.items() for digest in digests}
    size_of = dict(zip(strata, sizes, strict=True))
    found = {
        digest: Drawn(row.id, row.category, name, taken[name] / size_of[name], size_of[name])
        for row, digest in _digested(path, str(seed).encode())
        if (name := chosen.get(digest)) is not None
    }
    return Sample(
        [found[digest] for digest in sorted(found)],
        [Stratum(name, size_of[name], taken[name]) for name in strata],
        sum(sizes),
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


def _scan(path: str, fields: Sequence[By], key: bytes) -> _Frame:
    groups: dict[str, _Group] = {}
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
        known = error_chance(row)
        unsure += known is not None
        p = _ERROR_UNKNOWN if known is None else known
        group = groups.setdefault(_stratum(row, fields), _Group())
        group.digests.append(_digest(row.id, key))
        group.weight += round((p * (1 - p)) ** 0.5 * _WEIGHT_UNIT)
        without.pop(row.id, None)
    missing = dict(sorted(Counter(without.values()).items()))
    return _Frame(groups, repeated, missing, unsure)


def _digested(path: str, key: bytes) -> Iterator[tuple[OutcomeRow, int]]:
    for row in _verdicts(path):
        if not isinstance(row, tuple):
            yield row, _digest(row.id, key)


def _digest(id: str, key: bytes) -> int:
    """A number as good as random for who does not know the seed, the same in every file."""
    data = id.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, key=key).digest(), "little")


def _pooled(groups: dict[str, _Group], n: int) -> dict[str, str]:
    """The stratum of every group: the smallest are pooled until five of the sample fall on each."""
    room = max(1, n // _EACH_MEAN)
    if len(groups) <= room:
        return {name: name for name in groups}
    by_size = sorted(groups, key=lambda name: (len(groups[name].digests), name))
    small = set(by_size[: len(groups) - room + 1])
    return {name: _POOLED if name in small else name for name in groups}


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
