"""From what a user names (a file, a folder, a pattern, an address) to the files behind it.

The very first step of a pair's way in. A folder stands for the data files in it, a dataset saved
by Hugging Face `datasets` for its shards, a pattern for what matches; the order is always that of
the names. A local disk and an object store look alike from here (`Tree`). Opens nothing but the
small files that describe a dataset, and knows nothing of rows.
"""

import glob
import os
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Protocol

import msgspec

from dikast.engine.errors import InputError

STDIN: Final = "-"
_DATA: Final = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".tab")
_TABLES: Final = (".parquet", ".arrow", ".feather")
PACKED: Final = (".gz", ".zst", ".zstd")
_NOT_DATA: Final = ("dataset_dict.json", "dataset_info.json", "state.json", ".manifest.json")
_MAGIC: Final = frozenset("*?[")
_NAMED_MOST: Final = 20


class Tree(Protocol):
    """A file system, as much of it as an input needs. Paths are its own; all calls may block."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What it and its files raise when they cannot be read."""
        ...

    def is_folder(self, path: str) -> bool:
        """True for a folder that is there."""
        ...

    def is_file(self, path: str) -> bool:
        """True for a file that is there."""
        ...

    def files(self, path: str) -> list[str]:
        """Every file under a folder, at any depth."""
        ...

    def matching(self, pattern: str) -> list[str]:
        """Every file that a pattern names; `**` stands for any folders."""
        ...

    def open(self, path: str) -> BinaryIO:
        """A file that can be read, and sought in where the tree can. Raises `OSError`."""
        ...


class LocalTree:
    """The disk."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The system's."""
        return (OSError,)

    def is_folder(self, path: str) -> bool:
        """True for a folder that is there."""
        return os.path.isdir(path)

    def is_file(self, path: str) -> bool:
        """True for a file (or a pipe, or a device) that is there."""
        return os.path.exists(path) and not os.path.isdir(path)

    def files(self, path: str) -> list[str]:
        """Every file under a folder."""
        return [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]

    def matching(self, pattern: str) -> list[str]:
        """Every file that a pattern names; once, also where a link leads back into its folder."""
        found: dict[tuple[str, str], str] = {}
        for each in sorted(glob.glob(pattern, recursive=True), key=len):
            if self.is_file(each):
                folder, name = os.path.split(each)
                found.setdefault((os.path.realpath(folder), name), each)
        return list(found.values())

    def open(self, path: str) -> BinaryIO:
        """The file, unbuffered: whoever reads it takes large pieces."""
        return open(path, "rb", buffering=0)


class Place(NamedTuple):
    """One file to be read: where, how it is called in messages, and whether reading it may wait."""

    tree: Tree
    path: str
    shown: str
    slow: bool = False


def is_pipe(given: str) -> bool:
    """True for what can be read only once though it has a path: a named pipe, `<(command)`."""
    return os.path.exists(given) and not os.path.isdir(given) and not os.path.isfile(given)


def is_remote(given: str) -> bool:
    """True when `given` is an address (`s3://...`, `https://...`) and no path."""
    scheme, colon, _ = given.partition("://")
    return bool(colon) and len(scheme) > 1 and scheme.replace("+", "").isalnum()


def shown(given: str) -> str:
    """An address without the login and the signature that may stand in it; a path as it is."""
    if not is_remote(given):
        return given
    scheme, _, rest = given.partition("://")
    rest = rest.partition("?")[0] if scheme in ("http", "https") else rest
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def places(given: str, split: str | None = None) -> list[Place]:
    """The files that `given` stands for, in order of name. May block where it is remote.

    Args:
        given: a path, a folder, a pattern, an address, or `-`.
        split: the part of a dataset that is wanted ("train").

    Raises:
        InputError: nothing is there, a folder holds no data, or a split has to be chosen.
    """
    if given == STDIN:
        return [Place(LocalTree(), STDIN, "stdin", slow=True)]
    if is_remote(given):
        from dikast.engine.remote import open_tree  # needs an extra

        tree, path, prefix = open_tree(given)
        found = _Guarded(tree, given).places(path, split)
        return [
            Place(tree, each, shown(given if each == path else prefix + each), slow=True)
            for each in found
        ]
    local = LocalTree()
    return [Place(local, each, each) for each in _Guarded(local, given).places(given, split)]


