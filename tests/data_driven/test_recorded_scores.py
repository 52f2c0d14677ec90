"""Recorded texts with grades, each read as its recorded grades or listed with the reason why not.

The data lies beside the repository and is not part of it; without it these tests are skipped.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from bench.recorded import rows
from dikast.engine.model import Completion
from dikast.strategies import RatingsReader, StructuredReader, load_template
from dikast.strategies.numbers import read_number
from dikast.strategies.ratings import read_ratings
from dikast.strategies.reader import compile_ratings

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not there")


class Review(msgspec.Struct, kw_only=True):
    """WildBench's answer: what is good, what is not, then the grade."""

    strengths: str
    weaknesses: str
    score: Annotated[int, Meta(ge=1, le=10)]


def test_every_wildbench_answer_is_read_as_its_recorded_score() -> None:
    reader = StructuredReader(Review, anchor="score")
    read: Counter[str] = Counter()
    for row in rows(DATA / "absolute" / "wildbench_scores.jsonl.gz"):
        if row["raw"] is None:
            read["no text recorded"] += 1
            continue
        for text in (json.dumps(row["raw"]), repr(row["raw"])):  # as JSON, and with single quotes
            value = reader.read(Completion(text=f"```json\n{text}\n```")).value
            assert value is not None, row["id"]
            assert value.score == float(row["score"])
        read["as recorded"] += 1
    assert read == {"as recorded": 1027, "no text recorded": 9539}


def test_vicuna_reviews_are_read_as_their_two_recorded_scores() -> None:
    template = load_template(str(ROOT / "examples" / "templates" / "two-scores.toml"))
    spec = template.reader.spec
    assert isinstance(spec, RatingsReader)
    patterns = compile_ratings(spec)
    read: Counter[str] = Counter()
    for row in rows(DATA / "judge_outputs" / "vicuna80_reviews.jsonl.gz"):
        found = {each[:2] for each in read_ratings(row["raw"], patterns)}
        verdict = template.reader.read(Completion(text=row["raw"]))
        if found == {tuple(row["scores"])}:
            assert verdict.pick == row["verdict"]
            read["as recorded"] += 1
        elif not found:
            assert verdict.why == "unparsed"
            read["the grades stand in sentences of its own making"] += 1
        else:
            # The recorded grades are not those of the text, which says both plainly and once.
            assert (found, row["scores"]) == ({(10.0, 4.0)}, [10, 2])
            assert "Assistant 1: 10\nAssistant 2: 4\n" in row["raw"]
            read["recorded otherwise than written"] += 1
    print(f"vicuna80 read as recorded: {read['as recorded']} of {read.total()}")
    assert read == {
        "as recorded": 873,
        "the grades stand in sentences of its own making": 7,
        "recorded otherwise than written": 2,
    }


def recorded_without_text() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((DATA / "judge_outputs").glob("llmbar*.jsonl.gz")):
        for row in rows(path):
            if "scores" in row:
                yield path.name, row


def test_the_rating_rows_that_cannot_be_tried_are_those_without_a_grade_in_their_text() -> None:
    # LLMBar published the grades of its Rating templates without the words.
    llmbar = [row for _, row in recorded_without_text()]
    assert llmbar
    assert all(row["raw"] is None for row in llmbar)


def test_prometheus_texts_carry_no_grade_but_one_and_that_is_read() -> None:
    # The feedback before "[RESULT]" was published, and the grade apart from it.
    with_grade = [
        (text, score)
        for name in ("prometheus_mt_bench_eval", "prometheus_vicuna_eval")
        for row in rows(DATA / "absolute" / f"{name}.jsonl.gz")
        for text, score in zip(row["raw"], row["scores"], strict=True)
        if "[RESULT]" in text
    ]
    assert [
        (read_number(text.partition("[RESULT]")[2].replace("Score:", "")), score)
        for text, score in with_grade
    ] == [(1.0, 1)]
