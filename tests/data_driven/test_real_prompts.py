"""Real prompts and real answers through the cleaning stages: nothing sound is taken for faulty."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dikast.analysis.benchmark_format import examine
from dikast.analysis.benchmark_privacy import personal_in
from dikast.analysis.near_duplicates import NearDuplicates, jaccard, shingles_of
from dikast.engine.model import Message

SETS = ("arena_sample", "evalbiasbench", "faireval80", "judgebench", "llmbar", "llmbar_case")


def prompts(data: Path, name: str) -> Iterator[tuple[str, str]]:
    """Each different question of a set, with one answer."""
    seen: set[str] = set()
    with gzip.open(data / "pairs" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["question"] not in seen:
                seen.add(row["question"])
                yield row["question"], row["response_a"]


def test_a_real_answer_at_the_end_is_a_logged_answer_and_no_shift_of_roles(data: Path) -> None:
    kinds: Counter[str] = Counter()
    total = 0
    for name in SETS:
        for question, answer in prompts(data, name):
            total += 1
            turns = (("user", question), ("assistant", answer))
            seen = examine([Message(role=role, content=text) for role, text in turns])
            kinds.update(each.kind for each in seen.findings if each.field == "from")
    print(total, kinds)
    assert total > 850
    assert kinds["role_shift"] == 0
    assert kinds["unclear_roles"] <= 0.005 * total
    assert kinds["trailing_assistant"] + kinds["unclear_roles"] == total


def test_numbers_of_mathematical_tasks_are_no_identity_and_no_card(data: Path) -> None:
    found: Counter[str] = Counter()
    for question, _ in prompts(data, "judgebench"):
        found.update(each.kind for each in personal_in([Message(role="user", content=question)]))
    assert found == {}


def test_literal_escapes_in_real_tasks_are_undone_and_latex_stays(data: Path) -> None:
    undone = 0
    for question, _ in prompts(data, "judgebench"):
        (turn,) = examine([Message(role="user", content=question)]).messages
        if turn.content != question:
            undone += 1
            assert "\\n" in question
            assert "\n" not in question
            assert turn.content.count("\\begin") == question.count("\\begin")
    assert undone == 2


@pytest.mark.parametrize("name", ["judgebench", "llmbar_case"])
def test_the_stream_finds_the_near_duplicates_that_a_comparison_of_all_pairs_finds(
    data: Path, name: str
) -> None:
    kept: list[NDArray[np.uint32]] = []
    found = missed = 0
    with NearDuplicates() as table:
        for question, _ in prompts(data, name):
            shingles = shingles_of(question)
            wanted = any(jaccard(shingles, other) >= 0.8 for other in kept)
            twin = table.add(str(len(kept)), question)
            found += twin is not None
            missed += wanted and twin is None
            if twin is None:
                kept.append(shingles)
            else:
                assert wanted
    assert missed == 0
    assert found > 0
