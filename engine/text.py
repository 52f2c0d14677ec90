"""Text that can always be written: lone surrogates become U+FFFD, the row stays.

Called at both ends of a pair's journey (reading a row, storing a completion, writing an outcome),
and only after the fast path has failed. Knows nothing of records or files.
"""

from typing import Any

_NESTING_MAX = 200


def scrub_text(text: str) -> str:
    """`text` with every lone surrogate replaced by U+FFFD, ready to be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # Surrogates that do form a pair are one character written the UTF-16 way: join them.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def scrub(value: Any, depth: int = 0) -> Any:
    """Plain data (dicts, lists, scalars) with every text in it scrubbed.

    What is neither plain data nor text is written as its `repr`, and what is nested deeper than
    200 levels as "...": a strange value in `meta` must not cost the row.
    """
    if isinstance(value, str):
        return scrub_text(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if depth >= _NESTING_MAX:
        return "..."
    if isinstance(value, dict):
        return {scrub_text(str(key)): scrub(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [scrub(each, depth + 1) for each in value]
    return scrub_text(repr(value))
