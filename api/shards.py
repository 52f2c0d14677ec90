"""Shards: a run cut into parts that any worker, anywhere, can judge by itself and again.

Before the first pair: `make_plan` reads the input once and writes down which rows belong to which
shard and what will judge them. A worker turns its shard into a source (`source_of`) and its place
on disk (`ShardFiles`). The plan depends on nothing but input and settings, so that workers who
make it at the same time make the same one. Judges nothing.
"""

import contextlib
import hashlib
import itertools
import math
import os
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dikast import manifest as records
from dikast import seals, streams, wiring
from dikast.config import Settings
from dikast.engine.errors import ConfigError, InputError, SinkError, SpecMismatchError
from dikast.engine.ids import IdTable
from dikast.engine.lines import is_plain_lines
from dikast.engine.model import BadRow, Record
from dikast.engine.places import is_pipe
from dikast.engine.ranges import FileRange, RangeSource, is_of_lines
from dikast.engine.sources import FileSource
from dikast.engine.spec import spec_hash, spec_tree
from dikast.settling import Choices

PLAN_NAME = "plan.json"
FORMAT = 1
SHARDS_MAX = 100_000
_BLOCK_BYTES = 1 << 20
_HEAD_BYTES = 1 << 16


class InputFile(Record, frozen=True):
    """One input: `path` from the plan's folder, `name` as rows are told by, and what it held."""

    path: str
    name: str
    form: str
    bytes: int
    sha256: str
    plain: bool


class Part(Record, frozen=True):
    """Rows `first` to `last` (physical ones, from 1) of input number `file`; bytes if plain."""

    file: int
    first: int
    last: int
    start: int | None = None
    end: int | None = None
    sha256: str | None = None


class Taken(Record, frozen=True):
    """A row whose id a row of an earlier shard has used."""

    shard: int
    file: int
    line: int
    id: str
    first: str


class Shard(Record, frozen=True):
    """One unit of work. `rows` counts what its ledger must account for."""

    index: int
    rows: int
    parts: tuple[Part, ...]


class Plan(Record, frozen=True):
    """What `plan.json` holds."""

    spec: str
    spec_tree: dict[str, Any]
    strategy: str
    choices: Choices
    inputs: tuple[InputFile, ...]
    rows: int
    bad_rows: int
    wanted: int
    shards: tuple[Shard, ...]
    taken: tuple[Taken, ...] = ()
    format: int = FORMAT
    seal: str = ""


class Job(NamedTuple):
    """One shard, ready to be judged."""

    plan: Plan
    shard: Shard
    source: RangeSource


class ShardFiles:
    """Where one shard lives: `part` while it is judged, `done` when every row has an outcome.

    Args:
        folder: the plan's folder.
        index: of the shard.
    """

    def __init__(self, folder: Path, index: int) -> None:
        self.done = folder / f"shard-{index:05d}.jsonl"
        self.part = folder / f"shard-{index:05d}.part.jsonl"
        self.store = folder / f"calls-{index:05d}.sqlite"

    def finish(self) -> None:
        """Give the shard its final name; whoever sees that name sees a whole shard.

        Raises:
            SinkError: the folder cannot be written.
        """
        self._rename(self.part, self.done, manifest_first=True)

    def reopen(self) -> None:
        """Back to the working name, to try failed pairs again.

        Raises:
            SinkError: the folder cannot be written.
        """
        self._rename(self.done, self.part, manifest_first=False)

    def _rename(self, old: Path, new: Path, *, manifest_first: bool) -> None:
        # The outcomes decide what is done: their name changes last when finishing, first when not.
        moves = [(records.manifest_path(old), records.manifest_path(new)), (old, new)]
        try:
            for source, target in moves if manifest_first else reversed(moves):
                with contextlib.suppress(FileNotFoundError):
                    source.replace(target)
        except OSError as error:
            raise SinkError(f"{new}: the shard cannot be renamed: {error.strerror}") from error


