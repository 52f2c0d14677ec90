"""A chat log's dialogue as a benchmark prompt: what is wrong with it, and what can be put right.

The first stage of `dikast benchmark build`, and the substance of `dikast benchmark lint`. A
dialogue is ready when a system turn (if any) comes first, user and assistant alternate, and the
user speaks last: the answer is what models will be asked for. Some faults of logs are repaired
without guessing at contents (a logged answer left on, roles shifted by one, escapes that were
never undone); where only a person could tell, the dialogue is turned away with the reason. Reads
no file and asks no judge.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from dikast.analysis.benchmark_text import (
    answer_like,
    asks_something,
    orders,
    persona,
    repeats,
    unescaped,
)
from dikast.engine.model import Message, Record, Winner

TOPICS: Final = ("Code", "Writing", "Translation", "Math", "QA", "NLU", "Role", "Logic")
"""The eight topics of SenseBench, in the order of its file."""

CHARS_MAX: Final = 20_000
"""Characters of a dialogue, by default; the longest of the published file has 17,937."""

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")
_TITLES = {"user": "user", "assistant": "assistant", "system": "system"}


class Dialogue(Record, frozen=True):
    """A dialogue on its way through the stages; one line of every artefact.

    `id` is its place in the input ("d000012"), `log_id` the name the log gave it. `repairs` names
    what was put right. From the stage of the answers on, `strong` says which of `response_a` and
    `response_b` the stronger model wrote; `turned_away` why the comparison did not keep it.
    """

    id: str
    messages: tuple[Message, ...]
    file: str = ""
    line: int = 0
    log_id: str | None = None
    repairs: tuple[str, ...] = ()
    topic: str | None = None
    response_a: str | None = None
    response_b: str | None = None
    model_a: str | None = None
    model_b: str | None = None
    strong: Winner | None = None
    turned_away: str | None = None

    def asked(self) -> str:
        """All that the user said; what near duplicates are told by."""
        return "\n".join(turn.content for turn in self.messages if turn.role == "user")


class Finding(NamedTuple):
    """One thing wrong with a dialogue. `turn` counts from 0; `field` is "from" or "content"."""

    kind: str
    message: str
    turn: int | None = None
    field: Literal["", "from", "content", "topic", "name"] = ""
    fixable: bool = True


class Examined(NamedTuple):
    """What was found, and the dialogue with all that can be put right put right.

    `reason` is the kind of the first finding that cannot be; then `messages` are not usable.
    """

    findings: tuple[Finding, ...]
    messages: tuple[Message, ...]
    reason: str | None

    @property
    def repairs(self) -> tuple[str, ...]:
        """Kinds of the findings that were put right, each once, in their order."""
        return tuple(dict.fromkeys(each.kind for each in self.findings if each.fixable))


class _Turn(NamedTuple):
    """A turn and its place in the dialogue as logged."""

    at: int
    role: str
    content: str


def examine(messages: Sequence[Message], *, chars_max: int = CHARS_MAX) -> Examined:
    """Find what is wrong with a dialogue and put right what can be.

    Args:
        messages: the turns as logged.
        chars_max: a longer dialogue is turned away.
    """
    turns = [_Turn(at, each.role, each.content) for at, each in enumerate(messages)]
    found: list[Finding] = []
    if not turns:
        found.append(Finding("no_turns", "the dialogue has no turns", fixable=False))
    turns = _texts(turns, found)
    turns = _without_empty(turns, found)
    turns = _unshifted(turns, found)
    turns = _alternating(turns, found)
    turns = _until_the_user(turns, found)
    size = sum(len(turn.content) for turn in turns)
    if size > chars_max:
        message = f"{size:,} characters, more than {chars_max:,}"
        found.append(Finding("too_long", message, fixable=False))
    reason = next((each.kind for each in found if not each.fixable), None)
    fixed = tuple(Message(role=turn.role, content=turn.content) for turn in turns)
    return Examined(tuple(found), fixed, reason)


def _texts(turns: list[_Turn], found: list[Finding]) -> list[_Turn]:
    """Texts without control characters and with their escapes undone."""
    out: list[_Turn] = []
    for turn in turns:
        text = turn.content
        if "\ufffd" in text:
            message = "characters were lost (U+FFFD)"
            found.append(Finding("damaged_text", message, turn.at, "content", fixable=False))
        if _CONTROL.search(text):
            text = _CONTROL.sub("", text)
            message = "control characters in the text"
            found.append(Finding("control_characters", message, turn.at, "content"))
        plain = unescaped(text)
        if plain != text:
            message = "escapes such as \\n stand in the text instead of line breaks"
            found.append(Finding("literal_escapes", message, turn.at, "content"))
        out.append(turn._replace(content=plain))
    return out


def _without_empty(turns: list[_Turn], found: list[Finding]) -> list[_Turn]:
    """An empty system turn, or an empty last turn, goes; another one is beyond repair."""
    out: list[_Turn] = []
    last = max((place for place, turn in enumerate(turns) if turn.content.strip()), default=-1)
    for place, turn in enumerate(turns):
        if turn.content.strip():
            out.append(turn)
            continue
        # The user's words are what is missing where they asked nothing at the end.
        idle = turn.role == "system" or (place > last and turn.role == "assistant")
        message = f"the {_TITLES[turn.role]}'s turn is empty"
        found.append(Finding("empty_turn", message, turn.at, "content", fixable=idle))
    return out


def _unshifted(turns: list[_Turn], found: list[Finding]) -> list[_Turn]:
    """Roles that were shifted by one: a system prompt tagged as the user, the user as assistant.

    Also where the user's first turn was logged twice, the second time as the assistant's.
    """
    roles = [turn.role for turn in turns]
    last = turns[-1].content if turns else ""
    if len(turns) < 2 or roles[-1] != "assistant" or answer_like(last):
        return turns
    twice = roles[:2] == ["user", "assistant"] and repeats(turns[0].content, turns[1].content)
    if not twice and not asks_something(last):
        return turns
    if roles == ["user", "assistant"] * (len(turns) // 2):
        said = [turn.content for turn in turns[1::2]]
        asking = sum(asks_something(text) and not answer_like(text) for text in said)
        flipped = {"user": "assistant", "assistant": "user"}
        rest = [turn._replace(role=flipped[turn.role]) for turn in turns[1:]]
        if twice or (2 * asking >= len(said) and persona(turns[0].content)):
            what = "is said again" if twice else "reads like a system prompt"
            message = f"roles are shifted by one: the first turn {what}, the last is a request"
            found.append(Finding("role_shift", message, turns[0].at, "from"))
            return rest if twice else [turns[0]._replace(role="system"), *rest]
    if orders(last):
        message = "the last turn reads like a request but is tagged as the assistant's"
        found.append(Finding("unclear_roles", message, turns[-1].at, "from", fixable=False))
    return turns


def _alternating(turns: list[_Turn], found: list[Finding]) -> list[_Turn]:
    """Turns of one speaker in a row become one; a system turn further on is beyond repair."""
    out: list[_Turn] = []
    for turn in turns:
        if out and out[-1].role == turn.role:
            message = f"two turns of the {_TITLES[turn.role]} in a row"
            found.append(Finding("repeated_speaker", message, turn.at, "from"))
            out[-1] = out[-1]._replace(content=f"{out[-1].content}\n\n{turn.content}")
            continue
        if turn.role == "system" and out:
            message = "a system turn that is not the first"
            found.append(Finding("late_system", message, turn.at, "from", fixable=False))
        out.append(turn)
    speakers = [turn for turn in out if turn.role != "system"]
    if speakers and speakers[0].role == "assistant" and len(speakers) > 1:
        message = "the assistant speaks before the user does"
        found.append(Finding("assistant_first", message, speakers[0].at, "from", fixable=False))
    return out


def _until_the_user(turns: list[_Turn], found: list[Finding]) -> list[_Turn]:
    """A logged answer at the end goes: it would leak an answer into the prompt."""
    asked = any(turn.role == "user" for turn in turns)
    if not asked and not any(not each.fixable for each in found):
        found.append(Finding("nothing_asked", "there is no turn of the user", fixable=False))
    unclear = any(each.kind == "unclear_roles" for each in found)
    if asked and turns[-1].role == "assistant" and not unclear:
        message = "ends with the assistant's turn: a logged answer was left on"
        found.append(Finding("trailing_assistant", message, turns[-1].at, "from"))
        return turns[:-1]
    return turns
