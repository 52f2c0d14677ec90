"""Where outcomes go: one module a kind of sink, and `build` to make one from a name.

Knows records, errors and ports of the engine; knows nothing of providers or strategies.
"""

import os

from dikast.engine.errors import ConfigError
from dikast.engine.ports import Sink
from dikast.sinks.fanout import BrokenPolicy, FanoutSink
from dikast.sinks.files import open_output, refuse_if_written
from dikast.sinks.jsonl import JsonlSink, SyncPolicy
from dikast.sinks.memory import MemorySink
from dikast.sinks.parquet import ParquetSink, is_table_name, journal_of
from dikast.sinks.records import RecordWriter, kind_of, open_records
from dikast.sinks.resume import OutputScan, scan_output

__all__ = [
    "BrokenPolicy",
    "FanoutSink",
    "JsonlSink",
    "MemorySink",
    "OutputScan",
    "ParquetSink",
    "RecordWriter",
    "SyncPolicy",
    "build",
    "is_table_name",
    "journal_of",
    "kind_of",
    "open_output",
    "open_records",
    "refuse_if_written",
    "scan_output",
]


def build(
    where: str | os.PathLike[str],
    *,
    resume: OutputScan | None = None,
    fresh: bool = False,
    sync: SyncPolicy = "never",
) -> Sink:
    """The sink that `where` names: a path, `jsonl:PATH` or `parquet:PATH` (a path that ends in
    .parquet is one, too), `-` for standard output, `memory:`.

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
        scheme, rest = ("parquet" if is_table_name(text) else "jsonl"), text
    if scheme == "memory":
        return MemorySink()
    if scheme == "jsonl" and rest:
        return JsonlSink(rest, resume=resume, fresh=fresh, sync=sync)
    if scheme == "parquet" and rest:
        return ParquetSink(rest, resume=resume, fresh=fresh, sync=sync)
    raise ConfigError(
        f"sink {text!r}: unknown kind {scheme!r}; use a path, jsonl:PATH, parquet:PATH, - or "
        "memory:"
    )
