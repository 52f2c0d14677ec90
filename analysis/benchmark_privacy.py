"""Personal data and secrets in a text: e-mail, phone, identity and card numbers, keys.

The second stage of a benchmark build: a prompt that names a person must not reach a model or a
published file. Numbers with a check digit are checked, so that an order number is not taken for
an identity card. Finds what has a form; a name or an address in plain words has none, and only
people find it. Never returns the text it found to anyone who reports.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from dikast.engine.model import Message

KINDS: Final = ("key", "email", "id", "phone")
"""What is looked for; where two overlap the earlier one counts."""


class Personal(NamedTuple):
    """Something personal: its kind, the turn (from 0) and the place in its text."""

    kind: str
    turn: int
    start: int
    end: int


_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@((?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24})(?![A-Za-z0-9-])"
)
# RFC 2606 and 6761: domains that belong to nobody.
_NOBODY = re.compile(r"(?:^|\.)(?:example(?:\.(?:com|org|net))?|test|invalid|localhost)$", re.I)
_PHONES = (
    re.compile(r"(?<![\d.])(?:\+?86[- ]?)?1[3-9]\d[- ]?\d{4}[- ]?\d{4}(?![\d.]?\d)"),
    re.compile(r"(?<![\d-])0\d{2,3}-\d{7,8}(?![\d-])"),
    re.compile(r"(?<![\d.-])(?:\+?1[-. ])?(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-.]\d{4}(?![\d-])"),
    re.compile(r"(?<![\d+])\+\d{1,3}[ .-]?(?:\(?\d{1,4}\)?[ .-]?){2,5}\d{2,4}(?!\d)"),
)
_CITIZEN = re.compile(
    r"(?<!\d)[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])\d{3}[\dXx](?!\d)"
)
_SSN = re.compile(r"(?<![\d-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])")
# Grouped as cards are printed, or not at all; the first digits are those of a card network.
_CARD = re.compile(
    r"(?<![\d.-])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}|\d{4}([ -])\d{6}\2\d{5})(?![\d-])"
)
_NETWORKS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
    r"|35(?:2[89]|[3-8]\d)\d{12}|6(?:011|4[4-9]\d|5\d{2})\d{12}|62\d{14,17}"
)
_IBAN = re.compile(
    r"(?<![A-Z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?(?![A-Z0-9])"
)
_KEYS = (
    re.compile(r"(?<![A-Za-z0-9_-])(?:sk|pk|rk)-[A-Za-z0-9_-]{20,}"),
    re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    re.compile(r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{30,}"),
    re.compile(r"(?<![A-Za-z0-9])xox[abprs]-[A-Za-z0-9-]{10,}"),
    re.compile(r"(?<![A-Za-z0-9])AIza[0-9A-Za-z_-]{35}"),
    re.compile(r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    re.compile(
        r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----(?:.*?-----END (?:[A-Z]+ )*PRIVATE KEY-----|.*)",
        re.DOTALL,
    ),
)
# Signs without which a kind cannot be there; most texts have none, and are passed over quickly.
_KEY_SIGNS = ("k-", "AKIA", "ASIA", "gh", "xox", "AIza", "eyJ", "PRIVATE KEY")
_NUMBER = re.compile(r"\d(?:[ .()+-]{0,3}\d){6}")
_CITIZEN_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CITIZEN_CHECKS = "10X98765432"
_PHONE_DIGITS = (8, 15)


def _digits(text: str) -> str:
    return "".join(each for each in text if each.isdigit())


def _citizen(found: str) -> bool:
    """The check character of a Chinese identity number (GB 11643, ISO 7064 MOD 11-2)."""
    total = sum(int(digit) * weight for digit, weight in zip(found, _CITIZEN_WEIGHTS, strict=False))
    return _CITIZEN_CHECKS[total % 11] == found[-1].upper()


def _card(found: str) -> bool:
    """A card network's first digits and length, and the check digit (ISO/IEC 7812)."""
    plain = _digits(found)
    digits = [int(each) for each in reversed(plain)]
    doubled = (sum(divmod(2 * each, 10)) for each in digits[1::2])
    return bool(_NETWORKS.fullmatch(plain)) and (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _iban(found: str) -> bool:
    """The check digits of an account number (ISO 13616, MOD 97-10)."""
    plain = found.replace(" ", "")
    turned = plain[4:] + plain[:4]
    return int("".join(str(int(each, 36)) for each in turned)) % 97 == 1


def _phone(found: str) -> bool:
    low, high = _PHONE_DIGITS
    return low <= len(_digits(found)) <= high


def _somebody(found: str) -> bool:
    return _NOBODY.search(found.rpartition("@")[2]) is None


def _any(found: str) -> bool:
    return bool(found)


_Look = tuple[str, re.Pattern[str], Callable[[str], bool]]
_SECRETS: Final[tuple[_Look, ...]] = tuple(("key", pattern, _any) for pattern in _KEYS)
_ADDRESSES: Final[tuple[_Look, ...]] = (("email", _EMAIL, _somebody),)
_ACCOUNTS: Final[tuple[_Look, ...]] = (("id", _IBAN, _iban),)
_NUMBERS: Final[tuple[_Look, ...]] = (
    ("id", _CITIZEN, _citizen),
    ("id", _SSN, _any),
    ("id", _CARD, _card),
    *(("phone", pattern, _phone) for pattern in _PHONES),
)


def personal_in(messages: Sequence[Message]) -> list[Personal]:
    """Everything personal in a dialogue, by turn and place, without overlaps."""
    return [
        Personal(kind, at, start, end)
        for at, turn in enumerate(messages)
        for kind, start, end in _personal(turn.content)
    ]


def masked(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The dialogue with everything personal replaced by its kind in brackets, such as [EMAIL]."""
    out: list[Message] = []
    for turn in messages:
        text = turn.content
        for kind, start, end in reversed(_personal(text)):
            text = f"{text[:start]}[{kind.upper()}]{text[end:]}"
        out.append(msgspec.structs.replace(turn, content=text))
    return tuple(out)


def _likely(text: str) -> Iterator[_Look]:
    """What could be in a text at all, in the order in which it counts where two overlap."""
    if any(sign in text for sign in _KEY_SIGNS):
        yield from _SECRETS
    if "@" in text:
        yield from _ADDRESSES
    yield from _ACCOUNTS
    if _NUMBER.search(text):
        yield from _NUMBERS


def _personal(text: str) -> list[tuple[str, int, int]]:
    taken: list[tuple[str, int, int]] = []
    for kind, pattern, holds in _likely(text):
        for found in pattern.finditer(text):
            start, end = found.span()
            free = all(end <= other[1] or start >= other[2] for other in taken)
            if free and holds(found[0]):
                taken.append((kind, start, end))
    return sorted(taken, key=lambda each: each[1])
