"""Texts and conversations as other people's files write them, brought into one shape.

Used by the format table only. Knows chat-message lists of several dialects, transcripts with
"Human:" and "Assistant:" lines, and nothing of pairs.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from dikast.engine.model import Message

_ROLES = {
    "user": "user",
    "human": "user",
    "prompter": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "system": "system",
    "developer": "system",
}
_SPOKEN = re.compile(r"(?:^|\n\n)(Human|Assistant): ?")


class MisfitError(Exception):
    """A field does not hold what it should; becomes a `BadRow` and never leaves the package."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        self.message = message
        super().__init__(f"{field}: {message}")


def text_of(value: Any, field: str) -> str:
    """A text, however it is wrapped: plain, `{"value": ...}`, or a list of text parts.

    Raises:
        MisfitError: it is missing, or it is no text.
    """
    if isinstance(value, str):
        return value
    if value is None:
        raise MisfitError(field, "is missing")
    if isinstance(value, dict):
        for key in ("text", "value", "content"):
            if key in value:
                return text_of(value[key], field)
    if isinstance(value, list) and value and all(isinstance(each, (str, dict)) for each in value):
        return "".join(text_of(each, field) for each in value)
    raise MisfitError(field, f"expected text, got {_kind(value)}")


def messages_of(value: Any, field: str) -> tuple[Message, ...] | None:
    """A list of chat messages (role/content, or from/value), or None when it is not one.

    Raises:
        MisfitError: it is one, but a role is unknown or a content is no text.
    """
    if not isinstance(value, list) or not value:
        return None
    if not all(isinstance(each, dict) and ("role" in each or "from" in each) for each in value):
        return None
    return tuple(_message(each, field) for each in value)


def _message(turn: dict[str, Any], field: str) -> Message:
    said = turn.get("role", turn.get("from"))
    role = _ROLES.get(str(said).lower())
    if role is None:
        raise MisfitError(field, f"unknown role {said!r}; use system, user or assistant")
    content = turn.get("content", turn.get("value", turn.get("text")))
    return Message(role=role, content=text_of(content, field))


def transcript_of(text: str) -> tuple[Message, ...] | None:
    """A transcript that begins with "Human:" as messages, or None when it is not one."""
    parts = _SPOKEN.split(text)
    if len(parts) < 3 or parts[0].strip() or parts[1] != "Human":
        return None
    roles = ["user" if each == "Human" else "assistant" for each in parts[1::2]]
    return tuple(
        Message(role=role, content=content.strip())
        for role, content in zip(roles, parts[2::2], strict=True)
    )


def unwrapped(value: Any) -> Any:
    """A list that was written as JSON text inside a field (as Arena exports do), as a list."""
    if isinstance(value, str) and value.startswith("["):
        try:
            inner = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value  # a text that happens to begin with a bracket
        if isinstance(inner, list) and inner and all(isinstance(each, str) for each in inner):
            return inner
    return value


def asked(messages: Sequence[Message]) -> tuple[str, tuple[Message, ...]]:
    """The question of a context, and the context itself where it is more than one user turn."""
    question = next((each.content for each in reversed(messages) if each.role == "user"), "")
    if len(messages) == 1 and messages[0].role == "user":
        return question, ()
    return question, tuple(messages)


def answered(messages: Sequence[Message], field: str) -> tuple[tuple[Message, ...], str]:
    """A conversation as its context and its last answer.

    Raises:
        MisfitError: the last turn is not the assistant's.
    """
    if not messages or messages[-1].role != "assistant":
        raise MisfitError(field, "the last turn must be the assistant's answer")
    return tuple(messages[:-1]), messages[-1].content


def side_by_side(
    a: Sequence[Message], b: Sequence[Message], fields: tuple[str, str]
) -> tuple[str, tuple[Message, ...], str, str]:
    """Two conversations as one question with two answers: question, messages, answer a and b.

    Where the contexts agree, the last answers are compared. Where they differ only in what the
    two assistants said before, all answers of each side are compared, turn by turn.

    Raises:
        MisfitError: the user said different things to the two.
    """
    context_a, answer_a = answered(a, fields[0])
    context_b, answer_b = answered(b, fields[1])
    if context_a == context_b:
        return *asked(context_a), answer_a, answer_b
    asked_a, asked_b = (
        [each for each in side if each.role != "assistant"] for side in (context_a, context_b)
    )
    if asked_a != asked_b:
        raise MisfitError(fields[1], f"the user's turns differ from those of {fields[0]}")
    question = in_turns([each.content for each in asked_a if each.role == "user"])
    system = tuple(each for each in asked_a if each.role == "system")
    messages = (*system, Message(role="user", content=question)) if system else ()
    answers_a, answers_b = (
        in_turns([each.content for each in side if each.role == "assistant"]) for side in (a, b)
    )
    return question, messages, answers_a, answers_b


def in_turns(texts: Sequence[str]) -> str:
    """Several turns of one speaker as one text; a single turn stays as it is."""
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"[Turn {number}]\n{text}" for number, text in enumerate(texts, start=1))


def _kind(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", dict: "an object"}
    return names.get(type(value), "a list" if isinstance(value, list) else type(value).__name__)
