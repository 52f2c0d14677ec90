"""`dikast anchors init`: pairs in, a frozen and versioned set of anchors out.

Chosen by a hash of the seed and the id, stratum by stratum, so that neither the order nor the
length of the input decides, and memory is bounded by the size of the set.
"""

import argparse
import hashlib
import heapq
from pathlib import Path

import msgspec

from dikast import status, wiring
from dikast.commands.anchors_files import AnchorSet, items_hash, read_set, ref_of, write_record
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.model import Pair, Row
from dikast.engine.ports import Clock

Stratum = tuple[str, str]


class Chosen:
    """The items with the smallest hashes of each stratum, at most `size` of each."""

    def __init__(self, size: int | None, seed: int) -> None:
        self._size = size
        self._seed = seed
        self._heaps: dict[Stratum, list[tuple[int, int, Pair]]] = {}
        self._counts: dict[Stratum, int] = {}
        self._ids: set[str] = set()
        self.bad_rows = 0

    @property
    def seen(self) -> int:
        """Pairs looked at."""
        return sum(self._counts.values())

    def take(self, row: Row) -> None:
        """Look at one row.

        Raises:
            InputError: its id stands twice in the input.
        """
        pair = row.item
        if not isinstance(pair, Pair):
            self.bad_rows += 1
            return
        if pair.id in self._ids:
            raise InputError(
                f"the id {pair.id!r} stands twice; an anchor needs an id of its own",
                file=row.file or None,
                line=row.line or None,
                field="id",
            )
        self._ids.add(pair.id)
        stratum = (pair.label or "", pair.category or "")
        self._counts[stratum] = number = self._counts.get(stratum, 0) + 1
        heap = self._heaps.setdefault(stratum, [])
        # Negated: the heap's smallest, which goes first, is then the pair with the largest hash.
        entry = (-_draw(self._seed, pair.id), -number, pair)
        if self._size is None or len(heap) < self._size:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)

    def pairs(self) -> tuple[Pair, ...]:
        """The choice, by stratum as the input has them, sorted by id.

        Raises:
            ConfigError: there are fewer pairs than wanted.
        """
        size = self.seen if self._size is None else self._size
        if size > self.seen:
            raise ConfigError(f"--size {size}: the input holds only {self.seen} pairs")
        kept: list[Pair] = []
        for stratum, count in quotas(self._counts, size).items():
            best = sorted(self._heaps[stratum], reverse=True)[:count]
            kept += [entry[2] for entry in best]
        return tuple(sorted(kept, key=lambda pair: pair.id))


def _draw(seed: int, id: str) -> int:
    data = f"{seed}\x1f{id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def quotas(counts: dict[Stratum, int], size: int) -> dict[Stratum, int]:
    """How many of each stratum: proportional, the largest remainders rounded up."""
    total = sum(counts.values())
    if not total:
        return {}
    exact = {stratum: size * count / total for stratum, count in counts.items()}
    out = {stratum: int(share) for stratum, share in exact.items()}
    by_remainder = sorted(counts, key=lambda each: (out[each] - exact[each], each))
    for stratum in by_remainder[: size - sum(out.values())]:
        out[stratum] += 1
    return out


async def init(args: argparse.Namespace, clock: Clock | None = None) -> int:
    """Choose, freeze, write."""
    if args.size is not None and args.size < 1:
        raise ConfigError(f"--size: must be at least 1, not {args.size}")
    if not args.output.endswith(".json"):
        raise ConfigError(f"-o {args.output}: an anchor set is written as JSON; name it *.json")
    chosen = Chosen(args.size, args.seed)
    source = wiring.open_source(args.pairs, args.format)
    try:
        async for batch in source.batches():
            for row in batch:
                chosen.take(row)
    finally:
        await source.aclose()
    pairs = chosen.pairs()
    if not pairs:
        raise InputError("no pair in the input could be read; there is nothing to freeze")
    made = AnchorSet(
        kind="anchor_set",
        name=args.name,
        pairs=pairs,
        hash=items_hash(pairs),
        created=(clock or SystemClock()).stamp(),
        sources=tuple(Path(each).name for each in args.pairs),
        seed=args.seed,
    )
    made, note = _versioned(made, Path(args.output), bump=args.bump)
    write_record(Path(args.output), made)
    _tell(args, made, chosen, note)
    return status.OK


def _versioned(made: AnchorSet, path: Path, *, bump: bool) -> tuple[AnchorSet, str]:
    """The set with its version; what is there already is never lost.

    Raises:
        InputError: the file holds other items, and no new version was asked for.
    """
    if not path.exists():
        return made, ""
    old = read_set(str(path))
    if old.name == made.name and old.hash == made.hash:
        return old, "the items are the same; nothing has changed"
    if not bump:
        raise InputError(
            f"holds the anchors {ref_of(old)}, which are other items; name another file, or give "
            f"--bump to make version {old.version + 1} (it needs a new baseline)",
            file=str(path),
        )
    kept = path.with_name(f"{path.stem}.v{old.version}{path.suffix}")
    if kept.exists():
        raise InputError("is in the way of the old version; move it away", file=str(kept))
    write_record(kept, old)
    made = msgspec.structs.replace(made, version=old.version + 1)
    return made, f"the old version is kept as {kept}"


def _tell(args: argparse.Namespace, made: AnchorSet, chosen: Chosen, note: str) -> None:
    labels: dict[str, int] = {}
    for pair in made.pairs:
        labels[pair.label or "none"] = labels.get(pair.label or "none", 0) + 1
    facts = {
        "name": made.name,
        "version": made.version,
        "hash": made.hash,
        "items": len(made.pairs),
        "labels": dict(sorted(labels.items())),
        "seen": chosen.seen,
        "bad_rows": chosen.bad_rows,
        "output": args.output,
    }
    if args.json:
        print(msgspec.json.encode(facts).decode())
        return
    told = ", ".join(f"{name} {count}" for name, count in sorted(labels.items()))
    print(f"anchors {ref_of(made)} in {args.output}")
    print(f"  {len(made.pairs)} of {chosen.seen:,} pairs; labels: {told}")
    if chosen.bad_rows:
        print(f"  {chosen.bad_rows} rows were no pairs and were passed over")
    if note:
        print(f"  {note}")
