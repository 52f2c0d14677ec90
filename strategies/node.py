"""What every node of a strategy tree in TOML has in common."""

import msgspec


class Node(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
):
    """Base of the nodes: told apart by `kind`, unknown fields are errors."""