async def make_plan(
    folder: Path,
    paths: Sequence[str],
    *,
    form: str | None,
    choices: Choices,
    settings: Settings,
    shards: int | None = None,
    rows: int | None = None,
    limit: int | None = None,
) -> Plan:
    """Read the input once and cut it.

    Args:
        folder: where the plan will be written; paths in it start from there.
        paths: input files.
        form: their format, or None to recognise it.
        choices: what the command line said, so that workers need not say it again.
        settings: what will judge; no key has to be there.
        shards: so many shards of equal size, or
        rows: shards of so many rows; with both, whichever makes more of them.
        limit: the most rows to read, or None.

    Raises:
        InputError: a file cannot be read, or holds no row.
        ConfigError: an input is no file, or a number is out of range.
    """
    for option, value in (("--shards", shards), ("--rows", rows)):
        if value is not None and value < 1:
            raise ConfigError(f"{option}: must be at least 1, not {value}")
    for path in paths:
        if path == "-" or streams.is_kafka(path) or is_pipe(path):
            raise ConfigError(f"{path}: only files can be cut into shards; write it to one first")
    scan = _Scan(list(paths), form or "auto")
    await scan.read(limit)
    if not scan.count:
        raise InputError("holds no row to judge", file=paths[0])
    wanted = max(shards or 1, math.ceil(scan.count / (rows or scan.count)))
    if wanted > SHARDS_MAX:
        raise ConfigError(f"that makes {wanted:,} shards; at most {SHARDS_MAX:,} are sensible")
    inputs = tuple(_fingerprint(path, folder, scan.forms[path]) for path in scan.paths)
    cuts = scan.cuts(wanted)
    strategy = wiring.build_strategy(settings)
    tree = spec_tree(strategy)
    return Plan(
        spec=spec_hash(tree),
        spec_tree=msgspec.to_builtins(tree),
        strategy=strategy.name,
        choices=_portable(choices, folder),
        inputs=inputs,
        rows=scan.count,
        bad_rows=scan.bad_rows,
        wanted=wanted,
        shards=tuple(_shards(scan, cuts, inputs, folder)),
        taken=tuple(scan.taken_across(cuts)),
    )


class _Scan:
    """What one pass over the input tells: the line of every row, and the ids used twice."""

    def __init__(self, paths: list[str], form: str) -> None:
        self.paths = paths
        self.forms = dict.fromkeys(paths, form)
        self.count = 0
        self.bad_rows = 0
        self.lines = [array("Q") for _ in paths]
        self._form = form
        self._ids = IdTable()
        self._twice: list[tuple[int, int, int, str]] = []

    async def read(self, limit: int | None) -> None:
        for number, path in enumerate(self.paths):
            if not is_of_lines(path):
                raise InputError(
                    "shards are cut from files of JSON lines or JSON; make one of it first with "
                    "dikast convert PAIRS -o pairs.jsonl",
                    file=path,
                )
            source = FileSource(path, format=self._form)
            async with contextlib.aclosing(source), contextlib.aclosing(source.batches()) as all_:
                async for batch in all_:
                    self.forms[path] = source.formats[path]
                    for row in batch:
                        if limit is not None and self.count >= limit:
                            return
                        self._enter(number, row.line, row.item)

    def _enter(self, number: int, line: int, item: Any) -> None:
        if isinstance(item, BadRow):
            self.bad_rows += 1
        elif (first := self._ids.add(item.id, self.count)) is not None:
            self._twice.append((first, number, self.count, item.id))
        self.lines[number].append(line)
        self.count += 1

    def place(self, row: int) -> tuple[int, int]:
        """File and line of row number `row` (from 0, over all files)."""
        for number, lines in enumerate(self.lines):
            if row < len(lines):
                return number, lines[row]
            row -= len(lines)
        raise IndexError(row)

    def cuts(self, wanted: int) -> list[int]:
        """First row of each shard, and the end. Pairs that stand in one line stay together."""
        out = [0]
        for shard in range(1, wanted):
            cut = shard * self.count // wanted
            while cut < self.count and self.place(cut) == self.place(cut - 1):
                cut += 1
            if out[-1] < cut < self.count:
                out.append(cut)
        return [*out, self.count]

    def taken_across(self, cuts: list[int]) -> list[Taken]:
        """Rows whose id stands first in another shard; within one shard the intake finds them."""
        out: list[Taken] = []
        for first, number, row, id_ in self._twice:
            shard = bisect_right(cuts, row) - 1
            if bisect_right(cuts, first) - 1 != shard:
                there, line = self.place(first)
                out.append(
                    Taken(
                        shard=shard,
                        file=number,
                        line=self.place(row)[1],
                        id=id_,
                        first=f"{self.paths[there]}:{line}",
                    )
                )
        return out


