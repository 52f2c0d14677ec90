"""Settings become providers by an explicit list; the configuration's mistakes are named."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError
from dikast.providers import (
    FACTORIES,
    OpenAIChatProvider,
    OpenAIChatSettings,
    ProviderSettings,
    ReplaySettings,
    SimulatedProvider,
    SimulatedSettings,
    build,
    endpoint_of,
)

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "providers.toml"


def test_every_kind_of_settings_has_a_factory() -> None:
    assert set(FACTORIES) == set(ProviderSettings.__args__)


def test_settings_are_told_apart_by_their_kind() -> None:
    table = {"kind": "simulated", "rate_limit": {"requests_per_min": 600}}
    settings = msgspec.convert(table, ProviderSettings)
    assert isinstance(settings, SimulatedSettings)
    with pytest.raises(msgspec.ValidationError, match="acuracy"):
        msgspec.convert({"kind": "simulated", "acuracy": 1}, ProviderSettings)


def test_providers_are_built_by_kind() -> None:
    clock = SystemClock()
    made = build("p", OpenAIChatSettings(), clock=clock, env={"OPENAI_API_KEY": "k"})
    assert isinstance(made, OpenAIChatProvider)
    assert not made.simulated
    assert isinstance(build("p", SimulatedSettings(), clock=clock, env={}), SimulatedProvider)


@pytest.mark.parametrize(
    "settings",
    [
        OpenAIChatSettings(),
        OpenAIChatSettings(base_url="http://[::1", api_key_env=None),
        OpenAIChatSettings(base_url="http://127.0.0.1:99999/v1", api_key_env=None),
        OpenAIChatSettings(base_url="ftp://host/v1", api_key_env=None),
        OpenAIChatSettings(base_url="http://me:secret@host/v1", api_key_env=None),
        ReplaySettings(paths=("none.jsonl",)),
        SimulatedSettings(accuracy=2),
    ],
)
def test_a_mistake_is_told_at_build_time_with_the_providers_name(settings: Any) -> None:
    with pytest.raises(ConfigError, match=r"providers\.main"):
        build("main", settings, clock=SystemClock(), env={})


def test_the_example_configuration_builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tables = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))["providers"]
    (tmp_path / "outputs.jsonl").touch()
    monkeypatch.chdir(tmp_path)
    env = {"OPENAI_API_KEY": "a", "OPENROUTER_API_KEY": "b", "AZURE_OPENAI_API_KEY": "c"}
    for name, table in tables.items():
        settings = msgspec.convert(table, ProviderSettings)
        assert build(name, settings, clock=SystemClock(), env=env)


def test_importing_the_package_does_not_import_the_http_library() -> None:
    code = "import sys, dikast.providers; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_two_endpoints_are_never_taken_for_each_other() -> None:
    one = OpenAIChatSettings(base_url="http://127.0.0.1:8123/v1")
    again = OpenAIChatSettings(base_url="http://127.0.0.1:8123/v1/", timeout_s=5)
    two = OpenAIChatSettings(base_url="http://127.0.0.1:8124/v1")
    assert endpoint_of(one) == endpoint_of(again) != endpoint_of(two)
    sharp, dull = SimulatedSettings(accuracy=0.9), SimulatedSettings(accuracy=0.6)
    assert endpoint_of(sharp) != endpoint_of(dull)
