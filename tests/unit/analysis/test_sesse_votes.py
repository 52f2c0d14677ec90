"""Rates, health, taxonomy and suspects, on votes counted by hand."""

import msgspec
import pytest

from dikast.analysis.sesse_rows import EvalRow, QuestionVote
from dikast.analysis.sesse_votes import (
    Thresholds,
    entropy_of,
    health,
    suspects,
    taxonomy,
    thresholds_of,
    vote_rates,
)
from dikast.engine.model import Pick, Winner


def votes(picks: str, cid: str = "c") -> tuple[QuestionVote, ...]:
    """ "AB-x": A, B, NA, invalid; each its own question."""
    said: dict[str, Pick] = {"A": "A", "B": "B", "-": "na", "x": "none"}
    return tuple(QuestionVote(f"q{at}", cid, at, said[each]) for at, each in enumerate(picks))


def row(number: int, picks: str, **more: object) -> EvalRow:
    a, b = picks.count("A"), picks.count("B")
    base = EvalRow(
        id=f"r{number}",
        label="A",
        sesse="A" if a > b else "B" if b > a else "tie",
        a=a,
        b=b,
        votes=votes(picks),
        selected=("c",),
    )
    return msgspec.structs.replace(base, **more)


def test_na_and_invalid_rates_at_every_level() -> None:
    some = [
        row(1, "A--x", subset="s"),
        row(2, "A-", subset="t", votes=votes("A-", "d"), selected=("d",)),
    ]
    by_row = {each.name: each for each in vote_rates(some, "row")}
    assert (by_row["r1"].na_rate, by_row["r1"].invalid_rate) == (0.5, 0.25)
    by_question = {each.name: each for each in vote_rates(some, "question")}
    assert (by_question["q1"].asked, by_question["q1"].na) == (2, 2)
    # The first answers are an A, the second NA: the highest NA rate stands first.
    assert [each.na_rate for each in vote_rates(some, "question")] == [1.0, 1.0, 0.0, 0.0]
    by_cluster = {each.name: each.na_rate for each in vote_rates(some, "cluster")}
    assert by_cluster == {"c": 0.5, "d": 0.5}
    assert {each.name for each in vote_rates(some, "subset")} == {"s", "t"}


def test_dominance_by_rows_and_by_votes_are_two_readings() -> None:
    some = [row(n, "--", selected=("wide", "c"), votes=votes("--", "wide")) for n in range(6)]
    some += [row(10 + n, "AAAB", selected=("c",)) for n in range(4)]
    found = health(some)
    assert (found.dominant_by_rows, found.dominant_row_share) == ("c", 1.0)
    assert (found.dominant_by_votes, found.dominant_vote_share) == ("c", 1.0)
    wide = next(each for each in found.clusters if each.cid == "wide")
    assert (wide.row_share, wide.vote_share, wide.right.value) == (0.6, 0.0, None)
    rest = next(each for each in found.clusters if each.cid == "c")
    assert (rest.right.hits, rest.right.n) == (12, 16)


def test_failures_are_classed_by_the_stated_rules_and_c3_goes_first() -> None:
    limits = Thresholds(cosine=0.7, na_share=0.3)
    some = [
        row(1, "AAB", holistic="B", cosine=0.9),  # divided
        row(2, "AAAAA", holistic="B", cosine=0.9),  # of one mind
        row(3, "A--", holistic="B", cosine=0.9, subset="hep-go"),  # near each other, many NA
        row(4, "AAB--", holistic="B", cosine=0.9),  # both rules
        row(5, "A--", holistic="B", cosine=0.5),  # many NA, but far apart
        row(6, "AAB", holistic="A"),  # no disagreement
        row(7, "AB", holistic="A"),  # a tie
        row(8, "A--", holistic="B"),  # no cosine
        row(9, "BBB", holistic="A"),  # SESSE lost it
    ]
    found = taxonomy(some, limits)
    kinds = {each.id: each.kind for each in found.failures}
    expected = {"r1": "C1", "r2": "C2", "r3": "C3", "r4": "C3", "r5": "C2", "r8": "C2", "r9": "C2"}
    assert kinds == expected
    assert found.both == 1
    assert found.counts == {"C1": 1, "C2": 4, "C3": 2}
    assert found.lost == {"C1": 0, "C2": 1, "C3": 0}
    assert found.without_hep == {"C1": 1, "C2": 4, "C3": 1}
    raw = next(each for each in found.failures if each.id == "r4")
    assert raw.na_share == pytest.approx(0.4)
    assert raw.entropy_bits == pytest.approx(0.918, abs=1e-3)


def test_a_minority_of_a_third_is_divided_and_of_three_tenths_is_not() -> None:
    assert entropy_of(row(1, "AAB")) >= 0.9 > entropy_of(row(2, "AAAAAAABBB"))
    assert entropy_of(row(3, "AB")) == 1.0
    assert entropy_of(row(4, "--")) == 0.0


def test_thresholds_are_the_mean_cosine_and_the_median_na_share() -> None:
    some = [row(1, "A-", cosine=0.2), row(2, "AA", cosine=0.6), row(3, "---"), row(4, "xx")]
    found = thresholds_of(some)
    assert found.cosine == pytest.approx(0.4)
    assert found.na_share == pytest.approx(0.5)
    assert thresholds_of([]) == Thresholds(cosine=None, na_share=None)


def test_suspects_are_confident_agreed_and_ranked() -> None:
    def against(number: int, picks: str, holistic: Winner) -> EvalRow:
        return row(number, picks, holistic=holistic)

    some = [
        against(1, "BBB", "B"),
        against(2, "BBBBB", "B"),
        against(3, "BBBA", "B"),
        against(4, "BBB", "A"),
        against(5, "AAA", "A"),
        against(6, "BBBBB--", "B"),
    ]
    assert [each.id for each in suspects(some)] == ["r2", "r6", "r1", "r3"]
    assert [each.id for each in suspects(some, 1)] == ["r2"]


def test_flipped_labels_are_found_among_the_first_suspects() -> None:
    # 200 rows that both judge rightly with five votes; every twentieth label is flipped.
    some = [
        row(n, "AAAAA" if n % 4 else "AAAAB", holistic="A", label="B" if n % 20 == 0 else "A")
        for n in range(200)
    ]
    found = suspects(some)
    assert {each.id for each in found} == {f"r{n}" for n in range(0, 200, 20)}
