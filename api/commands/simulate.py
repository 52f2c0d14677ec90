"""`dikast simulate`: a simulated OpenAI-compatible judge over HTTP, until Ctrl-C.

For load tests and for trying things out: seeded, with latency, faults and limits. A simulated
judge of a configuration, planted criteria and all, says the same here as it does in the process.
Every answer it serves says that it is simulated.
"""

import argparse
import os
import sys
import tomllib
from pathlib import Path
from typing import Any, cast

import msgspec

from dikast import wiring
from dikast.config import load_settings
from dikast.engine.errors import ConfigError, InputError
from dikast.providers import SimulatedSettings
from dikast.signals import first_signal


async def run(args: argparse.Namespace) -> int:
    """Serve until a signal; prints the address on stdout and the traffic on stderr."""
    table = _table_of(args)
    for text in args.set:
        set_field(table, text)
    # The labels that a configuration names lie where it lies.
    known = table.pop("truth", None)
    if args.truth is None and isinstance(known, str):
        args.truth = str(Path(args.config or "").parent / known)
    truth = await wiring.read_truth(args.truth, args.format) if args.truth else None
    try:
        server = await wiring.start_server(
            table,
            host=args.host,
            port=args.port,
            truth=truth,
            api_key=os.environ.get("DIKAST_SIMULATE_KEY"),
        )
    except OSError as error:
        raise InputError(f"cannot listen on {args.host}:{args.port}: {error.strerror}") from error
    # Whoever reads the address may send the signal at once: it must be caught by then.
    with first_signal() as stop:
        print(server.url, flush=True)
        print(
            f"dikast: simulated judge at {server.url} (every answer is simulated); Ctrl-C ends it",
            file=sys.stderr,
        )
        try:
            await stop
        finally:
            await server.aclose()
    stats = server.stats()
    print(
        f"dikast: simulated judge served {stats.requests:,} requests, {stats.refused:,} of them "
        f"refused with 429, {stats.in_window:,} of those inside a Retry-After window",
        file=sys.stderr,
    )
    return 0


def _table_of(args: argparse.Namespace) -> dict[str, Any]:
    """The judge's character: of a provider, of a [server] table, or the default one.

    Raises:
        InputError, ConfigError: the configuration cannot be used.
    """
    if args.provider is None:
        return _file_table(args.config) if args.config else {}
    if args.config is None:
        raise ConfigError("--provider: name the configuration that it is in with --config")
    providers = load_settings(Path(args.config)).providers
    made_up = {
        name: entry.settings
        for name, entry in providers.items()
        if isinstance(entry.settings, SimulatedSettings)
    }
    if args.provider not in made_up:
        names = ", ".join(made_up) or "none"
        raise ConfigError(
            f"--provider {args.provider}: {args.config} has no such simulated provider; there: "
            f"{names}"
        )
    plain: dict[str, Any] = msgspec.to_builtins(made_up[args.provider])
    return plain


def _file_table(path: str) -> dict[str, Any]:
    try:
        raw = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not valid TOML: {error}", file=path) from error
    table = raw.get("server")
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: there is no table [server]")
    return cast("dict[str, Any]", table)


def set_field(table: dict[str, Any], text: str) -> None:
    """Put `FIELD=VALUE` into a table; dots lead into inner tables, values are TOML or text.

    Raises:
        ConfigError: there is no `=` in it.
    """
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise ConfigError(f"--set {text}: must be FIELD=VALUE, such as accuracy=0.9")
    *outer, last = name.strip().split(".")
    for step in outer:
        inner: object = table.setdefault(step, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {text}: {step} is not a table")
        table = cast("dict[str, Any]", inner)
    try:
        table[last] = tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        table[last] = value
