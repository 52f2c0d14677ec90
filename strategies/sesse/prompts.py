"""The questions a library is built with, as templates: drafting, summarising, equivalence.

Comes right before a building call. Like the templates of comparisons, but for any named texts:
every piece of data stands inside random fences, and only what is marked `!raw` (a letter, a
number) stands outside. Knows no judge, no stage and no numpy.
"""

import hashlib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dikast.engine.errors import ConfigError
from dikast.engine.model import Message, Pair
from dikast.strategies.files import content_hash, parse_toml, read_named
from dikast.strategies.prompts import PromptTemplate, conversation, fence_code, load_template

_SHIPPED = Path(__file__).with_name("templates")
_TAG = re.compile(r"\{\{\s*(\w+)\s*(!raw)?\s*\}\}")

HOLISTIC = "sesse-holistic"
DRAFT = "sesse-draft"
SUMMARISE = "sesse-summarise"
EQUIVALENCE = "sesse-equivalence"
BUILD_TEMPLATES = (HOLISTIC, DRAFT, SUMMARISE, EQUIVALENCE)


class _Turn(msgspec.Struct, forbid_unknown_fields=True):
    role: str
    content: str


class _File(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    version: str
    messages: list[_Turn]
    description: str = ""
    schema: dict[str, Any] | None = None


class _Piece(NamedTuple):
    literal: str
    field: str
    raw: bool


class StageTemplate:
    """A template for named texts; get one with `stage_template`.

    `name`, `version`, `hash` and `id` are those of `PromptTemplate`; `fields` are the texts that
    it needs. `schema` is the JSON schema of the answer.
    """

    def __init__(self, parsed: _File, content: str) -> None:
        self.name = parsed.name
        self.version = parsed.version
        self.hash = content
        self.id = f"{parsed.name}@{parsed.version}#{content[:8]}"
        self.schema = parsed.schema
        self._messages = tuple(
            (each.role, _pieces(each.content.strip())) for each in parsed.messages
        )
        self.fields = frozenset(
            piece.field for _, pieces in self._messages for piece in pieces if piece.field
        ) - {"fence"}

    def render(self, data: Mapping[str, str], seed: int) -> tuple[Message, ...]:
        """The messages for these texts. Pure: the same texts and seed give the same messages.

        Args:
            data: a text for each of `fields`; see `shown_texts` for those of a pair.
            seed: makes the fences unguessable to whoever wrote the texts.

        Raises:
            ConfigError: a text is missing.
        """
        if missing := sorted(self.fields - set(data)):
            raise ConfigError(f"template {self.id}: no text for {', '.join(missing)}")
        fence = fence_code(seed, [data[field] for field in sorted(self.fields)])
        return tuple(
            Message(role=role, content="".join(_filled(piece, data, fence) for piece in pieces))
            for role, pieces in self._messages
        )

    def __repr__(self) -> str:
        return f"StageTemplate({self.id})"


def _filled(piece: _Piece, data: Mapping[str, str], fence: str) -> str:
    if not piece.field:
        return piece.literal
    if piece.field == "fence":
        return fence
    text = data[piece.field]
    if piece.raw:
        return text
    label = piece.field.upper()
    return f"<<<{label} {fence}>>>\n{text}\n<<<END {label} {fence}>>>"


def _pieces(content: str) -> tuple[_Piece, ...]:
    found: list[_Piece] = []
    position = 0
    for tag in _TAG.finditer(content):
        if tag.start() > position:
            found.append(_Piece(content[position : tag.start()], "", False))
        found.append(_Piece("", tag[1], tag[2] is not None))
        position = tag.end()
    if position < len(content):
        found.append(_Piece(content[position:], "", False))
    return tuple(found)


def shown_texts(shown: Pair, seed: int) -> dict[str, str]:
    """The texts of a pair as shown: `question`, `answer_a`, `answer_b`.

    Turns of a conversation are told apart by lines with a code that none of them holds.
    """
    question = shown.question
    if len(shown.messages) == 1:
        question = shown.messages[0].content
    elif shown.messages:
        texts = [each.content for each in shown.messages]
        question = conversation(shown, fence_code(seed, texts))
    return {"question": question, "answer_a": shown.response_a, "answer_b": shown.response_b}


def stage_template(name: str) -> StageTemplate:
    """A shipped template by its name, or a file of one's own by its path.

    Raises:
        ConfigError: there is no such template, or it is wrong.
    """
    text, path = read_named("template", name, _SHIPPED)
    known = (*_File.__struct_fields__, *_Turn.__struct_fields__)
    return StageTemplate(*parse_toml(text, _File, path, known))


def holistic_template() -> PromptTemplate:
    """The comparison that errors are collected with: analysis first, A or B, no tie."""
    return load_template(str(_SHIPPED / f"{HOLISTIC}.toml"))


def prompts_sha() -> str:
    """SHA-256 over the templates that a library is built with."""
    digest = hashlib.sha256()
    for name in BUILD_TEMPLATES:
        text = (_SHIPPED / f"{name}.toml").read_text(encoding="utf-8")
        digest.update(f"{name}\n{content_hash(tomllib.loads(text))}\n".encode())
    return digest.hexdigest()
