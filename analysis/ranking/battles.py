"""Battles: who met whom, on which prompt, before which judge, and how it ended. One column each.

Verdicts, labels or votes become a `Battles` here and are counted from then on; the texts have been
left behind. `BattleLog` takes them one by one, about 50 bytes each; `finish` joins the two orders
of a pair into one battle, because a pair judged twice is one piece of evidence and not two.
"""

import hashlib
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from dikast.engine.errors import InputError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Result = Literal["A", "B", "tie", "disagree"]

A, B, TIE, DISAGREE = 0, 1, 2, 3
_CODES: Final[Mapping[str, int]] = {"A": A, "B": B, "tie": TIE, "disagree": DISAGREE}
_FLIPPED: Final[Mapping[Result, Result]] = {
    "A": "B",
    "B": "A",
    "tie": "tie",
    "disagree": "disagree",
}
_ORDERS: Final[Mapping[str | None, int]] = {None: 0, "ab": 1, "ba": 2}


@dataclass(frozen=True)
class Battles:
    """Columns of equal length n, and what was left out on the way.

    A is the model whose name comes first, so that a pair read the other way round is the same
    battle. `a` and `b` are places in `models`, `judge` in `judges`, `group` in `groups`; `result`
    is 0 (A won), 1 (B won), 2 (tie) or 3 (the two orders disagree); `cluster` numbers the prompts
    and `item` the pairs by first appearance; `weight` is the battle's share of evidence.
    `covariates` has shape (n, k) and holds differences A minus B. `order_merged` pairs had both
    orders, `single_order` only one of the two, `clustered_by` counts what named the prompt.
    `split` says that several rows with weights that sum to 1 are one battle.
    """

    models: tuple[str, ...]
    judges: tuple[str, ...]
    groups: tuple[str, ...]
    a: Ints
    b: Ints
    result: Ints
    cluster: Ints
    item: Ints
    judge: Ints
    group: Ints
    weight: Floats
    covariates: Floats
    covariate_names: tuple[str, ...] = ()
    left_out: Mapping[str, int] | None = None
    order_merged: int = 0
    single_order: int = 0
    clustered_by: Mapping[str, int] | None = None
    split: bool = False

    def __len__(self) -> int:
        return len(self.a)

    def where(self, keep: Bools, why: str | None = None) -> "Battles":
        """The battles that `keep` marks; with `why`, the others are counted as left out."""
        left_out = Counter(self.left_out or {})
        if why is not None and not keep.all():
            left_out[why] += int((~keep).sum())
        return replace(
            self,
            a=self.a[keep],
            b=self.b[keep],
            result=self.result[keep],
            cluster=self.cluster[keep],
            item=self.item[keep],
            judge=self.judge[keep],
            group=self.group[keep],
            weight=self.weight[keep],
            covariates=self.covariates[keep],
            left_out=dict(left_out),
        )

    @property
    def count(self) -> int:
        """How many battles these rows are."""
        return round(float(self.weight.sum())) if self.split else len(self)

    def by_judge(self) -> dict[str, "Battles"]:
        """The battles before each judge, with the models that it saw."""
        return self._parts(self.judges, self.judge)

    def by_group(self) -> dict[str, "Battles"]:
        """The battles of each group (topic, profile, annotator), with the models it has."""
        return self._parts(self.groups, self.group)

    def _parts(self, names: tuple[str, ...], column: Ints) -> dict[str, "Battles"]:
        """One part for each name that has battles; what was left out is not known by part."""
        bare = replace(self, left_out=None, order_merged=0, single_order=0, clustered_by=None)
        parts = {name: bare.where(column == place) for place, name in enumerate(names)}
        return {name: part.compact() for name, part in parts.items() if len(part)}

    def compact(self) -> "Battles":
        """The same battles without models, judges and groups that are in none of them."""
        seen, places = np.unique(np.concatenate([self.a, self.b]), return_inverse=True)
        judges, judge = np.unique(self.judge, return_inverse=True)
        groups, group = np.unique(self.group, return_inverse=True)
        return replace(
            self,
            models=tuple(self.models[place] for place in _ints(seen)),
            judges=tuple(self.judges[place] for place in _ints(judges)),
            groups=tuple(self.groups[place] for place in _ints(groups)),
            a=places[: len(self)].astype(np.int64),
            b=places[len(self) :].astype(np.int64),
            judge=judge.astype(np.int64),
            group=group.astype(np.int64),
        )

    def clusters(self) -> tuple[Ints, int]:
        """The prompt of every battle numbered 0..G-1 without gaps, and G."""
        numbers, count = _by_first_appearance(self.cluster)
        return numbers, count


