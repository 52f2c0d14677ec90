"""Measured weights of a committee's members: the file that carries them, and who it fits.

Off the journey: read once, before the first pair. The file is written by `dikast weights` and says
on what it was measured; its hash is part of the spec of every outcome that it decided. Knows no
statistics and no strategy, only names and numbers.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, cast

import msgspec

from dikast.engine.errors import ConfigError
from dikast.strategies.files import record_hash
from dikast.strategies.names import nearest
from dikast.strategies.record_files import RecordFile

KIND: Final = "dikast-weights"
FORMAT: Final = 1


class MeasuredMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One member: how often its pick was the label, the other answer, or none (a tie, no verdict).

    `accuracy` is right / (right + wrong) with its interval from `low` to `high`; None where the
    member never picked. A member of weight 0 has no vote and is not asked.
    """

    name: str
    weight: float
    right: int
    wrong: int
    no_pick: int
    accuracy: float | None
    low: float
    high: float


class MeasuredWeights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file: `pairs` labelled pairs of outcomes with `specs` were measured by `method`.

    `hash` is the SHA-256 of all the rest.
    """

    kind: str
    format: int
    method: str
    pairs: int
    level: float
    simulated: bool
    specs: tuple[str, ...]
    members: tuple[MeasuredMember, ...]
    hash: str


Seat = TypeVar("Seat", bound=msgspec.Struct)
WeightsLoader = Callable[[str], MeasuredWeights]


def measured_weights(
    members: Sequence[MeasuredMember],
    *,
    method: str,
    pairs: int,
    level: float,
    simulated: bool,
    specs: Sequence[str],
) -> MeasuredWeights:
    """The file's content with its hash.

    Args:
        members: with distinct names.
        method: the rule by which weights follow from counts, in one line.
        pairs: how many labelled pairs were looked at.
        level: of the members' intervals, such as 0.95.
        simulated: whether any outcome came from made-up judges.
        specs: spec hashes of the outcomes.
    """
    bare = MeasuredWeights(
        kind=KIND,
        format=FORMAT,
        method=method,
        pairs=pairs,
        level=level,
        simulated=simulated,
        specs=tuple(specs),
        members=tuple(members),
        hash="",
    )
    return msgspec.structs.replace(bare, hash=record_hash(bare, "hash"))


def load_weights(path: str) -> MeasuredWeights:
    """Read what `dikast weights` wrote.

    Raises:
        InputError: it is not there, no such file, of another format, or changed by hand.
    """
    return _FILE.load(path)


_FILE = RecordFile(
    what="file of weights",
    made_by="dikast weights (or write a weight into each [[strategy.members]] yourself)",
    type=MeasuredWeights,
    formats={"kind": KIND, "format": FORMAT},
    hash_of=lambda weights: record_hash(weights, "hash"),
)


def weighed(
    members: Sequence[Seat],
    names: Sequence[str],
    rule: str,
    measured: MeasuredWeights,
    path: str,
) -> tuple[tuple[Seat, ...], str]:
    """The members with their measured weights, without those who have no vote; and the hash.

    A measured member that is missing is an error, for the others' weights were meant beside its
    own; one of weight 0 may be missing. So members that were weighed before stay as they are.

    Args:
        members: structs with a `name` and a `weight`; a weight of 1 is "nothing said".
        names: of the members, distinct, as outcomes show them.
        rule: by which the votes are counted.
        measured: the file's content.
        path: of the file, for messages.

    Raises:
        ConfigError: a member without a measurement, or the reverse; a weight said twice; no
            member with a vote; a rule that knows no weights.
    """
    where = f"committee: weights {path}"
    if rule != "weighted":
        raise ConfigError(
            f"{where}: have no effect under rule = {rule!r}; use rule = 'weighted', or leave "
            "weights out"
        )
    by_name = {each.name: each.weight for each in measured.members}
    for name in names:
        if name not in by_name:
            raise ConfigError(
                f"{where}: has no weight for member {name!r}; {nearest(name, by_name)}"
            )
    for name, weight in by_name.items():
        if weight > 0 and name not in names:
            raise ConfigError(
                f"{where}: was measured with member {name!r}, who does not sit in the committee "
                f"({', '.join(names)}); add it, or fit without it"
            )
    seated: list[Seat] = []
    for member, name in zip(members, names, strict=True):
        written, weight = cast(Any, member).weight, by_name[name]
        if written not in (1, weight):
            raise ConfigError(
                f"committee: member {name!r} has weight = {written} beside measured weights; leave "
                "one of the two out"
            )
        if weight > 0:
            seated.append(msgspec.structs.replace(member, name=name, weight=weight))
    if not seated:
        raise ConfigError(
            f"{where}: no member was right more often than wrong, so none has a vote; use other "
            "judges"
        )
    return tuple(seated), measured.hash
