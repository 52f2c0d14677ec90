"""The selection of the SenseJudge authors, on a stored vote matrix, for comparison only.

Reproduces what their released code does (repository commit of 2026-06-05, read and described, not
copied): all subsets, scored on the pairs the preferences were written from, a vote that is level
goes to the answer shown first, a missing verdict counts as wrong, every best set is kept and the
figures are averaged, and where the worst sets turned round beat the best, those are used. Nothing
of this decides a profile: see `preferences_selection`.
"""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dikast.analysis.preferences_votes import Signs, check_read
from dikast.engine.errors import InputError

COLUMNS_MAX = 18


class PaperSelection(NamedTuple):
    """The sets that the authors' code keeps.

    `subsets`: (sets, columns) flags. `best` and `worst` are numbers of right verdicts among
    `cells`. Under "inverted_worst" the verdicts of the sets are to be turned round.
    """

    strategy: Literal["forward_best", "inverted_worst"]
    subsets: npt.NDArray[np.bool_]
    best: int
    worst: int
    cells: int


def paper_selection(picks: Signs, labels: Signs, *, gap_penalty: bool = False) -> PaperSelection:
    """Choose as the authors do.

    Args:
        picks: (pairs, columns, 2), +1 for A, -1 for B, 0 for none; column 0 is theirs without a
            preference, where the matrix has it.
        labels: (pairs,) +1 or -1.
        gap_penalty: take the difference between the two orders off the score.

    Raises:
        InputError: too many columns, or a judge that gave no verdicts (theirs would turn it
            round and call it perfect).
    """
    columns = picks.shape[1]
    if not 1 <= columns <= COLUMNS_MAX:
        raise InputError(f"the authors' selection takes 1 to {COLUMNS_MAX} columns, not {columns}")
    check_read(picks, "the authors' selection")
    subsets = _subsets(columns)
    first, second = _right(picks, labels, subsets)
    plain = first + second
    score = plain - np.abs(first - second) if gap_penalty else plain
    cells = 2 * len(labels)
    best, worst = int(score.max()), int(plain.min())
    if cells - worst > best:
        return PaperSelection("inverted_worst", subsets[plain == worst], best, worst, cells)
    return PaperSelection("forward_best", subsets[score == best], best, worst, cells)


def paper_accuracy(picks: Signs, labels: Signs, chosen: PaperSelection) -> tuple[float, int]:
    """The authors' figure on other pairs: the mean accuracy of the sets in percent, and how many
    (pair, order) verdicts it is computed on.

    Raises:
        InputError: the judge gave no verdicts.
    """
    check_read(picks, "the authors' accuracy")
    first, second = _right(picks, labels, chosen.subsets)
    cells = 2 * len(labels)
    counts = first + second
    if chosen.strategy == "inverted_worst":
        counts = cells - counts
    return 100 * float(counts.mean()) / cells, cells


def _subsets(columns: int) -> npt.NDArray[np.bool_]:
    codes = np.arange(1, 1 << columns)
    return ((codes[:, None] >> np.arange(columns)) & 1).astype(np.bool_)


def _right(
    picks: Signs, labels: Signs, subsets: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Right verdicts of each subset, with the chosen answer first, and second.

    Orders are told by the person's answer here, as in the authors' files: it is shown first
    where it is A in order ab or B in order ba.
    """
    hits = picks == labels[:, None, None]
    takes_a = labels == 1
    chosen_first, chosen_second = hits[:, :, 0].copy(), hits[:, :, 1].copy()
    chosen_first[~takes_a] = hits[~takes_a, :, 1]
    chosen_second[~takes_a] = hits[~takes_a, :, 0]
    sizes = subsets.sum(axis=1)[:, None]
    flags = subsets.astype(np.float32)
    ones_first = np.rint(flags @ chosen_first.T.astype(np.float32))
    ones_second = np.rint(flags @ chosen_second.T.astype(np.float32))
    return (
        (2 * ones_first >= sizes).sum(axis=1).astype(np.int64),
        (2 * ones_second > sizes).sum(axis=1).astype(np.int64),
    )
