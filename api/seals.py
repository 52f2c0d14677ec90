"""The seal of a plan: an edited plan would judge other rows than it says, so it is not believed.

Written with the plan, looked at by every worker and by the merge. It guards against slips of an
editor, not against malice.
"""

import hashlib
from typing import TypeVar

import msgspec

from dikast.engine.errors import InputError

T = TypeVar("T", bound=msgspec.Struct)


def sealed(record: T) -> T:
    """The record with its own digest in `seal`."""
    return msgspec.structs.replace(record, seal=_digest(record))


def check(record: msgspec.Struct, seal: str, file: str) -> None:
    """See that the record is what was sealed, or was written before there were seals.

    Raises:
        InputError: it was changed since.
    """
    if seal and seal != _digest(record):
        raise InputError("was edited after it was made; make the plan anew", file=file)


def _digest(record: msgspec.Struct) -> str:
    plain = msgspec.json.encode(msgspec.structs.replace(record, seal=""))
    return hashlib.sha256(plain).hexdigest()
