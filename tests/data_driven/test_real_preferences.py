"""Real people's labels through `dikast preferences`, judged by the simulated judge with tastes.

The labels, their agreement and what is left out are real; the verdicts are made up, so nothing
here says how well a real judge would do.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dikast.engine.model import Row
from dikast.engine.sources import FileSource
from dikast.strategies.preferences import LabelBook, read_labels, split_labels
from tests.cli.conftest import cli as cli
from tests.cli.tools import Cli

CONFIG = '[providers.t]\nkind = "simulated_tastes"\n[judges.j]\nprovider = "t"\nmodel = "m"\n'


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


async def book_of(path: Path) -> LabelBook:
    source = FileSource([str(path)])
    rows: list[Row] = [row async for batch in source.batches() for row in batch]
    return read_labels(rows)


def mtbench(data: Path, folder: Path) -> Path:
    """The human votes of MT-Bench with the answers beside them, as labelled pairs."""
    answers = {row["id"]: row for row in rows_of(data / "pairs" / "mtbench_answers.jsonl.gz")}
    path = folder / "mtbench.jsonl"
    with path.open("w", encoding="utf-8") as out:
        for row in rows_of(data / "pairs" / "mtbench_human.jsonl.gz"):
            found = answers.get(row["answers_ref"])
            models = row["model_a"], row["model_b"]
            if found is None or not all(model in found["answers"] for model in models):
                continue
            turn = row["turn"]
            texts = [found["answers"][model][turn - 1] for model in models]
            out.write(
                json.dumps(
                    {
                        "id": row["id"],
                        "question": "\n\n".join(found["turns"][:turn]),
                        "response_a": texts[0],
                        "response_b": texts[1],
                        "category": row["category"],
                        "votes": row["votes"],
                    }
                )
                + "\n"
            )
    return path


async def test_every_vote_of_pandalm_is_used_or_counted(data: Path) -> None:
    path = data / "pairs" / "pandalm.jsonl.gz"
    book = await book_of(path)
    assert sorted(book.people) == ["annotator1", "annotator2", "annotator3"]
    for person, own in book.people.items():
        votes = [
            v["label"] for row in rows_of(path) for v in row["votes"] if v["annotator"] == person
        ]
        assert own.ties == votes.count("tie")
        used = len(own.labels) + own.repeated + own.identical
        assert used + len(own.contradictory) == len(votes) - own.ties


async def test_no_prompt_of_a_real_person_stands_on_two_sides(data: Path) -> None:
    book = await book_of(data / "pairs" / "llmfao.jsonl.gz")
    people = [own for own in book.people.values() if len(own.labels) >= 50]
    assert len(people) >= 15
    for own in people:
        split = split_labels(own.labels, pairs=12, seed=0)
        assert len(split.development) == 12
        prompts = {each.group for each in split.development}
        assert prompts.isdisjoint(each.group for each in split.held_out)


def agreement(path: Path, person: str) -> float:
    """The mean over pairs of the share of the other two who agree, ties left out: by hand."""
    shares: list[float] = []
    for row in rows_of(path):
        said = {v["annotator"]: v["label"] for v in row["votes"] if v["label"] != "tie"}
        others = [label for who, label in said.items() if who != person]
        if person in said and others and row["response_a"] != row["response_b"]:
            shares.append(sum(label == said[person] for label in others) / len(others))
    return sum(shares) / len(shares)


def test_pandalms_three_people_get_profiles_and_their_agreement_as_a_ceiling(
    data: Path, tmp_path: Path, cli: Cli
) -> None:
    path = data / "pairs" / "pandalm.jsonl.gz"
    config = tmp_path / "c.toml"
    config.write_text(CONFIG, "utf-8")
    given = ("--config", config, "--quiet", "--json")
    fitted = cli(
        *("preferences", "fit", path, "-o", tmp_path / "p", *given),
        *("--development", 6, "--shuffles", 9),
    )
    assert fitted.code == 0, fitted.err
    people = fitted.summary["people"]
    assert sorted(people) == ["annotator1", "annotator2", "annotator3"]
    profile = tmp_path / "p" / "annotator1.json"
    found = cli(
        *("preferences", "evaluate", path, "--profile", profile, *given, "--limit", 20)
    ).summary
    (ceiling,) = found["people"]
    # Repeated pairs are counted once there and twice here.
    assert ceiling["agreement"]["value"] == pytest.approx(agreement(path, "annotator1"), abs=0.02)
    counts = found["pairs"][str(profile)]
    assert counts["held_out"] == 20
    whole = next(each for each in found["measured"] if each["topic"] == "all")
    assert all(arm["accuracy"]["pairs"] == 20 for arm in whole["arms"])


def test_people_of_mtbench_and_llmfao_with_enough_votes_get_a_report(
    data: Path, tmp_path: Path, cli: Cli
) -> None:
    config = tmp_path / "c.toml"
    config.write_text(CONFIG, "utf-8")
    # Three answers of MT-Bench are empty: these rows are no pairs, and are said.
    for path, bad, person in (
        (mtbench(data, tmp_path), 3, "expert_24"),
        (data / "pairs" / "llmfao.jsonl.gz", 0, "w107"),
    ):
        ran = cli(
            *("preferences", "fit", path, "-o", tmp_path / "p", "--config", config, "--quiet"),
            *("--md", "--only", person, "--min-labels", 50),
            *("--development", 6, "--shuffles", 9),
        )
        assert ran.code == (1 if bad else 0), ran.err
        assert (f"{bad} rows are no pairs" in ran.out) == bool(bad)
        assert f"### {person}: profile version 1" in ran.out
        assert "labels left out:" in ran.out
        assert "| labelled pairs as examples |" in ran.out
