"""What an answer looks like: length, lists, headings, code, bold. Differences of it are covariates.

A rating that is controlled for style answers: who wins when both answers look alike? Source: the
style control of Chatbot Arena (Li, Angelopoulos and Chiang 2024), where each difference is
(a - b) / (a + b); the length alone is the idea of Dubois et al. 2024 (length-controlled AlpacaEval)
with one coefficient for all models.
"""

from typing import Final, Literal

from dikast.analysis.bias_text import FEATURES, measures

Control = Literal["length", "style"]

_HOW_MANY: Final[dict[Control, int]] = {"length": 1, "style": len(FEATURES)}


def style_names(control: Control | None) -> tuple[str, ...]:
    """The names of the differences; none without control."""
    return () if control is None else FEATURES[: _HOW_MANY[control]]


def style_difference(text_a: str, text_b: str, control: Control) -> tuple[float, ...]:
    """(a - b) / (a + b) of every feature, from -1 to 1; 0 where neither answer has any.

    The features are those that `dikast bias` counts, the length in characters first.
    """
    many = _HOW_MANY[control]
    of_a: tuple[int, ...] = measures(text_a)
    of_b: tuple[int, ...] = measures(text_b)
    return tuple(
        (a - b) / (a + b) if a + b else 0.0 for a, b in zip(of_a[:many], of_b[:many], strict=True)
    )
