"""Is the judge able enough for what it judges? Four checks, each with the numbers behind it.

Part of the audit report. A judge must be at least as able as the judged: here that is its
measured agreement with people, against a bar, against chance, against people's own agreement,
and its place in a ranking of the models it judges.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from dikast.analysis.counting import Number

Result = Literal["yes", "no", "not shown", "not known"]
_NAMES_SHOWN = 5


class Check(msgspec.Struct, frozen=True):
    """One question, its answer, and why. "not shown": the labels are too few to say."""

    question: str
    result: Result
    why: str


class AgainstPeople(msgspec.Struct, frozen=True):
    """Weighted agreement of the judge with a person, of two people, and the first minus the
    second, all on the pairs that two people or more have labelled."""

    judge: Number
    people: Number
    difference: Number


def checks_of(
    agreement: Number,
    over_constant: Number,
    against: AgainstPeople | None,
    bar: float | None,
    ranking: Mapping[str, tuple[float, float, float]] | None,
    judges: set[str],
    models: Sequence[str],
) -> tuple[Check, ...]:
    """All checks.

    Args:
        agreement: weighted agreement with the labels.
        over_constant: how far it is above always saying the commonest label.
        against: the judge's agreement with a person beside that of two people.
        bar: the least agreement asked for.
        ranking: rating, low and high by model.
        judges: names that the judge or its model goes by.
        models: the models it judges.
    """
    return (
        _bar(agreement, bar),
        _chance(over_constant),
        _people(against),
        _rank(ranking, judges, models),
    )


def _bar(agreement: Number, bar: float | None) -> Check:
    question = "agreement with people is above the bar"
    if bar is None:
        return Check(question, "not known", "no bar was given; use --min-agreement")
    if agreement.value is None or agreement.interval is None:
        return Check(question, "not known", "there are too few labels for an interval")
    low, high = agreement.interval.low, agreement.interval.high
    why = f"{agreement.value:.1%} [{low:.1%}, {high:.1%}] against {bar:.1%}"
    return Check(question, "yes" if low >= bar else "no" if high < bar else "not shown", why)


def _chance(over: Number) -> Check:
    question = "it is right more often than always saying the commonest label"
    if over.value is None or over.interval is None:
        return Check(question, "not known", "there are too few labels for an interval")
    low, high = over.interval.low, over.interval.high
    why = f"{over.value:+.1%} [{low:+.1%}, {high:+.1%}]"
    return Check(question, "yes" if low > 0 else "no" if high <= 0 else "not shown", why)


def _people(against: AgainstPeople | None) -> Check:
    question = "it agrees with a person as often as two people agree"
    if against is None:
        return Check(question, "not known", "no pair was labelled by two people")
    judge, people, gap = against.judge.value, against.people.value, against.difference
    if judge is None or people is None or gap.interval is None or gap.value is None:
        return Check(question, "not known", "there are too few labels for an interval")
    low, high = gap.interval.low, gap.interval.high
    why = (
        f"{judge:.1%}, two people {people:.1%}, difference {gap.value:+.1%} "
        f"[{low:+.1%}, {high:+.1%}] on {gap.n:,} pairs"
    )
    return Check(question, "yes" if low >= 0 else "no" if high < 0 else "not shown", why)


def _rank(
    ranking: Mapping[str, tuple[float, float, float]] | None,
    judges: set[str],
    models: Sequence[str],
) -> Check:
    question = "no model that it judges outranks it"
    if ranking is None:
        return Check(question, "not known", "no ranking was given; use --ranking and --judge-model")
    own = sorted(judges & set(ranking))
    if not own:
        return Check(question, "not known", "the ranking does not name the judge; --judge-model")
    rating, low, high = max(ranking[name] for name in own)
    above = [name for name in models if name in ranking and ranking[name][1] > high]
    maybe = [
        name for name in models if name in ranking and ranking[name][0] > rating and name not in own
    ]
    unknown = sum(name not in ranking for name in models)
    left = f"; {unknown:,} judged models are not ranked" if unknown else ""
    own_place = f"{rating:.0f} [{low:.0f}, {high:.0f}]"
    if above:
        names = ", ".join(sorted(above)[:_NAMES_SHOWN])
        more = f" and {len(above) - _NAMES_SHOWN} more" if len(above) > _NAMES_SHOWN else ""
        return Check(question, "no", f"{names}{more} rank above its {own_place}{left}")
    if maybe:
        why = f"{len(maybe):,} have a rating above its {own_place}, within doubt{left}"
        return Check(question, "not shown", why)
    return Check(question, "not known" if unknown else "yes", f"its rating is {own_place}{left}")
