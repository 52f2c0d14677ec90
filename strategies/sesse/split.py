"""Which rows are mined and which are kept apart: labels checked, rows split, everything hashed.

Comes before the first call. The split depends on the seed and the texts alone, never on the
order of the file; pairs that share a question stay on one side, so that no calibration row is
known from mining.
"""

import hashlib
from collections.abc import Iterable, Sequence

from dikast.engine.errors import ConfigError
from dikast.engine.model import Pair, Record
from dikast.strategies.sesse.library import Split, ids_sha


class Rows(Record, frozen=True):
    """The usable rows of an input, and how many were left out and why."""

    pairs: tuple[Pair, ...]
    left_out: dict[str, int] = {}


def usable(pairs: Iterable[Pair]) -> Rows:
    """Rows with a label A or B, each id once; the others are counted by reason."""
    kept: dict[str, Pair] = {}
    left_out: dict[str, int] = {}
    for pair in pairs:
        reason = ""
        if pair.label is None:
            reason = "no label"
        elif pair.label == "tie":
            reason = "labelled a tie"
        elif pair.id in kept:
            reason = "id seen before"
        if reason:
            left_out[reason] = left_out.get(reason, 0) + 1
        else:
            kept[pair.id] = pair
    return Rows(pairs=tuple(kept.values()), left_out=left_out)


def split_rows(
    pairs: Sequence[Pair], *, share: float, seed: int, stratify: bool
) -> tuple[list[Pair], list[Pair], Split]:
    """Rows to mine, rows for calibration, and the account of the split.

    Args:
        pairs: usable rows.
        share: of rows to mine, above 0 and up to 1 (1: all).
        seed: another seed is another split.
        stratify: keep the share in every category.

    Raises:
        ConfigError: the share is out of range, or leaves nothing to mine.
    """
    if not 0 < share <= 1:
        raise ConfigError(f"--split-dev {share:g}: must be above 0 and at most 1")
    strata: dict[str, list[Pair]] = {}
    for pair in pairs:
        strata.setdefault((pair.category or "") if stratify else "", []).append(pair)
    mined: set[str] = set()
    for rows in strata.values():
        mined |= _mined_of(rows, share, seed)
    mine = [pair for pair in pairs if pair.id in mined]
    rest = [pair for pair in pairs if pair.id not in mined]
    if not mine:
        raise ConfigError(
            f"--split-dev {share:g} leaves no row to mine; give more rows or a larger share"
        )
    rest_ids = tuple(sorted(pair.id for pair in rest))
    return (
        mine,
        rest,
        Split(
            seed=seed,
            share=share,
            stratified=stratify,
            mine_rows=len(mine),
            mine_ids_sha=ids_sha([pair.id for pair in mine]),
            calibration_ids=rest_ids,
            calibration_ids_sha=ids_sha(rest_ids) if rest_ids else "",
        ),
    )


def _mined_of(rows: Sequence[Pair], share: float, seed: int) -> set[str]:
    """Whole groups of pairs with one question, in the order of a hash, up to the share."""
    groups: dict[str, list[str]] = {}
    for pair in rows:
        groups.setdefault(_asked(pair), []).append(pair.id)
    wanted = round(share * len(rows))
    mined: set[str] = set()
    for asked in sorted(groups, key=lambda text: _digest(f"{seed}\n{text}")):
        if len(mined) >= wanted:
            break
        mined.update(groups[asked])
    return mined


def fingerprint(pairs: Iterable[Pair]) -> str:
    """SHA-256 over all texts and labels of a set of rows, whatever their order."""
    lines = sorted(
        _digest(
            "\x00".join((pair.id, _asked(pair), pair.response_a, pair.response_b, str(pair.label)))
        )
        for pair in pairs
    )
    return _digest("\n".join(lines))


def _asked(pair: Pair) -> str:
    turns = "\n".join(turn.content for turn in pair.messages)
    return " ".join((turns or pair.question).split())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
