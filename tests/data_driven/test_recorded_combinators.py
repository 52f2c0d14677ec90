"""Combinators on recorded judges and real answers: stated risks hold, confidences can be mended."""

from collections import Counter
from pathlib import Path

import pytest

from bench.recorded import labelled_pairs, rows
from dikast.analysis.calibration import Method, cross_validate
from dikast.engine.model import Outcome, Pair, Verdict
from dikast.strategies import Committee, Pairwise, committee, early_stop, swap
from dikast.strategies.boilerplate import strip_boilerplate
from tests.data_driven.recorded_ask import (
    JUDGES,
    TEMPLATES,
    Recorded,
    llmbar,
    recorded_judge,
)

METHODS: tuple[Method, ...] = ("isotonic", "platt")


def panel(data: Path) -> tuple[list[Pair], Committee, Recorded]:
    """All judges of LLMBar under three templates: eighteen members, each in both orders."""
    pairs, _ = labelled_pairs(data, "llmbar")
    everything, members = Recorded(), []
    for kind in TEMPLATES:
        ask, prompts = llmbar(data, kind)
        for (name, pair_id, order, sample), text in ask.texts.items():
            everything.texts[f"{name} {kind}", pair_id, order, sample] = text
        members += [
            swap(Pairwise(recorded_judge(f"{name} {kind}"), prompts[name])) for name in JUDGES
        ]
    return list(pairs.values()), committee(members), everything


def winner_of(outcome: Outcome) -> str | None:
    return outcome.winner if isinstance(outcome, Verdict) else None


@pytest.mark.parametrize(("risk", "differs", "saved"), [(None, 0.0, 0.2), (0.05, 0.05, 0.4)])
async def test_eighteen_recorded_judges_differ_from_their_full_vote_within_the_risk(
    data: Path, risk: float | None, differs: float, saved: float
) -> None:
    pairs, vote, ask = panel(data)
    stop = early_stop(vote, risk=risk)
    differ = spared = 0
    for pair in pairs:
        full, early = await vote.judge(pair, ask), await stop.judge(pair, ask)
        differ += winner_of(full) != winner_of(early)
        assert early.marks is not None
        spared += early.marks.spared
    assert len(pairs) == 197
    assert differ / len(pairs) <= differs
    assert (differ > 0) == (risk is not None)
    assert spared / (len(pairs) * 18) > saved


async def test_the_agreement_of_recorded_judges_is_no_probability_until_it_is_calibrated(
    data: Path,
) -> None:
    pairs, vote, ask = panel(data)
    confidence: list[float] = []
    agreed: list[float] = []
    for pair in pairs:
        outcome = await vote.judge(pair, ask)
        if isinstance(outcome, Verdict) and outcome.confidence is not None:
            confidence.append(outcome.confidence)
            agreed.append(float(outcome.winner == pair.label))
    for method in METHODS:
        tested = cross_validate(method, confidence, agreed)
        assert tested.before.ece > 0.3
        assert tested.after.ece < tested.before.ece - 0.15
        assert tested.after.brier < tested.before.brier - 0.1


def test_real_answers_lose_boilerplate_and_nothing_else(data: Path) -> None:
    hits: Counter[str] = Counter()
    texts = 0
    for name in ("arena_sample", "hhh", "judgebench", "pandalm", "faireval80"):
        for row in rows(data / "pairs" / f"{name}.jsonl.gz"):
            for side in ("response_a", "response_b"):
                text = row.get(side)
                if not isinstance(text, str):
                    continue
                texts += 1
                found = strip_boilerplate(text)
                hits.update(found.removed.keys())
                assert found.text in text
                assert len(text) - len(found.text) == sum(found.removed.values()) <= 400
    assert texts > 1_500
    assert set(hits) == {
        *("greeting", "self_reference", "assent", "pleasantry", "closing_offer"),
    }
    # Rare enough that it is no content, and there.
    assert 30 < hits.total() < 0.1 * texts
