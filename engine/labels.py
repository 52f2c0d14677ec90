"""What people decided about a pair, in the many ways they write it down, as A, B or tie.

Used by the format table only; a label is never guessed: an unknown word is an error. Knows
nothing of answers or files.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from dikast.engine.chat import MisfitError
from dikast.engine.model import Winner

_WORDS: Final[dict[str, Winner]] = {
    **dict.fromkeys(("a", "model_a", "response_a", "a>b", "a>>b", "b<a", "[[a]]"), "A"),
    **dict.fromkeys(("b", "model_b", "response_b", "b>a", "b>>a", "a<b", "[[b]]"), "B"),
    **dict.fromkeys(("tie", "a=b", "b=a", "both", "draw", "same", "[[c]]"), "tie"),
    **dict.fromkeys(("tie (bothbad)", "tie (both bad)", "bothbad", "both_bad"), "tie"),
}
_COLUMNS: Final[tuple[tuple[str, Winner], ...]] = (
    ("winner_model_a", "A"),
    ("winner_model_b", "B"),
    ("winner_tie", "tie"),
)
_ANNOTATOR = re.compile(r"annotator\d+")
_NUMBER = re.compile(r"\d+(\.\d+)?")


def label_of(obj: Mapping[str, Any], names: tuple[str, ...], *, numbers: bool) -> Winner | None:
    """The label of a row: in a field of one of `names`, in Arena's one-hot columns, or as what
    most of PandaLM's annotators said; None when there is none (or no majority).

    Raises:
        MisfitError: the field holds something else.
    """
    for name in names:
        if (value := obj.get(name)) is not None:
            return winner_of(name, value, numbers=numbers)
    marked: list[Winner] = [winner for name, winner in _COLUMNS if obj.get(name) in (1, True, "1")]
    if marked:
        return marked[0] if len(marked) == 1 else None
    return _majority(obj) if numbers else None


def winner_of(name: str, value: Any, *, numbers: bool) -> Winner:
    """One label as written in field `name`; with `numbers`, 1, 2 and 0 (tie) are allowed too.

    A number between 1 and 2 (the strength of a preference) goes to the nearer side, 1.5 is a tie.

    Raises:
        MisfitError: it is none of these.
    """
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _WORDS:
            return _WORDS[word]
        value = float(word) if numbers and _NUMBER.fullmatch(word) else value
    if numbers and isinstance(value, (int, float)) and not isinstance(value, bool):
        if value in (0, 1.5):
            return "tie"
        if 1 <= value <= 2:
            return "A" if value < 1.5 else "B"
    wanted = "1, 2, 0 (tie) or A, B, tie" if numbers else "A, B or tie"
    raise MisfitError(name, f"a label is {wanted}, not {value!r:.60}")


def _majority(obj: Mapping[str, Any]) -> Winner | None:
    votes: Counter[Winner | None] = Counter(
        winner_of(name, value, numbers=True)
        for name, value in obj.items()
        if _ANNOTATOR.fullmatch(name) and value is not None
    )
    if not votes:
        return None
    winner, count = votes.most_common(1)[0]
    return winner if 2 * count > sum(votes.values()) else None
