"""From TOML to a strategy and back."""

import tomllib
from typing import Any

import msgspec
import pytest

from dikast.engine.errors import ConfigError
from dikast.engine.model import Judge
from dikast.strategies import (
    Loaders,
    PairwiseConfig,
    PromptTemplate,
    SwapConfig,
    build,
    load_template,
    parse_strategy,
    preset,
)

JUDGES = {"gpt": Judge(name="gpt", provider="p", model="m")}
TREE = """
kind = "swap"
inner = { kind = "pairwise", judge = "gpt", template = "pairwise-marker-en", order = "ab" }
"""


def test_a_tree_is_read_from_toml_and_round_trips() -> None:
    config = parse_strategy(tomllib.loads(TREE))
    assert config == SwapConfig(
        inner=PairwiseConfig(judge="gpt", template="pairwise-marker-en", order="ab")
    )
    assert msgspec.to_builtins(config) == tomllib.loads(TREE)
    assert parse_strategy(msgspec.to_builtins(config)) == config


def test_the_built_strategy_is_the_tree() -> None:
    spec = build(parse_strategy(tomllib.loads(TREE)), JUDGES, seed=5).spec()
    assert spec["kind"] == "swap"
    assert spec["inner"]["kind"] == "pairwise"
    assert spec["inner"]["seed"] == 5
    assert spec["inner"]["order"] == "ab"
    assert [each["name"] for each in spec["inner"]["templates"]] == ["pairwise-marker-en"]


def test_presets_stand_for_small_trees_and_auto_for_both_languages() -> None:
    assert preset("single", "gpt") == PairwiseConfig(judge="gpt")
    assert preset("swap", "gpt", "t.toml") == SwapConfig(
        inner=PairwiseConfig(judge="gpt", template="t.toml")
    )
    spec = build(preset("single", "gpt"), JUDGES, seed=0).spec()
    assert [each["name"] for each in spec["templates"]] == ["pairwise-en", "pairwise-zh"]


def test_templates_come_from_the_given_loader() -> None:
    asked: list[str] = []

    def loader(name: str) -> PromptTemplate:
        asked.append(name)
        return load_template("pairwise-en")

    build(preset("swap", "gpt", "mine"), JUDGES, seed=0, loaders=Loaders(template=loader))
    assert asked == ["mine"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"kind": "swpa"}, "strategy.kind = 'swpa': did you mean 'swap'?"),
        ({}, "strategy: kind is missing; known are 'pairwise', 'swap', 'score'"),
        ({"kind": "swap"}, "strategy: object missing required field `inner`"),
        ({"kind": "swap", "inner": {"kind": "x"}}, "strategy.inner.kind = 'x': known are"),
        ({"kind": "swap", "inner": "gpt"}, "strategy.inner: must be a table"),
        (
            {"kind": "swap", "inner": {"kind": "pairwise", "judge": "g", "templte": "x"}},
            "strategy.inner: unknown field 'templte'; did you mean 'template'?",
        ),
        ({"kind": "pairwise", "judge": 1}, "strategy.judge: expected `str`, got `int`"),
        ({"kind": "pairwise", "judge": "g", "order": "aa"}, "strategy.order: invalid enum value"),
    ],
)
def test_a_wrong_tree_is_refused_with_place_and_remedy(data: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_strategy(data)
    assert str(caught.value).startswith(says)


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="unknown judge 'gtp'; did you mean 'gpt'"):
        build(preset("swap", "gtp"), JUDGES, seed=0)
    with pytest.raises(ConfigError, match="unknown template 'pairwise-eng'; did you mean"):
        build(preset("swap", "gpt", "pairwise-eng"), JUDGES, seed=0)
    with pytest.raises(ConfigError, match="unknown strategy 'swop'; did you mean 'swap'"):
        preset("swop", "gpt")


def test_a_swap_in_a_swap_is_refused() -> None:
    with pytest.raises(ConfigError, match="swap inside a swap"):
        build(SwapConfig(inner=preset("swap", "gpt")), JUDGES, seed=0)
