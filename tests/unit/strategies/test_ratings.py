"""Verdicts from two grades in one text."""

import pytest

from dikast.engine.errors import ConfigError
from dikast.engine.model import Completion
from dikast.strategies import RatingsReader, compile_reader

FIRST_LINE = r"\A\s*(\d+(?:\.\d+)?)[ ,/]+(\d+(?:\.\d+)?)[ \t]*(?:\n|\Z)"
ANYWHERE = r"A: (\d+)\D+B: (\d+)"
SPEC = RatingsReader(patterns=(FIRST_LINE, ANYWHERE))


@pytest.mark.parametrize(
    ("text", "pick"),
    [
        *(("8 9\nbecause", "B"), ("9.5, 9", "A"), ("7 7\nA: 1 B: 2", "tie")),
        *(("\uff18 \uff17\n", "A"), ("Well.\nA: 3, and B: 10", "B")),
        *(("no grades", "none"), ("8 9 10\n", "none"), ("A: 1 B: 2. Or rather A: 2 B: 1", "none")),
    ],
)
def test_the_greater_grade_wins_and_doubt_is_no_verdict(text: str, pick: str) -> None:
    read = compile_reader(SPEC).read(Completion(text=text))
    assert read.pick == pick
    assert read.why == ("unparsed" if pick == "none" else None)


@pytest.mark.parametrize(
    ("patterns", "says"),
    [((), "is empty"), (("(",), "not a regular expression"), ((r"(\d)",), "must have two groups")],
)
def test_patterns_that_cannot_work_are_refused(patterns: tuple[str, ...], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        compile_reader(RatingsReader(patterns=patterns))
