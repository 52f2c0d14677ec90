"""From a pair and a criterion to the messages of stage 5, and from the answers back to votes.

Comes right before and right after the calls of `strategy`. All prompts on a pair, in one order,
share their beginning letter for letter and end with the question: Tier 1 warms the provider's
prefix cache for Tier 2. Everything that a model or a user wrote stands inside fences. A reader
never guesses: what is not in the form asked for is INVALID. Knows no library, no judge, no vote.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from dikast.engine.model import Completion, Message, Pair, Pick
from dikast.strategies.files import parse_toml, read_named
from dikast.strategies.prompts import fence_code
from dikast.strategies.reader import finish_of
from dikast.strategies.sesse.prompts import shown_texts
from dikast.strategies.text import blank_thoughts, narrow

_SHIPPED = Path(__file__).with_name("tier_templates")
_TAG = re.compile(r"\{\{(\w+)\}\}")
_SAID_MAX_CHARS = 500

TIERS = "sesse-tiers"
REPAIRS = ("repair_list", "repair_word", "repair_vote", "repair_votes")


class _File(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    version: str
    system: str
    material: str
    tier1: str
    tier1_single: str
    tier2: str
    tier2_batch: str
    repair_list: str
    repair_word: str
    repair_vote: str
    repair_votes: str


class Material(NamedTuple):
    """A pair as shown in one order: what all of its prompts begin with."""

    system: str
    start: str
    fence: str


class TierPrompts:
    """The prompts of stage 5; get them with `tier_prompts`.

    `hash` is the SHA-256 of their parsed content. The `id` of each, part of every call's key, is
    that of a template: `sesse-tier1@version#hash8`, `sesse-tier2@...`, `sesse-tier2-batch@...`.
    """

    def __init__(self, parsed: _File, content: str) -> None:
        self.hash = content
        self.version = parsed.version
        self._parsed = parsed
        self._material = _pieces(parsed.material.lstrip("\n"))
        self._tasks = {
            name: _pieces(getattr(parsed, name).strip())
            for name in ("tier1", "tier1_single", "tier2", "tier2_batch")
        }

    def id(self, name: str) -> str:
        """What identifies one of the prompts in a call."""
        return f"{name}@{self.version}#{self.hash[:8]}"

    def spec(self) -> dict[str, str]:
        """What identifies them, as plain data."""
        return {"name": self._parsed.name, "version": self.version, "hash": self.hash}

    def material(self, shown: Pair, seed: int, library_text: str) -> Material:
        """What every prompt on a pair begins with.

        Args:
            shown: the pair, its `response_a` being the answer to show first.
            seed: makes the fences unguessable to whoever wrote the answers.
            library_text: all clauses and questions, which stand inside the same fences.
        """
        data = shown_texts(shown, seed)
        fence = fence_code(seed, data.values())
        if fence in library_text:
            fence = fence_code(seed, [*data.values(), library_text])
        start = _filled(self._material, data, fence)
        return Material(self._parsed.system.strip(), start, fence)

    def ask(self, material: Material, task: str, data: Mapping[str, str]) -> tuple[Message, ...]:
        """The messages of one task about a pair.

        Args:
            material: as `material` gave it.
            task: "tier1", "tier1_single", "tier2" or "tier2_batch".
            data: a text for each of the task's fields.
        """
        question = _filled(self._tasks[task], data, material.fence)
        return (
            Message(role="system", content=material.system),
            Message(role="user", content=material.start + question),
        )

    def again(self, messages: Sequence[Message], said: str, repair: str) -> tuple[Message, ...]:
        """The one further try after an answer that could not be read.

        Args:
            messages: what was asked.
            said: what came back.
            repair: one of `REPAIRS`.
        """
        words = said.strip()[:_SAID_MAX_CHARS] or "(nothing)"
        return (
            *messages,
            Message(role="assistant", content=words),
            Message(role="user", content=getattr(self._parsed, repair)),
        )


def tier_prompts(name: str = TIERS) -> TierPrompts:
    """The shipped prompts of stage 5, or a file of one's own by its path.

    Raises:
        ConfigError: there is no such file, or it is wrong.
    """
    text, path = read_named("template", name, _SHIPPED)
    return TierPrompts(*parse_toml(text, _File, path, _File.__struct_fields__))


def _pieces(content: str) -> tuple[tuple[str, str], ...]:
    """Literal and field in turn; data is never scanned for fields."""
    found: list[tuple[str, str]] = []
    position = 0
    for tag in _TAG.finditer(content):
        found.append((content[position : tag.start()], tag[1]))
        position = tag.end()
    found.append((content[position:], ""))
    return tuple(found)


def _filled(pieces: Sequence[tuple[str, str]], data: Mapping[str, str], fence: str) -> str:
    parts: list[str] = []
    for literal, field in pieces:
        parts.append(literal)
        if field == "fence":
            parts.append(fence)
        elif field:
            label = field.upper()
            parts.append(f"<<<{label} {fence}>>>\n{data[field]}\n<<<END {label} {fence}>>>")
    return "".join(parts)


# --- reading ------------------------------------------------------------------------------------

_NOISE = re.compile(r"[\s*_`\"'.,:;()\[\]{}]+")
_LED_IN = re.compile(r"^(?:FINAL)?(?:ANSWER|VERDICT|REPLY|VOTE)(?=(?:A|B|NA|N/A)$|ANSWER)")
_VOTES: dict[str, Pick] = {
    "A": "A",
    "B": "B",
    "NA": "na",
    "N/A": "na",
    "ANSWERA": "A",
    "ANSWERB": "B",
}
_YES_NO = {"YES": True, "NO": False}
_LIST = re.compile(r"\[[\d\s,]*\]")
_ENTRY = re.compile(r'"?(\d+)"?\s*:\s*"?(?:ANSWER_)?(A|B|NA|N/A)"?\s*(?=[,}\n]|$)', re.IGNORECASE)


def _said(completion: Completion) -> str | None:
    """The words after the thoughts; None where they were cut off."""
    if finish_of(completion).cut:
        return None
    text, unfinished = blank_thoughts(completion.text)
    return None if unfinished else narrow(text)


def read_vote(completion: Completion) -> Pick:
    """A, B (as shown) or "na"; "none" where the answer is not one of them, or more than one.

    A line that holds nothing but a vote counts; explanations around it do not matter.
    """
    text = _said(completion)
    if text is None:
        return "none"
    found: set[Pick] = set()
    for line in text.splitlines():
        bare = _NOISE.sub("", line)
        # Lower-case "a" is an article as often as an answer.
        word = bare if bare in ("A", "B") else _LED_IN.sub("", bare.upper())
        if word in _VOTES and (word not in ("A", "B") or bare != word.lower()):
            found.add(_VOTES[word])
    return found.pop() if len(found) == 1 else "none"


def read_votes(completion: Completion, count: int) -> dict[int, Pick]:
    """The votes of a batch by number, 1 to `count`, without what is missing or contradictory."""
    text = _said(completion)
    found: dict[int, Pick] = {}
    twice: set[int] = set()
    for number, word in _ENTRY.findall(text or ""):
        place, pick = int(number), _VOTES[word.upper()]
        if found.setdefault(place, pick) != pick:
            twice.add(place)
    return {
        place: pick for place, pick in found.items() if 1 <= place <= count and place not in twice
    }


def read_numbers(completion: Completion, count: int) -> tuple[int, ...] | None:
    """The list of numbers, each from 1 to `count`, in ascending order; None where there is none."""
    text = _said(completion)
    lists = set(_LIST.findall(text or ""))
    if len(lists) != 1:
        return None
    numbers = sorted({int(each) for each in re.findall(r"\d+", lists.pop())})
    if numbers and not (numbers[0] >= 1 and numbers[-1] <= count):
        return None
    return tuple(numbers)


def read_yes_no(completion: Completion) -> bool | None:
    """Yes or no as the only word of a line; None where neither or both are there."""
    text = _said(completion)
    words = {_NOISE.sub("", line).upper() for line in (text or "").splitlines()}
    found = {_YES_NO[word] for word in words if word in _YES_NO}
    return found.pop() if len(found) == 1 else None
