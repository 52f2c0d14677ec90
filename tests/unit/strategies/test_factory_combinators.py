"""Combinators as nodes of a tree: from TOML and back, built, counted, refused."""

import tomllib
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from dikast.engine.errors import ConfigError
from dikast.engine.model import Judge
from dikast.strategies import (
    CascadeConfig,
    CommitteeConfig,
    PairwiseConfig,
    SwapConfig,
    build,
    calls_range,
    judges_of,
    nodes_of,
    parse_strategy,
    preset,
    templates_of,
)
from dikast.strategies.node import Node

JUDGES = {
    name: Judge(name=name, provider="p", model=name, family=family)
    for name, family in {"gpt": "openai", "claude": "anthropic", "local": None}.items()
}
FAMILIES: Mapping[str, str | None] = {name: judge.family for name, judge in JUDGES.items()}
TREE = """
kind = "cascade"
escalate_when = ["tie", "low_margin"]
margin_below = 0.4

[[rungs]]
kind = "repeat"
n = 3
inner = { kind = "pairwise", judge = "local" }

[[rungs]]
kind = "early_stop"
wave = 2

[rungs.inner]
kind = "committee"
judges = ["gpt", "claude"]
rule = "weighted"

[[rungs.inner.members]]
weight = 2.0
family = "llama"
name = "ours"
strategy = { kind = "pairwise", judge = "local", template = "pairwise-marker-en" }
"""


def written(config: Node) -> Any:
    """A tree as plain data, with lists where JSON and TOML have lists."""
    return msgspec.json.decode(msgspec.json.encode(config))


def test_a_tree_of_combinators_round_trips_and_is_built_as_written() -> None:
    data = tomllib.loads(TREE)
    config = parse_strategy(data)
    assert written(config) == data
    assert parse_strategy(written(config)) == config
    assert judges_of(config) == ["local", "gpt", "claude"]
    assert templates_of(config) == ["auto", "pairwise-marker-en"]
    spec = build(config, JUDGES, seed=3).spec()
    assert [rung["kind"] for rung in spec["rungs"]] == ["repeat", "early_stop"]
    vote = spec["rungs"][1]
    assert vote["order"] == ["gpt", "claude", "ours"]
    members = {each["family"]: each for each in vote["inner"]["members"]}
    assert members.keys() == {"openai", "anthropic", "llama"}
    assert members["llama"]["weight"] == 2.0
    assert members["openai"]["strategy"]["kind"] == "swap"
    assert members["llama"]["strategy"]["seed"] == 3


EVERY_KIND = """
kind = "cascade"
escalate_when = ["tie", "failed"]

[[rungs]]
kind = "early_stop"
wave = 2
risk = 0.1
[rungs.inner]
kind = "repeat"
n = 3
rule = "trimmed_mean"
trim = 0.1
band = 0.2
inner = { kind = "score", judge = "local", tie_margin = 0.1, repair = false, sample = 2 }

[[rungs]]
kind = "calibrated"
calibration = "map.json"
abstain_below = 0.6
allow_other_spec = true
[rungs.inner]
kind = "length_guard"
clause = false
strip = true
[rungs.inner.inner]
kind = "swap"
inner = { kind = "pairwise", judge = "gpt", order = "ab", decide = "logprobs", keep_text = true }

[[rungs]]
kind = "committee"
judges = ["gpt", "claude"]
rule = "weighted"
quorum = 2
exclude_own_family = false
members = [{ weight = 0.5, name = "ours", strategy = { kind = "pairwise", judge = "local" } }]
"""


def test_every_kind_round_trips_from_toml_to_python_and_back() -> None:
    data = tomllib.loads(EVERY_KIND)
    config = parse_strategy(data)
    assert written(config) == data
    assert parse_strategy(written(config)) == config
    here = {written(node)["kind"] for node in nodes_of(config)}
    assert here >= {
        *("pairwise", "swap", "score", "committee", "repeat", "cascade", "early_stop"),
        *("calibrated", "length_guard"),
    }
    assert judges_of(config) == ["local", "gpt", "claude"]