def _shards(scan: _Scan, cuts: list[int], inputs: Sequence[InputFile], folder: Path) -> list[Shard]:
    """Every shard with its parts; plain files get byte offsets and digests of their own."""
    out, starts = list[Shard](), dict[int, dict[int, int]]()
    for index, (begin, end) in enumerate(itertools.pairwise(cuts)):
        parts: list[Part] = []
        offset = 0
        for number, lines in enumerate(scan.lines):
            low, high = max(begin - offset, 0), min(end - offset, len(lines))
            offset += len(lines)
            if low < high:
                parts.append(Part(file=number, first=lines[low], last=lines[high - 1]))
                starts.setdefault(number, {}).update({lines[low]: 0, lines[high - 1] + 1: 0})
        out.append(Shard(index=index, rows=end - begin, parts=tuple(parts)))
    for number, wanted in starts.items():
        if inputs[number].plain:
            _find_lines(_at(folder, inputs[number]), wanted)
    return [
        msgspec.structs.replace(
            shard, parts=tuple(_with_bytes(part, inputs, starts, folder) for part in shard.parts)
        )
        for shard in out
    ]


def _with_bytes(
    part: Part, inputs: Sequence[InputFile], starts: dict[int, dict[int, int]], folder: Path
) -> Part:
    file = inputs[part.file]
    if not file.plain:
        return part
    start, end = starts[part.file][part.first], starts[part.file][part.last + 1]
    digest = _digest(_at(folder, file), start, end)
    return msgspec.structs.replace(part, start=start, end=end, sha256=digest)


def _at(folder: Path, file: InputFile) -> Path:
    """Where an input is, seen from here; its path was told from the plan's folder."""
    return Path(os.path.normpath(folder.resolve() / file.path))


def _find_lines(path: Path, wanted: dict[int, int]) -> None:
    """Fill in at which byte each wanted line (from 1) begins; one past the last is the end."""
    todo = sorted(wanted)
    line, at = 1, 0
    with path.open("rb", buffering=0) as file:
        while todo and todo[0] == line:
            wanted[todo.pop(0)] = at
        while todo and (block := file.read(_BLOCK_BYTES)):
            found = block.count(b"\n")
            if line + found < todo[0]:
                line, at = line + found, at + len(block)
                continue
            place = 0
            while todo and (newline := block.find(b"\n", place)) >= 0:
                line, place = line + 1, newline + 1
                if line == todo[0]:
                    wanted[todo.pop(0)] = at + place
            line, at = line + block.count(b"\n", place), at + len(block)
    for missing in todo:
        wanted[missing] = at


def _fingerprint(path: str, folder: Path, form: str) -> InputFile:
    file = Path(path)
    with file.open("rb") as opened:
        plain = is_plain_lines(opened.read(_HEAD_BYTES))
    return InputFile(
        path=os.path.relpath(file.resolve(), folder.resolve()),
        name=path,
        form=form,
        bytes=file.stat().st_size,
        sha256=_digest(file, 0, None),
        plain=plain,
    )


