"""IdTable: a dict from ids to numbers, in a fifth of the memory."""

from hypothesis import given
from hypothesis import strategies as st

from dikast.engine.ids import IdTable, default_digest, digest_of

IDS = st.text(max_size=4) | st.just("\ud800")
NUMBERS = st.integers(0, 2**64 - 1)


@given(st.lists(st.tuples(st.sampled_from(["add", "set", "get"]), IDS, NUMBERS)))
def test_it_answers_as_a_dict_would(steps: list[tuple[str, str, int]]) -> None:
    table, model = IdTable(digest_of), dict[str, int]()
    for what, id, value in steps:
        if what == "add":
            assert table.add(id, value) == model.get(id)
            model.setdefault(id, value)
        elif what == "set":
            assert table.set(id, value) == model.get(id)
            model[id] = value
        assert table.get(id) == model.get(id)
        assert (id in table) == (id in model)
        assert len(table) == len(model)


def test_twenty_thousand_ids_cost_less_than_thirty_bytes_each() -> None:
    table = IdTable()
    for line in range(20_000):
        assert table.add(f"set:{line}:model-a:model-b", line) is None
    assert table.size_bytes() / len(table) < 30
    assert all(table.get(f"set:{line}:model-a:model-b") == line for line in range(20_000))
    assert table.get("set:20000:model-a:model-b") is None


def test_numbers_above_four_bytes_widen_the_table_and_keep_what_is_in_it() -> None:
    table = IdTable()
    for line in range(3_000):
        table.add(str(line), line if line % 2 else line << 40)
    assert all(table.get(str(n)) == (n if n % 2 else n << 40) for n in range(3_000))


def test_ids_whose_digests_differ_only_in_high_bits_are_told_apart() -> None:
    table = IdTable(lambda text: int(text) << 60)
    for number in range(1, 12):
        assert table.add(str(number), number) is None
    assert [table.get(str(number)) for number in range(1, 12)] == list(range(1, 12))


def test_a_digest_of_zero_is_an_id_like_any_other() -> None:
    table = IdTable(lambda text: 0)
    assert table.get("") is None
    assert table.add("", 7) is None
    assert table.add("", 8) == 7


def test_the_default_digest_has_sixty_four_bits() -> None:
    digest = default_digest()
    assert max(digest(str(n)) & (2**64 - 1) for n in range(200)) >= 2**60
    assert digest_of("a") == digest_of("a") != digest_of("b")
