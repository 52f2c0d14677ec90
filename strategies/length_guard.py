"""Keeps length out of the judgement: the clause that it is no criterion, and less boilerplate.

A combinator over any strategy. It changes what is shown, never who wins: each call leaves with the
clause in its prompt (or without), each answer without the phrases that say nothing. What it did
stands in the outcome. Knows no judge and no provider.
"""

from typing import Any, Literal

import msgspec

from dikast.engine.model import (
    Call,
    Completion,
    Item,
    LengthGuard,
    Message,
    Outcome,
    Pair,
    Subject,
)
from dikast.engine.ports import Ask, Strategy
from dikast.strategies.boilerplate import VERSION as RULES_VERSION
from dikast.strategies.boilerplate import strip_boilerplate
from dikast.strategies.subjects import put, takes_items
from dikast.strategies.text import mostly_chinese

VERSION = "1"

Clause = Literal["declared", "added", "removed", "absent"]

DECLARED: tuple[tuple[str, str], ...] = (
    (
        "- Length is no criterion. A longer answer is not better for being longer, a shorter one "
        "not better for being shorter.\n",
        "",
    ),
    ("- 长短不是标准。回答不因更长而更好，也不因更短而更好。\n", ""),
    (
        "- Length is no criterion, nor is the order in which the answers are shown, nor who may "
        "have written them.",
        "- The order in which the answers are shown is no criterion, nor is who may have written "
        "them.",
    ),
    (" Length is no criterion in either direction. Who may have written the answer is none either.",
     " Who may have written the answer is no criterion."),
    ("长短在两个方向上都不是标准，可能由谁写的也不是。", "可能由谁写的不是标准。"),
)  # fmt: skip
"""How the prompts of this package say that length is no criterion, and the same place without."""

ADDED_EN = (
    "Length is no criterion. A longer answer is not better for being longer, nor a shorter one for "
    "being shorter."
)
ADDED_ZH = "长短不是标准。回答不因更长而更好，也不因更短而更好。"


class _ClauseAsk:
    """An Ask that sees to the clause in every prompt, and remembers what it had to do."""

    def __init__(self, ask: Ask, wanted: bool) -> None:
        self._ask = ask
        self._wanted = wanted
        self.did: set[Clause] = set()

    async def __call__(self, call: Call) -> Completion:
        messages, did = with_clause(call.messages) if self._wanted else without(call.messages)
        self.did.add(did)
        if did in ("declared", "absent"):
            return await self._ask(call)
        asked = msgspec.structs.replace(
            call, messages=messages, prompt=f"{call.prompt}{'+' if did == 'added' else '-'}length"
        )
        completion = await self._ask(asked)
        if completion.key is None:
            completion = msgspec.structs.replace(completion, key=asked.key())
        return completion

    def told(self) -> Clause:
        """One word for all calls: of several, the one that tells most of the prompts apart."""
        order: tuple[Clause, ...] = ("removed", "added", "absent", "declared")
        for each in order:
            if each in self.did:
                return each
        return "absent"


class LengthGuarded:
    """Judges with another strategy on guarded prompts and answers; see `length_guard`."""

    def __init__(self, inner: Strategy, clause: bool, strip: bool) -> None:
        self._inner = inner
        self._clause = clause
        self._strip = strip

    @property
    def name(self) -> str:
        """`length_guard@version`; what is inside is in `spec()`."""
        return f"length_guard@{VERSION}"

    def spec(self) -> dict[str, Any]:
        """All that decides the result."""
        return {
            "kind": "length_guard",
            "version": VERSION,
            "clause": self._clause,
            "strip": RULES_VERSION if self._strip else None,
            "inner": dict(self._inner.spec()),
        }

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Judge the pair as it is shown; the pair itself stays as it is.

        Raises:
            ProviderError: as the inner strategy raises it.
            RunStopped: the run ends.
        """
        shown, guard = pair, LengthGuard(clause="absent")
        if self._strip:
            a, b = strip_boilerplate(pair.response_a), strip_boilerplate(pair.response_b)
            shown = msgspec.structs.replace(pair, response_a=a.text, response_b=b.text)
            guard = LengthGuard(clause="absent", removed_a=a.removed, removed_b=b.removed)
        return await self._judged(shown, guard, ask)

    def takes_items(self) -> bool:
        """It does where the strategy inside does."""
        return takes_items(self._inner)

    async def judge_item(self, item: Item, ask: Ask) -> Outcome:
        """Score the answer as it is shown.

        Raises:
            ProviderError: as the inner strategy raises it.
            RunStopped: the run ends.
        """
        shown, guard = item, LengthGuard(clause="absent")
        if self._strip:
            text, removed = strip_boilerplate(item.response)
            shown = msgspec.structs.replace(item, response=text)
            guard = LengthGuard(clause="absent", removed_a=removed)
        return await self._judged(shown, guard, ask)

    async def _judged(self, shown: Subject, guard: LengthGuard, ask: Ask) -> Outcome:
        guarded = _ClauseAsk(ask, self._clause)
        outcome = await put(self._inner, shown, guarded)
        guard = msgspec.structs.replace(guard, clause=guarded.told())
        return msgspec.structs.replace(outcome, length_guard=guard)

    def __repr__(self) -> str:
        return f"LengthGuarded({self._inner!r}, clause={self._clause}, strip={self._strip})"


def length_guard(strategy: Strategy, *, clause: bool = True, strip: bool = False) -> LengthGuarded:
    """Guard a strategy against a judge's liking for long answers.

    Args:
        strategy: compares or scores.
        clause: whether the prompt says that length is no criterion. The prompts of this package
            say so by themselves; to others it is added in a system message. False takes it out of
            this package's prompts, to measure what it does; other prompts stay as they are.
        strip: whether boilerplate is taken out of the answers before they are shown (see
            `strip_boilerplate`). Not for questions that ask for a letter or a greeting.
    """
    return LengthGuarded(strategy, clause, strip)


def with_clause(messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], Clause]:
    """The messages with the clause, and whether it was there or had to be added."""
    for message in messages:
        if message.role == "system" and any(said in message.content for said, _ in DECLARED):
            return messages, "declared"
    chinese = bool(messages) and mostly_chinese(messages[0].content)
    clause = ADDED_ZH if chinese else ADDED_EN
    if messages and messages[0].role == "system":
        first = msgspec.structs.replace(messages[0], content=f"{messages[0].content}\n\n{clause}")
        return (first, *messages[1:]), "added"
    return (Message(role="system", content=clause), *messages), "added"


def without(messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], Clause]:
    """The messages without the clause, where it is said in the words of this package."""
    out: list[Message] = []
    for message in messages:
        text = message.content
        if message.role == "system":
            for said, instead in DECLARED:
                text = text.replace(said, instead)
        out.append(message if text == message.content else Message(role="system", content=text))
    changed = any(new is not old for new, old in zip(out, messages, strict=True))
    return tuple(out), "removed" if changed else "absent"
