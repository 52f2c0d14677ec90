"""Records as rows of a table and back: one column for each field, with the field's own type.

Used on the way out (`sinks.parquet`, `sinks.records`) and when a table of outcomes is read again.
The columns are derived from the records, so a new field is a new column. What has no fixed shape
(`meta`, parts within parts) is one column of JSON text. Knows no library and no file.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, get_args

import msgspec
from msgspec import inspect

from dikast.engine.model import Item, Outcome, Pair

SCALARS: Final = ("text", "int", "float", "bool")
OUTCOME_KINDS: Final[tuple[type[msgspec.Struct], ...]] = get_args(Outcome)
_TAG: Final = "kind"


class Shape(NamedTuple):
    """What stands in a column: a scalar, "json" text, a "list", a "map" by text, or a "struct".

    `parts` are the fields of a struct, or the one kind of element, named "", of list and map.
    """

    kind: str
    parts: "dict[str, Shape]" = {}


def columns_of(kinds: Sequence[type[msgspec.Struct]]) -> dict[str, Shape]:
    """The columns that hold records of these types, those of the identity first."""
    own: dict[str, Shape] = {}
    if any(kind.__struct_config__.tag for kind in kinds):
        own[_TAG] = Shape("text")
    own["id"] = Shape("text")
    shared: dict[str, Shape] = {}
    common = set.intersection(*(set(kind.__struct_fields__) for kind in kinds))
    for kind in kinds:
        info = inspect.type_info(kind)
        assert isinstance(info, inspect.StructType)
        for field in info.fields:
            into = shared if field.name in common and len(kinds) > 1 else own
            into.setdefault(field.encode_name, _shape(field.type, ()))
    return {**own, **shared, **own}


def _shape(info: inspect.Type, above: tuple[type, ...]) -> Shape:
    if isinstance(info, inspect.UnionType):
        kinds = [each for each in info.types if not isinstance(each, inspect.NoneType)]
        return _shape(kinds[0], above) if len(kinds) == 1 else Shape("json")
    if isinstance(info, inspect.StrType):
        return Shape("text")
    if isinstance(info, inspect.LiteralType):
        return Shape("text")
    if isinstance(info, inspect.BoolType):
        return Shape("bool")
    if isinstance(info, inspect.IntType):
        return Shape("int")
    if isinstance(info, inspect.FloatType):
        return Shape("float")
    inner: Shape | None = None
    if isinstance(info, inspect.VarTupleType | inspect.ListType):
        inner = _shape(info.item_type, above)
        return Shape("json") if inner.kind == "json" else Shape("list", {"": inner})
    if isinstance(info, inspect.DictType):
        inner = _shape(info.value_type, above)
        return Shape("json") if inner.kind == "json" else Shape("map", {"": inner})
    if isinstance(info, inspect.StructType) and info.cls not in above:
        parts = {field.encode_name: _shape(field.type, (*above, info.cls)) for field in info.fields}
        # A table has no types that hold themselves, so such a whole is written as text.
        return Shape("json") if _recursive(info, parts) else Shape("struct", parts)
    return Shape("json")


def _recursive(info: inspect.StructType, parts: dict[str, Shape]) -> bool:
    return any(
        parts[field.encode_name].kind == "json" and _names_struct(field.type, info.cls)
        for field in info.fields
    )


def _names_struct(info: inspect.Type, cls: type) -> bool:
    if isinstance(info, inspect.StructType):
        return info.cls is cls
    if isinstance(info, inspect.VarTupleType | inspect.ListType):
        return _names_struct(info.item_type, cls)
    return False


class RowMaker:
    """Makes rows of records; a field that a record does not have and empty JSON are absent.

    Maps are lists of pairs, which is how Arrow takes them. What can be decided about a type of
    record is decided once, for an output may have millions.

    Args:
        columns: see `columns_of`.
    """

    def __init__(self, columns: dict[str, Shape]) -> None:
        self._columns = columns
        self._by_type: dict[type, Make] = {}

    def __call__(self, record: msgspec.Struct) -> dict[str, Any]:
        """The cells of a record by column."""
        kind = type(record)
        make = self._by_type.get(kind)
        if make is None:
            there = {
                name: shape
                for name, shape in self._columns.items()
                if name in record.__struct_fields__
            }
            make = self._by_type[kind] = _struct_maker(there)
        row: dict[str, Any] = make(record)
        if (tag := record.__struct_config__.tag) is not None:
            row[_TAG] = tag
        return row


Make = Callable[[Any], Any]


def _maker(shape: Shape) -> Make | None:
    """What makes a cell of a value that is there; None where the value is the cell."""
    if shape.kind in SCALARS:
        return None
    if shape.kind == "json":
        return lambda value: msgspec.json.encode(value).decode() if value else None
    if shape.kind == "struct":
        return _struct_maker(shape.parts)
    inner = _maker(shape.parts[""])
    if shape.kind == "list":
        return list if inner is None else lambda value: [inner(each) for each in value]
    if inner is None:
        return lambda value: list(value.items())
    return lambda value: [(key, inner(each)) for key, each in value.items()]


def _struct_maker(parts: dict[str, Shape]) -> Make:
    names = tuple(parts)
    values = attrgetter(*names)
    folded = [(name, fold) for name, shape in parts.items() if (fold := _maker(shape))]
    single = len(names) == 1

    def make(record: Any) -> dict[str, Any]:
        got = values(record)
        row = dict(zip(names, (got,) if single else got, strict=True))
        for name, folding in folded:
            if (value := row[name]) is not None:
                row[name] = folding(value)
        return row

    return make


_OUTCOME_COLUMNS: Final = {
    name: shape for name, shape in columns_of(OUTCOME_KINDS).items() if shape.kind not in SCALARS
}
# What must be there and may be empty, which in a table is an empty cell.
_EMPTY: Final[dict[str, dict[str, Any]]] = {"failed": {"message": ""}, "scored": {"scores": {}}}
_KIND_NAMES: Final = frozenset(str(kind.__struct_config__.tag) for kind in OUTCOME_KINDS)


def is_outcome(obj: Any) -> bool:
    """True when a row has the marks of an outcome and not of a pair."""
    return isinstance(obj, dict) and obj.get(_TAG) in _KIND_NAMES and "id" in obj


def outcome_of(obj: dict[str, Any]) -> Outcome:
    """An outcome out of a row of a table (or of JSON): cells of JSON text are unfolded.

    Raises:
        msgspec.ValidationError: a cell does not hold what an outcome has there.
    """
    plain = {name: value for name, value in obj.items() if value is not None}
    for name, empty in _EMPTY.get(str(plain.get(_TAG)), {}).items():
        plain.setdefault(name, empty)
    for name in _OUTCOME_COLUMNS:
        value = plain.get(name)
        if isinstance(value, str):
            try:
                plain[name] = msgspec.json.decode(value)
            except msgspec.DecodeError as error:
                raise msgspec.ValidationError(f"{name} is not JSON: {error}") from error
    # In a CSV file numbers are text, too; strictness would refuse every one of them.
    outcome: Outcome = msgspec.convert(plain, Outcome, strict=not _texts(plain))
    return outcome


def _texts(obj: dict[str, Any]) -> bool:
    return isinstance(obj.get("cost_usd"), str) or isinstance(obj.get("calls"), str)


PAIR_COLUMNS: Final = columns_of((Pair,))
ITEM_COLUMNS: Final = columns_of((Item,))
OUTCOME_TABLE: Final = columns_of(OUTCOME_KINDS)
