"""Whether a judge still judges as it did: one set of items, judged then and judged now.

Comes after two runs on the same anchors. Everything is paired: an item counts where both runs
have a verdict on it. A measure raises the alarm only when its change is beyond chance (all tests
of one check share one `alpha`, after Holm) and beyond what is tolerated. Pure: results in, a
report out; randomness only from a seed.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from dikast.analysis.intervals import Interval, student_quantile, wilson
from dikast.analysis.significance import holm, mcnemar, permutation_p
from dikast.analysis.tolerance import Tolerance
from dikast.engine.model import Record, Winner

Floats = npt.NDArray[np.float64]
_LEVEL: Final = 0.95
_KS_DRAWS: Final = 4999
_KS_BATCH_CELLS: Final = 1 << 21
_VALUE_OF: Final[dict[Winner, float]] = {"A": 1.0, "tie": 0.5, "B": 0.0}


class Judged(Record, frozen=True):
    """One anchor in one run. `winner` is None where there is no verdict; `why` then says why.

    `scores` is named as in outcomes: "A.accuracy", "B.total". `again` is the winner of a second
    judgement of the same run, where there was one.
    """

    id: str
    winner: Winner | None = None
    again: Winner | None = None
    scores: dict[str, float] = {}
    label: Winner | None = None
    why: str | None = None


class Measure(Record, frozen=True):
    """One thing that was compared.

    `items` were compared; `before` and `after` are the values in the baseline and today, `change`
    their difference (the distance itself for a distribution, the rate itself for flips and for
    missing verdicts) with its `interval`. `p` is of the test named in `test`, `p_holm` the same
    for having made all the tests of the check. `limit` is the change that is tolerated, in the
    unit of the change.
    """

    name: str
    items: int
    before: float | None
    after: float | None
    change: float
    interval: Interval | None
    limit: float
    out_of_control: bool
    test: str | None = None
    p: float | None = None
    p_holm: float | None = None


class Agreement(Record, frozen=True):
    """How often verdicts equal labels, three-way: a tie agrees with a tie and with nothing else.

    `left_out` labelled items have no verdict.
    """

    agreed: int
    items: int
    left_out: int
    interval: Interval


class Drift(Record, frozen=True):
    """The result of a check.

    `items` is the number of anchors, `common` of those with a verdict in both runs, `missing` of
    those whose verdict is missing today or was in the baseline, by reason.
    """

    items: int
    common: int
    missing_before: dict[str, int]
    missing_after: dict[str, int]
    measures: tuple[Measure, ...]
    agreement: Agreement | None
    tolerance: Tolerance

    @property
    def alarms(self) -> tuple[Measure, ...]:
        """The measures that are out of control."""
        return tuple(each for each in self.measures if each.out_of_control)

    @property
    def in_control(self) -> bool:
        """True when nothing is."""
        return not self.alarms

    @property
    def capable(self) -> bool | None:
        """Whether today's agreement with the labels reaches the bar; None without labels."""
        found = self.agreement
        if found is None or not found.items:
            return None
        return found.agreed / found.items >= self.tolerance.min_agreement


class _Draft(Record, frozen=True):
    """A measure whose test still has to be seen among all tests."""

    measure: Measure
    beyond: bool


def check_drift(
    before: Sequence[Judged],
    after: Sequence[Judged],
    tolerance: Tolerance | None = None,
    *,
    seed: int = 0,
) -> Drift:
    """Compare two runs on the same anchors.

    Args:
        before: the baseline, one result for each anchor.
        after: today, the same ids.
        tolerance: what is tolerated; the defaults of `Tolerance` if None.
        seed: of the permutation tests.

    Raises:
        ValueError: the two do not have the same ids.
    """
    limits = tolerance or Tolerance()
    then = {each.id: each for each in before}
    now = {each.id: each for each in after}
    if then.keys() != now.keys():
        raise ValueError("the two runs judged different items")
    both = [
        (then[id], now[id])
        for id in then
        if then[id].winner is not None and now[id].winner is not None
    ]
    drafts = [*_scores(both, limits, seed), *_verdicts(both, limits, seed)]
    return Drift(
        items=len(then),
        common=len(both),
        missing_before=_reasons(before),
        missing_after=_reasons(after),
        measures=(*_decided(drafts, limits.alpha), _missing(then, now, limits)),
        agreement=agreement(after),
        tolerance=limits,
    )


