"""Records that a strategy is built with, read from the JSON files that other commands have written.

Off the journey: read once, before the first pair. A calibration, measured weights, a library of
criteria and a person's profile are files of different content and one kind: written by a command,
of a format with a number, some of them addressed by a hash. Whatever is wrong with one is said
here, in the same words for all. Knows none of them.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import msgspec

from dikast.engine.errors import InputError
from dikast.strategies.names import explain

_BYTES_MAX = 256 << 20
_HASH = "hash"

T = TypeVar("T", bound=msgspec.Struct)


class RecordFile(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One kind of file.

    `what` and `made_by` are for messages: "calibration", "dikast calibrate". `type` is the record.
    `formats` are the fields that name the format, with what this version reads. `hash_of` computes
    what the field "hash" has to hold; None where the file has none, because people may edit it.
    `check` looks at what types cannot say and raises `InputError` with the file it is given.
    """

    what: str
    made_by: str
    type: type[T]
    formats: dict[str, str | int]
    hash_of: Callable[[T], str] | None = None
    check: Callable[[T, str], None] | None = None

    def load(self, path: str | os.PathLike[str]) -> T:
        """Read a file and see that it is whole.

        Raises:
            InputError: it cannot be read, or as in `parse`.
        """
        where = os.fspath(path)
        try:
            with Path(path).open("rb") as file:
                data = file.read(_BYTES_MAX + 1)
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror}; make a {self.what} with {self.made_by}",
                file=where,
            ) from error
        if len(data) > _BYTES_MAX:
            raise self._none("larger than any", where)
        return self.parse(data, where)

    def parse(self, data: bytes | str, where: str) -> T:
        """The content of a file, checked.

        Args:
            data: JSON.
            where: what to call it in messages, usually its path.

        Raises:
            InputError: it is no such file, of another format, damaged, or changed since it was
                written; names the field and quotes no text.
        """
        try:
            raw: object = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._none(f"not valid JSON: {error}", where) from error
        if not isinstance(raw, dict):
            raise self._none("not a JSON object", where)
        table = cast("dict[str, Any]", raw)
        for name, reads in self.formats.items():
            if name in table and table[name] != reads:
                raise InputError(
                    f"is of {name.replace('_', ' ')} {table[name]!r}, and this version of dikast "
                    f"reads {reads!r}; make it anew with {self.made_by}, or use the version that "
                    "wrote it",
                    file=where,
                )
        names = self.type.__struct_fields__
        said = table.get(_HASH) if _HASH in names else table.pop(_HASH, None)
        try:
            found = msgspec.convert(table, self.type)
        except msgspec.ValidationError as error:
            place, message = explain(error, names)
            raise self._none(message, where, place) from error
        if self.hash_of is not None and said != self.hash_of(found):
            raise InputError(
                "its content does not fit its hash, so it was changed after it was written; make "
                f"it anew with {self.made_by}",
                file=where,
            )
        if self.check is not None:
            self.check(found, where)
        return found

    def _none(self, why: str, where: str, field: str = "") -> InputError:
        return InputError(
            f"is no {self.what}, or a damaged one ({why}); make one with {self.made_by}",
            file=where,
            field=field or None,
        )
