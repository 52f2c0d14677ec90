"""Which themes are asked about, and which become one."""

import numpy as np
import pytest

from dikast.engine.model import Call, Completion, Judge
from dikast.strategies.sesse.cluster import unit
from dikast.strategies.sesse.merge import Asked, Equivalence, candidates, merge_groups


def asked(*pairs: str, no: tuple[str, ...] = ()) -> list[Asked]:
    """Candidates in the order given; those in `no` were called different in one order."""
    return [
        Asked(
            first=pair[0],
            second=pair[1],
            cosine=1.0 - at / 100,
            forward="yes",
            backward="no" if pair in no else "yes",
        )
        for at, pair in enumerate(pairs)
    ]


def test_the_nearest_pairs_are_asked_about_whatever_their_cosine() -> None:
    labels = unit(np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.7, 0.7]]))
    found = candidates(["e", "d", "c", "b", "a"], labels, 0.8)
    assert [(each.first, each.second) for each in found] == [("b", "c"), ("d", "e")]
    assert len(candidates(["e", "d", "c", "b", "a"], labels, 0.0)) == 10
    far = candidates(["x", "y"], np.eye(2), 0.9)
    assert [each.cosine for each in far] == [0.0]


def test_two_yeses_merge_and_one_does_not() -> None:
    assert merge_groups(asked("ab"), cap=4) == [("a", "b")]
    assert merge_groups(asked("ab", no=("ab",)), cap=4) == []


def test_a_chain_is_not_a_group() -> None:
    assert merge_groups(asked("ab", "bc"), cap=4) == [("a", "b")]
    assert merge_groups(asked("ab", "bc", "ac"), cap=4) == [("a", "b", "c")]
    assert merge_groups(asked("ab", "bc", "ac", no=("ac",)), cap=4) == [("a", "b")]


def test_two_groups_join_only_when_all_their_members_are_alike() -> None:
    every = ("ab", "cd", "ac", "ad", "bc", "bd")
    assert merge_groups(asked(*every), cap=4) == [("a", "b", "c", "d")]
    assert merge_groups(asked(*every, no=("bd",)), cap=4) == [("a", "b"), ("c", "d")]


def test_a_group_has_no_more_than_the_cap() -> None:
    every = ("ab", "ac", "bc", "ad", "bd", "cd", "ae", "be", "ce", "de")
    assert merge_groups(asked(*every), cap=4) == [("a", "b", "c", "d")]
    assert merge_groups(asked(*every), cap=2) == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize(
    ("text", "value", "calls"),
    [
        ('{"equivalent": "Yes"}', "yes", 1),
        ('```json\n{"equivalent": "no"}\n```', "no", 1),
        ('<think>{"equivalent": "no"}</think>{"equivalent": "yes"}', "yes", 1),
        ('{"equivalent": "maybe"}', None, 2),
        ("yes", None, 2),
    ],
)
async def test_only_a_plain_yes_or_no_counts(text: str, value: str | None, calls: int) -> None:
    seen: list[Call] = []

    async def ask(call: Call) -> Completion:
        seen.append(call)
        return Completion(text=text)

    judge = Equivalence(Judge(name="j", provider="p", model="m"), seed=0)
    found = await judge.ask("the request sets a limit", "a limit is set", "c01 c02", ask)
    assert found.value == value
    assert found.calls == len(seen) == calls
    assert len({call.key() for call in seen}) == calls
    shown = seen[0].messages[-1].content
    assert shown.index("the request sets a limit") < shown.index("a limit is set")
