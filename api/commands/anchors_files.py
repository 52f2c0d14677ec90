"""Anchor sets and runs on them, as files: what is frozen, what was judged, and whether both fit.

The hash of a set is that of its items; name and version are for people. A run says which set and
which spec it is of, so that only like is compared with like. Judges nothing.
"""

import hashlib
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from dikast.analysis.tolerance import Tolerance
from dikast.engine.errors import InputError, SpecMismatchError
from dikast.engine.files import pretty_json, write_whole
from dikast.engine.model import Failed, Outcome, Pair, Record, Undecided, Verdict, Winner
from dikast.manifest import spec_differences
from dikast.tables import Share, text_of

FORMAT = 1
_DIFFERENCES_SHOWN = 3

T = TypeVar("T")


class AnchorSet(Record, frozen=True):
    """Items to be judged in every run. `hash` is of the items; absent in a set written by hand."""

    kind: Literal["anchor_set"]
    name: str
    pairs: tuple[Pair, ...]
    version: int = 1
    hash: str = ""
    created: str = ""
    sources: tuple[str, ...] = ()
    seed: int = 0
    format: int = FORMAT


class SetRef(Record, frozen=True):
    """Which set, in which version, with which items."""

    name: str
    version: int
    hash: str

    def __str__(self) -> str:
        return f"{self.name} version {self.version} ({self.hash})"


class AnchorItem(Record, frozen=True):
    """What came of one anchor. `winner` is absent where there is no verdict; `why` says why.

    `again` is the winner when the anchor was judged a second time, for the judge's own noise.
    """

    id: str
    kind: Literal["verdict", "undecided", "failed"]
    winner: Winner | None = None
    again: Winner | None = None
    basis: str | None = None
    scores: dict[str, float] = {}
    label: Winner | None = None
    why: str | None = None
    message: str | None = None


class AnchorRun(Record, frozen=True):
    """One judgement of a whole set. `stored_calls` answers were not asked anew."""

    kind: Literal["anchor_run"]
    anchors: SetRef
    spec: str
    spec_tree: dict[str, Any]
    strategy: str
    judged: str
    items: tuple[AnchorItem, ...]
    simulated: bool = False
    calls: int = 0
    stored_calls: int = 0
    cost_usd: float = 0.0
    format: int = FORMAT


def items_hash(pairs: Iterable[Pair]) -> str:
    """16 hex digits that stand for everything in the items, their order included."""
    plain = msgspec.json.encode(list(pairs), order="deterministic")
    return hashlib.sha256(plain).hexdigest()[:16]


def ref_of(anchors: AnchorSet) -> SetRef:
    """The set's name, version and hash."""
    return SetRef(name=anchors.name, version=anchors.version, hash=anchors.hash)


def item_of(outcome: Outcome) -> AnchorItem:
    """What a run keeps of an outcome."""
    if isinstance(outcome, Verdict):
        return AnchorItem(
            id=outcome.id,
            kind="verdict",
            winner=outcome.winner,
            basis=outcome.basis,
            scores=outcome.scores,
            label=outcome.label,
        )
    if isinstance(outcome, Undecided):
        kind: Literal["undecided", "failed"] = "undecided"
        why, message = str(outcome.why), outcome.detail
    else:
        assert isinstance(outcome, Failed)
        kind, why, message = "failed", outcome.reason, outcome.message
    return AnchorItem(id=outcome.id, kind=kind, label=outcome.label, why=why, message=message)


def read_set(path: str) -> AnchorSet:
    """An anchor set from JSON, or from TOML written by hand.

    Raises:
        InputError: it cannot be read, is no anchor set, or its items were changed.
    """
    found = _read(path, AnchorSet, "an anchor set; make one with: dikast anchors init")
    _check_format(path, found.format)
    if not found.pairs:
        raise InputError("holds no items; an anchor set needs some", file=path)
    seen: set[str] = set()
    for pair in found.pairs:
        if pair.id in seen:
            raise InputError(f"two items have the id {pair.id!r}; give each its own", file=path)
        seen.add(pair.id)
    actual = items_hash(found.pairs)
    if found.hash and found.hash != actual:
        raise InputError(
            f"its items are not those of its hash (there {found.hash}, here {actual}); undo the "
            "edit, or make a new version with: dikast anchors init --bump",
            file=path,
        )
    return msgspec.structs.replace(found, hash=actual)


