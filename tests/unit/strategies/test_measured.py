"""A weights file is what was written or refused, and fits its committee or says who is missing."""

import json
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from dikast.engine.errors import ConfigError, InputError
from dikast.engine.model import Call, Completion, Judge, Pair, Verdict, flip_winner
from dikast.engine.ports import Strategy
from dikast.strategies import (
    Loaders,
    MeasuredMember,
    MeasuredWeights,
    build,
    calls_range,
    load_weights,
    measured_weights,
    parse_strategy,
    with_weights,
)

PAIR = Pair(id="p", question="q", response_a="a", response_b="b")


class Asked:
    """An Ask whose judges always find the same answer better, in either order."""

    def __init__(self, says: dict[str, Literal["A", "B"]]) -> None:
        self.says = says
        self.calls: list[Call] = []

    async def __call__(self, call: Call) -> Completion:
        self.calls.append(call)
        winner = self.says[call.judge.name]
        shown = winner if call.order == "ab" else flip_winner(winner)
        return Completion(text=f'{{"verdict": "{shown}"}}', finish_reason="stop")


def measured(**weights: float) -> MeasuredWeights:
    members = [
        MeasuredMember(
            name=name, weight=weight, right=3, wrong=1, no_pick=0, accuracy=0.75, low=0.3, high=0.95
        )
        for name, weight in weights.items()
    ]
    return measured_weights(
        members, method="log-odds", pairs=4, level=0.95, simulated=False, specs=["s"]
    )


def tree(*judges: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "committee",
        "judges": list(judges),
        "template": "pairwise-en",
        "rule": "weighted",
        "weights": "w.json",
        **more,
    }


def made(data: dict[str, Any], weights: MeasuredWeights) -> Strategy:
    judges = {name: Judge(name=name, provider="p", model=name) for name in ("one", "two", "three")}
    return build(parse_strategy(data), judges, seed=0, loaders=Loaders(weights=lambda _: weights))


def saved(folder: Path, weights: MeasuredWeights) -> Path:
    path = folder / "w.json"
    path.write_bytes(msgspec.json.encode(weights))
    return path


def test_a_file_comes_back_as_it_was_written(tmp_path: Path) -> None:
    weights = measured(one=1.5, two=0.25)
    assert load_weights(str(saved(tmp_path, weights))) == weights


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["members"][0].update(weight=9.0), "does not fit its hash"),
        (lambda d: d.update(pairs=4000), "does not fit its hash"),
        (lambda d: d.update(hash="0" * 64), "does not fit its hash"),
        (lambda d: d.update(format=2), "is of format 2, and this version of dikast reads 1"),
        (lambda d: d.update(kind="else"), "is of kind 'else'"),
        (lambda d: d.pop("members"), "is no file of weights"),
    ],
)
def test_a_file_that_is_not_what_was_measured_is_refused(
    tmp_path: Path, change: Any, words: str
) -> None:
    data = msgspec.to_builtins(measured(one=1.0))
    data["members"] = [dict(each) for each in data["members"]]
    change(data)
    path = tmp_path / "w.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=words):
        load_weights(str(path))


def test_no_file_and_no_json_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: cannot be read"):
        load_weights(str(tmp_path / "none.json"))
    (tmp_path / "bad.json").write_bytes(b"\xff{")
    with pytest.raises(InputError, match="is no file of weights"):
        load_weights(str(tmp_path / "bad.json"))


async def test_the_measured_weights_decide_and_a_member_of_weight_0_is_not_asked() -> None:
    ask = Asked({"one": "A", "two": "B", "three": "B"})
    heavy = await made(tree("one", "two"), measured(one=1.5, two=1.0)).judge(PAIR, ask)
    light = await made(tree("one", "two"), measured(one=1.0, two=1.5)).judge(PAIR, ask)
    assert isinstance(heavy, Verdict)
    assert isinstance(light, Verdict)
    assert (heavy.winner, light.winner) == ("A", "B")
    before = len(ask.calls)
    third = await made(tree("one", "two", "three"), measured(one=1.0, two=0.0, three=0.5)).judge(
        PAIR, ask
    )
    assert [(part.name, part.weight) for part in third.parts] == [("one", 1.0), ("three", 0.5)]
    assert {call.judge.name for call in ask.calls[before:]} == {"one", "three"}


def test_the_hash_is_part_of_the_spec() -> None:
    first, second = measured(one=1.0, two=0.5), measured(one=1.0, two=0.6)
    assert made(tree("one", "two"), first).spec()["weights"] == first.hash
    assert first.hash != second.hash
    plain = {**tree("one", "two", rule="majority"), "weights": None}
    assert "weights" not in made(plain, first).spec()


def test_the_tree_is_shown_and_counted_as_it_judges() -> None:
    weights = measured(one=1.0, two=0.0, three=0.5)
    nested = {"kind": "early_stop", "inner": tree("one", "two", "three")}
    outer = {"kind": "cascade", "rungs": [{"kind": "pairwise", "judge": "one"}, nested]}
    config = with_weights(parse_strategy(outer), lambda _: weights)
    assert calls_range(config, {}) == (1, 1 + 4)
    again = with_weights(config, lambda _: weights)
    assert again == config
    weightless = parse_strategy({"kind": "swap", "inner": {"kind": "pairwise", "judge": "one"}})
    assert with_weights(weightless) is weightless


@pytest.mark.parametrize(
    ("data", "weights", "words"),
    [
        (tree("one", "two"), measured(one=1.0), "no weight for member 'two'; known are 'one'"),
        (
            tree("one", "two"),
            measured(one=1.0, twa=1.0),
            "no weight for member 'two'; did you mean",
        ),
        (
            tree("one", "two"),
            measured(one=1.0, two=1.0, three=1.0),
            "measured with member 'three', who does not sit in the committee",
        ),
        (tree("one", "two"), measured(one=0.0, two=0.0), "none has a vote"),
        (tree("one", rule="majority"), measured(one=1.0), "have no effect under rule = 'majority'"),
        (
            tree(
                members=[
                    {"weight": 2.0, "strategy": {"kind": "pairwise", "judge": "one"}},
                ]
            ),
            measured(one=1.0),
            "'one' has weight = 2.0 beside measured weights",
        ),
    ],
)
def test_a_file_that_does_not_fit_the_committee_is_one_sentence(
    data: dict[str, Any], weights: MeasuredWeights, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        made(data, weights)


def test_a_measured_member_of_weight_0_need_not_sit() -> None:
    weights = measured(one=1.0, two=0.0)
    assert made(tree("one"), weights).spec()["weights"] == weights.hash
