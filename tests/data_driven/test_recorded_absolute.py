"""Recorded scores beside people's: through the score strategy they correlate as computed elsewhere.

The data give the scores as numbers, not as a judge's words. Each is written as the answer that a
judge would have given: a grade with the probabilities of the two whole grades around the number.
Replay serves it, the score strategy reads the expected grade, and that is what is correlated.
"""

import json
from collections import defaultdict
from math import floor, log
from pathlib import Path
from typing import Any

import pytest

from bench.recorded import reference, rows
from dikast.analysis.correlation import Correlations, correlations
from dikast.config import parse_settings
from dikast.engine.model import Pair, Verdict
from dikast.engine.sources import IterableSource
from dikast.sinks import MemorySink
from dikast.wiring import build_engine

SETS = ("topical_chat", "sfhot", "sfres", "qags_cnndm", "qags_xsum")
HIGHEST = 4
RUBRIC = """
name = "recorded"
version = "1"
language = "en"
scale = {{ low = 0, high = {high} }}
bands = [{{ low = 0, high = {high}, means = "the number as it was recorded" }}]
{dimensions}
"""
DIMENSION = """
[[dimensions]]
name = "{name}"
criteria = "as the recorded metric defines it"
"""


def written(scores: dict[str, float]) -> tuple[str, list[dict[str, Any]]]:
    """An answer with these expected grades: its text, and the tokens that spell it."""
    tokens: list[dict[str, Any]] = [
        {"token": '{"reasoning": "recorded", "scores": {', "logprob": 0}
    ]
    for at, (name, score) in enumerate(scores.items()):
        low = floor(score)
        chances = {low: 1 - (score - low), low + 1: score - low}
        likeliest = max(chances, key=lambda grade: chances[grade])
        top = [
            {"token": str(grade), "logprob": log(chance)}
            for grade, chance in chances.items()
            if chance > 0
        ]
        tokens.append({"token": f'{", " if at else ""}"{name}": ', "logprob": 0})
        tokens.append({"token": str(likeliest), "logprob": log(chances[likeliest]), "top": top})
    tokens.append({"token": "}}", "logprob": 0})
    return "".join(each["token"] for each in tokens), tokens


def as_pairs(scored: dict[str, dict[str, float]]) -> tuple[list[Pair], list[dict[str, Any]]]:
    """Items two by two, with what the judge said of each; the last may stand twice."""
    ids = list(scored)
    pairs: list[Pair] = []
    records: list[dict[str, Any]] = []
    for number in range(0, len(ids), 2):
        a, b = ids[number], ids[min(number + 1, len(ids) - 1)]
        pairs.append(Pair(id=f"{a}|{b}", response_a=a, response_b=b))
        for order, each in (("ab", a), ("ba", b)):
            text, tokens = written(scored[each])
            records.append(
                {"pair_id": pairs[-1].id, "judge": "recorded", "template": "scores"}
                | {"order": order, "raw": text, "logprobs": tokens}
            )
    return pairs, records


async def played(folder: Path, scored: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """What the score strategy makes of the recorded numbers, by item and dimension."""
    pairs, records = as_pairs(scored)
    file, rubric = folder / "records.jsonl", folder / "rubric.toml"
    file.write_text("".join(json.dumps(each) + "\n" for each in records), "utf-8")
    names = next(iter(scored.values()))
    high = 10 if max(max(each.values()) for each in scored.values()) > HIGHEST else HIGHEST
    dimensions = "".join(DIMENSION.format(name=name) for name in names)
    rubric.write_text(RUBRIC.format(high=high, dimensions=dimensions), "utf-8")
    config = {
        "providers": {"old": {"kind": "replay", "paths": [str(file)], "template": "scores"}},
        "judges": {
            "metric": {"provider": "old", "model": "recorded", "logprobs": True, "top_logprobs": 2}
        },
        "strategy": {
            "kind": "score",
            "judge": "metric",
            "rubric": str(rubric),
            "decide": "logprobs",
        },
    }
    sink = MemorySink()
    async with build_engine(parse_settings(config)) as engine:
        report = await engine.run(IterableSource(pairs), sink)
    assert report.complete
    assert report.ledger.calls == 2 * len(pairs)
    found: dict[str, dict[str, float]] = {}
    for outcome in sink.outcomes:
        assert isinstance(outcome, Verdict), outcome
        for side, item in zip("AB", outcome.id.split("|"), strict=True):
            found[item] = {name: outcome.scores[f"{side}.{name}"] for name in names}
    return found


def places(found: Correlations) -> dict[str, float]:
    """Rounded as the reference is."""
    assert found.pearson is not None
    assert found.spearman is not None
    assert found.kendall is not None
    return {
        "n": found.n,
        "pearson": round(found.pearson, 4),
        "spearman": round(found.spearman, 4),
        "kendall": round(found.kendall, 4),
    }


@pytest.mark.parametrize("name", SETS)
async def test_recorded_scores_correlate_with_peoples_as_the_reference_says(
    data: Path, tmp_path: Path, name: str
) -> None:
    expected = {
        key.partition("/")[2]: value
        for key, value in reference(data, "absolute").items()
        if key.startswith(f"{name}/")
    }
    items = {row["id"]: row for row in rows(data / "absolute" / f"{name}.jsonl.gz")}
    scores = await played(tmp_path, {key: row["unieval"] for key, row in items.items()})
    assert scores == {key: row["unieval"] for key, row in items.items()}
    dimensions = next(iter(items.values()))["unieval"]
    assert set(dimensions) == set(expected)
    for dimension in dimensions:
        people = [row["human"][dimension] for row in items.values()]
        found = correlations([scores[key][dimension] for key in items], people)
        known = {key: expected[dimension][key] for key in ("n", "pearson", "spearman", "kendall")}
        assert places(found) == known, (name, dimension)
        assert found.pearson_interval is not None
        low, high = found.pearson_interval.low, found.pearson_interval.high
        assert low < known["pearson"] < high
        assert high - low < 0.3


async def test_two_recorded_judges_of_the_same_answers_agree_as_the_reference_says(
    data: Path, tmp_path: Path
) -> None:
    known = reference(data, "absolute")["wildbench_two_judges"]
    given: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows(data / "absolute" / "wildbench_scores.jsonl.gz"):
        if row["judge"] in known["judges"]:
            given[f"{row['session_id']}/{row['model']}"][row["judge"]] = float(row["score"])
    both = {key: each for key, each in given.items() if len(each) == 2}
    by_judge = [
        await played(tmp_path, {key: {"score": each[judge]} for key, each in both.items()})
        for judge in known["judges"]
    ]
    first, second = ([each[key]["score"] for key in both] for each in by_judge)
    found = correlations(first, second)
    gaps = [a - b for a, b in zip(first, second, strict=True)]
    assert {
        "items": found.n,
        "spearman": places(found)["spearman"],
        "pearson": places(found)["pearson"],
        "exact": round(100 * gaps.count(0) / len(gaps), 2),
        "within_1": round(100 * sum(abs(gap) <= 1 for gap in gaps) / len(gaps), 2),
        "mean_diff": round(sum(gaps) / len(gaps), 4),
    } == {key: value for key, value in known.items() if key != "judges"}
