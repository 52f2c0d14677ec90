"""Numbers as judges write them: 8, 8.0, "8/10", 8 out of 10, eight, \u516b\u5206.

Called by readers on a text that should be nothing but a number. Knows no rubric and no JSON.
"""

import re

from dikast.strategies.text import narrow

_WORDS: dict[str, int] = {
    word: number
    for number, word in enumerate(
        (
            *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
            *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"),
            *("seventeen", "eighteen", "nineteen", "twenty"),
        )
    )
}
_HAN_DIGITS = "\u96f6\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341"
_HAN: dict[str, int] = {
    **{sign: number for number, sign in enumerate(_HAN_DIGITS)},
    "\u4e24": 2,
    "\u3007": 0,
}
_NUMBER = re.compile(
    r"(?P<value>[+-]?\d+(?:\.\d+)?|[a-z]+|[\u3007\u96f6\u4e00-\u9fff]{1,3}?)"
    r"\s*(?:points?|pts|\u5206)?"
    r"(?:\s*(?:/|out\s+of|of)\s*(?P<of>\d+(?:\.\d+)?|[a-z]+))?"
    r"\s*(?:points?|pts|\u5206)?\.?",
    re.IGNORECASE,
)
_DRESS = " \t\r\n*_`\"'"


def read_number(text: str, highest: float | None = None) -> float | None:
    """The number that a text is.

    Args:
        text: nothing but a number, dressed up at most.
        highest: the end of the scale; "8 of N" is a number only where N is that.

    Returns:
        The number, or None when the text is anything else.
    """
    match = _NUMBER.fullmatch(narrow(text).strip(_DRESS).casefold())
    if match is None:
        return None
    if match["of"] is not None and (highest is None or _value(match["of"]) != highest):
        return None
    return _value(match["value"])


def _value(word: str) -> float | None:
    if word in _WORDS:
        return float(_WORDS[word])
    if re.fullmatch(r"[+-]?\d+(?:\.\d+)?", word, re.ASCII):
        return float(word)
    return _han(word)


def _han(word: str) -> float | None:
    """Up to 99: \u4e94, \u5341, \u5341\u4e8c, \u4e8c\u5341, \u4e5d\u5341\u4e5d."""
    if len(word) == 1:
        return float(_HAN[word]) if word in _HAN else None
    tens, sign, units = word.partition("\u5341")
    if not sign or (tens and tens not in _HAN) or (units and units not in _HAN):
        return None
    ten = _HAN[tens] if tens else 1
    unit = _HAN[units] if units else 0
    return float(10 * ten + unit) if 0 < ten < 10 and unit < 10 else None
