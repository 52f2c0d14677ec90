"""The model APIs a call can go to: one explicit list, no discovery.

`build` turns the settings of a provider into a provider. The HTTP client is imported only when an
endpoint is built: aiohttp alone would make the command line slow to start.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from dikast.engine.errors import ConfigError
from dikast.engine.ports import Clock, Provider
from dikast.providers.openai_chat import OpenAIChatProvider, OpenAIChatSettings, read_access
from dikast.providers.replay import ReplayProvider, ReplaySettings, find_files
from dikast.providers.simulated import SimulatedProvider, check_settings
from dikast.providers.simulated_tastes import (
    SimulatedTastesProvider,
    SimulatedTastesSettings,
    character_of,
    check_tastes,
)
from dikast.providers.simulation import PlantedCriterion, RateLimit, SimulatedSettings
from dikast.providers.truth import TruthTable

__all__ = [
    "FACTORIES",
    "BuiltProvider",
    "OpenAIChatProvider",
    "OpenAIChatSettings",
    "PlantedCriterion",
    "ProviderSettings",
    "RateLimit",
    "ReplayProvider",
    "ReplaySettings",
    "SimulatedProvider",
    "SimulatedSettings",
    "SimulatedTastesProvider",
    "SimulatedTastesSettings",
    "TruthTable",
    "build",
    "endpoint_of",
]

# What decides a simulated judge's words.
CHARACTER = (
    *("seed", "accuracy", "consistency", "position_bias", "length_bias"),
    *("tie_rate", "garbage_rate", "truncate_rate", "refuse_rate", "obeys_injection"),
)

ProviderSettings = OpenAIChatSettings | ReplaySettings | SimulatedSettings | SimulatedTastesSettings


class BuiltProvider(Provider, Protocol):
    """What `build` returns: a provider that can be checked and says whether it is made up."""

    @property
    def simulated(self) -> bool:
        """Whether its outcomes must be marked as simulated."""
        ...

    async def check(self) -> None:
        """See that it can be reached, without asking a judge.

        Raises:
            ProviderError: it cannot.
        """
        ...


def endpoint_of(settings: ProviderSettings) -> str:
    """What answers behind these settings, as part of call keys and specs.

    The address of an endpoint; for judges that are made up or recorded, what makes them: then
    other settings are another judge, and nothing of the old one is served from a call store.
    """
    if isinstance(settings, OpenAIChatSettings):
        return settings.base_url.rstrip("/")
    if isinstance(settings, SimulatedSettings):
        # Latency, faults and limits change when an answer comes, not what it says.
        what: Any = {name: getattr(settings, name) for name in CHARACTER}
        # Left out at their defaults: judges that were there before keep their keys.
        if settings.criteria:
            what["criteria"] = settings.criteria
        if settings.truth is not None:
            what["truth"] = settings.truth
    elif isinstance(settings, SimulatedTastesSettings):
        what = character_of(settings)
    else:
        what = (settings.paths, settings.template)
    plain = msgspec.json.encode(what, order="deterministic")
    return f"{settings.__struct_config__.tag}:{hashlib.sha256(plain).hexdigest()[:12]}"


def build(
    name: str,
    settings: ProviderSettings,
    *,
    clock: Clock,
    env: Mapping[str, str],
    truth: TruthTable | None = None,
) -> BuiltProvider:
    """Make the provider that `settings` describe. Opens no connection and reads no record yet.

    Args:
        name: its name in the configuration, for messages.
        settings: of any kind in `FACTORIES`.
        clock: the run's clock.
        env: the environment, for keys.
        truth: what a simulated judge may know of the better answers.

    Raises:
        ConfigError: a setting is out of range, a key's variable is not set, or a file is missing.
    """
    factory = FACTORIES.get(type(settings))
    if factory is None:
        raise ConfigError(f"providers.{name}: {type(settings).__name__} is no kind of provider")
    return factory(name, settings, clock, env, truth)


_Truth = TruthTable | None


def _openai(
    name: str, settings: OpenAIChatSettings, clock: Clock, env: Mapping[str, str], truth: _Truth
) -> BuiltProvider:
    from dikast.providers.http import HttpClient

    access = read_access(name, settings, env)
    client = HttpClient(settings.limits(), clock, access.headers)
    return OpenAIChatProvider(settings, client, clock, access)


def _replay(
    name: str, settings: ReplaySettings, clock: Clock, env: Mapping[str, str], truth: _Truth
) -> BuiltProvider:
    return ReplayProvider(find_files(name, settings), settings)


def _simulated(
    name: str, settings: SimulatedSettings, clock: Clock, env: Mapping[str, str], truth: _Truth
) -> BuiltProvider:
    check_settings(f"providers.{name}", settings)
    return SimulatedProvider(settings, clock, truth)


def _tastes(
    name: str,
    settings: SimulatedTastesSettings,
    clock: Clock,
    env: Mapping[str, str],
    truth: _Truth,
) -> BuiltProvider:
    check_tastes(f"providers.{name}", settings)
    return SimulatedTastesProvider(settings, clock)


FACTORIES: Mapping[type, Callable[[str, Any, Clock, Mapping[str, str], _Truth], BuiltProvider]] = {
    OpenAIChatSettings: _openai,
    ReplaySettings: _replay,
    SimulatedSettings: _simulated,
    SimulatedTastesSettings: _tastes,
}
