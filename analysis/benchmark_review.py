"""What people look at after the automatic stages, and what their decisions mean.

The seventh stage of a benchmark build. The review queue is a file of the audit page's format: a
simple random sample of each stratum with its inclusion probability, and nothing in it that tells
which model wrote which answer. Kept prompts are asked about ("keep or drop"); a sample of those
that the comparison turned away is labelled blind ("which is better"), because a filter that keeps
what one judge finds clear must itself be checked.
"""

import hashlib
import heapq
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from dikast.analysis.audit_rows import Ask, LabelEntry, SampleItem, latest
from dikast.analysis.benchmark_account import Rate, rate
from dikast.analysis.benchmark_format import Dialogue

KEEP_NOTE: Final = (
    "Keep it when the request is worded well and the two answers differ in a way that a reader "
    "would notice."
)


class Draw:
    """A simple random sample of each stratum, drawn from a stream; memory is that of the sample.

    Args:
        seed: decides which are drawn.
        most: the most items of one stratum; None takes all.
    """

    def __init__(self, seed: int, most: int | None) -> None:
        self._key = str(seed).encode()[:64]
        self._most = most
        self._sizes: dict[str, int] = {}
        self._drawn: dict[str, list[tuple[int, str, Dialogue]]] = {}

    def offer(self, stratum: str, dialogue: Dialogue) -> None:
        """Let a dialogue take part: those with the smallest hashes of seed and id are drawn."""
        self._sizes[stratum] = self._sizes.get(stratum, 0) + 1
        if self._most == 0:
            return
        data = dialogue.id.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(data, digest_size=8, key=self._key).digest()
        entry = (-int.from_bytes(digest, "big"), dialogue.id, dialogue)
        drawn = self._drawn.setdefault(stratum, [])
        if self._most is None:
            drawn.append(entry)
        elif len(drawn) < self._most:
            heapq.heappush(drawn, entry)
        elif entry[0] > drawn[0][0]:
            heapq.heapreplace(drawn, entry)

    def items(self, ask: Ask, note: str | None = None) -> Iterator[SampleItem]:
        """The drawn ones by stratum and id, each with the probability it was drawn with."""
        for stratum, drawn in sorted(self._drawn.items()):
            size = self._sizes[stratum]
            for _, name, dialogue in sorted(drawn, key=lambda each: each[1]):
                yield SampleItem(
                    id=name,
                    ask=ask,
                    response_a=dialogue.response_a,
                    response_b=dialogue.response_b,
                    question=dialogue.messages[-1].content,
                    messages=dialogue.messages if len(dialogue.messages) > 1 else (),
                    category=dialogue.topic,
                    note=note,
                    inclusion_probability=len(drawn) / size,
                    stratum=stratum,
                    stratum_pairs=size,
                )


class Decisions:
    """What people said of the items of a queue.

    Args:
        path: labels as the audit page writes them; the last line of a person on an item counts.

    Raises:
        InputError: it cannot be read, or a line is no label.
    """

    def __init__(self, path: str | Path) -> None:
        self._votes: dict[str, list[LabelEntry]] = {}
        for entry in latest(path):
            if not entry.repeat:
                self._votes.setdefault(entry.pair_id, []).append(entry)

    def dropped(self, name: str) -> bool | None:
        """Whether people drop an item: at least as many say drop as keep. None: nobody said."""
        votes = [each.decision for each in self._votes.get(name, []) if each.decision]
        return None if not votes else 2 * votes.count("drop") >= len(votes)

    def strong_better(self, dialogue: Dialogue) -> bool | None:
        """Whether more people take the strong answer than the weak one; None: nobody said."""
        labels = [each.label for each in self._votes.get(dialogue.id, []) if each.label]
        if not labels:
            return None
        strong = sum(each == dialogue.strong for each in labels)
        return strong > sum(each not in ("tie", dialogue.strong) for each in labels)

    def __repr__(self) -> str:
        return f"Decisions({len(self._votes)} items)"


def filter_errors(decisions: Decisions, turned_away: Iterable[tuple[str, Dialogue]]) -> list[Rate]:
    """Of each reason's sample: the share where people do take the strong answer.

    Args:
        decisions: of people.
        turned_away: reason and dialogue of those that the comparison rejected.
    """
    hits: dict[str, list[int]] = {}
    for reason, dialogue in turned_away:
        better = decisions.strong_better(dialogue)
        if better is not None:
            counts = hits.setdefault(reason, [0, 0])
            counts[0] += better
            counts[1] += 1
    return [rate(reason, good, of) for reason, (good, of) in sorted(hits.items())]
