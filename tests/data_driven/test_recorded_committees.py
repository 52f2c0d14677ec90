"""Recorded judges put together: committees and repeats give the figures computed elsewhere.

All of it through the replay provider: a configuration, the engine, the gateway, the sink.
"""

from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from bench.recorded import (
    LLMBAR_JUDGES,
    LLMBAR_PROMPTS,
    Played,
    Recorded,
    both_orders,
    configuration,
    labelled_pairs,
    llmbar,
    panel,
    play,
    reference,
    rows,
    single,
)
from dikast.analysis.kappa import cohen, confusion_rows
from dikast.engine.model import Pair

COMMITTEES = {
    "committee:all_six": tuple(LLMBAR_JUDGES),
    "committee:without_gpt4": tuple(name for name in LLMBAR_JUDGES if name != "gpt-4"),
    "committee:gpt4_chatgpt_palm2": ("chatgpt", "gpt-4", "palm2"),
}


def shares(winners: list[str], pairs: list[Pair]) -> dict[str, float]:
    """The reference's figures."""
    n = len(pairs)
    correct = sum(winner == pair.label for winner, pair in zip(winners, pairs, strict=True))
    tie = winners.count("tie")
    return {
        "n": n,
        "correct": round(100 * correct / n, 2),
        "tie": round(100 * tie / n, 2),
        "wrong": round(100 * (n - correct - tie) / n, 2),
        "tie_half": round(100 * (correct + tie / 2) / n, 2),
    }


def kappa(first: list[str], second: list[str]) -> float:
    """Cohen's kappa of two judges' verdicts, ties among them."""
    codes = [np.array(["A", "tie", "B"])[:, None] == np.array(each) for each in (first, second)]
    one, other = (each.argmax(axis=0) for each in codes)
    return float(cohen(confusion_rows(one, other, 3).sum(axis=0)[None, :])[0])


def by_subset(data: Path) -> tuple[list[Pair], dict[str, list[Pair]]]:
    """All pairs, and those of "Natural" and of all the others together."""
    pairs, subsets = labelled_pairs(data, "llmbar")
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs.values():
        groups["Natural" if subsets[pair.id] == "Natural" else "Adversarial"].append(pair)
    return list(pairs.values()), groups


@pytest.mark.parametrize("kind", LLMBAR_PROMPTS)
async def test_every_judge_alone_and_every_kappa_equal_the_reference(data: Path, kind: str) -> None:
    expected = reference(data, "llmbar_committee")["results"][kind]
    pairs, groups = by_subset(data)
    judges = llmbar(data, kind)
    alone: dict[str, Played] = {}
    for name, judge in judges.items():
        config = configuration({name: judge}, both_orders(name, judge))
        alone[judge.model] = await play(config, pairs)
        assert alone[judge.model].report.ledger.calls == 2 * len(pairs)
    for subset, group in groups.items():
        winners = {model: played.winners(group) for model, played in alone.items()}
        for model, said in winners.items():
            assert shares(said, group) == expected[subset][model], (kind, subset, model)
        kappas = {
            f"{one} | {other}": kappa(winners[one], winners[other])
            for one, other in combinations(winners, 2)
        }
        # The reference is rounded to four places, and 0.28125 may be rounded either way.
        known = expected[subset]["pairwise_kappa"]
        assert kappas == pytest.approx(known, abs=5.1e-5), (kind, subset)


@pytest.mark.parametrize("who", COMMITTEES)
@pytest.mark.parametrize("kind", LLMBAR_PROMPTS)
async def test_every_llmbar_committee_equals_the_reference(data: Path, kind: str, who: str) -> None:
    expected = reference(data, "llmbar_committee")["results"][kind]
    pairs, groups = by_subset(data)
    judges = {name: each for name, each in llmbar(data, kind).items() if name in COMMITTEES[who]}
    # The reference's rule: "plurality of non-tie verdicts, tie when level or empty".
    strategy = panel(judges, rule="plurality", quorum=1)
    full = await play(configuration(judges, strategy), pairs)
    early = {"kind": "early_stop", "inner": strategy}
    saving = await play(configuration(judges, early), pairs)
    assert saving.winners(pairs) == full.winners(pairs)
    spared = sum(each.marks.spared for each in saving.outcomes.values() if each.marks)
    assert spared > 0
    assert full.report.ledger.calls == 2 * len(judges) * len(pairs)
    assert saving.report.ledger.calls == full.report.ledger.calls - 2 * spared
    for subset, group in groups.items():
        assert shares(full.winners(group), group) == expected[subset][who], (kind, subset, who)


@pytest.mark.parametrize(
    ("bench", "file", "template", "reader"),
    [
        ("MTBench", "mtbench_pb_repetition", "positionbias/MTBench-3opt", "mtbench-marker"),
        ("DevBench", "devbench_pb_repetition", "positionbias/DevBench-2opt", "devbench-choice"),
    ],
)
async def test_the_stability_of_repeats_equals_the_reference(
    data: Path, bench: str, file: str, template: str, reader: str
) -> None:
    expected = {
        entry["judge"]: entry
        for entry in reference(data, "repeat_stability")
        if entry["bench"] == bench
    }
    path = data / "judge_outputs" / f"{file}.jsonl.gz"
    places: dict[str, dict[tuple[str, str], set[int]]] = defaultdict(lambda: defaultdict(set))
    for row in rows(path):
        places[row["judge"]][row["pair_id"], row["order"]].add(row["repeat"])
    assert places.keys() == expected.keys()
    for model, found in places.items():
        # The recorded repetitions are numbered from 1; sample 0 is served the first.
        assert set(map(frozenset, found.values())) == {frozenset({1, 2, 3})}
        judge = Recorded(path, model, template, reader, first_repeat=1)
        stabilities: list[float] = []
        for order in ("ab", "ba"):
            strategy = {"kind": "repeat", "n": 3, "inner": single("judge", judge, order=order)}
            pairs = [
                Pair(id=pair_id, response_a="a", response_b="b")
                for pair_id, shown in found
                if shown == order
            ]
            played = await play(configuration({"judge": judge}, strategy), pairs)
            assert played.report.ledger.calls == 3 * len(pairs)
            stabilities += [each.marks.stability for each in played.outcomes.values() if each.marks]
        assert {
            "n": len(stabilities),
            "mean_modal_share": round(sum(stabilities) / len(stabilities), 4),
            "all_three_equal": round(100 * stabilities.count(1.0) / len(stabilities), 2),
        } == {key: expected[model][key] for key in ("n", "mean_modal_share", "all_three_equal")}
