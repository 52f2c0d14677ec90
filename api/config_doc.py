"""Renders the configuration reference from the settings themselves, so that they cannot drift.

Each field's type, default and the docstring after it become one row. docs/configuration.md holds
the result between two marks; a test compares. Runs at documentation time only.
"""

import ast
import inspect
import sys
import textwrap
import types
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from dikast.config import (
    AnchorSettings,
    InputSettings,
    JudgeSettings,
    LimitSettings,
    PacingSettings,
    PriceSettings,
    RetrySettings,
    RunSettings,
    provider_kinds,
)
from dikast.providers import PlantedCriterion, RateLimit
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
        names = [type_name(each) for each in args if each is not type(None)]
        return " or ".join(dict.fromkeys(names))
    if origin in (dict,):
        return f"table of {type_name(args[1])}"
    if origin in (list, tuple):
        return f"list of {type_name(args[0])}"
    if args:  # Literal
        return ", ".join(repr(each) for each in args).replace("'", '"')
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return "table"
    words: dict[Any, str] = {
        str: "text",
        int: "whole number",
        float: "number",
        bool: "true/false",
    }
    return words.get(kind, "any")


def default_text(field: msgspec.structs.FieldInfo) -> str:
    """A field's default as TOML, "required" when there is none, "absent" for None."""
    if field.required:
        return "required"
    if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
        return "required"
    if field.default is msgspec.NODEFAULT:
        return "empty"
    value = field.default
    if value is None:
        return "absent"
    if isinstance(value, msgspec.Struct):
        return "see below"
    if value == () or value == {}:
        return "empty"
    return f"`{msgspec.json.encode(value).decode()}`"


def table(kind: type[msgspec.Struct]) -> str:
    """The Markdown table of one settings type."""
    docs, hints = field_docs(kind), get_type_hints(kind)
    # Some types explain their fields in their own docstring, which stands above the table.
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    if not docs:
        rows = ["| field | type | default |", "|---|---|---|"]
    for field in msgspec.structs.fields(kind):
        cells = (
            f"`{field.encode_name}`",
            type_name(hints[field.name]),
            default_text(field),
            *((docs.get(field.name, ""),) if docs else ()),
        )
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def sections() -> list[tuple[str, type[msgspec.Struct]]]:
    """Every settings type with the heading it appears under."""
    out: list[tuple[str, type[msgspec.Struct]]] = [
        (f'`[providers.NAME]` with `kind = "{tag}"`', kind)
        for tag, kind in sorted(provider_kinds().items())
    ]
    out.append(("`[providers.NAME.rate_limit]` of a simulated judge", RateLimit))
    out.append(("`[[providers.NAME.criteria]]` of a simulated judge", PlantedCriterion))
    out.append(("`[providers.NAME]`, limits of the key (every kind)", LimitSettings))
    out.append(("`[judges.NAME]`", JudgeSettings))
    out.append(("`[judges.NAME.prices]`", PriceSettings))
    out += [
        (f'`[strategy]` with `kind = "{tag}"`', kind) for tag, kind in sorted(strategies().items())
    ]
    out.append(("`[run]`", RunSettings))
    out.append(("`[run.retry]`", RetrySettings))
    out.append(("`[anchors]`", AnchorSettings))
    out.append(("`[input]`", InputSettings))
    out.append(("`[pacing]`", PacingSettings))
    return out


def strategies() -> dict[str, type[msgspec.Struct]]:
    """The settings type of every strategy node."""
    return {str(each.__struct_config__.tag): each for each in get_args(StrategyConfig)}


def render() -> str:
    """The whole reference as Markdown, between its marks."""
    parts = [BEGIN, ""]
    for heading, kind in sections():
        about = " ".join((inspect.getdoc(kind) or "").split())
        parts += [f"### {heading}", "", about, "", table(kind), ""]
    parts.append(END)
    return "\n".join(parts)


def undocumented() -> list[str]:
    """Fields that neither a docstring of their own nor their type's explains; a test wants none."""
    return [
        f"{kind.__name__}.{field.name}"
        for _, kind in sections()
        for field in msgspec.structs.fields(kind)
        if not field_docs(kind).get(field.name)
        and f"`{field.name}`" not in (inspect.getdoc(kind) or "")
    ]


def rewrite(page: str) -> str:
    """`page` with its reference rendered anew.

    Raises:
        ValueError: the marks are missing.
    """
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"the page has no {BEGIN} ... {END}")
    return before + render() + after


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(rewrite(Path(name).read_text("utf-8")), "utf-8")
