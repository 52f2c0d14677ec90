"""Stage 4, second half: themes that are one theme become one.

Comes after the labels. Which pairs of labels are asked about is decided by their rank among all
pairs and not by a fixed cosine, because what "near" means differs from embedder to embedder. Each
is asked about in both orders; only two yeses count. Groups are complete: every two members were
called equivalent, so that one wrong yes cannot chain themes together.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from dikast.engine.model import Completion, Judge, Record
from dikast.engine.ports import Ask
from dikast.strategies.sesse.cluster import Vectors
from dikast.strategies.sesse.formulas import candidates_wanted
from dikast.strategies.sesse.prompts import EQUIVALENCE, stage_template
from dikast.strategies.sesse.stages import Answered, ask_twice, read_json, stage_call

YesNo = Literal["yes", "no"]


class Candidate(Record, frozen=True):
    """Two clusters whose labels are near; `first` is the smaller id."""

    first: str
    second: str
    cosine: float


class Asked(Record, frozen=True):
    """What was said of a candidate, in both orders; a line of merges.jsonl."""

    first: str
    second: str
    cosine: float
    forward: str
    backward: str
    calls: int = 2

    @property
    def same(self) -> bool:
        """Whether both orders said yes; an answer that could not be read is no yes."""
        return self.forward == "yes" and self.backward == "yes"


def candidates(cids: Sequence[str], labels: Vectors, quantile: float) -> list[Candidate]:
    """The nearest pairs of labels, nearest first.

    Args:
        cids: ids of the clusters.
        labels: their labels' vectors, n x d, unit rows.
        quantile: see `BuildParams.merge_quantile`.
    """
    cosines = np.clip(labels @ labels.T, -1.0, 1.0)
    found = [
        Candidate(
            first=min(cids[i], cids[j]),
            second=max(cids[i], cids[j]),
            cosine=round(float(cosines[i, j]), 6),
        )
        for i in range(len(cids))
        for j in range(i + 1, len(cids))
    ]
    found.sort(key=lambda each: (-each.cosine, each.first, each.second))
    return found[: candidates_wanted(len(cids), quantile)]


class _Equivalent(msgspec.Struct):
    equivalent: str


class Equivalence:
    """Asks whether two labels mean the same cases.

    Args:
        judge: who is asked.
        seed: the fences.
    """

    def __init__(self, judge: Judge, *, seed: int) -> None:
        self._judge = judge
        self._template = stage_template(EQUIVALENCE)
        self._seed = seed

    async def ask(self, first: str, second: str, name: str, ask: Ask) -> Answered[YesNo]:
        """Yes or no, in this order; `value` is None where the answer could not be read.

        Raises:
            ProviderError: the call failed for good, refusals excepted.
            RunStopped: the run ends.
        """
        data = {"first": first, "second": second}
        return await ask_twice(
            ask, stage_call(self._judge, self._template, data, self._seed, name), _read
        )


def _read(completion: Completion) -> YesNo | None:
    found = read_json(completion, _Equivalent)
    said = found.equivalent.strip().casefold() if found is not None else ""
    return "yes" if said == "yes" else "no" if said == "no" else None


def merge_groups(asked: Sequence[Asked], *, cap: int) -> list[tuple[str, ...]]:
    """Groups of clusters to merge, by complete linkage; single clusters are not listed.

    Args:
        asked: what was said, nearest pair first.
        cap: the most clusters in a group.
    """
    same = {frozenset((each.first, each.second)) for each in asked if each.same}
    group_of: dict[str, frozenset[str]] = {}
    for each in asked:
        if not each.same:
            continue
        one = group_of.get(each.first, frozenset((each.first,)))
        other = group_of.get(each.second, frozenset((each.second,)))
        joined = one | other
        if one == other or len(joined) > cap:
            continue
        if all(frozenset((x, y)) in same for x in one for y in other):
            group_of.update(dict.fromkeys(joined, joined))
    return sorted(tuple(sorted(group)) for group in set(group_of.values()))
