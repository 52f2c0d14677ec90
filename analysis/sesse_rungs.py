"""What each step of SESSE's ladder brought and cost: the pairs that reached it, and what it said.

Reads the parts of outcomes, as the command hands them over. Pure.
"""

from collections.abc import Iterable

import msgspec

from dikast.analysis.sesse_accuracy import Rate, rate
from dikast.engine.model import Pick, Winner


class Step(msgspec.Struct, frozen=True):
    """One step on one labelled pair: its name, what it concluded, its calls and their price."""

    name: str
    pick: Pick
    label: Winner
    calls: int
    cost_usd: float


class StepLine(msgspec.Struct, frozen=True):
    """A step over all pairs that reached it.

    `right` is of the pairs that it decides, `ties` and `no_verdict` are the others. `calls_mean`
    and `cost_usd` (of all) are the step's own.
    """

    name: str
    reached: int
    right: Rate
    ties: int
    no_verdict: int
    calls_mean: float
    cost_usd: float


def step_lines(steps: Iterable[Step], level: float = 0.95) -> list[StepLine]:
    """Every step but Tier 1, which concludes nothing, in the order in which they were met."""
    found: dict[str, list[Step]] = {}
    for step in steps:
        if step.name != "tier1":
            found.setdefault(step.name, []).append(step)
    return [_line(name, each, level) for name, each in found.items()]


def _line(name: str, steps: list[Step], level: float) -> StepLine:
    decided = [step for step in steps if step.pick in ("A", "B")]
    return StepLine(
        name=name,
        reached=len(steps),
        right=rate(sum(step.pick == step.label for step in decided), len(decided), level),
        ties=sum(step.pick == "tie" for step in steps),
        no_verdict=sum(step.pick in ("none", "na") for step in steps),
        calls_mean=sum(step.calls for step in steps) / len(steps),
        cost_usd=sum(step.cost_usd for step in steps),
    )
