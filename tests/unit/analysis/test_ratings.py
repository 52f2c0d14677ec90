"""Columns: votes become verdicts by the rule of swap; repeats and prompts are kept apart."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dikast.analysis.ratings import NONE, Ratings, stem
from dikast.analysis.rows import LabelRow
from dikast.engine.errors import InputError


def outcome(id: str, winner: str | None = "A", picks: str = "", **more: Any) -> dict[str, Any]:
    """An outcome; `picks` is like "ab:A ba:B" for a judge j, or "k/ab:tie" for a judge k."""
    votes = []
    for word in picks.split():
        place, pick = word.split(":")
        judge, _, order = place.rpartition("/")
        votes.append({"judge": judge or "j", "order": order, "pick": pick})
    head = (
        {"kind": "verdict", "winner": winner}
        if winner
        else {"kind": "undecided", "why": "unparsed"}
    )
    return {**head, "id": id, "votes": votes, **more}


def ratings_of(tmp_path: Path, *runs: list[dict[str, Any]], field: str | None = None) -> Ratings:
    ratings = Ratings(field)
    for at, rows in enumerate(runs):
        path = tmp_path / f"run{at}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        ratings.read_run(str(path))
    return ratings


def verdict_of(tmp_path: Path, picks: str) -> int:
    ratings = ratings_of(tmp_path, [outcome("p", picks=picks)])
    return int(ratings.runs[0].votes("j", 1).verdicts()[0])


@pytest.mark.parametrize(
    ("picks", "verdict"),
    [
        ("ab:A", 0),
        ("ba:B", 2),
        ("ab:A ba:A", 0),
        ("ab:tie ba:tie", 1),
        ("ab:A ba:B", 1),
        ("ab:A ba:none", NONE),
        ("ab:na", NONE),
        ("ab:A ab:A ab:B", 0),
        ("ab:A ab:B", 1),
        ("ab:A ab:none ab:none", 0),
    ],
)
def test_a_judges_verdict_is_that_of_both_orders(tmp_path: Path, picks: str, verdict: int) -> None:
    assert verdict_of(tmp_path, picks) == verdict


def test_a_pair_is_one_row_whatever_the_number_of_files(tmp_path: Path) -> None:
    ratings = ratings_of(
        tmp_path, [outcome("p"), outcome("q", None)], [outcome("r"), outcome("p", "tie")]
    )
    first, second = ratings.runs
    assert len(ratings) == 3
    assert first.results(3).tolist() == [0, NONE, NONE]
    assert second.results(3).tolist() == [1, NONE, 0]
    assert first.present(3).tolist() == [True, True, False]
    assert first.missing == {"undecided: unparsed": 1}


def test_an_id_counts_once_and_a_failure_gives_way(tmp_path: Path) -> None:
    failed = {"kind": "failed", "id": "p", "reason": "timeout", "message": ""}
    ratings = ratings_of(
        tmp_path, [failed, outcome("p", "B", "ab:B"), outcome("p", "A", "ab:A"), outcome("q")]
    )
    run = ratings.runs[0]
    assert run.results(2).tolist() == [2, 0]
    assert run.repeated == 2
    assert +run.missing == {}
    assert run.votes("j", 2).counts[0, 0].tolist() == [0, 0, 1, 0]


def test_pairs_of_one_prompt_are_one_cluster(tmp_path: Path) -> None:
    rows = [outcome(f"p{n}", meta={"question_id": n // 2, "topic": "t"}) for n in range(4)]
    plain = ratings_of(tmp_path, rows)
    clusters = plain.clusters.tolist()
    assert clusters[0] == clusters[1] != clusters[2] == clusters[3]
    assert plain.clustered
    named = ratings_of(tmp_path, rows, field="topic")
    assert len(set(named.clusters.tolist())) == 1
    without = ratings_of(tmp_path, [outcome("p"), outcome("q")])
    assert len(set(without.clusters.tolist())) == 2
    assert not without.clustered


def test_votes_of_people_become_one_label_by_the_rule(tmp_path: Path) -> None:
    ratings = ratings_of(tmp_path, [outcome("p", label="B"), outcome("q", label="B")])
    assert ratings.truth().tolist() == [2, 2]
    for who, label in (("x", "A"), ("y", "A"), ("z", "tie")):
        ratings.take_label(LabelRow("p", who, label))  # type: ignore[arg-type]
    ratings.take_label(LabelRow("new", "x", "A"))
    ratings.take_label(LabelRow("new", "y", "B"))
    assert ratings.truth("majority").tolist() == [0, NONE, NONE]
    assert ratings.truth("plurality").tolist() == [0, NONE, 1]
    assert ratings.people.unknown_pairs == 1


def test_the_same_id_for_other_models_is_refused(tmp_path: Path) -> None:
    one = [outcome("p", model_a="x", model_b="y")]
    two = [outcome("p", model_a="y", model_b="x")]
    with pytest.raises(InputError, match="other models"):
        ratings_of(tmp_path, one, two)


def test_many_votes_in_chunks_are_all_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dikast.analysis.ratings._CHUNK_EVENTS", 7)
    ratings = ratings_of(
        tmp_path, [outcome(f"p{n}", picks="ab:A ab:A ba:B ba:none") for n in range(25)]
    )
    counts = ratings.runs[0].votes("j", 25).counts
    assert np.all(counts == np.array([[2, 0, 0, 0], [0, 0, 1, 1]]))


def test_scores_are_kept_by_dimension(tmp_path: Path) -> None:
    scored = outcome("p", scores={"A.total": 7.0, "B.total": 5.0, "A.style": 3.0})
    run = ratings_of(tmp_path, [scored, outcome("q")]).runs[0]
    assert run.scores["total"] == {7.0: 1, 5.0: 1}
    assert run.pair_scores("total", 2)[0] == 6.0
    assert np.isnan(run.pair_scores("total", 2)[1])


def test_scored_single_answers_have_scores_and_no_verdict(tmp_path: Path) -> None:
    rows = [{"kind": "scored", "id": "i", "scores": {"total": 4.0, "style": 5.0}}]
    run = ratings_of(tmp_path, rows).runs[0]
    assert run.results(1).tolist() == [NONE]
    assert run.missing == {}
    assert run.pair_scores("style", 1).tolist() == [5.0]


def test_a_files_name_is_short() -> None:
    assert stem("/a/b/run.jsonl.gz") == "run"


@pytest.mark.parametrize("meta", [True, False])
def test_clusters_do_not_depend_on_the_order_of_lines(tmp_path: Path, meta: bool) -> None:
    rows = [outcome(f"p{n}", meta={"question_id": n // 2} if meta else {}) for n in range(12)]
    there = ratings_of(tmp_path, rows).clusters.tolist()
    back = ratings_of(tmp_path, rows[::-1]).clusters.tolist()
    assert back[::-1] == there
