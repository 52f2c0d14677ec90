"""What a fit is worth: every way to use a person's labels beside the plain judge, honestly.

After the selection and before the profile is written. Each arm is scored on development pairs
without having seen a choice of the pair's prompt: preferences by leave-one-out, the chosen set
and the best single preference by nested choice, the prompts with all preferences or all examples
without those of the pair's own prompt. The score that chose the set is no arm: it is optimistic.
"""

from typing import Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from dikast.analysis.preferences_selection import (
    Exact,
    Greedy,
    Selection,
    chooser,
    nested,
    shuffled_p,
)
from dikast.analysis.preferences_votes import (
    Estimate,
    Floats,
    Ints,
    Matrix,
    Positions,
    Signs,
    check_read,
    mean_of,
    paired,
    positions,
    right,
    voted,
)


class Arm(msgspec.Struct, frozen=True):
    """One way to judge. `both_right` is the share of pairs right in both orders; `gain` is the
    accuracy less the plain judge's, on the pairs that both have."""

    name: str
    accuracy: Estimate
    both_right: Estimate
    positions: Positions
    gain: Estimate | None = None


class FitReport(msgspec.Struct, frozen=True):
    """The measurements of one fit.

    `use` follows from the gain of the arm "chosen set": "preferences" where its interval lies
    above 0. `shuffled_p`: see `preferences_selection.shuffled_p`.
    """

    pairs: int
    prompts: int
    unread: float
    arms: tuple[Arm, ...]
    use: Literal["preferences", "plain"]
    why: str
    chosen: int = 0
    candidates: int = 0
    tied_best_sets: int = 0
    exact: bool = True
    shuffled_p: float | None = None
    shuffles: int = 0


class Measured(NamedTuple):
    """The picks of a fit: (pairs, 2) each, and the matrix of the preferences; None: not asked."""

    matrix: Matrix
    plain: Signs
    one_prompt: Signs | None
    few_shot: Signs | None


def fit_report(
    measured: Measured,
    search: Exact | Greedy,
    selection: Selection | None,
    *,
    seed: int,
    shuffles: int = 199,
) -> FitReport:
    """Measure a fit.

    Args:
        measured: the picks.
        search: the search over the same matrix, scoring with leave-one-out.
        selection: what it chose on all pairs; None where nothing could be chosen.
        seed: of the bootstrap and of the shuffles.
        shuffles: of the permutation test.

    Raises:
        InputError: too many of the judge's answers gave no verdict.
    """
    matrix = measured.matrix
    unread = check_read(measured.plain, "the plain judge")
    if matrix.picks.size:
        unread = max(unread, check_read(matrix.picks, "the judge with preferences"))
    labels, groups = matrix.labels, matrix.groups
    base = right(measured.plain, labels, measured.plain != 0)
    arms = [arm_of("plain judge", measured.plain, labels, groups, seed=seed)]
    if selection is not None:
        cast = (search.picks != 0).any(axis=1)
        for name, verdicts in (
            ("chosen set", nested(search)),
            ("all preferences vote", voted(search.picks, np.ones(len(matrix.sources)))),
            # A pinned sentence is in every set, and would leave no set of one.
            ("best single preference", nested(chooser(matrix), single=True)),
        ):
            arms.append(arm_of(name, verdicts, labels, groups, seed=seed, base=base, cast=cast))
    for name, picks in (
        ("all preferences in one prompt", measured.one_prompt),
        ("labelled pairs as examples", measured.few_shot),
    ):
        if picks is not None:
            arms.append(arm_of(name, picks, labels, groups, seed=seed, base=base))
    use, why = _decided(arms)
    return FitReport(
        pairs=len(matrix.labels),
        prompts=int(np.unique(matrix.groups).size),
        unread=unread,
        arms=tuple(arms),
        use=use,
        why=why,
        chosen=0 if selection is None else int(np.count_nonzero(selection.weights)),
        candidates=int(search.usable.sum()),
        tied_best_sets=0 if selection is None else selection.tied,
        exact=selection is None or selection.exact,
        shuffled_p=None if selection is None else shuffled_p(search, seed=seed, draws=shuffles),
        shuffles=0 if selection is None else shuffles,
    )


def _decided(arms: list[Arm]) -> tuple[Literal["preferences", "plain"], str]:
    gain = next((arm.gain for arm in arms if arm.name == "chosen set"), None)
    if gain is None or gain.value is None:
        return "plain", "no preference could be scored on a prompt it was not written from"
    if gain.interval is None:
        return "plain", "too few prompts for an interval of the gain"
    if gain.interval.low > 0:
        return "preferences", "the interval of the gain over the plain judge lies above 0"
    return "plain", "the interval of the gain over the plain judge does not lie above 0"


def arm_of(
    name: str,
    picks: Signs,
    labels: Signs,
    groups: Ints,
    *,
    seed: int,
    base: Floats | None = None,
    cast: npt.NDArray[np.bool_] | None = None,
) -> Arm:
    """Measure verdicts in two orders against a person's labels.

    Args:
        name: of the arm.
        picks: (pairs, 2) of +1 (A), -1 (B), 0 (level or none).
        labels: (pairs,).
        groups: (pairs,) numbers of the prompts.
        seed: of the bootstrap.
        base: the plain judge's accuracy on each pair; None for the plain judge itself.
        cast: (pairs, 2), where votes were cast: a level vote counts ½ there, and what has none
            is left out. None: every 0 is a missing verdict.
    """
    accuracy = right(picks, labels, picks != 0 if cast is None else cast)
    exact = (picks == labels[:, None]).all(axis=1).astype(np.float64)
    return Arm(
        name=name,
        accuracy=mean_of(accuracy, groups, seed),
        both_right=mean_of(exact, groups, seed),
        positions=positions(picks, groups, seed),
        gain=None if base is None else paired(accuracy, base, groups, seed),
    )
