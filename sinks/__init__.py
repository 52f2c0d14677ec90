"""Where outcomes go: one module a kind of sink, and `build` to make one from a name.

Knows records, errors and ports of the engine; knows nothing of providers or strategies.
"""

import os

from dikast.engine.errors import ConfigError
from dikast.engine.ports import Sink
from dikast.sinks.fanout import BrokenPolicy, FanoutSink
from dikast.sinks.jsonl import JsonlSink, SyncPolicy
from dikast.sinks.memory import MemorySink
from dikast.sinks.resume import OutputScan, scan_output

__all__ = [
    "BrokenPolicy",
    "FanoutSink",
    "JsonlSink",
    "MemorySink",
    "OutputScan",
    "SyncPolicy",
    "build",
    "scan_output",
]


def build(
    where: str | os.PathLike[str],
    *,
    resume: OutputScan | None = None,
    fresh: bool = False,
    sync: SyncPolicy = "never",
) -> Sink:
    """The sink that `where` names: a path or `jsonl:PATH`, `-` for standard output, `memory:`.

    Args:
        where: path or URL.
        resume: what `scan_output` found there, for a file.
        fresh: empty an existing file first.
        sync: when a file is synced to the device.

    Raises:
        ConfigError: the scheme is unknown.
        SinkError: the output cannot be opened.
    """
    text = os.fspath(where)
    scheme, colon, rest = text.partition(":")
    if not colon or len(scheme) < 2 or not scheme.isalnum():
        scheme, rest = "jsonl", text
    if scheme == "memory":
        return MemorySink()
    if scheme == "jsonl" and rest:
        return JsonlSink(rest, resume=resume, fresh=fresh, sync=sync)
    raise ConfigError(
        f"sink {text!r}: unknown kind {scheme!r}; use a path, jsonl:PATH, - or memory:"
    )
