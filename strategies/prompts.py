"""From a pair, as shown, to the messages a judge gets: prompt templates.

Comes right before the call. A template is a TOML file, compiled once into a list of pieces and
rendered in one pass: data is never scanned for fields, and every piece of data stands inside
random fences, so that an answer can neither close its fence nor pose as instructions. Knows the
pair only as it is shown (`response_a` is the first answer) and no strategy, judge or provider.
"""

import copy
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dikast.engine.errors import ConfigError
from dikast.engine.model import Message, Pair, Subject
from dikast.strategies.files import content_hash, parse_toml, read_named, shipped_names
from dikast.strategies.names import nearest
from dikast.strategies.reader import ReaderSpec, compile_reader

FIELDS = (
    *("question", "answer_a", "answer_b", "reference", "key_points", "category"),
    *("preferences", "examples"),
)
"""What a template can name, besides `fence` (the code of this rendering's fences)."""

OPTIONAL = frozenset({"reference", "key_points", "category", "preferences", "examples"})
"""Fields that a pair may lack; a template names them inside a section of their own."""

_SHIPPED = Path(__file__).with_name("templates")
_TAG = re.compile(r"\\\{\{|\{\{([^{}\n]*)\}\}")
_ALONE = re.compile(r"^[ \t]*(\{\{[ \t]*[#/][^{}\n]*\}\})[ \t]*\n", re.MULTILINE)
_TAG_BODY = re.compile(r"\s*([#/]?)\s*([A-Za-z_][\w.]*)\s*(?:!\s*(\w+))?\s*\Z")
_ROLES = frozenset({"system", "user", "assistant"})
_FENCE_BYTES = 5

TemplateLoader = Callable[[str], "PromptTemplate"]


class _MessageFile(msgspec.Struct, forbid_unknown_fields=True):
    role: str
    content: str