class BattleLog:
    """Takes battles one by one and makes a `Battles` of them.

    Args:
        covariate_names: names of the differences that come along with every battle.
    """

    def __init__(self, covariate_names: tuple[str, ...] = ()) -> None:
        self._models: dict[str, int] = {}
        self._judges: dict[str, int] = {}
        self._groups: dict[str, int] = {}
        self._a, self._b, self._judge, self._group, self._repeat = (array("i") for _ in range(5))
        self._result, self._order = array("b"), array("b")
        self._item, self._cluster, self._identity = (array("Q") for _ in range(3))
        self._x = array("d")
        self._names = covariate_names
        self.left_out: Counter[str] = Counter()
        self.clustered_by: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._a)

    def add(
        self,
        item: str,
        model_a: str,
        model_b: str,
        result: Result,
        *,
        cluster: str | None = None,
        judge: str = "",
        group: str = "",
        order: Literal["ab", "ba"] | None = None,
        repeat: int = 0,
        covariates: tuple[float, ...] = (),
        identity: str | None = None,
    ) -> None:
        """Enter one battle.

        Args:
            item: the pair's id.
            model_a, model_b: who met; a model against itself is left out and counted.
            result: how it ended; "disagree" when the two orders named different answers.
            cluster: the prompt; the item itself when None.
            judge: who decided.
            group: topic, profile or whatever else rankings are made apart for.
            order: given where this is one order of two: it is joined with the other one of the
                same item, judge and repeat.
            repeat: tells repeated judgements of one order apart.
            covariates: differences A minus B, one for each name.
            identity: the row's own id; of rows with one identity, judge, order and repeat the
                last one stands, as in a resumed output.
        """
        if model_a == model_b:
            self.left_out["a model against itself"] += 1
            return
        if model_a > model_b:
            model_a, model_b, result = model_b, model_a, _FLIPPED[result]
            order = None if order is None else "ba" if order == "ab" else "ab"
            covariates = tuple(-value for value in covariates)
        models, judges = self._models, self._judges
        self._a.append(models.setdefault(model_a, len(models)))
        self._b.append(models.setdefault(model_b, len(models)))
        self._judge.append(judges.setdefault(judge, len(judges)))
        self._group.append(self._groups.setdefault(group, len(self._groups)))
        self._repeat.append(repeat)
        self._result.append(_CODES[result])
        self._order.append(_ORDERS[order])
        hashed = _hash(f"{item}\0{model_a}\0{model_b}")
        self._item.append(hashed)
        self._cluster.append(hashed if cluster is None else _hash(cluster))
        self._identity.append(len(self._identity) if identity is None else _hash(identity))
        self._x.extend(covariates)

    def finish(self) -> Battles:
        """All battles so far; the log may be continued."""
        count = len(self)
        small = {
            name: np.array(kept, dtype=np.int64)
            for name, kept in (
                ("a", self._a),
                ("b", self._b),
                ("judge", self._judge),
                ("group", self._group),
                ("repeat", self._repeat),
                ("result", self._result),
                ("order", self._order),
            )
        }
        item, _ = _by_first_appearance(np.array(self._item, dtype=np.uint64))
        cluster, _ = _by_first_appearance(np.array(self._cluster, dtype=np.uint64))
        identity, _ = _by_first_appearance(np.array(self._identity, dtype=np.uint64))
        stands = _last_of_each(small, identity)
        result, keep, merged, single = _merge_orders(small, item, stands)
        battles = Battles(
            models=tuple(self._models),
            judges=tuple(self._judges),
            groups=tuple(self._groups),
            a=small["a"],
            b=small["b"],
            result=result,
            cluster=cluster,
            item=item,
            judge=small["judge"],
            group=small["group"],
            weight=np.ones(count),
            covariates=np.array(self._x).reshape(count, len(self._names)),
            covariate_names=self._names,
            left_out=dict(self.left_out + Counter({"given twice": int((~stands).sum())})),
            order_merged=merged,
            single_order=single,
            clustered_by=dict(self.clustered_by),
        )
        return battles.where(keep)


