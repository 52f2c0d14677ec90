"""Takes phrases that say nothing out of an answer: greetings, self-references, closing offers.

Used by `length_guard` before an answer is shown to a judge. Deterministic rules for English and
Chinese, at the beginning and at the end of a text only; what stands between is never touched, and
no rule empties a text. Knows no pair and no judge.
"""

import re
from typing import NamedTuple

VERSION = "1"
"""Part of every spec that strips; goes up with any change of the rules."""


class Stripped(NamedTuple):
    """What is left, and the characters that each rule took."""

    text: str
    removed: dict[str, int]


def strip_boilerplate(text: str) -> Stripped:
    """Strip both ends of a text until no rule finds anything more.

    Args:
        text: an answer.

    Returns:
        The text without its boilerplate, and for each rule that hit the number of characters it
        took, white space around them included. Where nothing was found the text is the very same.
    """
    removed: dict[str, int] = {}
    rest = text
    while (hit := _first_hit(rest)) is not None:
        name, shorter = hit
        removed[name] = removed.get(name, 0) + len(rest) - len(shorter)
        rest = shorter
    return Stripped(rest, removed)


def _first_hit(text: str) -> tuple[str, str] | None:
    for name, pattern in _AT_START:
        found = pattern.match(text)
        if found is not None and text[found.end() :].strip():
            return name, text[found.end() :]
    for name, pattern in _AT_END:
        found = pattern.search(text, max(0, len(text) - _TAIL_CHARS))
        if found is not None and text[: found.start()].strip():
            return name, text[: found.start()]
    return None


_TAIL_CHARS = 400
_FLAGS = re.IGNORECASE

# The model about itself. "As an AI language model, I cannot ..." loses its first clause only:
# what follows the comma is what the answer says.
_SELF_EN = (
    r"as an? (?:ai|artificial intelligence|large language|language)"
    r"(?: language)?(?: model| assistant)?(?: (?:developed|created|trained|made) by \w+)?,\s*"
    r"|i(?: am|'m|’m) (?:chatgpt|claude|gemini|an? (?:ai|large language|language)\b)"
    r"[^.!?\n]{0,80}[.!]\s+"
)
_SELF_ZH = (
    r"(?:作为|身为)(?:一个|一名|一款|一位)?(?:人工智能|AI|大型|大)?(?:语言)?(?:模型|助手|助理)，\s*"
    r"|我是(?:一个|一名|一款)?(?:人工智能|AI|大语言)[^。！？\n]{0,40}[。！]\s*"
)
_GREETING_EN = (
    r"(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening))"
    r"(?: there| again| everyone)?(?:[!.,]\s+|\s*\n+)"
)
_GREETING_ZH = r"(?:你好|您好|大家好|嗨)(?:[！!。，,~～呀啊]+\s*|\s*\n+)"
# Assent is boilerplate only where it announces; "Sure." may be the answer to the question.
_ASSENT_EN = (
    r"(?:sure(?: thing)?|certainly|of course|absolutely|no problem)[!,.]\s+"
    r"(?=(?:i(?:'d|’d| would|'m|’m| am) (?:be )?(?:happy|glad)"
    r"|here(?:'s|’s| is| are)\b|below\b|let me\b))"
)
_ASSENT_ZH = r"(?:好的|当然(?:可以)?|没问题)[！!。，,]\s*(?=以下|下面|这是|让我|我很|很高兴|很乐意)"
_PLEASED_EN = (
    r"i(?:'d|’d| would|'m|’m| am) (?:be )?(?:happy|glad) to "
    r"(?:help|assist)(?: you)?(?: (?:with|out with) (?:that|this|your \w+))?[.!]\s+"
    r"|thank(?:s| you)(?: so much| very much)? for "
    r"(?:your (?:question|message|query)|asking|reaching out)[.!]\s+"
)
_PLEASED_ZH = (
    r"(?:我)?(?:很高兴|很乐意)(?:能)?(?:为你|为您|帮助你|帮助您|帮您|帮你)(?:解答|服务|回答)?[。！!]\s*"
    r"|(?:感谢|谢谢)(?:你|您)的(?:提问|问题|咨询|来信)[。！!]\s*"
)
_PRAISE_EN = (
    r"(?:(?:that(?:'s|’s| is)|this is|what) an? )?"
    r"(?:great|good|excellent|interesting|wonderful) question[.!]\s+"
)
_PRAISE_ZH = r"(?:这|这真)是(?:一)?个(?:很好|非常好|很棒|有趣|好)的?问题[。！!]\s*"

_OFFER_EN = (
    r"(?:i )?hope (?:this|that|it) helps(?: you)?(?: out)?"
    r"|(?:please )?(?:let me know if|feel free to (?:ask|reach out|contact me))[^.!?\n]{0,120}"
    r"|if (?:you(?:'d|’d| would)? |there)[^.!?\n]{0,120}"
    r"(?:let me know|feel free|don(?:'|’)t hesitate|just ask|i(?:'m|’m| am) (?:here|happy))"
    r"[^.!?\n]{0,80}"
    r"|(?:please )?don(?:'|’)t hesitate to [^.!?\n]{0,100}"
    r"|(?:is there )?anything else (?:that )?(?:i can|you(?:'d|’d| would)) [^.!?\n]{0,60}"
    r"|i(?:'m|’m| am) (?:always )?(?:here|happy|glad) to (?:help|assist)[^.!?\n]{0,60}"
)
_OFFER_ZH = (
    r"希望(?:这|以上|我的|上述)?[^。！？\n]{0,20}(?:对你|对您|能帮|有所?帮助)[^。！？\n]{0,12}"
    r"|(?:如果|如|若)[^。！？\n]{0,30}(?:问题|疑问|需要)[^。！？\n]{0,10}，[^。！？\n]{0,30}(?:告诉我|联系我|提问|问我|随时|告知)[^。！？\n]{0,10}"
    r"|(?:欢迎|请)随时[^。！？\n]{0,20}"
    r"|还有(?:什么|其他)[^。！？\n]{0,15}(?:帮|需要)[^。！？\n]{0,12}"
)


def _starts(name: str, *patterns: str) -> tuple[str, re.Pattern[str]]:
    return name, re.compile(rf"\s*(?:{'|'.join(patterns)})", _FLAGS)


def _ends(name: str, *patterns: str) -> tuple[str, re.Pattern[str]]:
    # A whole sentence, after the end of another or on a line of its own.
    before = r"(?:(?<=[.!?:;)\]\"'”。！？；：）])|(?<=\n)|(?<=```))"
    return name, re.compile(rf"{before}\s*(?:{'|'.join(patterns)})[.!?。！？~～]*\s*$", _FLAGS)


_AT_START = (
    _starts("greeting", _GREETING_EN, _GREETING_ZH),
    _starts("self_reference", _SELF_EN, _SELF_ZH),
    _starts("assent", _ASSENT_EN, _ASSENT_ZH),
    _starts("pleasantry", _PLEASED_EN, _PLEASED_ZH, _PRAISE_EN, _PRAISE_ZH),
)
_AT_END = (_ends("closing_offer", _OFFER_EN, _OFFER_ZH),)

RULES = tuple(name for name, _ in (*_AT_START, *_AT_END))
"""The names of the rules, in the order in which they are tried."""
