"""The manifest beside an output: what produced it, and how every run on it ended.

Written when a run starts ("running") and when it ends, each time whole and atomically, so that a
killed run leaves a manifest that says so. Keeps the runs before this one. Knows no engine.
"""

import contextlib
import platform
import re
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import msgspec

from dikast.engine.errors import InputError, SinkError
from dikast.engine.files import pretty_json, whole_file
from dikast.engine.ledger import Ledger
from dikast.engine.model import Record

Status = Literal["running", "complete", "failures", "stopped", "interrupted", "error"]
FORMAT = 1
_LIBRARIES = ("aiohttp", "aiolimiter", "msgspec", "orjson", "uvloop")


class RunEntry(Record, frozen=True):
    """One run on the output. `ledger` is absent while it runs, and after it was killed.

    `anchors` is the state of the anchors that went along: which set, what moved, what corrects.
    `spent_most_usd` is written while the run goes on, ahead of what it spends: it counts for a run
    that was killed before it could say.
    """

    status: Status
    started: str
    ended: str | None = None
    argv: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    seed: int = 0
    simulated: bool = False
    stop_reason: str | None = None
    message: str | None = None
    duration_s: float | None = None
    ledger: Ledger | None = None
    spent_most_usd: float | None = None
    versions: dict[str, str] = {}
    anchors: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()


class Manifest(Record, frozen=True):
    """Everything a reader of the output needs to know; `runs` is oldest first.

    `earlier_usd` was spent on it by runs with other settings, which left no outcome.
    """

    output: str
    spec: str
    spec_tree: dict[str, Any]
    strategy: str = ""
    format: int = FORMAT
    runs: tuple[RunEntry, ...] = ()
    earlier_usd: float = 0.0


class Spent(NamedTuple):
    """US dollars; `bound`: some run was killed, and at most so much was spent."""

    usd: float = 0.0
    bound: bool = False


def spent_by(manifest: Manifest | None) -> Spent | None:
    """What all runs in a manifest have spent; None when one of them cannot be told."""
    if manifest is None:
        return Spent()
    usd, bound = manifest.earlier_usd, False
    for run in manifest.runs:
        if run.ledger is not None:
            usd += run.ledger.spent_usd
        elif run.spent_most_usd is not None:
            usd += run.spent_most_usd
            bound = bound or run.ended is None
        elif not run.simulated:
            return None
    return Spent(usd, bound)


def manifest_path(output: Path) -> Path:
    """`OUT.jsonl.manifest.json` beside `OUT.jsonl`."""
    return output.with_name(output.name + ".manifest.json")


def read_manifest(output: Path) -> Manifest | None:
    """The manifest of `output`, or None when there is none.

    Raises:
        InputError: it is there and cannot be read.
    """
    path = manifest_path(output)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
    try:
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(
            f"is not a manifest of dikast ({error}); move it away to go on without it",
            file=str(path),
        ) from error


def write_manifest(output: Path, manifest: Manifest) -> None:
    """Replace the manifest of `output` as a whole, or leave it as it was.

    Raises:
        SinkError: it cannot be written.
    """
    path = manifest_path(output)
    try:
        with whole_file(path) as file:
            file.write(pretty_json(manifest))
    except OSError as error:
        raise SinkError(f"{path}: the manifest cannot be written: {error.strerror}") from error


def versions() -> dict[str, str]:
    """Versions of what took part, for whoever repeats the run."""
    found = {"python": platform.python_version(), "platform": platform.platform(terse=True)}
    for name in ("dikast", *_LIBRARIES):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


_URL_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")
_KEY_LIKE = re.compile(r"\b(?:sk|pk|gsk|hf|xai|ghp)[-_][A-Za-z0-9_\-]{8,}|\bAIza[A-Za-z0-9_\-]{8,}")
_QUERY_SECRET = re.compile(r"(?i)((?:password|secret|token|api_?key)=)[^&\s]+")


def without_secrets(argv: Sequence[str]) -> tuple[str, ...]:
    """Command-line words with logins in URLs and everything that looks like a key masked."""
    out: list[str] = []
    for word in argv:
        masked = _URL_LOGIN.sub("***@", word)
        masked = _QUERY_SECRET.sub(r"\1***", masked)
        out.append(_KEY_LIKE.sub("***", masked))
    return tuple(out)


def spec_differences(old: object, new: object, path: str = "") -> list[str]:
    """What differs between two spec trees: one `path: old -> new` a difference.

    Lists of equal length are compared place by place; a list that grew is told as a whole.
    """
    out: list[str] = []
    if isinstance(old, dict) and isinstance(new, dict):
        old, new = cast("dict[str, object]", old), cast("dict[str, object]", new)
        for name in dict.fromkeys((*old, *new)):
            step = f"{path}.{name}" if path else name
            if name not in old:
                out.append(f"{step}: (absent) -> {_short(new[name])}")
            elif name not in new:
                out.append(f"{step}: {_short(old[name])} -> (absent)")
            else:
                out += spec_differences(old[name], new[name], step)
        return out
    before_list, after_list = _as_list(old), _as_list(new)
    if before_list is not None and after_list is not None and len(before_list) == len(after_list):
        for index, (before, after) in enumerate(zip(before_list, after_list, strict=True)):
            out += spec_differences(before, after, f"{path}[{index}]")
        return out
    return [] if old == new else [f"{path}: {_short(old)} -> {_short(new)}"]


def _as_list(value: object) -> list[object] | None:
    if isinstance(value, list | tuple):
        return list(cast("Sequence[object]", value))
    return None


def _short(value: object, size: int = 60) -> str:
    text = msgspec.json.encode(value).decode("utf-8", "replace")
    return text if len(text) <= size else f"{text[: size - 3]}..."
