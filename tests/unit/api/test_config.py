"""What a configuration file may say, and what a wrong one is told."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from dikast import config_doc, settling, wiring
from dikast.config import Settings, load_settings, parse_settings
from dikast.engine.errors import ConfigError, InputError
from dikast.strategies import PairwiseConfig, SwapConfig

ROOT = Path(__file__).resolve().parents[3]
GOOD = """
[providers.openai]
kind = "openai"
requests_per_min = 500
concurrency = 32

[judges.mini]
provider = "openai"
model = "gpt-4o-mini"
prices = { input = 0.15, output = 0.6 }

[strategy]
kind = "swap"
inner = { kind = "pairwise", judge = "mini" }

[run]
workers = 8
retry = { attempts = 3 }
"""


def _parse(text: str) -> Settings:
    return parse_settings(tomllib.loads(text))


def _complaint(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        _parse(text)
    return str(caught.value)


def test_a_good_file_is_read_with_its_defaults() -> None:
    settings = _parse(GOOD)

    assert settings.strategy == SwapConfig(inner=PairwiseConfig(judge="mini"))
    assert settings.run.workers == 8
    assert settings.run.retry.policy().attempts_max == 3
    limits = settings.providers["openai"].limits.limits()
    assert (limits.requests_per_min, limits.concurrency_max) == (500, 32)
    assert settings.providers["openai"].settings.concurrency == 32  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "concurrency = 32",
            "timeout_secs = 3",
            "providers.openai.timeout_secs: unknown field; did you mean timeout_s?",
        ),
        (
            "requests_per_min = 500",
            "request_per_min = 500",
            "providers.openai.request_per_min: unknown field; did you mean requests_per_min?",
        ),
        (
            "requests_per_min = 500",
            'requests_per_min = "fast"',
            "providers.openai.requests_per_min: must be a whole number or absent, not text",
        ),
        ('kind = "openai"', 'kind = "opnai"', "providers.openai.kind: 'opnai' is not known"),
        ("[run]", "[runs]", "runs: unknown section; did you mean run?"),
        ("workers = 8", "worker = 8", "run.worker: unknown field; did you mean workers?"),
        ("workers = 8", "workers = 0", "run.workers: must be at least 1, not 0"),
        (
            'provider = "openai"',
            'provider = "opnai"',
            "judges.mini.provider: there is no [providers.opnai]; did you mean openai?",
        ),
        ("input = 0.15", "inputs = 0.15", "judges.mini.prices.inputs: unknown field; did you"),
        ("attempts = 3", "tries = 3", "run.retry.tries: unknown field"),
        (
            'inner = { kind = "pairwise", judge = "mini" }',
            'inner = { kind = "pairwise", juge = "mini" }',
            "strategy.inner.juge: unknown field; did you mean judge?",
        ),
        ('kind = "swap"', 'kind = "swop"', "strategy.kind: 'swop' is not known; did you mean swap"),
    ],
)
def test_a_wrong_field_is_named_with_its_path_and_the_nearest_name(
    old: str, new: str, said: str
) -> None:
    assert _complaint(GOOD.replace(old, new)).startswith(said)


def test_a_key_in_clear_is_refused_with_the_remedy() -> None:
    complaint = _complaint(
        GOOD.replace("concurrency = 32", 'headers = { X = "sk-abcdefghijklmnopqrst" }')
    )

    assert complaint.startswith("providers.openai.headers.X: looks like a key in clear")
    assert "api_key_env" in complaint
    assert "abcdefgh" not in complaint


def test_an_empty_key_variable_means_no_key() -> None:
    settings = _parse(GOOD.replace("concurrency = 32", 'api_key_env = ""'))

    assert settings.providers["openai"].settings.api_key_env is None  # type: ignore[union-attr]


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[run\n")
    with pytest.raises(InputError, match=r"c\.toml: is not valid TOML"):
        load_settings(path)
    with pytest.raises(InputError, match="cannot be read"):
        load_settings(tmp_path / "none.toml")
    path.write_text("[run]\nworker = 3\n")
    with pytest.raises(ConfigError, match=r"c\.toml: run\.worker: unknown field"):
        load_settings(path)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"judges": ("nobody:x",)}, "there is no provider 'nobody'"),
        ({"judges": ("simulated:carful",)}, "there is no simulated judge 'carful'"),
        ({"judges": ("openai",)}, "no such judge"),
        ({}, "no judge was named"),
        ({"judges": ("simulated:careful", "simulated:coin")}, "ask one judge, but 2 are there"),
        ({"judges": ("simulated:careful",), "strategy": "swop"}, "did you mean 'swap'"),
        ({"judges": ("simulated:careful",), "workers": 0}, "--workers: must be at least 1"),
        ({"judges": ("replay:x",)}, "must be replay:FILES:MODEL"),
        ({"judges": ("http://localhost:8000/v1",)}, "a model must follow the address"),
    ],
)
def test_a_wrong_choice_on_the_command_line_is_told(choices: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        settling.settle(settling.Choices(**choices))


def test_a_shorthand_makes_provider_judge_and_strategy() -> None:
    settings = settling.settle(settling.Choices(judges=("openai:gpt-4o-mini",), strategy="single"))

    judge = wiring.judges_in(settings)["gpt-4o-mini"]
    assert (judge.provider, judge.model) == ("openai", "gpt-4o-mini")
    assert judge.prices is not None
    assert settings.strategy == PairwiseConfig(judge="gpt-4o-mini")


def test_an_address_is_a_provider_without_a_key() -> None:
    settings = settling.settle(settling.Choices(judges=("http://localhost:8000/v1:llama:8b",)))

    (entry,) = settings.providers.values()
    assert entry.settings.api_key_env is None  # type: ignore[union-attr]


def test_a_budget_without_prices_is_refused() -> None:
    settings = settling.settle(
        settling.Choices(judges=("http://localhost:8000/v1:llama",), budget_usd=1.0)
    )

    with pytest.raises(ConfigError, match=r"judges\.llama: a budget was given.*no prices"):
        wiring.build_engine(settings, env={})


def test_a_missing_key_is_told_before_anything_runs() -> None:
    settings = settling.settle(settling.Choices(judges=("openai:gpt-4o-mini",)))

    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        wiring.build_engine(settings, env={})


def test_the_command_line_goes_above_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(GOOD)

    settings = settling.settle(
        settling.Choices(config=str(path), workers=3, seed=9, strategy="single", template="x.toml")
    )

    assert (settings.run.workers, settings.run.seed) == (3, 9)
    assert settings.strategy == PairwiseConfig(judge="mini", template="x.toml")


def test_recorded_outputs_are_bound_to_pair_and_order() -> None:
    settings = settling.settle(settling.Choices(judges=("replay:a.jsonl?T:gpt",)))

    assert wiring.judges_in(settings)["gpt"].by_pair


def test_every_setting_is_documented() -> None:
    assert config_doc.undocumented() == []


def test_the_reference_in_the_docs_is_what_the_settings_say() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")

    assert config_doc.render() in page, "run python -m dikast.config_doc docs/configuration.md"


def test_every_example_configuration_is_valid() -> None:
    paths = sorted((ROOT / "examples").glob("*.toml"))
    assert len(paths) >= 3
    for path in paths:
        load_settings(path)