def read_run(path: str) -> AnchorRun:
    """A run on an anchor set.

    Raises:
        InputError: it cannot be read, is none, or was edited.
    """
    found = _read(path, AnchorRun, "a run on anchors; make one with: dikast anchors run")
    _check_format(path, found.format)
    ids = {each.id for each in found.items}
    torn = next(
        (each.id for each in found.items if (each.kind == "verdict") != bool(each.winner)), ""
    )
    if len(ids) != len(found.items) or torn:
        what = f"item {torn!r} does not say who won" if torn else "an item is there twice"
        raise InputError(
            f"{what}: the file was edited; judge anew with: dikast anchors run", file=path
        )
    return found


def _check_format(path: str, found: int) -> None:
    if found != FORMAT:
        raise InputError(
            f"is of format {found}, and this version reads {FORMAT}; make it anew, or use the "
            "version of dikast that wrote it",
            file=path,
        )


def _read(path: str, kind: type[T], what: str) -> T:
    try:
        data = Path(path).read_bytes()
        if path.endswith(".toml"):
            return msgspec.convert(tomllib.loads(data.decode("utf-8")), kind)
        return msgspec.json.decode(data, type=kind)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    except (
        tomllib.TOMLDecodeError,
        msgspec.DecodeError,
        UnicodeDecodeError,
        RecursionError,
    ) as error:
        raise InputError(f"is not {what} ({error})", file=path) from error


def write_record(path: Path, record: Record) -> None:
    """Write a set or a run as a whole, or leave what was there.

    Raises:
        InputError: it cannot be written.
    """
    write_whole(path, pretty_json(record))


def check_comparable(baseline: AnchorRun, run: AnchorRun, baseline_path: str, path: str) -> None:
    """See that both runs are of one set and of one spec: then a change is the judge's.

    Raises:
        SpecMismatchError: they are not; the message names the difference.
    """
    remedy = "compare like with like, or record a new baseline with: dikast anchors run"
    if baseline.anchors.hash != run.anchors.hash:
        raise SpecMismatchError(
            f"{path}: judged the anchors {run.anchors}, and the baseline {baseline_path} judged "
            f"{baseline.anchors}; {remedy}"
        )
    if {each.id for each in baseline.items} != {each.id for each in run.items}:
        raise SpecMismatchError(
            f"{path}: has other items than the baseline {baseline_path}, though both name the same "
            "anchors: one of the files was edited or cut; judge anew with: dikast anchors run"
        )
    if baseline.spec != run.spec:
        found = spec_differences(baseline.spec_tree, run.spec_tree)
        shown = "; ".join(found[:_DIFFERENCES_SHOWN]) or f"spec {baseline.spec} -> {run.spec}"
        more = len(found) - _DIFFERENCES_SHOWN
        rest = f"; and {more} more" if more > 0 else ""
        raise SpecMismatchError(
            f"{path}: the settings are not those of the baseline {baseline_path}: {shown}{rest}; "
            f"{remedy}"
        )


def agreement_warning(agreed: int, items: int, interval: object, limits: Tolerance) -> str | None:
    """A sentence when the judge agrees with the labels less than the bar asks; else None."""
    if not items or agreed / items >= limits.min_agreement:
        return None
    return (
        f"the judge agrees with the labels of only {text_of(Share(agreed / items, interval))} of "
        f"{items} anchors, below the bar of {limits.min_agreement:.0%}: it may not be able to "
        "judge such answers"
    )
