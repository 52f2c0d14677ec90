"""Renders the configuration reference from the settings themselves, so that they cannot drift.

Each field's type, default and the docstring after it become one row. docs/configuration.md holds
the result between two marks; a test compares. Runs at documentation time only.
"""

import ast
import inspect
import textwrap
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from dikast.config import (
    JudgeSettings,
    LimitSettings,
    PriceSettings,
    RetrySettings,
    RunSettings,
    provider_kinds,
)
from dikast.strategies import StrategyConfig

BEGIN = "<!-- reference: begin, rendered by dikast.config_doc -->"
END = "<!-- reference: end -->"


def field_docs(kind: type) -> dict[str, str]:
    """The docstring after each field of `kind`, also of inherited ones, as one line."""
    docs: dict[str, str] = {}
    for cls in reversed(kind.__mro__):
        if not hasattr(cls, "__struct_fields__") or cls.__module__.startswith("msgspec"):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, after in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                docs[field.target.id] = " ".join(after.value.value.split())
    return docs


def type_name(kind: Any) -> str:
    """A type in the words of a TOML user."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(type_name(each) for each in args if each is not type(None))
    if origin in (dict,):
        return f"table of {type_name(args[1])}"
    if origin in (list, tuple):
        return f"list of {type_name(args[0])}"
    if args:  # Literal
        return ", ".join(repr(each) for each in args).replace("'", '"')
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return "table"
    names = {str: "text", int: "whole number", float: "number", bool: "true/false"}
    return names.get(kind, "any")


def default_text(field: msgspec.structs.FieldInfo) -> str:
    """A field's default as TOML, "required" when there is none, "absent" for None."""
    if field.required:
        return "required"
    if field.default is msgspec.NODEFAULT:
        made: Any = field.default_factory() if callable(field.default_factory) else None
        return "empty" if not made or isinstance(made, msgspec.Struct) else f"`{made!r}`"
    value = field.default
    if value is None:
        return "absent"
    if isinstance(value, msgspec.Struct):
        return "see below"
    if value == () or value == {}:
        return "empty"
    return f"`{msgspec.json.encode(value).decode()}`"


def table(kind: type[msgspec.Struct], skip: frozenset[str] = frozenset()) -> str:
    """The Markdown table of one settings type."""
    docs, hints = field_docs(kind), get_type_hints(kind)
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for field in msgspec.structs.fields(kind):
        if field.name in skip:
            continue
        cells = (
            f"`{field.encode_name}`",
            type_name(hints[field.name]),
            default_text(field),
            docs.get(field.name, ""),
        )
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def sections() -> list[tuple[str, type[msgspec.Struct]]]:
    """Every settings type with the heading it appears under."""
    out: list[tuple[str, type[msgspec.Struct]]] = [
        (f'`[providers.NAME]` with `kind = "{tag}"`', kind)
        for tag, kind in sorted(provider_kinds().items())
    ]
    out.append(("`[providers.NAME]`, limits of the key (every kind)", LimitSettings))
    out.append(("`[judges.NAME]`", JudgeSettings))
    out.append(("`[judges.NAME.prices]`", PriceSettings))
    out += [
        (f'`[strategy]` with `kind = "{tag}"`', kind) for tag, kind in sorted(strategies().items())
    ]
    out.append(("`[run]`", RunSettings))
    out.append(("`[run.retry]`", RetrySettings))
    return out


def strategies() -> dict[str, type[msgspec.Struct]]:
    """The settings type of every strategy node."""
    return {str(each.__struct_config__.tag): each for each in get_args(StrategyConfig)}


def render() -> str:
    """The whole reference as Markdown, between its marks."""
    parts = [BEGIN, ""]
    for heading, kind in sections():
        parts += [f"### {heading}", "", table(kind), ""]
    parts.append(END)
    return "\n".join(parts)


def undocumented() -> list[str]:
    """Fields without a docstring, as `Type.field`; a test wants none."""
    return [
        f"{kind.__name__}.{field.name}"
        for _, kind in sections()
        for field in msgspec.structs.fields(kind)
        if not field_docs(kind).get(field.name)
    ]
