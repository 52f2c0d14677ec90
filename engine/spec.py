"""The spec: one hash for everything that decides an outcome. Made once, before the first pair.

Every outcome carries it; a resume and a calibration compare it. Knows a strategy only through what
it says of itself.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from dikast.engine.ports import Strategy

SPEC_FORMAT = 1


def spec_tree(strategy: Strategy) -> dict[str, Any]:
    """Everything that decides an outcome of `strategy`, as plain data."""
    return {"format": SPEC_FORMAT, "strategy": dict(strategy.spec())}


def spec_hash(tree: Mapping[str, Any]) -> str:
    """16 hex digits that stand for everything that decides an outcome."""
    text = msgspec.json.encode(tree, order="deterministic")
    return hashlib.sha256(text).hexdigest()[:16]
