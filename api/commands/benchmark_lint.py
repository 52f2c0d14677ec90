"""`dikast benchmark lint`: a benchmark file checked, and a copy with everything put right.

Each finding is one line, `FILE:LINE: dialogue, turn, field: what [kind]`, as compilers write them.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dikast import status
from dikast.analysis.benchmark_file import BenchmarkFile, benchmark_json
from dikast.analysis.benchmark_lint import Place, lint
from dikast.commands.benchmark_files import Artefact
from dikast.commands.reporting import drawn
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.model import Message
from dikast.tables import As, Table


async def run(args: argparse.Namespace) -> int:
    """Check a file; see `dikast benchmark lint --help`.

    Returns:
        0 where nothing was found, or all that was found is put right in the copy; else 1.

    Raises:
        InputError: the file cannot be read, or there is nothing in it.
        ConfigError: `--fix` without a copy's name, or the other way round.
        SinkError: the copy cannot be written.
    """
    if args.fix != (args.output is not None):
        raise ConfigError("--fix writes a copy and -o names it; give both or neither")
    file = BenchmarkFile(args.file)
    if args.fix:
        _check_copy(args)
    dialogues = 0
    found: list[Place] = []
    fixed: list[tuple[Sequence[Message], str]] = []
    checks = lint(file, threshold=args.similarity, chars_max=args.max_chars, seed=args.seed or 0)
    for each in checks:
        dialogues += 1
        found += each.findings
        if each.fixed is not None:
            fixed.append(each.fixed)
    if not dialogues:
        raise InputError("there is no dialogue in it", file=file.name)
    if args.fix:
        with Artefact(Path(args.output)) as copy:
            for piece in benchmark_json(fixed):
                copy.write_bytes(piece)
    _tell(args, file.name, dialogues, found, len(fixed))
    if not found:
        return status.OK
    return status.OK if args.fix and len(fixed) == dialogues else status.FAILURES


def _check_copy(args: argparse.Namespace) -> None:
    if Path(args.output).resolve() == Path(args.file).resolve():
        raise ConfigError(f"-o {args.output}: is the file itself; name another one")


def _tell(
    args: argparse.Namespace, name: str, dialogues: int, found: Sequence[Place], sound: int
) -> None:
    counts = Counter(each.kind for each in found)
    touched = {kind: len({p.dialogue for p in found if p.kind == kind}) for kind in counts}
    faulty = len({each.dialogue for each in found})
    report: dict[str, Any] = {
        "file": name,
        "dialogues": dialogues,
        "without_findings": dialogues - faulty,
        "left_out_of_copy": dialogues - sound,
        "counts": dict(sorted(counts.items())),
        "findings": [each._asdict() for each in found],
    }
    fixable = {each.kind: each.fixable for each in found}
    rows = [
        (kind, count, touched[kind], "yes" if fixable[kind] else "no")
        for kind, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]
    notes = [f"{dialogues:,} dialogues, {dialogues - faulty:,} without a finding"]
    if args.fix:
        notes.append(
            f"{args.output}: {sound:,} dialogues; {dialogues - sound:,} that cannot be put right "
            "are left out"
        )
    table = Table(
        title=f"Findings in {name}",
        columns=("kind", "findings", "dialogues", "can be put right"),
        rows=tuple(rows),
        notes=tuple(notes),
    )
    as_: As = "json" if args.json else "md" if args.md else "terminal"
    if as_ != "json":
        for each in found:
            print(f"{name}:{each.line}: {_where(each)}: {each.message} [{each.kind}]")
        if found:
            print()
    print(drawn([table], as_, report), end="")


def _where(place: Place) -> str:
    turn = "" if place.turn is None else f", turn {place.turn}"
    return f"dialogue {place.dialogue}{turn}" + (f", {place.field}" if place.field else "")
