"""SESSE and simpler ways beside each other, on the pairs that all of them were asked about.

After `dikast sesse baselines` has judged. Every difference is paired. Pure.
"""

from collections.abc import Mapping, Sequence

import msgspec

from dikast.analysis.sesse_accuracy import Rate, rate
from dikast.analysis.sesse_compare import Difference, paired_difference
from dikast.analysis.sesse_rows import score
from dikast.analysis.significance import McNemar, holm, mcnemar
from dikast.engine.model import Winner


class Judged(msgspec.Struct, frozen=True):
    """What one way says of one pair: `verdict` None where there is none; its calls."""

    id: str
    label: Winner
    verdict: Winner | None
    calls: int


class Line(msgspec.Struct, frozen=True):
    """One way: right with ties one half over all pairs, right of the decided, ties, no verdict,
    calls a pair. `difference` is the first way's score minus this one's, paired; `test` McNemar's
    on the pairs that both decide, b for the first way alone right, c for this one; `holm_p` its
    exact p, adjusted for all ways.
    """

    name: str
    pairs: int
    half: Rate
    decided: Rate
    ties: int
    no_verdict: int
    calls_mean: float
    difference: Difference | None
    test: McNemar | None
    holm_p: float | None


def lines(ways: Mapping[str, Sequence[Judged]], level: float = 0.95) -> list[Line]:
    """Every way over the pairs that all have an outcome for; the first is held against the others.

    Raises:
        ValueError: no pair is in all of them.
    """
    tables = {name: {each.id: each for each in found} for name, found in ways.items()}
    smallest = min(tables.values(), key=len)
    common = [each for each in smallest if all(each in table for table in tables.values())]
    if not common:
        raise ValueError("no pair has an outcome in all of them")
    ids = sorted(common)
    first, *others = tables
    tests = {name: _test(tables[first], tables[name], ids) for name in others}
    adjusted = dict(zip(tests, holm([each.exact_p for each in tests.values()]), strict=True))
    return [
        _line(name, table, tables[first], ids, tests.get(name), adjusted.get(name), level)
        for name, table in tables.items()
    ]


def _line(
    name: str,
    table: Mapping[str, Judged],
    first: Mapping[str, Judged],
    ids: Sequence[str],
    test: McNemar | None,
    holm_p: float | None,
    level: float,
) -> Line:
    rows = [table[each] for each in ids]
    scores = [score(each.verdict, each.label) for each in rows]
    decided = [each for each in rows if each.verdict in ("A", "B")]
    base = [score(first[each].verdict, first[each].label) for each in ids]
    differences = [one - other for one, other in zip(base, scores, strict=True)]
    return Line(
        name=name,
        pairs=len(ids),
        half=rate(sum(scores), len(ids), level),
        decided=rate(sum(each.verdict == each.label for each in decided), len(decided), level),
        ties=sum(each.verdict == "tie" for each in rows),
        no_verdict=sum(each.verdict is None for each in rows),
        calls_mean=sum(each.calls for each in rows) / len(ids),
        difference=None if test is None else paired_difference(differences, level),
        test=test,
        holm_p=holm_p,
    )


def _test(one: Mapping[str, Judged], other: Mapping[str, Judged], ids: Sequence[str]) -> McNemar:
    both = [
        (one[each].verdict == one[each].label, other[each].verdict == other[each].label)
        for each in ids
        if one[each].verdict in ("A", "B") and other[each].verdict in ("A", "B")
    ]
    return mcnemar(
        sum(mine and not theirs for mine, theirs in both),
        sum(theirs and not mine for mine, theirs in both),
    )
