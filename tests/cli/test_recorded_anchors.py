"""Anchors on real pairs with recorded judges: a change of the judge is found, its noise is not.

The recorded file stands for the provider: what is behind the same name is exchanged between two
runs, as a provider does that updates a model in silence.
"""

import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.recorded import rows
from dikast.analysis.drift import Judged, check_drift
from tests.cli.tools import Cli, write_rows
from tests.data_driven.test_recorded_judges import TEMPLATES

pytestmark = pytest.mark.realtime
CONFIG = """
[providers.api]
kind = "replay"
paths = ["served.jsonl"]
template = {template}
requests_per_min = 6000000

[judges.judge]
provider = "api"
model = "judge"
by_pair = true
"""
Row = dict[str, Any]


class Provider:
    """A recorded judge behind one name, and the anchors that it judges."""

    def __init__(self, cli: Cli, folder: Path, template: str, reader: str) -> None:
        self._cli = cli
        self._folder = folder
        self._reader = str(TEMPLATES / f"{reader}.toml")
        (folder / "c.toml").write_text(CONFIG.format(template=json.dumps(template)))

    def freeze(self, pairs: list[Row], size: int) -> None:
        source = write_rows(self._folder / "pairs.jsonl", pairs)
        words = ("-o", self._folder / "anchors.json", "--name", "recorded", "--size", size)
        assert self._cli("anchors", "init", source, *words).code == 0

    def judge(self, name: str, records: Iterator[Row]) -> Path:
        served = [{**row, "judge": "judge"} for row in records]
        write_rows(self._folder / "served.jsonl", served)
        out = self._folder / name
        words = ("--config", self._folder / "c.toml", "--strategy", "swap")
        ran = self._cli(
            *("anchors", "run", self._folder / "anchors.json", "-o", out, *words),
            *("--judge", "judge", "--template", self._reader),
        )
        assert ran.code == 0, ran.err
        return out

    def check(self, run: Path, baseline: Path) -> tuple[int, Row]:
        ran = self._cli("anchors", "check", run, "--baseline", baseline, "--json")
        return ran.code, ran.summary


def measure(found: Row, name: str) -> Row:
    hit: Row = next(each for each in found["measures"] if each["name"] == name)
    return hit


@pytest.fixture
def provider(cli: Cli, tmp_path: Path) -> Callable[[str, str], Provider]:
    return lambda template, reader: Provider(cli, tmp_path, template, reader)


def test_a_weaker_model_behind_the_same_name_is_found_on_llmbar(
    data: Path, provider: Callable[[str, str], Provider]
) -> None:
    api = provider("llmbar/CoT", "llmbar-reasoned")
    pairs = list(rows(data / "pairs" / "llmbar.jsonl.gz"))
    api.freeze(pairs, 120)

    def recorded(name: str) -> Iterator[Row]:
        found = rows(data / "judge_outputs" / f"llmbar__{name}.jsonl.gz")
        return (row for row in found if row["template"] == "llmbar/CoT")

    base = api.judge("gpt4.json", recorded("gpt_4"))
    run = api.judge("chatgpt.json", recorded("chatgpt"))

    code, found = api.check(run, base)
    assert code == 4
    agreement = measure(found, "agreement with labels")
    assert agreement["out_of_control"]
    assert agreement["before"] > 0.6 > agreement["after"]
    assert agreement["p_holm"] < 1e-6
    assert measure(found, "verdicts changed")["interval"]["low"] > 0.3
    assert found["capable"] is False
    assert "below the bar" in found["warning"]
    assert api.check(base, base)[0] == 0


@pytest.mark.parametrize("judge", ["gpt-4-0613", "gpt-3.5-turbo-1106", "claude-3-opus-20240229"])
def test_a_model_asked_again_is_noisy_and_in_control(
    data: Path, provider: Callable[[str, str], Provider], judge: str
) -> None:
    api = provider("positionbias/MTBench-3opt", "mtbench-marker")
    file = data / "judge_outputs" / "mtbench_pb_repetition.jsonl.gz"
    recorded = [row for row in rows(file) if row["judge"] == judge and row["raw"] is not None]
    ids = dict.fromkeys(row["pair_id"] for row in recorded)
    api.freeze(
        [{"id": id, "question": id, "response_a": "a", "response_b": "b"} for id in ids], len(ids)
    )

    def repetition(number: int) -> Iterator[Row]:
        return ({**row, "repeat": 0} for row in recorded if row["repeat"] == number)

    base, again = api.judge("one.json", repetition(1)), api.judge("two.json", repetition(2))

    code, found = api.check(again, base)
    assert code == 0, found
    assert found["common"] >= 40
    assert found["agreement"] is None
    assert measure(found, "verdicts changed")["change"] > 0 or judge.startswith("gpt-4")


def test_scores_of_real_answers_that_grew_by_half_a_grade_are_found(data: Path) -> None:
    """Human means of SummEval as a judge's scores; the same with noise, and with a shift."""
    with gzip.open(data / "absolute" / "summeval.jsonl.gz", "rt") as lines:
        graded = [json.loads(line)["human"] for line in lines][:240]

    def run(shift: float, turn: int) -> list[Judged]:
        items: list[Judged] = []
        for n, (a, b) in enumerate(zip(graded[::2], graded[1::2], strict=True)):
            noise = random.Random(f"{n} {turn}").choice((-0.5, 0.0, 0.5))
            scores = {f"A.{name}": value + noise + shift for name, value in a.items()}
            scores |= {f"B.{name}": value + noise / 2 + shift for name, value in b.items()}
            items.append(Judged(id=str(n), winner="A", scores=scores))
        return items

    steady = check_drift(run(0, 0), run(0, 1))
    moved = check_drift(run(0, 0), run(0.5, 1))

    assert steady.in_control
    means = [each for each in moved.measures if each.name.startswith("mean ")]
    assert len(means) == 4
    for each in means:
        assert each.out_of_control
        assert each.interval is not None
        assert each.interval.low < 0.5 < each.interval.high
