"""The demo's few figures: shares with Wilson intervals. Pure; sees outcomes and labels only."""

from collections.abc import Iterable

from dikast.analysis.shares import wilson
from dikast.engine.model import Outcome, Record, Verdict, Vote


class Share(Record, frozen=True):
    """`count` of `total`, with its Wilson 95 % interval.

    Where ties count half, `count` has halves, and the interval is a little too wide.
    """

    count: float
    total: int
    low: float
    high: float


def share(count: float, total: int) -> Share | None:
    """A share with its interval; None of nothing."""
    if total == 0:
        return None
    interval = wilson(count, total)
    return Share(count=count, total=total, low=interval.low, high=interval.high)


def percent(value: Share | None) -> str:
    """A share for people: 86.3 % [81.5, 90.1]."""
    if value is None:
        return "-"
    rate = value.count / value.total
    return f"{rate * 100:.1f} % [{value.low * 100:.1f}, {value.high * 100:.1f}]"


class Figures(Record, frozen=True):
    """What the demo compares; see the tie rule in its output."""

    right_of_all: Share | None
    right_ties_half: Share | None
    right_of_decided: Share | None
    decided: Share | None
    first_picked: Share | None
    inconsistent: Share | None


def figures_of(outcomes: Iterable[Outcome]) -> Figures:
    """The figures of one run. Only labelled verdicts count."""
    verdicts = [each for each in outcomes if isinstance(each, Verdict) and each.label is not None]
    decisive = [each for each in verdicts if each.label != "tie"]
    decided = [each for each in decisive if each.winner != "tie"]
    first = [_picked_first(vote) for each in verdicts for vote in each.votes]
    picks = [each for each in first if each is not None]
    paired = [each for each in verdicts if each.basis in ("agree", "both_tie", "disagree")]
    return Figures(
        right_of_all=share(sum(each.winner == each.label for each in verdicts), len(verdicts)),
        right_ties_half=share(sum(_credit(each) for each in verdicts), len(verdicts)),
        right_of_decided=share(sum(each.winner == each.label for each in decided), len(decided)),
        decided=share(len(decided), len(decisive)),
        first_picked=share(sum(picks), len(picks)),
        inconsistent=share(sum(each.basis == "disagree" for each in paired), len(paired)),
    )


def _credit(verdict: Verdict) -> float:
    if verdict.winner == verdict.label:
        return 1.0
    return 0.5 if verdict.winner == "tie" or verdict.label == "tie" else 0.0


def _picked_first(vote: Vote) -> bool | None:
    if vote.pick not in ("A", "B"):
        return None
    return (vote.pick == "A") == (vote.order == "ab")
