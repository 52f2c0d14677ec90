"""What every node of a strategy tree in TOML has in common.

Off the journey: read when a tree is built, counted or checked. A node says of itself what stands
below it and what it needs, so that walking a tree knows no kinds.
"""

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

    def children(self) -> tuple["Node", ...]:
        """The nodes right below this one, in the order in which they are asked."""
        return ()

    def asks(self) -> tuple[str, ...]:
        """Names of the judges that this node asks itself, not through its children."""
        return ()

    def prompts(self) -> tuple[str, ...]:
        """Names of the templates that this node itself asks with."""
        return ()

    def calls(self) -> tuple[int, int]:
        """The fewest and the most judge calls that this node makes itself for one pair."""
        return (0, 0)

    def needs(self) -> tuple[str, ...]:
        """What it needs beside answers of its judges, each as a clause for people."""
        return ()
