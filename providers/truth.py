"""What a simulated judge may know of the truth: the labels of pairs, found again by their texts.

Filled once, before the first pair, by the wiring; asked by `simulation` in either order of a pair.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Literal

from dikast.engine.model import Pair, Winner

Shown = Literal["A", "B", "tie"]


class TruthTable:
    """Which of two answers is better, found again by their texts in either order.

    Two pairs may share both answers ("Yes", "No") under different questions: the question is
    looked at first, and answers alone count only where every pair that has them agrees.
    """

    def __init__(self) -> None:
        self._by_question: dict[int, Winner] = {}
        self._by_answers: dict[int, Winner | None] = {}
        self._worth: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._by_question)

    def __repr__(self) -> str:
        return f"TruthTable({len(self)} pairs)"

    @classmethod
    def from_pairs(cls, pairs: Iterable[Pair]) -> "TruthTable":
        """A table of the labels of `pairs`; pairs without a label are passed over."""
        table = cls()
        for pair in pairs:
            if pair.label is not None:
                asked = "\n".join(turn.content for turn in pair.messages) or pair.question
                table.add(asked, pair.response_a, pair.response_b, pair.label)
        return table

    def add(self, question: str, answer_a: str, answer_b: str, label: Winner) -> None:
        """Note that of these two answers the one named by `label` is better."""
        a, b = text_hash(answer_a), text_hash(answer_b)
        for answer, side in ((a, "A"), (b, "B")):
            worth = 0.0 if label == "tie" else 1.0 if label == side else -1.0
            place = joint_hash(question, answer, answer)
            # An answer that is better here and worse there is worth something in between.
            known = self._worth.get(place, worth)
            self._worth[place] = worth if known == worth else 0.0
        # Kept in terms of the smaller hash, so that one entry serves both orders.
        stored = label if a <= b else EXCHANGED[label]
        self._by_question[joint_hash(question, a, b)] = stored
        answers = joint_hash(None, a, b)
        if self._by_answers.setdefault(answers, stored) != stored:
            self._by_answers[answers] = None

    def look_up(self, question: str, first: int, second: int) -> Shown | None:
        """The better of two answers, given by their hashes as shown; None when not known."""
        stored = self._by_question.get(joint_hash(question, first, second))
        if stored is None:
            stored = self._by_answers.get(joint_hash(None, first, second))
        if stored is None:
            return None
        return stored if first <= second else EXCHANGED[stored]

    def worth(self, question: str, answer: int) -> float | None:
        """1 for an answer that is the better one of its pair, -1 for the worse; None: not known."""
        return self._worth.get(joint_hash(question, answer, answer))


EXCHANGED: dict[Winner, Winner] = {"A": "B", "B": "A", "tie": "tie"}


def text_hash(text: str) -> int:
    data = text.strip().encode("utf-8", "replace")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def joint_hash(question: str | None, first: int, second: int) -> int:
    low, high = sorted((first, second))
    asked = "" if question is None else f"{text_hash(question)}"
    data = f"{low} {high} {asked}".encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")