def _digest(path: Path, start: int, end: int | None) -> str:
    digest = hashlib.sha256()
    left = math.inf if end is None else end - start
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while left > 0 and (block := file.read(int(min(left, _BLOCK_BYTES)))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


def _portable(choices: Choices, folder: Path) -> Choices:
    """The choices that decide a verdict, their path told from the plan's folder."""
    config = choices.config
    if config is not None:
        config = os.path.relpath(Path(config).resolve(), folder.resolve())
    return Choices(
        config=config,
        judges=choices.judges,
        strategy=choices.strategy,
        template=choices.template,
        seed=choices.seed,
    )


def write_plan(folder: Path, plan: Plan) -> Path:
    """Write `plan.json` whole, or see that the one that is there is the same.

    Raises:
        SinkError: it cannot be written.
        SpecMismatchError: the folder holds another plan.
    """
    path, plan = folder / PLAN_NAME, seals.sealed(plan)
    if path.exists() and seals.sealed(read_plan(path)) != plan:
        raise SpecMismatchError(
            f"{path}: is the plan of another input, configuration or number of shards; name "
            "another folder"
        )
    draft = folder / f"{PLAN_NAME}.{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(plan), indent=1) + b"\n")
        draft.replace(path)
    except OSError as error:
        raise SinkError(f"{path}: cannot be written: {error.strerror}") from error
    return path


def read_plan(path: Path) -> Plan:
    """The plan in a file, or in a folder.

    Raises:
        InputError: it cannot be read, or is none.
    """
    path = path / PLAN_NAME if path.is_dir() else path
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=Plan)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}; make a plan with dikast shard", file=str(path)
        ) from error
    except msgspec.DecodeError as error:
        raise InputError(f"is no plan of dikast ({error})", file=str(path)) from error
    if plan.format != FORMAT:
        raise InputError("is a plan of another dikast; make it anew", file=str(path))
    seals.check(plan, plan.seal, str(path))
    return plan


def folder_of(path: Path) -> Path:
    """The folder of a plan that was named itself, or by its folder."""
    return path if path.is_dir() else path.parent


def shard_of(plan: Plan, index: int) -> Shard:
    """Shard number `index`, from 0.

    Raises:
        ConfigError: there is no such shard.
    """
    if not 0 <= index < len(plan.shards):
        raise ConfigError(
            f"--index {index}: the plan has {len(plan.shards)} shards, "
            f"numbered 0 to {len(plan.shards) - 1}"
        )
    return plan.shards[index]


def source_of(plan: Plan, shard: Shard, folder: Path) -> RangeSource:
    """The rows of `shard`, after seeing that the input is what it was.

    Raises:
        InputError: an input is missing or was changed since the plan was made.
    """
    ranges: list[FileRange] = []
    for part in shard.parts:
        file = plan.inputs[part.file]
        path = _at(folder, file)
        _check_unchanged(path, file, part)
        ranges.append(
            FileRange(
                path=str(path),
                name=file.name,
                form=file.form,
                first=part.first,
                last=part.last,
                start=part.start,
                end=part.end,
            )
        )
    taken: Mapping[tuple[str, int, str], str] = {
        (plan.inputs[each.file].name, each.line, each.id): each.first
        for each in plan.taken
        if each.shard == shard.index
    }
    return RangeSource(ranges, taken)


def _check_unchanged(path: Path, file: InputFile, part: Part) -> None:
    try:
        same = path.stat().st_size == file.bytes
        if same and part.start is not None:
            same = _digest(path, part.start, part.end) == part.sha256
        elif same:
            same = _digest(path, 0, None) == file.sha256
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
    if not same:
        raise InputError("was changed since the plan was made; make a new plan", file=str(path))


def check_spec(plan: Plan, spec: str, tree: Mapping[str, Any]) -> None:
    """See that a worker would judge as the plan says.

    Raises:
        SpecMismatchError: it would not; the message names the difference.
    """
    if spec == plan.spec:
        return
    found = records.spec_differences(plan.spec_tree, msgspec.to_builtins(tree))
    raise SpecMismatchError(
        f"this worker would not judge as the plan says: {'; '.join(found[:3])}; use the plan's "
        "settings (say nothing), or make a new plan"
    )