def battles_of(rows: list[tuple[str, str, Result]], clusters: list[str] | None = None) -> Battles:
    """Battles from (model_a, model_b, result) triples; every one is its own prompt by default."""
    log = BattleLog()
    for place, (model_a, model_b, result) in enumerate(rows):
        log.add(
            str(place),
            model_a,
            model_b,
            result,
            cluster=clusters[place] if clusters is not None else None,
        )
    return log.finish()


def require_battles(battles: Battles, what: str = "the input") -> None:
    """Refuse an input without a single battle between two models.

    Raises:
        InputError: there is none; the reasons are counted in the message.
    """
    if len(battles):
        return
    reasons = ", ".join(f"{count:,} {why}" for why, count in (battles.left_out or {}).items())
    raise InputError(
        f"there is no battle between two models in {what}"
        + (f" (left out: {reasons})" if reasons else ": it holds no rows")
        + "; a ranking needs rows with two model names and a winner"
    )


def _ints(places: Ints) -> list[int]:
    return cast("list[int]", places.tolist())


def _hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def _by_first_appearance(keys: NDArray[Any]) -> tuple[Ints, int]:
    """Numbers 0..G-1 in the order in which the keys were first met, and G."""
    if not len(keys):
        return np.zeros(0, dtype=np.int64), 0
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    return number[inverse], len(first)


def _last_of_each(columns: Mapping[str, Ints], identity: Ints) -> Bools:
    """Marks the last row of every identity, judge, order and repeat."""
    keys = (columns["order"], columns["repeat"], columns["judge"], identity)
    rows = np.lexsort(keys)  # stable: the last of equals stays last
    again = np.ones(max(0, len(rows) - 1), dtype=np.bool_)
    for key in keys:
        again &= key[rows[:-1]] == key[rows[1:]]
    stands = np.ones(len(rows), dtype=np.bool_)
    stands[rows[:-1][again]] = False
    return stands


def _merge_orders(
    columns: Mapping[str, Ints], item: Ints, stands: Bools
) -> tuple[Ints, Bools, int, int]:
    """Join the two orders of an item: alike is that result, anything else is a disagreement.

    Returns:
        The results, which rows stand, how many pairs had both orders, and how many only one.
    """
    result, order = columns["result"].copy(), columns["order"]
    keep = stands.copy()
    rows = np.flatnonzero((order > 0) & stands)
    if not len(rows):
        return result, keep, 0, 0
    keys = (order[rows], columns["repeat"][rows], columns["judge"][rows], item[rows])
    rows = rows[np.lexsort(keys)]
    same = (
        (item[rows[:-1]] == item[rows[1:]])
        & (columns["judge"][rows[:-1]] == columns["judge"][rows[1:]])
        & (columns["repeat"][rows[:-1]] == columns["repeat"][rows[1:]])
        & (order[rows[:-1]] == 1)
        & (order[rows[1:]] == 2)
    )
    first, second = rows[:-1][same], rows[1:][same]
    result[first] = np.where(result[first] == result[second], result[first], DISAGREE)
    keep[second] = False
    return result, keep, len(first), len(rows) - 2 * len(first)
