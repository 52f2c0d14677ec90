"""The paper's arithmetic, and the tables of accuracy on rows counted by hand."""

import random
from typing import Literal

import pytest

from dikast.analysis.sesse_accuracy import (
    headline,
    relative_gap,
    risk_coverage,
    subset_lines,
)
from dikast.analysis.sesse_compare import batch_agreement, depth_lines, paired_difference
from dikast.analysis.sesse_rows import EvalRow, QuestionVote
from dikast.analysis.sesse_sections import SIZES, TOTAL, check_sizes, leaderboard
from dikast.analysis.significance import mcnemar
from dikast.engine.errors import InputError
from dikast.engine.model import Pick, Winner


def row(
    number: int,
    sesse: Winner | None,
    holistic: Winner | None = None,
    *,
    label: Winner = "A",
    subset: str = "",
    a: float = 0.0,
    b: float = 0.0,
    tie: str | None = None,
    votes: tuple[QuestionVote, ...] = (),
) -> EvalRow:
    return EvalRow(
        id=f"r{number}",
        label=label,
        sesse=sesse,
        holistic=holistic,
        subset=subset,
        a=a,
        b=b,
        tie=tie,
        votes=votes,
    )


def rows(*spec: tuple[int, Winner | None, Winner | None]) -> list[EvalRow]:
    """So many rows with these two verdicts, label A."""
    return [
        row(number, sesse, holistic)
        for at, (count, sesse, holistic) in enumerate(spec)
        for number in range(1000 * at, 1000 * at + count)
    ]


# 965 decided rows of 1,000: SESSE right on 900, the holistic verdict on 912, 32 discordant rows;
# of the 35 ties the holistic verdict gets 24.
FLASH = rows(
    (890, "A", "A"),
    (10, "A", "B"),
    (22, "B", "A"),
    (43, "B", "B"),
    (24, "tie", "A"),
    (11, "tie", "B"),
)


def test_the_published_gaps_come_out() -> None:
    assert relative_gap(0.933, 0.945) == pytest.approx(-0.013, abs=5e-4)
    assert relative_gap(0.915, 0.759) == pytest.approx(0.206, abs=5e-4)
    # 141 rows in three runs: 107 and 129 right.
    assert relative_gap(129 / 141, 107 / 141) == pytest.approx(0.206, abs=5e-4)


