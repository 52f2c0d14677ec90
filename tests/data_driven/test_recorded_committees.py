"""Recorded judges put together: committees and repeats give the figures computed elsewhere."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from dikast.engine.model import Call, Completion, Judge, Order, Pair, Verdict
from dikast.strategies import Pairwise, PromptTemplate, Rule, committee, early_stop, repeat, swap
from tests.data_driven.test_recorded_judges import (
    llmbar_pairs,
    reading_template,
    rows,
    template,
)

JUDGES = {
    "falcon-180b-chat": "llmbar__falcon",
    "gpt-3.5-turbo-0301": "llmbar__chatgpt_0301",
    "gpt-3.5-turbo-0613": "llmbar__chatgpt",
    "gpt-4 (2023, Azure/OpenAI)": "llmbar__gpt_4",
    "llama-2-70b-chat": "llmbar__llama2",
    "palm2-text-bison-001": "llmbar__palm2",
}
COMMITTEES = {
    "committee:all_six": tuple(JUDGES),
    "committee:without_gpt4": tuple(name for name in JUDGES if not name.startswith("gpt-4")),
    "committee:gpt4_chatgpt_palm2": (
        *("gpt-3.5-turbo-0613", "gpt-4 (2023, Azure/OpenAI)", "palm2-text-bison-001"),
    ),
}
TEMPLATES = ("Vanilla", "CoT", "Metrics_Reference")
# The reference's rule: "plurality of non-tie verdicts, tie when level or empty".
RULE: Rule = "plurality"


class Recorded:
    """An Ask that serves what each judge said of each pair in each order, by number of the draw."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str, Order, int], str] = {}
        self.asked = 0

    async def __call__(self, call: Call) -> Completion:
        self.asked += 1
        text = self.texts[call.judge.name, call.pair_id, call.order, call.sample]
        return Completion(text=text, finish_reason="stop")


def reference(data: Path, name: str) -> Any:
    figures = json.loads((data / "reference_figures_dev.json").read_text(encoding="utf-8"))
    return figures[name]


def recorded_judge(name: str) -> Judge:
    return Judge(name=name, provider="replay", model=name, by_pair=True)


def llmbar(data: Path, kind: str) -> tuple[Recorded, dict[str, PromptTemplate]]:
    """What all judges said under one template, and the prompt that reads each of them."""
    ask, prompts = Recorded(), {}
    for name, file in JUDGES.items():
        for row in rows(data / "judge_outputs" / f"{file}.jsonl.gz"):
            if row["template"] == f"llmbar/{kind}":
                ask.texts[name, row["pair_id"], row["order"], 0] = row["raw"]
        prompts[name] = reading_template(file, f"llmbar/{kind}")
    return ask, prompts


def shares(results: list[tuple[str, Pair]]) -> dict[str, float]:
    """The reference's figures; a pair without a verdict is no right and no wrong one: a tie."""
    n = len(results)
    correct = sum(winner == pair.label for winner, pair in results)
    tie = sum(winner == "tie" for winner, _ in results)
    return {
        "n": n,
        "correct": round(100 * correct / n, 2),
        "tie": round(100 * tie / n, 2),
        "wrong": round(100 * (n - correct - tie) / n, 2),
        "tie_half": round(100 * (correct + tie / 2) / n, 2),
    }


@pytest.mark.parametrize("kind", TEMPLATES)
async def test_every_llmbar_committee_equals_the_reference(data: Path, kind: str) -> None:
    expected = reference(data, "llmbar_committee")["results"][kind]
    pairs, subsets = llmbar_pairs(data, "llmbar")
    ask, prompts = llmbar(data, kind)
    seats = {name: (name,) for name in JUDGES} | COMMITTEES
    for who, names in seats.items():
        members = [swap(Pairwise(recorded_judge(each), prompts[each])) for each in names]
        full = committee(members, RULE, quorum=1)
        saving = early_stop(full)
        groups: dict[str, list[tuple[str, Pair]]] = defaultdict(list)
        asked = spared = 0
        for pair in pairs.values():
            before = ask.asked
            outcome = await full.judge(pair, ask)
            asked += ask.asked - before
            early = await saving.judge(pair, ask)
            spared += 2 * (early.marks.spared if early.marks else 0)
            # Unread texts of a lone judge leave no vote at all; the reference has a tie there.
            winner = outcome.winner if isinstance(outcome, Verdict) else "tie"
            assert (early.winner if isinstance(early, Verdict) else "tie") == winner
            groups[subsets[pair.id]].append((winner, pair))
        assert asked == 2 * len(names) * len(pairs)
        assert (spared > 0) == (len(names) > 1)
        for subset, results in (
            ("Natural", groups.pop("Natural")),
            ("Adversarial", [each for group in groups.values() for each in group]),
        ):
            assert shares(results) == expected[subset][who], (kind, subset, who)


@pytest.mark.parametrize(
    ("bench", "file", "prompt"),
    [
        ("MTBench", "mtbench_pb_repetition", "mtbench-marker"),
        ("DevBench", "devbench_pb_repetition", "devbench-choice"),
    ],
)
async def test_the_stability_of_repeats_equals_the_reference(
    data: Path, bench: str, file: str, prompt: str
) -> None:
    expected = {
        entry["judge"]: entry
        for entry in reference(data, "repeat_stability")
        if entry["bench"] == bench
    }
    ask = Recorded()
    wanted: dict[str, dict[tuple[str, Order], int]] = defaultdict(dict)
    for row in rows(data / "judge_outputs" / f"{file}.jsonl.gz"):
        judge, place = row["judge"], (row["pair_id"], row["order"])
        number = wanted[judge].get(place, 0)
        wanted[judge][place] = number + 1
        ask.texts[judge, *place, number] = row["raw"]
    assert wanted.keys() == expected.keys()
    for judge, places in wanted.items():
        stabilities: list[float] = []
        for (pair_id, order), n in places.items():
            asked = Pairwise(recorded_judge(judge), template(prompt), order=order)
            pair = Pair(id=pair_id, response_a="a", response_b="b")
            outcome = await repeat(asked, n).judge(pair, ask)
            assert outcome.marks is not None
            assert n == 3
            stabilities.append(outcome.marks.stability)
        assert {
            "n": len(stabilities),
            "mean_modal_share": round(sum(stabilities) / len(stabilities), 4),
            "all_three_equal": round(100 * stabilities.count(1.0) / len(stabilities), 2),
        } == {key: expected[judge][key] for key in ("n", "mean_modal_share", "all_three_equal")}
