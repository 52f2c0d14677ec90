"""From settings to running parts: the only place that knows concrete plugins.

Runs once, before the first pair: configuration and command-line choices become judges, a
strategy, providers, a call store, sources and sinks. Judges nothing itself.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dikast import pacing, providers, sinks, strategies, streams
from dikast.beside import loaders
from dikast.config import (
    InputSettings,
    ProviderEntry,
    Settings,
    make_judge,
    parse_settings,
)
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, InputError, SinkError, StoreError
from dikast.engine.model import Judge, Pair, Row
from dikast.engine.ports import CallStore, Clock, Observer, Sink, Source, Strategy
from dikast.engine.run import Engine
from dikast.engine.sources import FileSource
from dikast.engine.store import open_store
from dikast.outputs import Output
from dikast.providers import (
    BuiltProvider,
    ReplaySettings,
    SimulatedSettings,
    TruthTable,
)
from dikast.providers.simulate_server import SimulateServer, start
from dikast.settling import Choices, settled
from dikast.sinks import (
    BrokenPolicy,
    FanoutSink,
    JsonlSink,
    OutputScan,
    ParquetSink,
    is_table_name,
    journal_of,
)
from dikast.toml_check import nearest, read_table

STORE_NAME = "dikast-calls.sqlite"
_OPTIONAL = "optional:"


def calls_per_pair(settings: Settings) -> tuple[int, int]:
    """The fewest and the most judge calls that the strategy makes for one pair."""
    calls = calls_tree(settings)[0].calls
    return calls.fewest, calls.most


def calls_tree(
    settings: Settings, rates: strategies.Rates = strategies.ASSUMED
) -> list[strategies.CallsRow]:
    """The strategy's nodes with their judge calls for one pair; the whole tree's come first."""
    assert settings.strategy is not None
    families = {name: judge.family for name, judge in settings.judges.items()}
    return strategies.rows_of(settings.strategy, families, rates, loaders(settings))


def judges_in(settings: Settings) -> dict[str, Judge]:
    """The judges that the strategy asks, ready to be asked."""
    assert settings.strategy is not None
    out: dict[str, Judge] = {}
    for name in strategies.judges_of(settings.strategy):
        judge = settings.judges.get(name)
        if judge is None:
            raise ConfigError(
                f"strategy: there is no judge {name!r}{nearest(name, list(settings.judges))}"
            )
        entry = settings.providers[judge.provider]
        recorded = isinstance(entry.settings, ReplaySettings)
        endpoint = providers.endpoint_of(entry.settings)
        out[name] = make_judge(name, judge, by_pair=recorded, endpoint=endpoint)
    return out


def build_providers(
    settings: Settings,
    *,
    clock: Clock,
    env: Mapping[str, str] | None = None,
    truth: TruthTable | None = None,
) -> dict[str, BuiltProvider]:
    """The providers that the strategy's judges need; no other key has to be there.

    Raises:
        ConfigError: a key's variable is not set, or a setting is out of range.
    """
    names = dict.fromkeys(judge.provider for judge in judges_in(settings).values())
    return {
        name: build_provider(name, settings, clock=clock, env=env, truth=truth) for name in names
    }


def build_provider(
    name: str,
    settings: Settings,
    *,
    clock: Clock,
    env: Mapping[str, str] | None = None,
    truth: TruthTable | None = None,
) -> BuiltProvider:
    """One configured provider; opens no connection yet.

    Raises:
        ConfigError: a key's variable is not set, or a setting is out of range.
    """
    return providers.build(
        name,
        _rooted(settings.providers[name], settings.base_dir),
        clock=clock,
        env=os.environ if env is None else env,
        truth=truth,
    )


def _rooted(entry: ProviderEntry, base_dir: Path) -> providers.ProviderSettings:
    """Recorded files are looked for beside the configuration that names them."""
    found = entry.settings
    if isinstance(found, ReplaySettings):
        return msgspec.structs.replace(
            found, paths=tuple(str(base_dir / path) for path in found.paths)
        )
    return found


def build_strategy(settings: Settings) -> Any:
    """The strategy that the settings describe.

    Raises:
        ConfigError: an unknown judge or template, or a tree that cannot work.
    """
    assert settings.strategy is not None
    return strategies.build(
        settings.strategy,
        judges_in(settings),
        seed=settings.run.seed,
        loaders=loaders(settings),
    )


def build_engine(
    settings: Settings,
    *,
    store: str | Path | None = None,
    observers: tuple[Observer, ...] = (),
    clock: Clock | None = None,
    env: Mapping[str, str] | None = None,
    truth: TruthTable | None = None,
    wrap: Callable[[Strategy], Strategy] | None = None,
    strategy: Strategy | None = None,
    counted: bool = False,
) -> Engine:
    """The engine of a run; enter it as an async context manager.

    Args:
        settings: see `settle` and `dikast.config.load_settings`.
        store: path of the call store; None for none.
        observers: look on.
        clock: time.
        env: where keys are looked up; the process's environment by default.
        truth: what simulated judges may know.
        wrap: puts something around the strategy that the settings describe.
        strategy: judges in place of the one that the settings describe, by the same judges.
        counted: the caller has an output with a manifest, and counts its runs together.

    Raises:
        ConfigError: the settings cannot work together, or a key is missing.
        StoreError: the call store cannot be used.
    """
    clock = clock or SystemClock()
    run = settings.run
    _check_budget(settings, counted=counted)
    judging: Strategy = strategy or build_strategy(settings)
    judging = judging if wrap is None else wrap(judging)
    built = build_providers(settings, clock=clock, env=env, truth=truth)
    shared = pacing.shared_limit(settings.pacing, os.environ if env is None else env)
    # Without a shared limit each of several workers keeps to its part of it.
    share = settings.pacing.workers if shared is None else 1
    return Engine(
        judging,
        built,
        limits={
            name: msgspec.structs.replace(settings.providers[name].limits.limits(), share=share)
            for name in built
        },
        shared=shared,
        shared_workers=settings.pacing.workers,
        store=_open_store(store),
        retry=run.retry.policy(),
        workers=run.workers,
        budget_usd=run.budget_usd,
        drain_s=run.drain_s,
        clock=clock,
        seed=run.seed,
        observers=observers,
    )


def engine_for(
    *judges: str,
    config: Mapping[str, Any] | None = None,
    strategy: str | None = None,
    template: str | None = None,
    seed: int | None = None,
    budget_usd: float | None = None,
    workers: int | None = None,
    store: str | None = None,
    observers: tuple[Observer, ...] = (),
) -> Engine:
    """The engine that the command line would build, for use as a library.

    Args:
        judges: as after `--judge`: "openai:gpt-4o-mini", or the name of one in `config`.
        config: what a configuration file would say, as plain data.
        strategy: "single", "swap" (where nothing else is said), "score", "committee" or "cascade".
        template: name or path of the prompt.
        seed: decides orders.
        budget_usd: hard cap on what this engine spends.
        workers: pairs judged at the same time.
        store: path of the call store; nothing is kept without one here or in `config`.
        observers: look on.

    Raises:
        ConfigError: the configuration is wrong, no judge is named, or a key is missing.
        StoreError: the call store cannot be used.
    """
    said = Choices(
        judges=judges,
        strategy=strategy,
        template=template,
        seed=seed,
        budget_usd=budget_usd,
        workers=workers,
        store=store,
    )
    return _for_a_program(settled(said, parse_settings(config or {})), observers)


def engine_from_file(path: str | Path, *, observers: tuple[Observer, ...] = ()) -> Engine:
    """The engine that a configuration file describes, for use as a library.

    The call store is the file's `run.store`; without one nothing is kept.

    Raises:
        InputError: the file cannot be read.
        ConfigError: it is wrong, or a key is missing.
        StoreError: the call store cannot be used.
    """
    return _for_a_program(settled(Choices(config=str(path))), observers)


def _for_a_program(settings: Settings, observers: tuple[Observer, ...]) -> Engine:
    run = settings.run
    where = None if run.no_store or run.store is None else settings.base_dir / run.store
    return build_engine(settings, store=where, observers=observers)


def _open_store(where: str | os.PathLike[str] | None) -> CallStore | None:
    try:
        return open_store(where)
    except StoreError as error:
        # Before the run has begun this is a wrong argument; later it would be a full disk.
        raise ConfigError(f"call store {error}") from error


def _check_budget(settings: Settings, *, counted: bool) -> None:
    if settings.run.budget_total_usd is not None and not counted:
        raise ConfigError(
            "run.budget_total_usd counts the runs on one output of dikast judge, and there is no "
            "such output here; use budget_usd"
        )
    if settings.run.budget_usd is None and settings.run.budget_total_usd is None:
        return
    for name, judge in judges_in(settings).items():
        kind = settings.providers[judge.provider].settings
        free = providers.is_free(kind)
        if judge.prices is None and not free:
            raise ConfigError(
                f"judges.{name}: a budget was given, but this judge has no prices, so it could "
                f"not be kept; add [judges.{name}.prices] with input and output in USD per "
                "million tokens"
            )


def store_path(settings: Settings, output: Path | None) -> str | Path | None:
    """Where completions are kept: as told, beside the output, or nowhere."""
    run = settings.run
    if run.no_store:
        return None
    if run.store is not None:
        return run.store if ":" in run.store else settings.base_dir / run.store
    return None if output is None else output.parent / STORE_NAME


def open_source(paths: Sequence[str], how: InputSettings | str | None = None) -> Source:
    """The source over the named files, or over a topic.

    Args:
        paths: files, folders, patterns, addresses; or one topic.
        how: they are read; a format's name stands for no more than that.

    Raises:
        InputError: the format is not known.
        ConfigError: a topic's address is wrong, or stands beside other inputs, or a field in
            `columns` is none.
    """
    if how is None or isinstance(how, str):
        how = InputSettings(format=how)
    if any(map(streams.is_kafka, paths)):
        if how.columns or how.split:
            raise ConfigError(
                "columns and split are for files; a topic has its records as they are"
            )
        return streams.open_source(paths, how.format)
    return FileSource(paths, format=how.format or "auto", columns=how.columns, split=how.split)


async def look_at(paths: Sequence[str], how: InputSettings) -> None:
    """See that the inputs are there and can be read, before an output is made for them.

    Raises:
        InputError: one is missing, cannot be read, or its format is not recognised.
        ConfigError: a field in `columns` is none.
    """
    if not any(map(streams.is_kafka, paths)):
        await FileSource(
            paths, format=how.format or "auto", columns=how.columns, split=how.split
        ).look()


def open_sinks(
    output: Output,
    more: Sequence[str],
    *,
    resume: OutputScan | None,
    source: Source,
    clock: Clock,
    on_drop: Callable[[Sink, SinkError], None] | None = None,
    tell: Callable[[str], None],
) -> Sink:
    """The output's sink, and every further one beside it.

    A further sink named `optional:URL` is dropped when it breaks (`on_drop` is told); any other
    stops the run. `tell` is told what went elsewhere than to the outputs.

    Raises:
        ConfigError: a kind of sink is not known, does not go with the source, or is named twice.
        SinkError: an output cannot be opened, or another run is writing it.
    """
    places = [each.removeprefix(_OPTIONAL) for each in more]
    streams.check_topics([output.where, *places], source)
    if streams.is_exactly_once(source):
        return streams.open_transactional(output.where, more, source, clock=clock, tell=tell)
    if resume is None and output.path is not None:
        # There was no output when it was looked for: one that is there now is another run's.
        resume = OutputScan(journal_of(output.path))
    optional = [each.startswith(_OPTIONAL) for each in more]
    beside = [
        streams.open_sink(each, clock=clock, tell=tell)
        if streams.is_kafka(each)
        else sinks.build(each)
        for each in places
    ]
    # The output is the truth about what is done, so it gets an outcome after all others.
    if streams.is_kafka(output.where):
        last = streams.open_sink(output.where, clock=clock, tell=tell)
    elif is_table_name(output.where):
        last = ParquetSink(output.where, resume=resume, sync="close")
    else:
        last = JsonlSink(output.where, resume=resume, sync="close")
    sink: Sink = last
    if beside:
        policies: list[BrokenPolicy] = ["drop" if each else "stop" for each in optional]
        sink = FanoutSink([*beside, last], broken=[*policies, "stop"], on_drop=on_drop)
    return streams.with_commits(sink, source)


async def start_server(
    table: Mapping[str, Any],
    *,
    host: str,
    port: int,
    truth: TruthTable | None = None,
    api_key: str | None = None,
) -> SimulateServer:
    """Start the simulated judge's server.

    Raises:
        ConfigError: a setting is unknown or out of range.
        OSError: the port cannot be had.
    """
    plain = {name: value for name, value in table.items() if name != "kind"}
    settings = read_table({"kind": "simulated", **plain}, SimulatedSettings, "server")
    if settings.truth is not None:
        raise ConfigError("server.truth: the labelled pairs are given as a table of truth here")
    return await start(settings, host, port, truth=truth, api_key=api_key)


async def read_pairs(paths: Sequence[str], form: str | None = None) -> list[Pair]:
    """All pairs of small files; bad rows are passed over.

    Raises:
        InputError: a file cannot be read.
    """
    source = FileSource(paths, format=form or "auto")
    rows: list[Row] = [row async for batch in source.batches() for row in batch]
    return [row.item for row in rows if isinstance(row.item, Pair)]


async def read_truth(path: str, form: str | None = None) -> TruthTable:
    """The labels of a file of pairs, as a simulated judge may know them.

    Raises:
        InputError: the file cannot be read.
        ConfigError: there is no label in it.
    """
    table = TruthTable.from_pairs(await read_pairs([path], form))
    if not len(table):
        raise ConfigError(f"--truth {path}: no pair in it has a label")
    return table


async def configured_truth(settings: Settings) -> TruthTable | None:
    """What the simulated judges of the strategy may know, where their providers name it.

    Raises:
        InputError: a file cannot be read.
    """
    entries = [settings.providers[each.provider].settings for each in judges_in(settings).values()]
    paths = {
        str(settings.base_dir / each.truth)
        for each in entries
        if isinstance(each, SimulatedSettings) and each.truth is not None
    }
    return TruthTable.from_pairs(await read_pairs(sorted(paths))) if paths else None


def check_output_name(where: str) -> None:
    """Refuse an output that is a folder before anything is spent.

    Raises:
        InputError: it is one.
    """
    if where != "-" and not streams.is_kafka(where) and Path(where).is_dir():
        raise InputError(f"{where}: is a folder; name a file for the outcomes")
