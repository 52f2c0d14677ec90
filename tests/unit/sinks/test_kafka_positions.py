"""Positions of a consumer group: what may be committed, whatever the order rows finish in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("confluent_kafka", reason="the extra kafka is not installed")

from dikast.sinks.kafka.positions import SPAN_MAX, Mark, Positions, decode_ahead, encode_ahead


def started(offset: int = 0, metadata: str | None = None) -> Positions:
    positions = Positions()
    positions.take_over(0, offset, metadata)
    return positions


@given(st.lists(st.booleans(), max_size=60), st.randoms(use_true_random=False))
def test_a_successor_judges_just_what_was_not_finished(rows: list[bool], rng: object) -> None:
    first = started(5)
    offsets = [5 + at for at, _ in enumerate(rows)]
    for offset in offsets:
        assert first.hand_out(0, offset, 1)
    finished = [offset for offset, done in zip(offsets, rows, strict=True) if done]
    rng.shuffle(finished)  # type: ignore[attr-defined]
    for offset in finished:
        assert first.finish(0, offset)
    (mark,) = first.marks()
    second = started(mark.offset, mark.metadata)
    again = [
        offset for offset in offsets if offset >= mark.offset and second.hand_out(0, offset, 1)
    ]
    assert again == [offset for offset, done in zip(offsets, rows, strict=True) if not done]


@given(st.sets(st.integers(0, SPAN_MAX - 1)), st.integers(0, 2**40))
def test_what_is_ahead_survives_the_commit_and_fits_into_it(ahead: set[int], base: int) -> None:
    offsets = {base + each for each in ahead}
    text = encode_ahead(base, offsets)
    assert decode_ahead(base, text) == offsets
    assert len(text) < 4096


def test_the_metadata_of_others_says_nothing() -> None:
    for text in (None, "", "consumer-7", "dikast1:***", "dikast1:é", "dikast2:AAAA"):
        assert decode_ahead(3, text) == set()


def test_a_row_of_two_pairs_is_finished_when_both_are() -> None:
    positions = started()
    positions.hand_out(0, 0, 2)
    positions.finish(0, 0)
    assert positions.marks()[0].offset == 0
    positions.finish(0, 0)
    assert positions.marks()[0].offset == 1
    assert not positions.finish(0, 0)


def test_a_row_without_pairs_holds_nobody_up() -> None:
    positions = started()
    positions.hand_out(0, 0, 0)
    assert positions.marks()[0].offset == 1


def test_what_was_given_away_cannot_be_finished_here() -> None:
    positions = started()
    positions.hand_out(0, 0, 1)
    before = positions.tenures()[0]
    positions.forget([0])
    assert not positions.finish(0, 0)
    positions.take_over(0, 0, None)
    assert positions.tenures()[0] is not before
    assert not positions.finish(0, 0)  # it was not handed out anew


def test_a_slow_row_stops_the_reading_of_its_partition_only() -> None:
    positions = started()
    positions.take_over(1, 0, None)
    for offset in range(10):
        positions.hand_out(0, offset, 1)
        positions.hand_out(1, offset, 1)
        positions.finish(1, offset)
    for offset in range(1, 10):
        positions.finish(0, offset)
    assert positions.too_far(10) == [0]
    assert positions.too_far(11) == []
    positions.finish(0, 0)
    assert positions.too_far(10) == []
    assert positions.open_rows() == 0


def test_gaps_without_rows_are_passed() -> None:
    positions = started()
    positions.hand_out(0, 0, 1)
    positions.reach(0, 7)
    assert positions.marks()[0].offset == 0
    positions.finish(0, 0)
    assert positions.marks()[0].offset == 7


def test_a_partition_that_was_lost_and_came_back_is_not_done_again() -> None:
    positions = started(10)
    for offset in range(10, 20):
        positions.hand_out(0, offset, 1)
    for offset in (10, 11, 14):
        positions.finish(0, offset)
    assert [mark.offset for mark in positions.marks()] == [12]  # what is below is out of the books
    positions.forget([0], keep=True)
    assert not positions.finish(0, 15)  # was on the way, and is written all the same
    positions.take_over(0, 10, None, end=30)
    assert [offset for offset in range(10, 22) if positions.hand_out(0, offset, 1)] == [20, 21]
    assert [mark.offset for mark in positions.marks()] == [12]
    for offset in (12, 13, *range(16, 22)):
        assert positions.finish(0, offset)
    assert [(mark.offset, mark.metadata) for mark in positions.marks()] == [(22, "")]


@pytest.mark.parametrize(("keep", "end"), [(False, 30), (True, None), (True, 12)])
def test_what_is_not_sure_to_be_the_same_rows_is_done_again(keep: bool, end: int | None) -> None:
    positions = started(10)
    for offset in range(10, 20):
        positions.hand_out(0, offset, 1)
        positions.finish(0, offset)
    positions.forget([0], keep=keep)
    positions.take_over(0, 10, None, end=end)
    assert [offset for offset in range(10, 12) if positions.hand_out(0, offset, 1)] == [10, 11]


def test_what_another_worker_has_done_meanwhile_is_not_waited_for() -> None:
    positions = started(10)
    for offset in range(10, 20):
        positions.hand_out(0, offset, 1)
    positions.forget([0], keep=True)
    positions.take_over(0, 15, None, end=30)
    assert [(mark.offset, mark.metadata) for mark in positions.marks()] == [(15, "")]
    assert positions.open_rows() == 5
    assert not positions.finish(0, 12)


def test_what_is_kept_of_a_lost_partition_still_fits_into_a_commit() -> None:
    far = SPAN_MAX + 1
    positions = started(0)
    for offset in (0, far):
        positions.hand_out(0, offset, 1)
    positions.finish(0, far)
    positions.forget([0], keep=True)
    positions.take_over(0, 0, None, end=2 * far)
    assert positions.hand_out(0, far, 1)


def test_a_signed_mark_says_the_same_to_a_successor() -> None:
    for ahead in ({7, 9}, set[int]()):
        mark = Mark(partition=0, offset=5, metadata=encode_ahead(5, ahead))
        signed = mark.signed("worker.3")
        assert signed != mark.signed("worker.4")
        assert (signed.partition, signed.offset) == (0, 5)
        assert decode_ahead(5, signed.metadata) == ahead
