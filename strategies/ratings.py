"""Two grades in one text: what a judge wrote that grades both answers of a pair at once.

Called by the reader of templates whose judges answer with numbers ("8 9" on the first line,
"Assistant 1: 8/10 ... Assistant 2: 9/10"). The grades give the verdict; equal grades are a tie.
Knows no prompt, no pair and no JSON.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from dikast.strategies.find import Find, Found
from dikast.strategies.numbers import read_number
from dikast.strategies.text import narrow


class Ratings(NamedTuple):
    """The grades of the answers as shown, and where the first one stands."""

    first: float
    second: float
    start: int


def read_ratings(text: str, patterns: Sequence[re.Pattern[str]]) -> list[Ratings]:
    """All pairs of grades that the first matching pattern finds.

    Args:
        text: the judge's words.
        patterns: each with two groups, for the answer shown first and the one shown second; tried
            in turn, and only the first that matches at all counts.
    """
    flat = narrow(text)
    for pattern in patterns:
        found: list[Ratings] = []
        for match in pattern.finditer(flat):
            first, second = read_number(match[1]), read_number(match[2])
            if first is not None and second is not None:
                found.append(Ratings(first, second, match.start(1)))
        if found:
            return found
    return []


def find_ratings(patterns: Sequence[re.Pattern[str]]) -> Find:
    """Finds verdicts in pairs of grades. A pair has no token of its own that says the verdict."""

    def find(text: str, want_places: bool) -> list[Found]:
        return [
            Found(
                "A" if each.first > each.second else "B" if each.first < each.second else "tie",
                -1,
                f"{each.first:g} {each.second:g}",
            )
            for each in read_ratings(text, patterns)
        ]

    return find
