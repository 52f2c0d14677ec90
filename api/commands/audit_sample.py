"""`dikast audit sample`: draw outcomes, find their texts, write what the labelling page shows.

The sample names no model and no verdict, so that it can be handed to people as it is.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dikast import status, wiring
from dikast.analysis.audit_rows import SampleItem
from dikast.analysis.audit_sample import Drawn, Sample, draw
from dikast.commands.reporting import pairs_input
from dikast.config import InputSettings
from dikast.engine.errors import InputError
from dikast.engine.files import whole_file
from dikast.engine.model import Pair
from dikast.engine.text import scrub
from dikast.manifest import read_manifest
from dikast.tables import Share, Table, render

_STRATA_SHOWN = 40


async def run(args: argparse.Namespace) -> int:
    """Write the sample; the design on standard error, or on standard output as JSON."""
    _refuse_existing(args.output)
    sample = draw(args.outcomes, args.n, args.how, seed=args.seed, by=args.by)
    if not sample.drawn:
        raise InputError("no outcome has a verdict; nothing can be drawn", file=args.outcomes)
    if args.how == "uncertainty" and not sample.unsure:
        raise InputError(
            "no outcome in it says how sure it is (no confidence, no two orders); use --how "
            "stratified or uniform",
            file=args.outcomes,
        )
    paths = args.pairs or _judged_files(args.outcomes)
    if not paths:
        raise InputError(
            "its manifest names no pairs that are still there; give --pairs PAIRS",
            file=args.outcomes,
        )
    texts = await _texts(paths, pairs_input(args), {each.id for each in sample.drawn})
    lost = [each.id for each in sample.drawn if each.id not in texts]
    if lost:
        raise InputError(
            f"{len(lost):,} of {len(sample.drawn):,} drawn pairs are not in "
            f"{', '.join(paths)} (the first is {lost[0]!r}); give the pairs that were judged "
            "with --pairs"
        )
    _write(Path(args.output), (_item(each, texts[each.id]) for each in sample.drawn))
    if args.json:
        plain = msgspec.json.encode(_plain(sample, args))
        sys.stdout.write(msgspec.json.format(plain).decode() + "\n")
    else:
        sys.stdout.write(render(_design(sample, args), colour=sys.stdout.isatty()))
    return status.OK


def _refuse_existing(path: str) -> None:
    if Path(path).exists():
        raise InputError(
            "is there already, and people may be labelling it; name another file", file=path
        )


def _judged_files(outcomes: str) -> list[str]:
    """The input files that the manifest beside the outcomes names, where they are still there."""
    manifest = read_manifest(Path(outcomes))
    named = () if manifest is None else (each for run in manifest.runs for each in run.inputs)
    return [path for path in dict.fromkeys(named) if path != "-" and Path(path).is_file()]


async def _texts(paths: Sequence[str], how: InputSettings, wanted: set[str]) -> dict[str, Pair]:
    """The wanted pairs; of an id that stands twice the first, as a run takes it."""
    found: dict[str, Pair] = {}
    source = wiring.open_source(paths, how)
    try:
        async for batch in source.batches():
            for row in batch:
                if isinstance(row.item, Pair) and row.item.id in wanted:
                    found.setdefault(row.item.id, row.item)
            if len(found) == len(wanted):
                break
    finally:
        await source.aclose()
    return found


def _item(drawn: Drawn, pair: Pair) -> SampleItem:
    return SampleItem(
        id=pair.id,
        question=pair.question,
        response_a=pair.response_a,
        response_b=pair.response_b,
        messages=pair.messages,
        reference=pair.reference,
        key_points=pair.key_points,
        category=drawn.category,
        inclusion_probability=drawn.inclusion_probability,
        stratum=drawn.stratum,
        stratum_pairs=drawn.stratum_pairs,
    )


def _write(output: Path, items: Iterable[SampleItem]) -> None:
    """All or nothing: a sample that was cut short would be taken for a smaller one."""
    try:
        with whole_file(output) as file:
            for item in items:
                file.write(_encoded(item) + b"\n")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(output)) from error


def _encoded(item: SampleItem) -> bytes:
    try:
        return msgspec.json.encode(item)
    except UnicodeEncodeError:
        return msgspec.json.encode(scrub(msgspec.to_builtins(item)))


def _plain(sample: Sample, args: argparse.Namespace) -> dict[str, Any]:
    return {
        "outcomes": args.outcomes,
        "sample": args.output,
        "how": args.how,
        "seed": args.seed,
        "pairs": sample.pairs,
        "drawn": len(sample.drawn),
        "repeated": sample.repeated,
        "missing": sample.missing,
        "strata": [each._asdict() for each in sample.strata],
    }


def _design(sample: Sample, args: argparse.Namespace) -> Table:
    strata = sorted(sample.strata, key=lambda each: each.name)
    notes = [
        f"{len(sample.drawn):,} of {sample.pairs:,} pairs with a verdict, {args.how}, seed "
        f"{args.seed}; written to {args.output}",
        *(f"not drawn from: {number:,} {why}" for why, number in sample.missing.items()),
    ]
    if sample.repeated:
        notes.append(f"{sample.repeated:,} lines repeat an id; the first verdict counts")
    if len(strata) > _STRATA_SHOWN:
        further = len(strata) - _STRATA_SHOWN
        notes.append(f"{further:,} further strata are not shown; --json has all")
    return Table(
        "Sample",
        ("stratum", "pairs", "drawn", "probability"),
        tuple(
            (each.name, each.pairs, each.drawn, Share(each.drawn / each.pairs))
            for each in strata[:_STRATA_SHOWN]
        ),
        tuple(notes),
    )
