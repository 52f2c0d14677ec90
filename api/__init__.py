"""dikast: an async engine that puts LLM judges to work on pairs of answers.

    from dikast import Pair, engine_for

The names below are the stable ones (docs/library.md). They are loaded when they are first used, so
that `import dikast` and `dikast --help` cost nothing. The command line lives in `dikast.cli`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dikast.config import parse_settings
    from dikast.engine.clock import SystemClock
    from dikast.engine.errors import (
        ConfigError,
        DikastError,
        InputError,
        ProviderError,
        RunStopped,
        SinkError,
        SpecMismatchError,
        StoreError,
    )
    from dikast.engine.ledger import Ledger
    from dikast.engine.model import (
        Call,
        Completion,
        Failed,
        Item,
        Judge,
        Message,
        Outcome,
        Pair,
        Params,
        Prices,
        Scored,
        Undecided,
        Usage,
        Verdict,
        Vote,
    )
    from dikast.engine.pacing import Limits
    from dikast.engine.retry import RetryPolicy
    from dikast.engine.run import Engine, RunReport
    from dikast.engine.sources import FileSource, IterableSource
    from dikast.engine.store import open_store
    from dikast.sinks.jsonl import JsonlSink
    from dikast.sinks.memory import MemorySink
    from dikast.strategies import Pairwise, cascade, committee, load_template, repeat, swap
    from dikast.wiring import build_engine, engine_for, engine_from_file

__version__ = "0.1.0"

# Where each public name is defined.
_HOME = {
    "parse_settings": "config",
    "SystemClock": "engine.clock",
    "ConfigError": "engine.errors",
    "DikastError": "engine.errors",
    "InputError": "engine.errors",
    "ProviderError": "engine.errors",
    "RunStopped": "engine.errors",
    "SinkError": "engine.errors",
    "SpecMismatchError": "engine.errors",
    "StoreError": "engine.errors",
    "Ledger": "engine.ledger",
    "Call": "engine.model",
    "Completion": "engine.model",
    "Failed": "engine.model",
    "Item": "engine.model",
    "Judge": "engine.model",
    "Message": "engine.model",
    "Outcome": "engine.model",
    "Pair": "engine.model",
    "Params": "engine.model",
    "Prices": "engine.model",
    "Scored": "engine.model",
    "Undecided": "engine.model",
    "Usage": "engine.model",
    "Verdict": "engine.model",
    "Vote": "engine.model",
    "Limits": "engine.pacing",
    "RetryPolicy": "engine.retry",
    "Engine": "engine.run",
    "RunReport": "engine.run",
    "FileSource": "engine.sources",
    "IterableSource": "engine.sources",
    "open_store": "engine.store",
    "JsonlSink": "sinks.jsonl",
    "MemorySink": "sinks.memory",
    "Pairwise": "strategies",
    "cascade": "strategies",
    "committee": "strategies",
    "load_template": "strategies",
    "repeat": "strategies",
    "swap": "strategies",
    "build_engine": "wiring",
    "engine_for": "wiring",
    "engine_from_file": "wiring",
}

__all__ = [
    "Call",
    "Completion",
    "ConfigError",
    "DikastError",
    "Engine",
    "Failed",
    "FileSource",
    "InputError",
    "Item",
    "IterableSource",
    "JsonlSink",
    "Judge",
    "Ledger",
    "Limits",
    "MemorySink",
    "Message",
    "Outcome",
    "Pair",
    "Pairwise",
    "Params",
    "Prices",
    "ProviderError",
    "RetryPolicy",
    "RunReport",
    "RunStopped",
    "Scored",
    "SinkError",
    "SpecMismatchError",
    "StoreError",
    "SystemClock",
    "Undecided",
    "Usage",
    "Verdict",
    "Vote",
    "__version__",
    "build_engine",
    "cascade",
    "committee",
    "engine_for",
    "engine_from_file",
    "load_template",
    "open_store",
    "parse_settings",
    "repeat",
    "swap",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'dikast' has no attribute {name!r}")
    value = getattr(import_module(f"dikast.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