def discordant_min(net: int, kind: Literal["exact_p", "chi2_p", "chi2_cc_p"]) -> int:
    """The fewest discordant rows at which a net difference of so many rows is not significant."""
    return next(
        n
        for n in range(net, 10 * net, 2)
        if (getattr(mcnemar((n - net) // 2, (n + net) // 2), kind) or 0.0) > 0.05
    )


def test_a_net_difference_of_twelve_needs_so_many_discordant_rows() -> None:
    assert discordant_min(12, "exact_p") == 32
    assert discordant_min(12, "chi2_cc_p") == 32
    assert discordant_min(12, "chi2_p") == 38


def test_the_headline_of_the_published_shape() -> None:
    found = headline(FLASH)
    assert (found.rows, found.ties, found.no_verdict) == (1000, 35, 0)
    assert found.tie_share == 0.035
    assert found.sesse.value == pytest.approx(900 / 965)
    assert found.holistic_same.value == pytest.approx(912 / 965)
    assert found.holistic_all.value == pytest.approx(0.936)
    assert (found.holistic_ties.hits, found.holistic_ties.n) == (24, 35)
    assert found.half.value == pytest.approx(0.9175)
    assert found.fall_back is not None
    assert found.fall_back.value == pytest.approx(0.924)
    assert found.escalate_best.value == pytest.approx(0.935)
    assert found.relative_gap == pytest.approx(-12 / 912)
    assert found.difference == pytest.approx(-12 / 965)
    assert found.test is not None
    assert (found.test.b, found.test.c) == (22, 10)
    assert found.test.exact_p > 0.05 > found.test.mid_p
    assert found.sesse.interval is not None
    assert found.sesse.interval.low < 0.933 < found.sesse.interval.high


def test_no_verdict_is_wrong_in_the_whole_and_left_out_of_the_decided() -> None:
    found = headline(rows((3, "A", "A"), (1, None, "A")))
    assert found.no_verdict == 1
    assert (found.sesse.hits, found.sesse.n) == (3, 3)
    assert found.half.value == 0.75


def test_without_a_holistic_verdict_nothing_is_made_up() -> None:
    found = headline(rows((3, "A", None), (2, "tie", None)))
    assert found.test is None
    assert found.fall_back is None
    assert found.holistic_all.value is None
    assert found.relative_gap is None
    assert headline([]).sesse.value is None


def test_ties_are_told_apart() -> None:
    found = headline([row(1, "tie", tie="equal"), row(2, "tie", tie="all_na"), row(3, "tie")])
    assert found.tie_reasons == {"after the ladder": 1, "all_na": 1, "equal": 1}


def test_subsets_are_adjusted_together() -> None:
    some = [row(n, "A", "B", subset="x") for n in range(8)]
    some += [row(100 + n, "A", "B", subset="y") for n in range(2)]
    some += [row(200, "A", subset="z")]
    lines = {line.subset: line for line in subset_lines(some)}
    assert lines["x"].figures.test is not None
    assert lines["x"].figures.test.exact_p == pytest.approx(2 / 2**8)
    assert lines["x"].holm_p == pytest.approx(2 * 2 / 2**8)
    assert lines["y"].holm_p == pytest.approx(0.5)
    assert lines["z"].holm_p is None


def test_risk_and_coverage_by_hand() -> None:
    some = [
        row(1, "A", a=3),
        row(2, "B", a=1, b=3),
        row(3, "A", a=3, b=1),
        row(4, "tie", a=1, b=1),
    ]
    found = risk_coverage(some)
    assert [(point.margin, point.rows) for point in found.points] == [(1.0, 1), (0.5, 3), (0.0, 4)]
    assert [point.risk for point in found.points] == [0.0, pytest.approx(1 / 3), 0.375]
    # Losses in order: 0, then two of mean one half, then the tie's one half.
    assert found.aurc == pytest.approx((0 + 0.25 + 1 / 3 + 0.375) / 4)


def test_a_random_order_of_rows_changes_no_area() -> None:
    some = [row(n, "A" if n % 3 else "B", a=n % 5, b=(n * 7) % 4) for n in range(60)]
    shuffled = list(some)
    random.Random(1).shuffle(shuffled)
    assert risk_coverage(shuffled).aurc == pytest.approx(risk_coverage(some).aurc)


# --- RewardBench --------------------------------------------------------------------------------


def whole_set(right: float) -> list[EvalRow]:
    found: list[EvalRow] = []
    for sizes in SIZES.values():
        for subset, size in sizes.items():
            found += [
                row(len(found) + n, "A" if n < right * size else "B", "A", subset=subset)
                for n in range(size)
            ]
    return found


def test_the_whole_set_is_recognised_and_math_weighs_as_much_as_code() -> None:
    assert TOTAL == 2985
    found = leaderboard(whole_set(1.0))
    assert found is not None
    assert found.whole
    assert found.missing == ()
    assert [each.rows for each in found.sections] == [358, 456, 740, 1431]
    assert found.sections[3].weights["math-prm"] == 984
    assert (found.sesse, found.holistic) == (1.0, 1.0)


def test_a_section_is_the_weighted_mean_of_its_subsets() -> None:
    some = whole_set(1.0)
    lost = [
        row(int(each.id[1:]), "B", None, subset=each.subset) if each.subset == "math-prm" else each
        for each in some
    ]
    found = leaderboard(lost)
    assert found is not None
    assert found.sections[3].sesse == pytest.approx(0.5)
    assert found.sesse == pytest.approx(0.875)
    assert found.holistic is None  # some rows have no holistic verdict


def test_exchanged_subset_sizes_are_found_although_the_total_is_right() -> None:
    counts = {subset: size for sizes in SIZES.values() for subset, size in sizes.items()}
    check_sizes(counts)
    counts["xstest-should-refuse"], counts["xstest-should-respond"] = 250, 154
    with pytest.raises(InputError, match="xstest-should-refuse has 250 rows, not 154"):
        check_sizes(counts)


def test_other_categories_have_no_leaderboard() -> None:
    assert leaderboard([row(1, "A", subset="other")]) is None
    part = leaderboard([row(1, "A", subset="donotanswer")])
    assert part is not None
    assert (part.sesse, part.whole, len(part.missing)) == (1.0, False, 22)


# --- side by side -------------------------------------------------------------------------------


def vote(qid: str, pick: Pick) -> QuestionVote:
    return QuestionVote(qid, "c", 0, pick)


def test_depths_are_held_against_the_chosen_one_pair_by_pair() -> None:
    deep = [row(1, "A", votes=(vote("1", "A"), vote("2", "na"))), row(2, "A")]
    flat = [row(1, "tie", votes=(vote("1", "A"),)), row(2, "B")]
    lines = depth_lines({1: flat, 2: deep}, 2)
    assert [line.depth for line in lines] == [1, 2]
    assert lines[0].delta.value == pytest.approx(-0.75)
    assert lines[1].delta.value == 0
    assert (lines[0].ties, lines[1].na_rate) == (1, 0.5)
    assert (lines[1].questions, lines[1].effective) == (1.0, 0.5)


def test_batches_agree_as_counted_by_hand() -> None:
    reference = [row(n, "A", votes=(vote("1", "A"), vote("2", "B"))) for n in range(10)]
    batched = [
        row(n, "A" if n < 8 else "tie", votes=(vote("1", "A"), vote("2", "B" if n < 8 else "A")))
        for n in range(10)
    ]
    found = batch_agreement(batched, reference)
    assert (found.pairs, found.votes) == (10, 20)
    assert found.alike.value == pytest.approx(0.9)
    # Chance: the reference says A half of the time, the batch 12 times of 20.
    assert found.kappa.value == pytest.approx((0.9 - 0.5) / 0.5)
    assert found.score_delta.value == pytest.approx(-0.1)
    assert found.tie_delta.value == pytest.approx(0.2)
    assert (found.same_verdict.hits, found.same_verdict.n) == (8, 10)
    assert found.kappa.interval is not None


def test_a_paired_difference_has_an_interval_from_two_pairs_on() -> None:
    assert paired_difference([]).value is None
    assert paired_difference([0.5]).interval is None
    found = paired_difference([1.0, 0.0, 0.0, 0.0])
    assert found.value == 0.25
    assert found.interval is not None
    assert found.interval.high - 0.25 == pytest.approx(1.96 * 0.25, abs=1e-3)


def test_an_invalid_vote_is_not_like_an_na() -> None:
    reference = [row(n, "A", votes=(vote("1", "na"), vote("2", "A"))) for n in range(4)]
    batched = [row(n, "A", votes=(vote("1", "none"), vote("2", "A"))) for n in range(4)]
    assert batch_agreement(batched, reference).alike.value == pytest.approx(0.5)
