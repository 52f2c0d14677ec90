"""What a judge wrote, made readable without moving a character: thoughts blanked, widths folded.

Sits between the completion and the reader. Every function keeps the length of the text, so that
a place found in the result is the same place in the judge's own words (and in its tokens).
Knows nothing of verdicts.
"""

import re

# Full-width forms U+FF01..U+FF5E are ASCII 0x21..0x7E moved by a constant; U+3000 is the space.
_NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}

_THOUGHT_TAG = re.compile(r"<(/?)(?:think|thinking)>", re.IGNORECASE)

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_OTHER_WORD = re.compile("[^\\W\\d_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]+")
_LANGUAGE_SAMPLE_CHARS = 2000


def narrow(text: str) -> str:
    """Full-width letters, digits and signs as ASCII; same length."""
    return text if text.isascii() else text.translate(_NARROW)


def blank_thoughts(text: str) -> tuple[str, bool]:
    """Reasoning blocks replaced by spaces; same length.

    `<think>...</think>` goes wherever it stands. A closing tag without an opening one (models
    whose prompt already opened it) takes everything before it along.

    Returns:
        The text, and whether a block was opened and never closed: then the judge had not begun
        to answer.
    """
    if "<" not in text:
        return text, False
    opened: int | None = None
    spans: list[tuple[int, int]] = []
    for tag in _THOUGHT_TAG.finditer(text):
        if not tag[1]:
            opened = tag.start() if opened is None else opened
        elif opened is not None:
            spans.append((opened, tag.end()))
            opened = None
        else:
            spans = [(0, tag.end())]
    parts: list[str] = []
    position = 0
    for start, end in spans:
        parts += (text[position:start], " " * (end - start))
        position = end
    return "".join((*parts, text[position:])), opened is not None


def mostly_chinese(text: str) -> bool:
    """Whether a text has more Han characters than other words (a run of letters is one word).

    Only the first 2,000 characters count. Text without letters is not Chinese.
    """
    if text.isascii():
        return False
    sample = text[:_LANGUAGE_SAMPLE_CHARS]
    return len(_HAN.findall(sample)) > len(_OTHER_WORD.findall(sample))
