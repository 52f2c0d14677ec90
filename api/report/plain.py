"""Text from outside made safe to look at: what has no shape of its own is shown by its number.

Direction marks and control characters could make a reader see another text than was judged; a
report shows them instead of obeying them.
"""

import re
from typing import Final

from dikast.engine.text import scrub_text

_ENDS: Final = re.compile("[<>&]")
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """`text` with unseen characters as [U+202E] and lone surrogates as the replacement mark."""
    return _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", scrub_text(text))


def in_script(text: str) -> str:
    """JSON that may stand inside a script element: no character of it can end the element, and
    none is unseen in the source."""
    return _UNSEEN.sub(_escape, _ENDS.sub(_escape, text))


def _escape(found: re.Match[str]) -> str:
    code = found[0].encode("utf-16-be")
    return "".join(f"\\u{code[at]:02x}{code[at + 1]:02x}" for at in range(0, len(code), 2))
