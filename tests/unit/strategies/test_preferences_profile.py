"""The profile file: readable, checked after every edit, and silent about the person elsewhere."""

import msgspec
import pytest

from dikast.engine.errors import InputError
from dikast.strategies.preferences import (
    Entry,
    Preference,
    Profile,
    WrittenWith,
    encode_profile,
    load_profile,
    parse_profile,
)

MODEL = WrittenWith(name="j", model="m", prompt="preference-en@1#0")


def profile_of(*preferences: Preference, **entry: object) -> Profile:
    return Profile(
        person="ann",
        judge=MODEL,
        writer=MODEL,
        entries=(Entry(preferences=preferences, **entry),),  # type: ignore[arg-type]
    )


SOUND = profile_of(
    Preference(id="p1", text="Prefers short answers.", weight=1.0, sources=("pair 1",)),
    Preference(id="p2", text="Prefers lists."),
)


def test_a_profile_reads_back_as_it_was_written_one_field_a_line() -> None:
    data = encode_profile(SOUND)
    assert parse_profile(data) == SOUND
    assert b'\n          "text": "Prefers short answers.",\n' in data


def test_pinned_preferences_vote_and_deleted_ones_never_do() -> None:
    pinned = Preference(id="p3", text="Prefers care.", pinned=True)
    gone = Preference(id="p4", text="Prefers haste.", weight=3.0, deleted=True)
    entry = profile_of(*SOUND.entries[0].preferences, pinned, gone).entries[0]
    assert [(each.id, each.share) for each in entry.voting()] == [("p1", 1.0), ("p3", 1.0)]


def test_a_topic_without_an_entry_of_its_own_gets_the_one_for_all() -> None:
    maths = msgspec.structs.replace(SOUND.entries[0], topic="maths")
    both = msgspec.structs.replace(SOUND, entries=(SOUND.entries[0], maths))
    assert both.entry_for("maths") == maths
    assert both.entry_for("poems") == SOUND.entries[0]
    assert both.entry_for(None) == SOUND.entries[0]
    assert msgspec.structs.replace(SOUND, entries=(maths,)).entry_for("poems") is None


def test_the_digest_follows_what_votes_and_nothing_else() -> None:
    first, second = SOUND.entries[0].preferences
    louder = msgspec.structs.replace(first, weight=2.0)
    reworded = msgspec.structs.replace(first, text="Prefers long answers.")
    unused = msgspec.structs.replace(second, text="Prefers tables.")
    assert profile_of(first, unused).digest() == SOUND.digest()
    assert len({SOUND.digest(), *(profile_of(e, second).digest() for e in (louder, reworded))}) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b'"pinned"', b'"pined"'), "pined"),
        ((b'"id": "p2"', b'"id": "p1"'), "the same id"),
        ((b'"weight": 1.0', b'"weight": -1.0'), r"preferences\[0\]\.weight"),
        ((b'"weight": 1.0', b'"weight": 0.0'), "no preference votes"),
        ((b'"text": "Prefers lists."', b'"text": " "'), r"preferences\[1\]\.text"),
        ((b": false", b": true"), "is pinned and deleted"),
        ((b'"version": 1', b'"version": 0'), r"version'.* cannot be 0"),
        ((b'"version": 1', b'"version": -1'), r"version'.* cannot be -1"),
        ((b"dikast-preferences/1", b"dikast-preferences/9"), "dikast-preferences/9"),
        ((b"{", b"[", 1), "not valid JSON"),
    ],
)
def test_an_edit_that_breaks_a_profile_is_told_in_one_sentence_without_its_texts(
    change: tuple[bytes, bytes], message: str
) -> None:
    broken = encode_profile(SOUND).replace(*change)
    with pytest.raises(InputError, match=message) as told:
        parse_profile(broken, "ann.json")
    assert str(told.value).startswith("ann.json")
    assert "short answers" not in str(told.value)


def test_a_profile_that_is_not_there_says_how_to_make_one() -> None:
    with pytest.raises(InputError, match="make a profile with dikast preferences fit"):
        load_profile("nowhere/ann.json")