def _reasons(results: Sequence[Judged]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in results:
        if each.winner is None:
            why = each.why or "no verdict"
            found[why] = found.get(why, 0) + 1
    return found


def _decided(drafts: Sequence[_Draft], alpha: float) -> list[Measure]:
    """Measures with the tests corrected for their number."""
    tested = [each.measure.p for each in drafts if each.measure.p is not None]
    corrected = iter(holm(tested))
    out: list[Measure] = []
    for each in drafts:
        measure = each.measure
        if measure.p is None:
            out.append(_with(measure, None, out_of_control=each.beyond))
            continue
        p_holm = next(corrected)
        out.append(_with(measure, p_holm, out_of_control=each.beyond and p_holm <= alpha))
    return out


def _with(measure: Measure, p_holm: float | None, *, out_of_control: bool) -> Measure:
    return Measure(
        name=measure.name,
        items=measure.items,
        before=measure.before,
        after=measure.after,
        change=measure.change,
        interval=measure.interval,
        limit=measure.limit,
        out_of_control=out_of_control,
        test=measure.test,
        p=measure.p,
        p_holm=p_holm,
    )


# --- scores -------------------------------------------------------------------------------------


def _scores(both: Sequence[tuple[Judged, Judged]], limits: Tolerance, seed: int) -> list[_Draft]:
    """The mean and the distribution of every dimension; both answers of an item count."""
    names = dict.fromkeys(
        name.partition(".")[2] for then, _ in both for name in then.scores if "." in name
    )
    drafts: list[_Draft] = []
    for number, name in enumerate(names):
        rows = [
            (
                (then.scores[f"A.{name}"], then.scores[f"B.{name}"]),
                (now.scores[f"A.{name}"], now.scores[f"B.{name}"]),
            )
            for then, now in both
            if all(f"{side}.{name}" in run.scores for side in "AB" for run in (then, now))
        ]
        if not rows:
            continue
        first = np.array([row[0] for row in rows], dtype=np.float64)
        second = np.array([row[1] for row in rows], dtype=np.float64)
        drafts.append(_mean(name, first, second, limits, seed + number))
        drafts.append(_distribution(name, first, second, limits, seed + number))
    return drafts


def _mean(name: str, before: Floats, after: Floats, limits: Tolerance, seed: int) -> _Draft:
    # Rounded, so that the dust of floats is no change of an item.
    by_item: Floats = (after - before).mean(axis=1).round(9)
    change = float(by_item.mean())
    spread = float(before.std(ddof=1)) if before.size > 1 else 0.0
    limit = limits.max_shift_sd * spread
    measure = Measure(
        name=f"mean {name}",
        items=len(before),
        before=float(before.mean()),
        after=float(after.mean()),
        change=change,
        interval=student(by_item),
        limit=limit,
        out_of_control=False,
        test="sign-flip permutation",
        p=permutation_p(by_item, seed=seed),
    )
    return _Draft(measure=measure, beyond=abs(change) > limit)


def _distribution(name: str, before: Floats, after: Floats, limits: Tolerance, seed: int) -> _Draft:
    distance, p = paired_ks(before, after, seed=seed)
    measure = Measure(
        name=f"distribution {name}",
        items=len(before),
        before=None,
        after=None,
        change=distance,
        interval=None,
        limit=limits.max_ks,
        out_of_control=False,
        test="Kolmogorov-Smirnov distance, items exchanged",
        p=p,
    )
    return _Draft(measure=measure, beyond=distance > limits.max_ks)


def student(differences: npt.ArrayLike, level: float = _LEVEL) -> Interval | None:
    """Student's interval of a mean of differences, one for each independent item.

    None for fewer than two items, and where all differ alike: then nothing is known of the spread.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.size < 2 or float(np.ptp(values)) == 0.0:
        return None
    error = float(values.std(ddof=1)) / float(np.sqrt(values.size))
    half = student_quantile(level, values.size - 1) * error
    mean = float(values.mean())
    return Interval(mean - half, mean + half, level, "student, paired")


def share_difference(hits: int, n: int, other_hits: int, other_n: int) -> Interval:
    """The interval of one share minus another, of independent samples.

    Args:
        hits, n: of the first share, n above 0.
        other_hits, other_n: of the one that is taken off, other_n above 0.

    Source: Newcombe 1998, Statistics in Medicine 17, 873-890, method 10.
    """
    first, second = wilson(hits, n, _LEVEL), wilson(other_hits, other_n, _LEVEL)
    share, other = hits / n, other_hits / other_n
    low = ((share - first.low) ** 2 + (second.high - other) ** 2) ** 0.5
    high = ((first.high - share) ** 2 + (other - second.low) ** 2) ** 0.5
    return Interval(share - other - low, share - other + high, _LEVEL, "newcombe")


def ks_distance(first: Floats, second: Floats) -> float:
    """The largest difference between the cumulative shares of two samples of equal size."""
    grid = np.unique(np.concatenate((first.ravel(), second.ravel())))
    shares = [
        np.searchsorted(np.sort(each.ravel()), grid, side="right") / each.size
        for each in (first, second)
    ]
    return float(np.abs(shares[0] - shares[1]).max())


def paired_ks(
    before: npt.ArrayLike, after: npt.ArrayLike, *, seed: int, draws: int = _KS_DRAWS
) -> tuple[float, float]:
    """Kolmogorov and Smirnov's distance of two paired samples, with a permutation p.

    The published distribution of the distance holds for continuous, independent samples; scores
    are neither. Under "nothing has changed" the two results of an item can be exchanged, so the
    distance is set beside those of samples in which each item was exchanged with probability 1/2.
    p = (1 + draws at least as far) / (1 + draws).

    Args:
        before: (items, values) numbers of the first run; the values of an item stay together.
        after: the same of the second run.
        seed: of the exchanges.
        draws: how many are made.

    Returns:
        The distance, 0 to 1, and its p.

    Source: Praestgaard 1995, Scandinavian Journal of Statistics 22, 305-322 (permutation
    Kolmogorov-Smirnov tests), here with exchanges inside the pair.
    """
    first = np.atleast_2d(np.asarray(before, dtype=np.float64))
    second = np.atleast_2d(np.asarray(after, dtype=np.float64))
    distance = ks_distance(first, second)
    grid = np.unique(np.concatenate((first.ravel(), second.ravel())))
    # (items, grid): by how much an item moves the difference of the two cumulative shares.
    gaps = (
        np.stack(
            [((first <= at).mean(axis=1) - (second <= at).mean(axis=1)) for at in grid[:-1]], axis=1
        )
        if grid.size > 1
        else np.zeros((len(first), 1))
    )
    moved = gaps[np.any(gaps != 0, axis=1)]
    if not moved.size:
        return distance, 1.0
    seen = float(np.abs(moved.sum(axis=0)).max()) - 1e-9
    rng = np.random.default_rng(seed)
    batch = max(1, _KS_BATCH_CELLS // len(moved))
    far = 0
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        signs = 1.0 - 2.0 * rng.integers(0, 2, size=(size, len(moved)))
        far += int((np.abs(signs @ moved).max(axis=1) >= seen).sum())
    return distance, (1 + far) / (1 + draws)


# --- verdicts -----------------------------------------------------------------------------------


def _verdicts(both: Sequence[tuple[Judged, Judged]], limits: Tolerance, seed: int) -> list[_Draft]:
    if not both:
        return []
    return [
        _win_share(both, limits, seed),
        _flips(both, limits),
        *_beyond_noise(both),
        *_agreement_change(both),
    ]


def _value(result: Judged) -> float:
    assert result.winner is not None
    return _VALUE_OF[result.winner]


def _win_share(both: Sequence[tuple[Judged, Judged]], limits: Tolerance, seed: int) -> _Draft:
    before = np.array([_value(then) for then, _ in both])
    after = np.array([_value(now) for _, now in both])
    change = float((after - before).mean())
    measure = Measure(
        name="win share of A",
        items=len(both),
        before=float(before.mean()),
        after=float(after.mean()),
        change=change,
        interval=student(after - before),
        limit=limits.max_win_shift,
        out_of_control=False,
        test="sign-flip permutation",
        p=permutation_p(after - before, seed=seed),
    )
    return _Draft(measure=measure, beyond=abs(change) > limits.max_win_shift)


def _flips(both: Sequence[tuple[Judged, Judged]], limits: Tolerance) -> _Draft:
    """Verdicts that are not what they were, held against a limit: every judge is noisy."""
    flips = sum(then.winner != now.winner for then, now in both)
    interval = wilson(flips, len(both), _LEVEL)
    measure = Measure(
        name="verdicts changed",
        items=len(both),
        before=None,
        after=None,
        change=flips / len(both),
        interval=interval,
        limit=limits.max_flip_rate,
        out_of_control=False,
    )
    return _Draft(measure=measure, beyond=interval.low > limits.max_flip_rate)


def _beyond_noise(both: Sequence[tuple[Judged, Judged]]) -> list[_Draft]:
    """Verdicts that changed since the baseline, beside those that changed inside of it.

    If the judge is the same, today's verdict and the baseline's second one can be exchanged, so an
    item changes as often in either comparison with the first one: McNemar's test, exact.
    """
    twice = [(then, now) for then, now in both if then.again is not None]
    if not twice:
        return []
    inside = [then.winner != then.again for then, _ in twice]
    since = [then.winner != now.winner for then, now in twice]
    beyond = sum(since) > sum(inside)
    return [_Draft(measure=_change_of("changes beyond noise", inside, since), beyond=beyond)]


def _agreement_change(both: Sequence[tuple[Judged, Judged]]) -> list[_Draft]:
    labelled = [(then, now) for then, now in both if now.label is not None]
    if not labelled:
        return []
    right_before = [then.winner == now.label for then, now in labelled]
    right_after = [now.winner == now.label for _, now in labelled]
    measure = _change_of("agreement with labels", right_before, right_after)
    return [_Draft(measure=measure, beyond=sum(right_before) != sum(right_after))]


def _change_of(name: str, before: Sequence[bool], after: Sequence[bool]) -> Measure:
    """The change of a share over the same items, tested on those that changed."""
    lost = sum(one and not two for one, two in zip(before, after, strict=True))
    won = sum(two and not one for one, two in zip(before, after, strict=True))
    change = np.array(after, dtype=np.float64) - np.array(before, dtype=np.float64)
    return Measure(
        name=name,
        items=len(before),
        before=sum(before) / len(before),
        after=sum(after) / len(after),
        change=float(change.mean()),
        interval=student(change),
        limit=0.0,
        out_of_control=False,
        test="McNemar, exact",
        p=mcnemar(lost, won).exact_p,
    )


def _missing(then: dict[str, Judged], now: dict[str, Judged], limits: Tolerance) -> Measure:
    """Anchors that had a verdict and have none today. Where none had one, nothing can be said."""
    had = [id for id, each in then.items() if each.winner is not None]
    lost = sum(now[id].winner is None for id in had)
    rate = lost / len(had) if had else 1.0
    return Measure(
        name="verdicts missing",
        items=len(had),
        before=None,
        after=None,
        change=rate,
        interval=wilson(lost, len(had), _LEVEL),
        limit=limits.max_missing,
        out_of_control=rate > limits.max_missing or lost == len(had),
    )


def agreement(results: Sequence[Judged]) -> Agreement | None:
    """How often the verdicts of one run equal the labels; None where nothing is labelled."""
    labelled = [each for each in results if each.label is not None]
    if not labelled:
        return None
    read = [each for each in labelled if each.winner is not None]
    agreed = sum(each.winner == each.label for each in read)
    return Agreement(
        agreed=agreed,
        items=len(read),
        left_out=len(labelled) - len(read),
        interval=wilson(agreed, len(read), _LEVEL),
    )