def test_presets_of_several_judges_stand_for_trees_one_could_write() -> None:
    assert preset("committee", ["gpt", "claude"]) == CommitteeConfig(judges=("gpt", "claude"))
    assert preset("cascade", ["local", "gpt"], "t.toml") == CascadeConfig(
        rungs=(preset("swap", "local", "t.toml"), preset("swap", "gpt", "t.toml"))
    )
    with pytest.raises(ConfigError, match="at least two judges"):
        preset("cascade", "gpt")
    with pytest.raises(ConfigError, match="asks one judge, but 2"):
        preset("swap", ["gpt", "claude"])


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"kind": "comittee"}, "strategy.kind = 'comittee': did you mean 'committee'?"),
        ({"kind": "cascade", "rungs": [{"kind": "x"}]}, "strategy.rungs[0].kind = 'x': known are"),
        (
            {"kind": "committee", "members": [{"strategy": {"kind": "swpa"}}]},
            "strategy.members[0].strategy.kind = 'swpa': did you mean 'swap'?",
        ),
        ({"kind": "committee", "members": [{}]}, "strategy.members[0]: object missing required"),
        ({"kind": "committee", "judges": "gpt"}, "strategy.judges: expected `array`"),
        ({"kind": "committee", "ruel": "mean"}, "strategy: unknown field 'ruel'; did you mean"),
        ({"kind": "committee", "rule": "most"}, "strategy.rule: invalid enum value 'most'"),
        ({"kind": "cascade", "rungs": 1}, "strategy.rungs: expected `array`, got `int`"),
    ],
)
def test_a_wrong_node_is_refused_with_its_place(data: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_strategy(data)
    assert str(caught.value).startswith(says)


def test_trees_that_cannot_work_are_refused_when_built() -> None:
    for data, says in (
        ({"kind": "committee"}, "at least one member"),
        ({"kind": "committee", "judges": ["gtp"]}, "unknown judge 'gtp'; did you mean 'gpt'"),
        ({"kind": "committee", "judges": ["gpt"], "quorum": 2}, "quorum = 2"),
        (
            {"kind": "early_stop", "inner": {"kind": "pairwise", "judge": "gpt"}},
            "its inner must be a committee or a repeat",
        ),
    ):
        with pytest.raises(ConfigError, match=says):
            build(parse_strategy(data), JUDGES, seed=0)


def one(judge: str) -> dict[str, Any]:
    return {"kind": "pairwise", "judge": judge}


@pytest.mark.parametrize(
    ("data", "calls"),
    [
        ({"kind": "swap", "inner": one("gpt")}, (2, 2)),
        ({"kind": "repeat", "n": 4, "inner": {"kind": "swap", "inner": one("gpt")}}, (8, 8)),
        ({"kind": "cascade", "rungs": [one("gpt"), one("claude"), one("local")]}, (1, 3)),
        # a pair of models of two families keeps two judges from voting
        ({"kind": "committee", "judges": ["gpt", "claude", "local"]}, (2, 6)),
        (
            {
                "kind": "committee",
                "judges": ["gpt", "claude", "local"],
                "exclude_own_family": False,
            },
            (6, 6),
        ),
        # three of five of one mind end it; so do three without a verdict
        ({"kind": "early_stop", "inner": {"kind": "repeat", "n": 5, "inner": one("gpt")}}, (3, 5)),
        (
            {
                "kind": "early_stop",
                "wave": 2,
                "inner": {"kind": "repeat", "n": 5, "inner": one("gpt")},
            },
            (4, 5),
        ),
        # with all needed for a quorum one without a verdict ends it
        (
            {
                "kind": "early_stop",
                "inner": {"kind": "repeat", "n": 5, "quorum": 5, "inner": one("gpt")},
            },
            (1, 5),
        ),
    ],
)
def test_the_calls_of_a_tree_are_counted(data: dict[str, Any], calls: tuple[int, int]) -> None:
    assert calls_range(parse_strategy(data), FAMILIES) == calls


def test_a_node_left_at_its_defaults_is_written_short() -> None:
    config = SwapConfig(inner=PairwiseConfig(judge="gpt"))
    assert written(CascadeConfig(rungs=(config, config))) == {
        "kind": "cascade",
        "rungs": [written(config)] * 2,
    }
