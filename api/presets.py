"""Judges that need no configuration: what `--judge PROVIDER:MODEL` stands for.

Turns the shorthand into the tables one would write by hand, as plain data, so that both pass the
same checks. Builds nothing.
"""

from collections.abc import Mapping
from typing import Any

from dikast.engine.errors import ConfigError

# Characters of the simulated judges. The bias is the share added to the answer shown first.
SIMULATED: Mapping[str, Mapping[str, Any]] = {
    "careful": {"accuracy": 0.9, "position_bias": 0.05, "tie_rate": 0.02},
    "biased": {"accuracy": 0.8, "position_bias": 0.3, "tie_rate": 0.02},
    "sloppy": {"accuracy": 0.65, "position_bias": 0.1, "garbage_rate": 0.05},
    "coin": {"accuracy": 0.5},
}

# US dollars per million tokens, list prices that their provider published in 2025; a
# configuration file states others. Models that are not here have no price, and no budget.
PRICES: Mapping[str, Mapping[str, float]] = {
    "gpt-4o": {"input": 2.5, "cached_input": 1.25, "output": 10.0},
    "gpt-4o-mini": {"input": 0.15, "cached_input": 0.075, "output": 0.6},
    "gpt-4.1": {"input": 2.0, "cached_input": 0.5, "output": 8.0},
    "gpt-4.1-mini": {"input": 0.4, "cached_input": 0.1, "output": 1.6},
    "gpt-4.1-nano": {"input": 0.1, "cached_input": 0.025, "output": 0.4},
}


def shorthand(text: str, providers: Mapping[str, Any]) -> tuple[str, dict[str, Any], str]:
    """What `PROVIDER:MODEL` means: provider name, its table, and the model.

    Args:
        text: as given on the command line. A URL works as a provider too:
            `http://localhost:8000/v1:llama`.
        providers: tables of the configured providers, which go first.

    Raises:
        ConfigError: there is no such provider, or the model is missing.
    """
    name, _, model = text.partition(":")
    if name in ("http", "https"):
        name, _, model = text.rpartition(":")
        if not model or model.startswith("//") or "/" in model:
            raise ConfigError(
                f"--judge {text}: a model must follow the address, as in "
                "http://localhost:8000/v1:MODEL"
            )
        return "local", {"kind": "openai", "base_url": name, "api_key_env": ""}, model
    if not model:
        raise ConfigError(
            f"--judge {text}: must be PROVIDER:MODEL, such as openai:gpt-4o-mini or "
            "simulated:careful, or the name of a judge in the configuration"
        )
    if name in providers:
        return name, {}, model
    if name == "openai":
        return name, {"kind": "openai"}, model
    if name == "simulated":
        if model not in SIMULATED:
            raise ConfigError(
                f"--judge {text}: there is no simulated judge {model!r}; "
                f"known are {', '.join(SIMULATED)}"
            )
        return f"simulated-{model}", {"kind": "simulated", **SIMULATED[model]}, model
    if name == "simulated_tastes":
        return name, {"kind": name}, model
    if name == "replay":
        path, _, recorded = model.rpartition(":")
        if not path or not recorded:
            raise ConfigError(
                f"--judge {text}: must be replay:FILES:MODEL, or replay:FILES?TEMPLATE:MODEL"
            )
        path, _, template = path.partition("?")
        table: dict[str, Any] = {"kind": "replay", "paths": [path]}
        return "replay", (table | {"template": template}) if template else table, recorded
    known = [*providers, "openai", "simulated", "replay", "http://HOST/v1"]
    raise ConfigError(
        f"--judge {text}: there is no provider {name!r}; known are "
        f"{', '.join(dict.fromkeys(known))}"
    )


def judge_table(provider: str, model: str) -> dict[str, Any]:
    """The `[judges.NAME]` table of a shorthand, with the price where it is known."""
    table: dict[str, Any] = {"provider": provider, "model": model}
    if provider == "openai" and model in PRICES:
        table["prices"] = dict(PRICES[model])
    return table
