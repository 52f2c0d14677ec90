"""What a turn of a chat log reads like: a request, an answer, a persona, text with raw escapes.

Used by the format stage of a benchmark build. Rules of thumb for Chinese and English, each with
its limits; how often they are right is measured in the tests on planted faults. Changes nothing
that it is not sure of.
"""

import re
from typing import Final

_ASK_CHARS_MAX: Final = 600
_TAIL_CHARS: Final = 60

_PERSONA = re.compile(
    r"\s*(?:#+\s*)?(?:"
    r"你(?:现在)?(?:是|将扮演|扮演|要扮演|的(?:任务|角色|身份|名字))|请(?:你)?扮演|假设你是"
    r"|我(?:想|要|希望)(?:让)?你(?:能)?(?:扮演|充当|作为)|作为(?:一[名个位]|专业)"
    r"|角色(?:设定)?[:：\n]|系统(?:提示|指令)|对(?:给出|以下|下面)的"
    r"|you(?:'re| are) (?:an?|the|now|my|playing)\b|act as\b|your (?:role|task|job|name) is\b"
    r"|i want you to act\b|pretend (?:to be|you are)\b|role ?[:：\n]|system(?: prompt)? ?[:：]"
    r")|[^\n]{0,80}(?:\[PROMPT\]|\{prompt\})|[^\n。]{0,40}(?:助手|assistant|[:：])\s*\Z",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\s*(?:"
    r"请|帮我|给我|为我|替我|麻烦|翻译|写(?:一|个|出|篇|份)|解释|总结|概括|列出|列举|改写|润色|生成|告诉我"
    r"|我(?:想|需要|现在需要|要)|怎么|怎样|如何|为什么|为何|(?:基于|根据)(?:以上|上述)[^。]{0,20}[，,]"
    r"|please\b|(?:can|could|would|will) you\b|write\b|translate\b|explain\b|summari[sz]e\b"
    r"|give me\b|make (?:it|me|this)\b|help me\b|tell me\b|show me\b|describe\b|continue\b"
    r"|rewrite\b|now (?:write|do|translate|make|try)\b|how (?:do|does|can|could|should|many|much)\b"
    r"|i (?:need|want|would like|have a question)\b|fix\b"
    r")",
    re.IGNORECASE,
)
_ORDERS_AT_END = re.compile(
    r"(?:翻译(?:成|为|到)?|译(?:成|为)|润色|改写|总结)[^。？！\n]{0,16}\s*\Z"
    r"|(?:translate|rewrite|summari[sz]e)(?: (?:this|it|to|into|that))+[^.\n]{0,30}\.?\s*\Z",
    re.IGNORECASE,
)
_ENDS_ASKING = re.compile(r"[?？][\"'”’)）\s]*\Z")
_ANSWERS = re.compile(
    r"\s*(?:好的|好[,，！!]|当然|没问题|了解[,，。]|以下是|下面是|抱歉|对不起|很抱歉|您好|你好[,，！!]"
    r"|请(?:您)?(?:提供|注意|继续(?:提问|说)|随时|稍|重试|告知|确认|放心)"
    r"|sure\b|certainly\b|of course\b|here(?:'s| is| are)\b|i'?m sorry\b|i apologi[sz]e\b"
    r"|understood\b|absolutely\b|great question|hello[!,]|hi[!,] |as an ai\b)",
    re.IGNORECASE,
)
_OFFERS = re.compile(
    r"how (?:can|may) i (?:help|assist)|would you like (?:me|to|more)|do you want me to"
    r"|let me know if|anything else|(?:需要|想要?)(?:我|我们)?(?:继续|帮|为您)|还有(?:什么|其他)"
    r"|(?:可以|能)(?:帮您|为您)",
    re.IGNORECASE,
)


def persona(text: str) -> bool:
    """Whether a text begins as system prompts do: who the assistant is to be, or a form to fill."""
    return _PERSONA.match(text) is not None


def orders(text: str) -> bool:
    """Whether a text reads like a user's order: it begins with one and is short, or ends in one."""
    if _ORDERS_AT_END.search(text, max(0, len(text) - _TAIL_CHARS)):
        return True
    return len(text) <= _ASK_CHARS_MAX and _ORDERS.match(text) is not None


def asks_something(text: str) -> bool:
    """Whether a text reads like a user's request: an order, or short and ending in a question."""
    short = len(text) <= _ASK_CHARS_MAX
    return orders(text) or (short and _ENDS_ASKING.search(text) is not None)


def answer_like(text: str) -> bool:
    """Whether a text reads like an assistant's answer, though it may end in a question."""
    return _ANSWERS.match(text) is not None or _OFFERS.search(text) is not None


def repeats(first: str, second: str) -> bool:
    """Whether a turn is said again in the next one, white space apart."""
    a, b = ("".join(each.split()) for each in (first, second))
    return bool(b) and (b in a or a in b) and min(len(a), len(b)) >= 0.9 * max(len(a), len(b))


# --- escapes ------------------------------------------------------------------------------------

# A backslash and an n before a small letter may be the beginning of a LaTeX command or of a folder.
_BREAK = re.compile(r"(?<!\\)\\(?:r\\n|n)(?![a-z])")
_BREAK_BEFORE_WORD = re.compile(r"(?<!\\)\\n(?=[a-z])")
_OTHER = re.compile(r"(?<!\\)\\(?:t(?![a-zA-Z])|\")")
_LATEX = re.compile(
    r"\\(?!n|t|r)[a-zA-Z]{2,}|\\(?:nabla|neq|nu|not|text|times|theta|tan|rho|right)"
)
_PATH = re.compile(r"[A-Za-z]:\\|\\\\[A-Za-z]")
_QUOTED = re.compile(r"\"[^\"]{0,200}\"|'[^'\s][^']{0,60}'|`[^`]*`")
_MEANS = {"t": "\t", '"': '"'}


def unescaped(text: str) -> str:
    """A text whose line breaks are written as a backslash and an n, with real line breaks.

    Text that has real line breaks is left as it is: there, a backslash and an n are code. So are
    those in quotes and backticks, before a small letter in text with LaTeX, and in paths.
    """
    if "\\" not in text or "\n" in text:
        return text
    quoted = [(each.start(), each.end()) for each in _QUOTED.finditer(text)]

    def outside(place: int) -> bool:
        return all(not start <= place < end for start, end in quoted)

    sure = [each for each in _BREAK.finditer(text) if outside(each.start())]
    likely = [each for each in _BREAK_BEFORE_WORD.finditer(text) if outside(each.start())]
    if _LATEX.search(text) or _PATH.search(text):
        likely = []
    if not sure and len(likely) < 2:
        return text
    others = [each for each in _OTHER.finditer(text) if outside(each.start()) or each[0] == '\\"']
    cuts = sorted(
        (each.start(), each.end(), _meaning(each[0])) for each in (*sure, *likely, *others)
    )
    parts: list[str] = []
    place = 0
    for start, end, means in cuts:
        parts += (text[place:start], means)
        place = end
    return "".join((*parts, text[place:]))


def _meaning(escape: str) -> str:
    return _MEANS.get(escape[1:], "\n")
