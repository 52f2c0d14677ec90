"""Every dialogue of a benchmark build accounted for: kept, or turned away by a stage for a reason.

Kept along the whole build and written as its statistics. What goes into a stage must come out of
it: as many as entered are kept or turned away, and what one stage keeps the next one gets. Counts
only; decides nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dikast.analysis.benchmark_format import TOPICS, Dialogue
from dikast.analysis.intervals import Interval, wilson


class Stage:
    """The counts of one stage. `repaired` counts repairs; a dialogue may have several."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kept = 0
        self.rejected: Counter[str] = Counter()
        self.repaired: Counter[str] = Counter()
        self.repaired_dialogues = 0

    @property
    def entered(self) -> int:
        """Dialogues that came in: kept and turned away."""
        return self.kept + sum(self.rejected.values())

    def repair(self, kinds: Iterable[str]) -> None:
        """Note what was put right in one dialogue."""
        some = tuple(kinds)
        self.repaired.update(some)
        self.repaired_dialogues += bool(some)

    def as_builtins(self) -> dict[str, Any]:
        """For the statistics; reasons in a fixed order."""
        return {
            "stage": self.name,
            "entered": self.entered,
            "kept": self.kept,
            "rejected": dict(sorted(self.rejected.items())),
            "repaired_dialogues": self.repaired_dialogues,
            "repairs": dict(sorted(self.repaired.items())),
        }

    def __repr__(self) -> str:
        return f"Stage({self.name}: {self.entered} entered, {self.kept} kept)"


class Account:
    """The stages in their order. `rows` is what was read."""

    def __init__(self) -> None:
        self.rows = 0
        self.stages: list[Stage] = []

    def stage(self, name: str) -> Stage:
        """Begin a further stage."""
        made = Stage(name)
        self.stages.append(made)
        return made

    @property
    def rejected(self) -> int:
        """Turned away by any stage."""
        return sum(sum(stage.rejected.values()) for stage in self.stages)

    @property
    def failed(self) -> int:
        """Turned away because a call failed; the next run asks again."""
        return sum(
            count
            for stage in self.stages
            for reason, count in stage.rejected.items()
            if reason.startswith("failed_")
        )

    def adds_up(self) -> bool:
        """Whether every row that was read is kept at the end or was turned away once."""
        given = self.rows
        for stage in self.stages:
            if stage.entered != given:
                return False
            given = stage.kept
        return self.rows == given + self.rejected


class Figures(msgspec.Struct, frozen=True):
    """What a benchmark consists of, in the terms of the published one."""

    topic: str
    dialogues: int
    several_turns: int
    with_system: int
    user_turns_mean: float | None
    chars_max: int
    chinese: int


class FigureBook:
    """Sums of dialogues, by topic."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {topic: Counter() for topic in TOPICS}

    def add(self, dialogue: Dialogue, *, chinese: bool) -> None:
        """Count one dialogue of a known topic."""
        counts = self._counts[dialogue.topic or ""]
        asked = sum(turn.role == "user" for turn in dialogue.messages)
        counts["dialogues"] += 1
        counts["several_turns"] += asked > 1
        counts["with_system"] += dialogue.messages[0].role == "system"
        counts["user_turns"] += asked
        counts["chinese"] += chinese
        size = sum(len(turn.content) for turn in dialogue.messages)
        counts["chars_max"] = max(counts["chars_max"], size)

    def figures(self) -> list[Figures]:
        """By topic in SenseBench's order; the last is of all."""
        whole: Counter[str] = Counter()
        for counts in self._counts.values():
            longest = max(whole["chars_max"], counts["chars_max"])
            whole.update(counts)
            whole["chars_max"] = longest
        return [_figures(*each) for each in (*self._counts.items(), ("all", whole))]


def _figures(topic: str, counts: Counter[str]) -> Figures:
    size = counts["dialogues"]
    return Figures(
        topic=topic,
        dialogues=size,
        several_turns=counts["several_turns"],
        with_system=counts["with_system"],
        user_turns_mean=counts["user_turns"] / size if size else None,
        chars_max=counts["chars_max"],
        chinese=counts["chinese"],
    )


class Rate(msgspec.Struct, frozen=True):
    """A share of counted things, with its interval (Wilson, 95 %)."""

    name: str
    hits: int
    of: int
    value: float | None
    interval: Interval


def rate(name: str, hits: int, of: int) -> Rate:
    """`hits` of `of`, as a share."""
    return Rate(name, hits, of, hits / of if of else None, wilson(hits, of))


def challenge_rates(outcomes: Mapping[str, int]) -> list[Rate]:
    """What the comparison in both orders came to.

    Args:
        outcomes: dialogues by "kept" or by the reason they were turned away. Those without a
            readable verdict in both orders are in no share.
    """
    verdicts = ("kept", "weak_better", "no_difference", "orders_disagree")
    read = sum(outcomes.get(name, 0) for name in verdicts)
    titles = (
        "strong answer better in both orders",
        "weak answer better in both orders",
        "no difference in both orders",
        "the two orders disagree",
    )
    return [
        rate(title, outcomes.get(name, 0), read)
        for title, name in zip(titles, verdicts, strict=True)
    ]
