"""Which of a person's preferences shall vote: all subsets scored, none on its own origin.

Between the vote matrix and the profile. Up to `EXACT_MAX` preferences all subsets are compared,
beyond that a greedy search adds and drops one at a time. A subset's verdict on a pair is computed
without the preferences that saw a choice of that pair's prompt (leave-one-out), so that the
score is not that of sentences on their own origin. Source: SenseJudge (arXiv 2606.03189, section
3.2.3) for the enumeration; leave-one-out, the tie-break and the weights are our own.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dikast.analysis.preferences_votes import Floats, Ints, Matrix, Signs, voted

EXACT_MAX = 16
Bools = npt.NDArray[np.bool_]


class Selection(NamedTuple):
    """The set that was chosen.

    `weights`: one for each preference, 0 for those left out. `score`: the share of (pair,
    order) verdicts that were right, level ones ½: an optimistic figure that serves to choose and
    is no expectation. `tied` sets share the best score. `exact`: all subsets were compared.
    """

    weights: Floats
    score: float
    tied: int
    exact: bool


class Chooser(Protocol):
    """Chooses a subset for given labels; prepared once, used for every fold and shuffle."""

    def choose(self, labels: Signs, held: int | None = None, single: bool = False) -> Bools | None:
        """The best subset as flags; None where none may be chosen.

        Args:
            labels: (pairs,) +1 or -1.
            held: a prompt's number: its pairs do not count, and what was written from it may not
                be chosen.
            single: sets of one only.
        """
        ...


class _Base:
    """What both searches share: which preferences may be chosen, and who may score where."""

    def __init__(self, matrix: Matrix, pinned: Sequence[bool], leave_one_out: bool) -> None:
        self.matrix = matrix
        allowed = matrix.allowed() if leave_one_out else np.ones(matrix.picks.shape[:2], np.bool_)
        self.picks = matrix.picks * allowed[:, :, None]
        # What may be scored nowhere (written from every pair) can only be chosen by a person.
        usable = allowed.any(axis=0) if len(allowed) else np.zeros(len(pinned), np.bool_)
        self.pinned = np.asarray(pinned, dtype=np.bool_)
        self.usable = usable | self.pinned
        self.members = np.flatnonzero(self.usable)

    def barred(self, held: int | None) -> Bools:
        """Preferences that were written from the held-out prompt."""
        return np.array([held is not None and held in own for own in self.matrix.sources])


class Exact(_Base):
    """All subsets at once: row s of `members` holds the bits of subset s + 1."""

    def __init__(self, matrix: Matrix, pinned: Sequence[bool], leave_one_out: bool = True) -> None:
        super().__init__(matrix, pinned, leave_one_out)
        width = len(self.members)
        fixed = self.pinned[self.members]
        free = int((~fixed).sum())
        codes = np.arange(0 if fixed.any() else 1, 1 << free, dtype=np.int64)
        # The first preference is the highest bit: among sets of one size the one with the
        # lowest indices has the largest code.
        shifts = np.arange(free - 1, -1, -1)
        self.bits = np.ones((len(codes), width), dtype=np.int8)
        self.bits[:, ~fixed] = (codes[:, None] >> shifts) & 1
        sizes = self.bits.sum(axis=1)
        order = np.lexsort((-codes, sizes, sizes % 2 == 0))
        self.rank = np.empty(len(order), dtype=np.int64)
        self.rank[order] = np.arange(len(order))
        self.sizes = sizes
        cells = self.picks[:, self.members, :].transpose(1, 0, 2)
        pairs = cells.shape[1]
        flat = self.bits.astype(np.float32) @ cells.reshape(width, pairs * 2).astype(np.float32)
        verdicts = np.sign(flat).reshape(-1, pairs, 2)
        self._by_order = [np.ascontiguousarray(verdicts[:, :, order]) for order in (0, 1)]
        self._valid: dict[tuple[int | None, bool], Bools] = {}

    def scores(self, labels: Signs, held: int | None = None) -> tuple[Ints, Ints]:
        """Right minus wrong verdicts of every subset, by order."""
        counted = labels.astype(np.float32)
        if held is not None:
            counted = np.where(self.matrix.groups == held, np.float32(0), counted)
        totals = [np.rint(verdicts @ counted).astype(np.int64) for verdicts in self._by_order]
        return totals[0], totals[1]

    def choose(self, labels: Signs, held: int | None = None, single: bool = False) -> Bools | None:
        """See `Chooser`."""
        valid = self._allowed(held, single)
        if not valid.any():
            return None
        first, second = self.scores(labels, held)
        at = int(np.argmax(np.where(valid, self._keys(first, second), np.iinfo(np.int64).min)))
        chosen = np.zeros(len(self.usable), dtype=np.bool_)
        chosen[self.members] = self.bits[at].astype(np.bool_)
        return chosen

    def _allowed(self, held: int | None, single: bool) -> Bools:
        """Subsets that may be chosen; kept, because every shuffle asks again."""
        if (held, single) not in self._valid:
            barred = self.barred(held)[self.members]
            valid: Bools = np.logical_not(self.bits[:, barred].any(axis=1))
            if single:
                valid &= self.sizes == 1
            self._valid[held, single] = valid
        return self._valid[held, single]

    def _keys(self, first: Ints, second: Ints) -> Ints:
        """Score, then the smaller gap between the orders, then odd, smaller, lowest."""
        count, width = len(self.rank) + 1, 4 * len(self.matrix.labels) + 1
        keys: Ints = ((first + second) * width - np.abs(first - second)) * count - self.rank
        return keys

    def tied(self, labels: Signs) -> Bools:
        """The subsets that share the best score."""
        first, second = self.scores(labels)
        total = first + second
        found: Bools = total == total.max()
        return found


class Greedy(_Base):
    """Adds the preference that helps most, drops one that hurts, until nothing helps."""

    def __init__(self, matrix: Matrix, pinned: Sequence[bool], leave_one_out: bool = True) -> None:
        super().__init__(matrix, pinned, leave_one_out)
        self._columns = self.picks.transpose(1, 0, 2).astype(np.int32)

    def choose(self, labels: Signs, held: int | None = None, single: bool = False) -> Bools | None:
        """See `Chooser`."""
        free = self.usable & ~self.barred(held) & ~self.pinned
        counted = labels.astype(np.int64)
        if held is not None:
            counted = np.where(self.matrix.groups == held, 0, counted)
        chosen = self.pinned & ~self.barred(held)
        if single:
            chosen = np.zeros_like(chosen)
            free = self.usable & ~self.barred(held)
        best = self._key(chosen, counted) if chosen.any() else None
        while True:
            moves = [at for at in np.flatnonzero(free) if not (single and chosen.any())]
            tried = [
                (self._key(_turned(chosen, at), counted), -int(at))
                for at in moves
                if _turned(chosen, at).any()
            ]
            if not tried or (best is not None and max(tried)[0] <= best):
                break
            best, at = max(tried)
            chosen = _turned(chosen, -at)
        return chosen if chosen.any() else None

    def _key(self, chosen: Bools, counted: Ints) -> tuple[int, int, bool, int]:
        verdicts = np.sign(self._columns[chosen].sum(axis=0))
        first, second = (int(verdicts[:, order] @ counted) for order in (0, 1))
        size = int(chosen.sum())
        return first + second, -abs(first - second), size % 2 == 1, -size


def _turned(chosen: Bools, at: int | np.intp) -> Bools:
    out = chosen.copy()
    out[at] = not out[at]
    return out


def chooser(
    matrix: Matrix, pinned: Sequence[bool] | None = None, *, leave_one_out: bool = True
) -> Exact | Greedy:
    """The search that fits the number of preferences.

    Args:
        matrix: votes on the development pairs.
        pinned: which preferences must be in every set; none by default.
        leave_one_out: score no preference on a prompt it was written from.
    """
    flags = [False] * len(matrix.sources) if pinned is None else pinned
    search = Greedy(matrix, flags, leave_one_out)
    free = len(search.members) - int(search.pinned.sum())
    return Exact(matrix, flags, leave_one_out) if free <= EXACT_MAX else search


def select(search: Exact | Greedy, *, weighted: bool = False) -> Selection | None:
    """Choose the set that shall vote; None where no preference may be scored.

    Args:
        search: see `chooser`.
        weighted: give every preference the share of the best sets that contain it, instead of
            choosing one of them (exact search only; beyond it one set is chosen).
    """
    labels = search.matrix.labels
    chosen = search.choose(labels)
    if chosen is None:
        return None
    weights = chosen.astype(np.float64)
    tied = 1
    if isinstance(search, Exact):
        best = search.tied(labels)
        tied = int(best.sum())
        if weighted:
            weights = np.zeros(len(search.usable))
            weights[search.members] = np.round(search.bits[best].mean(axis=0), 3)
    verdicts = voted(search.picks, weights)
    score = float(np.mean((1 + verdicts * labels[:, None]) / 2)) if labels.size else 0.0
    return Selection(weights=weights, score=score, tied=tied, exact=isinstance(search, Exact))


def nested(search: Exact | Greedy, labels: Signs | None = None, *, single: bool = False) -> Signs:
    """Verdicts on each prompt of a set that was chosen without it.

    For each prompt in turn: preferences written from it are out, its pairs do not score, the set
    is chosen anew, and judges the prompt's pairs. No verdict depends on its own label.

    Args:
        search: see `chooser`; must score with leave-one-out.
        labels: (pairs,) other labels than the person's own, for the permutation test.
        single: choose one preference instead of a set.

    Returns:
        (pairs, 2) of +1, 0, -1; 0 where no preference was left to judge.
    """
    said = search.matrix.labels if labels is None else labels
    out = np.zeros((len(said), 2), dtype=np.int8)
    for held in np.unique(search.matrix.groups):
        chosen = search.choose(said, held=int(held), single=single)
        mine = search.matrix.groups == held
        if chosen is not None:
            out[mine] = voted(search.matrix.picks[mine], chosen)
    return out


def shuffled_p(search: Exact | Greedy, *, seed: int, draws: int = 199) -> float:
    """How often labels in a random order do as well as the person's own (one-sided).

    The nested accuracy is computed anew for each shuffle of the labels over the pairs; the
    figure is (1 + those at least as good) / (1 + draws). A large one says that the person's
    labels carry no signal that this judge can use.
    """
    rng = np.random.default_rng(seed)
    labels = search.matrix.labels
    own = _agreement(nested(search), labels)
    hits = 0
    for _ in range(draws):
        other = rng.permutation(labels)
        hits += _agreement(nested(search, other), other) >= own
    return (1 + hits) / (1 + draws)


def _agreement(verdicts: Signs, labels: Signs) -> int:
    return int((verdicts.astype(np.int64) * labels[:, None]).sum())
