"""Checks that prove a label: "name:argument" says whether a text keeps a rule."""

import json
import re
from collections.abc import Callable


def has_token(text: str, token: str) -> bool:
    """Whether `token` stands in `text`, not as a part of a longer number or Latin word."""
    pattern = rf"(?<![A-Za-z\d.]){re.escape(token)}(?![A-Za-z\d]|\.\d)"
    return re.search(pattern, text) is not None


def _is_json(text: str, keys: str) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and (not keys or list(value) == keys.split(","))


def _count_bullets(text: str) -> int:
    return sum(line.startswith("- ") for line in text.splitlines())


CHECKS: dict[str, Callable[[str, str], bool]] = {
    "bullets": lambda text, arg: _count_bullets(text) == int(arg) == len(text.splitlines()),
    "no_letter": lambda text, arg: arg not in text.lower(),
    "lacks": lambda text, arg: arg not in text,
    "has": lambda text, arg: arg in text,
    "max_words": lambda text, arg: len(text.split()) <= int(arg),
    "words": lambda text, arg: len(text.split()) == int(arg),
    "max_chars": lambda text, arg: len(text) <= int(arg),
    "chars": lambda text, arg: len(re.findall(r"\w", text)) == int(arg),
    "sentences": lambda text, arg: len(re.findall(r"[.!?。！？]+", text)) == int(arg),
    "lines": lambda text, arg: len(text.splitlines()) == int(arg),
    "upper": lambda text, arg: text == text.upper(),
    "lower": lambda text, arg: text == text.lower(),
    "json": _is_json,
    "starts": lambda text, arg: text.startswith(arg),
    "ends": lambda text, arg: text.endswith(arg),
    "matches": lambda text, arg: re.fullmatch(arg, text) is not None,
    "line_starts": lambda text, arg: "".join(line[0] for line in text.splitlines()) == arg,
    "no_digit": lambda text, arg: re.search(r"\d", text) is None,
    "ascii": lambda text, arg: text.isascii(),
    "token": has_token,
}


def holds(check: str, text: str) -> bool:
    """Whether `text` keeps the rule `check`."""
    name, _, arg = check.partition(":")
    return CHECKS[name](text, arg)
