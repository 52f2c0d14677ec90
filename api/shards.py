"""Shards: a run cut into parts that any worker, anywhere, can judge by itself and again.

Between the cut (`dikast.cutting`) and the judging: what a plan holds and how it is written and
read. A worker turns its shard into a source (`source_of`) and its place on disk (`ShardFiles`).
Judges nothing.
"""

import contextlib
import hashlib
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dikast import manifest as records
from dikast import seals
from dikast.engine.errors import ConfigError, InputError, SinkError, SpecMismatchError
from dikast.engine.model import Record
from dikast.engine.ranges import FileRange, RangeSource
from dikast.settling import Choices

PLAN_NAME = "plan.json"
FORMAT = 1
BLOCK_BYTES = 1 << 20


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
        raise InputError("is a plan of another version of dikast; make it anew", file=str(path))
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
        path = path_of(folder, file)
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
            same = digest_of(path, part.start, part.end) == part.sha256
        elif same:
            same = digest_of(path, 0, None) == file.sha256
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


def path_of(folder: Path, file: InputFile) -> Path:
    """Where an input is, seen from here; its path was told from the plan's folder."""
    return Path(os.path.normpath(folder.resolve() / file.path))


def digest_of(path: Path, start: int, end: int | None) -> str:
    """SHA-256 of the bytes from `start` to `end`, or to the end of the file."""
    digest = hashlib.sha256()
    left = math.inf if end is None else end - start
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while left > 0 and (block := file.read(int(min(left, BLOCK_BYTES)))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()
