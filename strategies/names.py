"""Names that a user may mistype, and how to say so: used wherever a template or a strategy is read.

Off the journey of a pair: only configuration passes here. Knows no strategy and no template.
"""

import difflib
import re
from collections.abc import Iterable

import msgspec

_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*?)`")
_PLACE = re.compile(r" - at `\$\.?(.*?)`$")


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause that helps with an unknown name: the nearest known one, or all of them.

    Args:
        name: what was written.
        known: what could have been written.
    """
    options = sorted(known)
    close = difflib.get_close_matches(name, options, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are {', '.join(map(repr, options))}" if options else "none are known here"


def explain(error: msgspec.ValidationError, known: Iterable[str]) -> tuple[str, str]:
    """What a failed msgspec conversion means to the writer of the file.

    Args:
        error: as raised by `msgspec.convert`.
        known: field names that exist, for suggestions.

    Returns:
        The place ("reader.values"; empty for the top) and one clause that says what is wrong.
    """
    text = str(error)
    place = _PLACE.search(text)
    where = place[1] if place else ""
    text = _PLACE.sub("", text)
    unknown = _UNKNOWN_FIELD.search(text)
    if unknown:
        return where, f"unknown field {unknown[1]!r}; {nearest(unknown[1], known)}"
    return where, text[:1].lower() + text[1:]
