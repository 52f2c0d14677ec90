"""What an answer looks like: length, headings, bold, lists. Differences of it are covariates.

A rating that is controlled for style answers: who wins when both answers look alike? Source: the
style control of Chatbot Arena (Li, Angelopoulos and Chiang 2024), where each difference is
(a - b) / (a + b); the length alone is the idea of Dubois et al. 2024 (length-controlled AlpacaEval)
with one coefficient for all models.
"""

import re
from typing import Final, Literal

Control = Literal["length", "style"]

NAMES: Final[dict[Control, tuple[str, ...]]] = {
    "length": ("length",),
    "style": ("length", "headings", "bold", "list items"),
}
_HEADING = re.compile(r"^ {0,3}#{1,6} ", re.MULTILINE)
_BOLD = re.compile(r"\*\*[^*\n]+\*\*|__[^_\n]+__")
_LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)]) ", re.MULTILINE)


def style_names(control: Control | None) -> tuple[str, ...]:
    """The names of the differences; none without control."""
    return () if control is None else NAMES[control]


def style_of(text: str, control: Control) -> tuple[int, ...]:
    """Characters, and for "style" also headings, bold passages and list items in Markdown."""
    if control == "length":
        return (len(text),)
    return (
        len(text),
        len(_HEADING.findall(text)),
        len(_BOLD.findall(text)),
        len(_LIST_ITEM.findall(text)),
    )


def style_difference(text_a: str, text_b: str, control: Control) -> tuple[float, ...]:
    """(a - b) / (a + b) of every feature, from -1 to 1; 0 where neither answer has any."""
    return tuple(
        (a - b) / (a + b) if a + b else 0.0
        for a, b in zip(style_of(text_a, control), style_of(text_b, control), strict=True)
    )
