"""Reads a table of plain data into typed settings, before any pair moves.

Says what is wrong with the path of the field, the nearest known name and the remedy. Works on any
tree of msgspec structs; knows nothing of providers, strategies or files.
"""

import difflib
import re
import types
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from dikast.engine.errors import ConfigError

T = TypeVar("T")

_SECRET = re.compile(
    r"^\s*(?:Bearer\s+\S{8,}|(?:sk-|sk_|pk-|gsk_|xai-|hf_|AIza|ghp_|r8_)[A-Za-z0-9_\-]{12,})\s*$"
)
_SECRET_FIELDS = frozenset(("api_key", "apikey", "key", "token", "secret", "password"))


def read_table(raw: object, kind: type[T], path: str = "") -> T:
    """`raw` as an instance of `kind`: a msgspec struct type, or a dict or list of those.

    Args:
        raw: what the TOML or JSON parser returned.
        kind: the type to read into.
        path: dotted path of `raw` in the file, for messages.

    Raises:
        ConfigError: unknown field, wrong type, missing field or a literal secret, with its path.
    """
    found: T = read_union(raw, kind, path)
    return found


def read_union(raw: object, kind: Any, path: str = "") -> Any:
    """As `read_table`, for what is no single type to a type checker: a union of tagged structs.

    Raises:
        ConfigError: as `read_table`.
    """
    _check(raw, kind, path)
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(_at(path, _words(error))) from error


def nearest(name: str, known: Sequence[str]) -> str:
    """`"; did you mean X?"`, or the list of known names when nothing is near."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known are {', '.join(sorted(known))}" if known else ""


def join(path: str, name: object) -> str:
    """One step deeper in a dotted path."""
    return f"{path}.{name}" if path else str(name)


def refuse_secrets(raw: object, path: str = "") -> None:
    """Refuse a table that holds a key in clear: files are shared, environments are not.

    Raises:
        ConfigError: with the path of the field and the remedy.
    """
    if isinstance(raw, dict):
        for name, value in cast("dict[str, object]", raw).items():
            if name.lower() in _SECRET_FIELDS and isinstance(value, str):
                raise ConfigError(_secret(join(path, name)))
            refuse_secrets(value, join(path, name))
    elif isinstance(raw, list):
        for index, value in enumerate(cast("list[object]", raw)):
            refuse_secrets(value, f"{path}[{index}]")
    elif isinstance(raw, str) and _SECRET.match(raw):
        raise ConfigError(_secret(path))


def _secret(path: str) -> str:
    return (
        f"{path}: looks like a key in clear; put the key into an environment variable "
        'and name that variable with api_key_env = "NAME"'
    )


def _at(path: str, message: str) -> str:
    return f"{path}: {message}" if path else message


def _check(raw: object, kind: Any, path: str) -> None:
    """Walk `raw` beside its type and complain at the first field that does not fit."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        _check_union(raw, get_args(kind), path)
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        _check_struct(raw, kind, path)
    elif origin in (dict, Mapping) and isinstance(raw, dict):
        for name, value in cast("dict[str, object]", raw).items():
            _check(value, get_args(kind)[1], join(path, name))
    elif origin in (list, tuple, Sequence) and isinstance(raw, list):
        for index, value in enumerate(cast("list[object]", raw)):
            _check(value, get_args(kind)[0], f"{path}[{index}]")
    else:
        _check_value(raw, kind, path)


def _check_value(raw: object, kind: Any, path: str) -> None:
    try:
        msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(_at(path, _words(error))) from error


def _check_union(raw: object, options: tuple[Any, ...], path: str) -> None:
    structs: list[type[msgspec.Struct]] = [each for each in options if _is_struct(each)]
    if not isinstance(raw, dict) or not structs:
        return _check_value(raw, Union[options], path)  # noqa: UP007 - built at run time
    if len(structs) == 1 and structs[0].__struct_config__.tag is None:
        return _check_struct(raw, structs[0], path)
    config = structs[0].__struct_config__
    field = config.tag_field or "type"
    tags = {str(each.__struct_config__.tag): each for each in structs}
    tag = cast("dict[str, object]", raw).get(field)
    if tag is None:
        raise ConfigError(f"{join(path, field)}: is missing; one of {', '.join(sorted(tags))}")
    if str(tag) not in tags:
        raise ConfigError(
            f"{join(path, field)}: {tag!r} is not known{nearest(str(tag), sorted(tags))}"
        )
    return _check_struct(raw, tags[str(tag)], path)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _check_struct(raw: object, kind: type[msgspec.Struct], path: str) -> None:
    if not isinstance(raw, dict):
        raise ConfigError(_at(path, f"must be a table, not {_kind_name(raw)}"))
    hints = get_type_hints(kind)
    renamed = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    tag_field = kind.__struct_config__.tag_field
    table = cast("dict[str, object]", raw)
    for name, value in table.items():
        if name == tag_field:
            continue
        if name not in renamed:
            raise ConfigError(f"{join(path, name)}: unknown field{nearest(name, list(renamed))}")
        _check(value, hints[renamed[name]], join(path, name))
    required = [field.encode_name for field in msgspec.structs.fields(kind) if field.required]
    for name in required:
        if name not in table:
            raise ConfigError(f"{join(path, name)}: is missing, and it has no default")


def _kind_name(raw: object) -> str:
    names = {str: "text", int: "a number", float: "a number", bool: "true/false", list: "a list"}
    return names.get(type(raw), type(raw).__name__)


_TYPE_WORDS = {"int": "a whole number", "float": "a number", "bool": "true/false", "str": "text"}


def _words(error: msgspec.ValidationError) -> str:
    """msgspec's message in the words of a TOML user."""
    text = str(error)
    for old, new in (
        ("Expected `", "must be "),
        ("`, got `", ", not "),
        (" | ", " or "),
        ("null", "absent"),
        ("`str`", "text"),
    ):
        text = text.replace(old, new)
    for old, new in _TYPE_WORDS.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text.replace("`", "").replace(" - at $", " at ").strip()
