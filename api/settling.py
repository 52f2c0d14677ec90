"""What a run is to be: the configuration file, with the command line above it.

Part of the wiring, before anything is built: choices become settings, and a wrong one is told.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dikast import strategies
from dikast.beside import loaders
from dikast.config import (
    WORKERS_MAX,
    JudgeSettings,
    PacingSettings,
    ProviderEntry,
    RunSettings,
    Settings,
    check_names,
    load_settings,
    read_provider,
    with_input,
)
from dikast.engine.errors import ConfigError
from dikast.open_files import fit_open_files
from dikast.presets import judge_table, shorthand
from dikast.providers import ReplaySettings
from dikast.strategies import StrategyConfig
from dikast.toml_check import nearest, read_table


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says beside a configuration file; None is "not said"."""

    config: str | None = None
    judges: tuple[str, ...] = ()
    strategy: str | None = None
    template: str | None = None
    seed: int | None = None
    budget_usd: float | None = None
    budget_total_usd: float | None = None
    workers: int | None = None
    limit: int | None = None
    store: str | None = None
    no_store: bool | None = None
    format: str | None = None
    split: str | None = None
    columns: str | None = None
    one_of: int | None = None


def settle(choices: Choices) -> Settings:
    """The settings of a command: as `settled`, fitted to the files that the process may open.

    Raises:
        InputError, ConfigError: as `settled`.
    """
    return fit_open_files(settled(choices))


def settled(choices: Choices, configured: Settings | None = None) -> Settings:
    """The settings of a run: the configuration file, with the command line above it.

    Args:
        choices: what the command line says.
        configured: settings in place of those of a file.

    Raises:
        InputError: the file cannot be read.
        ConfigError: something in it, or on the command line, is wrong.
    """
    settings = configured or Settings()
    if choices.config:
        settings = load_settings(Path(choices.config))
    if choices.one_of is not None and choices.one_of < 1:
        raise ConfigError(f"--one-of: must be at least 1, not {choices.one_of}")
    settings = msgspec.structs.replace(
        settings, pacing=_with_workers(settings.pacing, choices.one_of)
    )
    named = []
    for text in choices.judges:
        name, settings = _with_judge(text, settings)
        named.append(name)
    settings = msgspec.structs.replace(
        settings,
        run=_with_run(settings.run, choices),
        strategy=_strategy(settings, choices, named),
        input=with_input(settings.input, choices.format, choices.split, choices.columns),
    )
    check_names(settings)
    assert settings.strategy is not None
    tree = strategies.with_weights(settings.strategy, loaders(settings).weights)
    return msgspec.structs.replace(settings, strategy=tree)


def _with_workers(said: PacingSettings, one_of: int | None) -> PacingSettings:
    return said if one_of is None else msgspec.structs.replace(said, workers=one_of)


def _with_judge(text: str, settings: Settings) -> tuple[str, Settings]:
    """Add the judge that `--judge` names, and its provider; unless it is configured already."""
    if text in settings.judges:
        return text, settings
    if ":" not in text:
        raise ConfigError(
            f"--judge {text}: there is no such judge in the configuration"
            f"{nearest(text, list(settings.judges)) or ', and no configuration was given'}; "
            "without one, write PROVIDER:MODEL, such as openai:gpt-4o-mini or simulated:careful"
        )
    provider, table, model = shorthand(text, settings.providers)
    tables = dict(settings.providers)
    if table:
        entry = read_provider(table, f"--judge {text}")
        tables[provider] = _from_here(entry)
    judge = read_table(judge_table(provider, model), JudgeSettings, f"--judge {text}")
    judges = {**settings.judges, model: judge}
    return model, msgspec.structs.replace(settings, providers=tables, judges=judges)


def _from_here(entry: ProviderEntry) -> ProviderEntry:
    """Paths on the command line start from the working folder, not from the configuration's."""
    found = entry.settings
    if not isinstance(found, ReplaySettings):
        return entry
    paths = tuple(str(Path(path).absolute()) for path in found.paths)
    return msgspec.structs.replace(entry, settings=msgspec.structs.replace(found, paths=paths))


def _with_run(run: RunSettings, choices: Choices) -> RunSettings:
    names = ("seed", "budget_usd", "budget_total_usd", "workers", "limit", "store", "no_store")
    said = {name: value for name in names if (value := getattr(choices, name)) is not None}
    for name, least, most in (
        ("workers", 1, WORKERS_MAX),
        ("limit", 0, math.inf),
        ("budget_usd", 0, math.inf),
        ("budget_total_usd", 0, math.inf),
    ):
        # Written so that "not a number" is refused too: it compares false with everything.
        if name in said and not least <= said[name] <= most:
            option, bound = name.replace("_", "-"), f"at least {least}"
            if said[name] > most:
                bound = f"at most {most}"
            raise ConfigError(f"--{option}: must be {bound}, not {said[name]}")
    if "store" in said and ":" not in said["store"]:
        said["store"] = str(Path(said["store"]).absolute())
    return msgspec.structs.replace(run, **said)


def _strategy(settings: Settings, choices: Choices, named: Sequence[str]) -> StrategyConfig | None:
    """The tree of the configuration, or the preset that the command line (or nobody) names."""
    unsaid = not named and choices.strategy is None and choices.template is None
    if unsaid and settings.strategy is not None:
        return settings.strategy
    judges = list(named or settings.judges)
    if settings.strategy is not None and not named:
        judges = strategies.judges_of(settings.strategy)
    if not judges:
        raise ConfigError(
            "no judge was named: use --judge PROVIDER:MODEL, such as openai:gpt-4o-mini or "
            "simulated:careful, or --config FILE"
        )
    wanted = choices.strategy or "swap"
    if len(judges) > 1 and wanted not in strategies.MANY:
        raise ConfigError(
            f"the strategies single, swap and score ask one judge, but {len(judges)} are there "
            f"({', '.join(judges)}); choose one with --judge NAME, ask all of them with "
            "--strategy committee or cascade, or write a [strategy]"
        )
    return strategies.preset(wanted, judges, choices.template or strategies.AUTO)
