"""Stage 5 of SESSE on real pairs: long answers, code and markup pass through both tiers unharmed.

The judge is planted, so what it should say of each pair is known: a vote that differs would mean
that the pair did not reach it as it is. The data lies beside the repository and is not part of it;
without it these tests are skipped.
"""

import gzip
import json
from pathlib import Path

import pytest

from dikast.engine.model import Pair, Verdict
from tests.unit.strategies.sesse_worlds import World, plain_library, planted

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not there")

SURE = planted("substance", applies=0.6, skill=1.0)
LIBRARY = plain_library((SURE, planted("nothing at all", applies=0.0)), 2)


def labelled(name: str, count: int) -> list[Pair]:
    found: list[Pair] = []
    with gzip.open(DATA / "pairs" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if row.get("label") in ("A", "B") and len(found) < count:
                found.append(
                    Pair(
                        id=row["id"],
                        question=row["question"],
                        response_a=row["response_a"],
                        response_b=row["response_b"],
                        label=row["label"],
                    )
                )
    return found


@pytest.mark.parametrize("name", ["llmbar", "judgebench", "pandalm", "arena_sample"])
async def test_a_sure_judge_is_always_right_where_its_criterion_holds(name: str) -> None:
    pairs = labelled(name, 60)
    assert len(pairs) == 60
    world = World(pairs, SURE, planted("nothing at all", applies=0.0))
    decided = 0
    for pair in pairs:
        outcome = await world.judge(LIBRARY, pair, order="alternate")
        assert isinstance(outcome, Verdict)
        if outcome.notes["selected"]:
            assert outcome.notes["selected"] == ["c0"]
            assert outcome.winner == pair.label
            decided += 1
        else:
            assert outcome.notes["tie"] == "no_cluster"
        assert outcome.notes.get("invalid", 0) == 0
    assert 0.4 < decided / len(pairs) < 0.8