class _TemplateFile(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    version: str
    language: str
    messages: list[_MessageFile]
    reader: ReaderSpec
    description: str = ""
    schema: dict[str, Any] | None = None


_KNOWN_NAMES = (
    *_TemplateFile.__struct_fields__,
    *("role", "content", "kind", "take", "field", "values", "pattern", "patterns", "ignore_case"),
)


class _Piece(NamedTuple):
    """A stretch of literal text, or a field; `section` is the field whose presence it needs."""

    literal: str
    field: str
    raw: bool
    section: str


class PromptTemplate:
    """A compiled template; build it with `parse_template` or `load_template`.

    `name`, `version` and `language` are the author's; `hash` is the SHA-256 of the parsed
    content (comments and layout of the file do not count); `id` is `name@version#hash8`, which
    goes into every call's key. `reader` reads what comes back. `schema` is the JSON schema of
    the answer, if the template has one, with its properties in the author's order.
    """

    def __init__(self, parsed: _TemplateFile, content_hash: str) -> None:
        self.name = parsed.name
        self.version = parsed.version
        self.language = parsed.language
        self.hash = content_hash
        self.id = f"{parsed.name}@{parsed.version}#{content_hash[:8]}"
        self.reader = compile_reader(parsed.reader)
        self.schema = parsed.schema
        self._messages = tuple(
            (each.role, _compile(each.content.strip())) for each in parsed.messages
        )
        used = {piece.field for _, pieces in self._messages for piece in pieces}
        used |= {piece.section for _, pieces in self._messages for piece in pieces}
        self._fields = tuple(field for field in FIELDS if field in used)
        self._given: dict[str, str] = {}
        self._fenced = "fence" in used or any(
            piece.field and not piece.raw for _, pieces in self._messages for piece in pieces
        )
        for needed in ("answer_a", "answer_b"):
            if needed not in used:
                raise ConfigError(
                    f"no message names {{{{{needed}}}}}; a comparison must show both answers"
                )

    def render(self, shown: Pair, seed: int) -> tuple[Message, ...]:
        """The messages for a pair as shown. Pure: the same pair and seed give the same messages.

        Args:
            shown: the pair, its `response_a` being the answer to show first.
            seed: makes the fences unguessable to whoever wrote the answers.
        """
        data = {field: _DATA[field](shown) for field in self._fields}
        data.update(self._given)
        fence = ""
        if self._fenced:
            fence = fence_code(seed, [text for text in data.values() if text is not None])
        turns = len(shown.messages) > 1
        messages: list[Message] = []
        for role, pieces in self._messages:
            parts: list[str] = []
            for literal, field, raw, section in pieces:
                if section and data[section] is None:
                    continue
                if not field:
                    parts.append(literal)
                elif field == "fence":
                    parts.append(fence)
                else:
                    text = data[field] or ""
                    if raw:
                        parts.append(text)
                        continue
                    if turns and field == "question":
                        text = conversation(shown, fence)
                    label = _LABELS[field]
                    parts.append(f"<<<{label} {fence}>>>\n{text}\n<<<END {label} {fence}>>>")
            content = "".join(parts)
            if content and not content.isspace():
                messages.append(Message(role=role, content=content))
        return tuple(messages)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the template names."""
        return self._fields

    def given(self, data: Mapping[str, str]) -> "PromptTemplate":
        """The same template with fields filled that no pair has; fenced like all other data.

        Args:
            data: texts by field, "preferences" or "examples"; an empty text leaves the field out.

        Raises:
            ConfigError: the template does not name such a field.
        """
        for field in data:
            if field not in self._fields:
                raise ConfigError(
                    f"the template {self.id} does not name {{{{{field}}}}}; write "
                    f"{{{{#{field}}}}} ... {{{{{field}}}}} ... {{{{/{field}}}}} into it"
                )
        filled = copy.copy(self)
        filled._given = {field: text for field, text in data.items() if text}
        return filled

    def spec(self) -> dict[str, str]:
        """What identifies the template, as plain data; what was filled in goes in as a hash."""
        plain = {"name": self.name, "version": self.version, "hash": self.hash}
        return {**plain, "given": content_hash(dict(self._given))} if self._given else plain

    def __repr__(self) -> str:
        return f"PromptTemplate({self.id})"


def _question(shown: Pair) -> str:
    if not shown.messages:
        return shown.question
    if len(shown.messages) == 1:
        return shown.messages[0].content
    return "\n\n".join(f"{each.role.capitalize()}: {each.content}" for each in shown.messages)


def conversation(shown: Subject, fence: str) -> str:
    """The turns, each opened by a line with the fence's code, which no turn can imitate."""
    turns: list[str] = []
    for number, each in enumerate(shown.messages, start=1):
        role = each.role.upper() if each.role in _ROLES else "OTHER"
        turns.append(f"<<TURN {number} {role} {fence}>>\n{each.content}")
    return "\n".join(turns)


def _key_points(shown: Pair) -> str | None:
    if not shown.key_points:
        return None
    return "\n".join(f"{number}. {each}" for number, each in enumerate(shown.key_points, start=1))


_DATA: dict[str, Callable[[Pair], str | None]] = {
    "question": _question,
    "answer_a": lambda shown: shown.response_a,
    "answer_b": lambda shown: shown.response_b,
    "reference": lambda shown: shown.reference or None,
    "key_points": _key_points,
    "category": lambda shown: shown.category or None,
    # Not of the pair but of the person who asked; filled in by `PromptTemplate.given`.
    "preferences": lambda shown: None,
    "examples": lambda shown: None,
}
_LABELS = {field: field.upper() for field in FIELDS}


def fence_code(seed: int, texts: Iterable[str]) -> str:
    """Ten hex digits that stand in none of the texts, derived from the seed and the texts.

    Args:
        seed: the run's seed.
        texts: all data that will stand between fences.
    """
    joined = "\x00".join(texts)
    data = joined.encode("utf-8", "surrogatepass")
    key = str(seed).encode()[:64]
    attempt = 0
    while True:
        salt = attempt.to_bytes(8, "big")
        code = hashlib.blake2b(data, digest_size=_FENCE_BYTES, key=key, salt=salt).hexdigest()
        if code not in joined:
            return code
        attempt += 1


# --- compiling ----------------------------------------------------------------------------------


def _compile(content: str) -> tuple[_Piece, ...]:
    """Cut a message into pieces.

    Raises:
        ConfigError: a field that does not exist, a section that does not end.
    """
    content = _ALONE.sub(r"\1", content)
    pieces: list[_Piece] = []
    section = ""
    position = 0
    for tag in _TAG.finditer(content):
        _literal(pieces, content[position : tag.start()], section)
        position = tag.end()
        if tag[1] is None:
            pieces.append(_Piece("{{", "", False, section))
            continue
        sign, name, flag = _tag(tag)
        if sign == "#":
            if section:
                raise ConfigError(f"{tag[0]} stands inside {{{{#{section}}}}}; close that first")
            if name not in FIELDS:
                raise ConfigError(f"{tag[0]}: unknown section {name!r}; {nearest(name, FIELDS)}")
            section = name
        elif sign == "/":
            if name != section:
                raise ConfigError(f"{tag[0]} closes a section that is not open; remove it")
            section = ""
        else:
            if name in OPTIONAL and section != name:
                raise ConfigError(
                    f"{tag[0]}: a pair may have no {name}; write "
                    f"{{{{#{name}}}}} ... {tag[0]} ... {{{{/{name}}}}} around it"
                )
            pieces.append(_Piece("", name, flag == "raw", section))
    if section:
        raise ConfigError(f"the section {{{{#{section}}}}} is never closed; add {{{{/{section}}}}}")
    _literal(pieces, content[position:], section)
    return tuple(pieces)


def _tag(tag: re.Match[str]) -> tuple[str, str, str]:
    """Sign, name and flag of one {{...}}."""
    body = _TAG_BODY.match(tag[1])
    if body is None:
        raise ConfigError(f"{tag[0]} is not a field; for literal braces write \\{{{{")
    sign, name, flag = body[1], body[2], body[3] or ""
    if not sign and name not in FIELDS and name != "fence":
        raise ConfigError(f"{tag[0]}: unknown field; {nearest(name, (*FIELDS, 'fence'))}")
    if flag and (flag != "raw" or sign or name == "fence"):
        raise ConfigError(f"{tag[0]}: only {{{{field!raw}}}} (no fences) exists")
    return sign, name, flag


def _literal(pieces: list[_Piece], text: str, section: str) -> None:
    if "{{" in text:
        at = text.index("{{")
        raise ConfigError(
            f"{text[at : at + 20]!r} opens a field and never closes it; "
            "for literal braces write \\{{"
        )
    if text:
        pieces.append(_Piece(text, "", False, section))


# --- files --------------------------------------------------------------------------------------


def parse_template(text: str, source: str = "template") -> PromptTemplate:
    """Compile the text of a template file.

    Args:
        text: TOML.
        source: what to call it in error messages, usually the path.

    Raises:
        ConfigError: what is wrong, in which field, and what to do.
    """
    parsed, content = parse_toml(text, _TemplateFile, source, _KNOWN_NAMES)
    try:
        _check(parsed)
        return PromptTemplate(parsed, content)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from error


def _check(parsed: _TemplateFile) -> None:
    for what, value in (("name", parsed.name), ("version", parsed.version)):
        if not re.fullmatch(r"[\w.+-]{1,80}", value):
            raise ConfigError(
                f"{what} = {value!r}: use letters, digits, '.', '_', '+' and '-', at most 80"
            )
    if not parsed.messages:
        raise ConfigError("messages is empty; add a [[messages]] table with role and content")
    for number, message in enumerate(parsed.messages, start=1):
        if message.role not in _ROLES:
            raise ConfigError(
                f"messages[{number}].role = {message.role!r}: {nearest(message.role, _ROLES)}"
            )


def shipped_templates() -> list[str]:
    """Names of the templates that come with the package."""
    return shipped_names(_SHIPPED)


def load_template(name: str) -> PromptTemplate:
    """A template by the name of a shipped one, or by the path of a TOML file.

    Args:
        name: "pairwise-en", or a path that ends in ".toml".

    Raises:
        ConfigError: there is no such template, or it is wrong.
    """
    text, path = read_named("template", name, _SHIPPED)
    return parse_template(text, path)