class _Guarded:
    """The look for files, with every failure of the tree told as one sentence."""

    def __init__(self, tree: Tree, given: str) -> None:
        self._tree = tree
        self._shown = shown(given)

    def places(self, path: str, split: str | None) -> list[str]:
        try:
            return self._places(path, split)
        except self._tree.errors as error:
            what = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise self._wrong(f"cannot be looked at: {what}") from error

    def _places(self, path: str, split: str | None) -> list[str]:
        tree = self._tree
        web = self._shown.startswith(("http://", "https://"))
        if web or tree.is_file(path):
            if split is not None:
                raise self._wrong(f"is a single file, so it has no split {split!r}; leave --split")
            return [path]
        if tree.is_folder(path):
            return self._in_folder(path.rstrip("/") or "/", split)
        if _MAGIC & set(path):
            found = _visible(tree.matching(path))
            if not found:
                raise self._wrong("no file matches this pattern")
            return _of_split(found, split, self._wrong)
        raise self._wrong("there is no such file")

    def _in_folder(self, folder: str, split: str | None) -> list[str]:
        if self._tree.is_file(f"{folder}/dataset_dict.json"):
            return self._in_splits(folder, split)
        if self._tree.is_file(f"{folder}/state.json"):
            return self._in_dataset(folder, split)
        found = [each for each in _visible(self._tree.files(folder), folder) if _is_data(each)]
        if not found:
            raise self._wrong(
                f"is a folder without data files in it; files that end in "
                f"{', '.join((*_DATA, *_TABLES))} are read (also .gz and .zst of text)"
            )
        return _of_split(found, split, self._wrong)

    def _in_splits(self, folder: str, split: str | None) -> list[str]:
        """A `DatasetDict` on disk: a folder for each split."""
        splits = self._described(f"{folder}/dataset_dict.json", _Splits).splits
        names = ", ".join(splits)
        if split is None and len(splits) != 1:
            raise self._wrong(
                f"is a dataset of {len(splits)} splits ({names}); choose one with --split NAME"
            )
        chosen = splits[0] if split is None else split
        if chosen not in splits:
            raise self._wrong(f"has no split {chosen!r}; there are: {names}")
        return self._in_dataset(f"{folder}/{chosen}", chosen)

    def _in_dataset(self, folder: str, split: str | None) -> list[str]:
        """One `Dataset` on disk: shards of Arrow, named by state.json in their order."""
        state = self._described(f"{folder}/state.json", _State)
        if split is not None and state.split is not None and split != state.split:
            raise self._wrong(f"has no split {split!r}; it is the split {state.split!r}")
        if state.indices:
            raise self._wrong(
                "holds a selection of rows (an indices file), which is not read; load it with "
                "datasets, call flatten_indices() and save it again"
            )
        return [f"{folder}/{each.filename}" for each in state.data_files]

    def _described(self, path: str, kind: type[Any]) -> Any:
        with self._tree.open(path) as file:
            data = file.read()
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            name = path.rpartition("/")[2]
            raise self._wrong(f"its {name} does not describe a dataset ({error})") from error

    def _wrong(self, message: str) -> InputError:
        return InputError(message, file=self._shown)


class _Splits(msgspec.Struct):
    """dataset_dict.json."""

    splits: list[str]


class _Shard(msgspec.Struct):
    """One file of a dataset."""

    filename: str


class _State(msgspec.Struct):
    """The part of state.json that says which files to read."""

    data_files: list[_Shard] = msgspec.field(name="_data_files")
    split: str | None = msgspec.field(name="_split", default=None)
    indices: list[_Shard] | None = msgspec.field(name="_indices_data_files", default=None)


def stem_and_suffix(path: str) -> tuple[str, str]:
    """The last part of a path without its suffix, and that suffix; a packing is looked through."""
    name = path.rpartition("/")[2]
    stem, suffix = os.path.splitext(name)
    if suffix.lower() in PACKED:
        stem, suffix = os.path.splitext(stem)
    return stem, suffix.lower()


def _is_data(path: str) -> bool:
    suffix = stem_and_suffix(path)[1]
    packed = Path(path).suffix.lower() in PACKED
    return not path.endswith(_NOT_DATA) and (suffix in _DATA or (suffix in _TABLES and not packed))


def _visible(paths: list[str], folder: str = "") -> list[str]:
    """Sorted, without what is hidden below `folder` (as `.git`, `_metadata`, `_temporary`)."""
    return sorted(
        path
        for path in paths
        if not any(part[:1] in (".", "_") for part in path[len(folder) :].split("/") if part)
        or not folder
    )


def _of_split(paths: list[str], split: str | None, wrong: Any) -> list[str]:
    """The files of a split by name, as dataset repositories lay them out: train-00000-of-00002."""
    if split is None:
        return paths
    found = [path for path in paths if split in _split_names(path)]
    if not found:
        names = sorted({name for path in paths for name in _split_names(path)[:1]})
        there = ", ".join(names[:_NAMED_MOST])
        raise wrong(f"has no split {split!r}; by the names of its files there are: {there}")
    return found


def _split_names(path: str) -> list[str]:
    """What the name of a file may call its split: its beginning, or the folder it is in."""
    stem, _ = stem_and_suffix(path)
    folder = path.rpartition("/")[0].rpartition("/")[2]
    return [stem.partition("-")[0], stem, folder]
