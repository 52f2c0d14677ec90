"""Near duplicates are found in a stream, as an exact comparison of all pairs would find them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dikast.analysis.near_duplicates import NearDuplicates, jaccard, shingles_of

WORDS = ("river", "harvest", "engine", "lantern", "market", "copper", "window", "garden")
SIGNS = "河流丰收引擎灯笼市场黄铜窗户花园车票港口山脉纸张提琴桥梁冬天厨房行星"


def texts(chinese: bool, count: int, seed: int) -> list[str]:
    """Texts of which every third is an earlier one with some characters exchanged."""
    rng = random.Random(seed)
    out: list[str] = []
    for number in range(count):
        if number % 3 == 2:
            signs = list(rng.choice(out))
            for _ in range(rng.randint(1, 6)):
                signs[rng.randrange(len(signs))] = rng.choice("xyz")
            out.append("".join(signs))
        elif chinese:
            out.append("".join(rng.choice(SIGNS) for _ in range(120)))
        else:
            out.append(" ".join(rng.choice(WORDS) + str(rng.randrange(99)) for _ in range(30)))
    return out


@pytest.mark.parametrize("chinese", [False, True])
def test_the_stream_agrees_with_a_comparison_of_all_pairs(chinese: bool) -> None:
    kept: list[tuple[str, str]] = []
    agreed = wrong = 0
    with NearDuplicates(0.8) as table:
        for number, text in enumerate(texts(chinese, 240, 3)):
            best = max(
                (jaccard(shingles_of(text), shingles_of(other)) for _, other in kept), default=0.0
            )
            found = table.add(str(number), text)
            if (found is not None) == (best >= 0.8):
                agreed += 1
            else:
                wrong += 1
            if found is None:
                kept.append((str(number), text))
            else:
                assert found.similarity == pytest.approx(best)
    assert wrong == 0
    assert 30 < 240 - len(kept) < 80
    assert agreed == 240


def test_case_width_and_white_space_make_no_difference_and_one_character_does_in_a_sum() -> None:
    with NearDuplicates() as table:
        assert table.add("a", "What is TCP, and what is it for?") is None
        same = table.add("b", "ｗhat  is tcp,\nand what is it for?")
        assert same is not None
        assert (same.of, same.similarity) == ("a", 1.0)
        assert table.add("c", "3+5=?") is None
        assert table.add("d", "3+6=?") is None
        assert table.add("e", "") is None
        assert table.add("f", "   ") is not None


@given(st.text(max_size=60), st.text(max_size=60))
def test_similarity_is_that_of_the_sets_of_runs(a: str, b: str) -> None:
    def runs(text: str) -> frozenset[int]:
        return frozenset(shingles_of(text).tolist())

    both = len(runs(a) & runs(b)) / len(runs(a) | runs(b))
    assert jaccard(shingles_of(a), shingles_of(b)) == pytest.approx(both)


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5])
def test_a_threshold_out_of_range_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="above 0 and up to 1"):
        NearDuplicates(threshold)
