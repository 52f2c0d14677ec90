"""A strategy tree for people: each node with its settings, its calls for a pair, and its needs.

Printed by `dikast check` before anything is paid. Knows nodes by their fields, no kind by name.
"""

from collections.abc import Sequence

import msgspec

from dikast.strategies import Calls, CallsRow

_BELOW = frozenset({"inner", "members", "rungs", "judges"})


def calls_text(calls: Calls) -> str:
    """ "2", or "2 to 6, expected 3.4"."""
    if calls.fewest == calls.most:
        return f"{calls.most:,}"
    return f"{calls.fewest:,} to {calls.most:,}, expected {calls.expected:,.1f}"


def tree_lines(rows: Sequence[CallsRow]) -> list[str]:
    """One line for each node, indented by its depth; what it needs stands under it."""
    out: list[str] = []
    for row in rows:
        indent = "  " * (row.depth + 1)
        reached = f", on {row.asked:.0%} of the pairs" if row.asked < 1 else ""
        calls = calls_text(row.calls)
        out.append(f"{indent}{_title(row)}: {calls} call{'' if calls == '1' else 's'}{reached}")
        out += [f"{indent}  needs {need}" for need in row.node.needs()]
    return out


def _title(row: CallsRow) -> str:
    """The kind, and the settings that are not the defaults."""
    plain: dict[str, object] = msgspec.to_builtins(row.node)
    kind = str(plain.pop("kind"))
    said = [f"{name} = {_value(value)}" for name, value in plain.items() if name not in _BELOW]
    return f"{kind} ({', '.join(said)})" if said else kind


def _value(value: object) -> str:
    return msgspec.json.encode(value).decode()
