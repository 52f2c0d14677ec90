"""What is known of a person's taste, as a file that can be read, edited, kept and deleted.

Loaded once, before the first pair. A profile holds, for every topic, sentences with their weight,
where each came from, and what the fit measured. It describes a person: its texts go into prompts
and into this file, never into logs, errors or the spec of a run (which holds their hash).
"""

import hashlib
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from dikast.engine.errors import InputError
from dikast.strategies.record_files import RecordFile

FORMAT: Literal["dikast-preferences/1"] = "dikast-preferences/1"
TEXT_CHARS_MAX = 2000
"""The longest sentence that is taken; one that is longer is no preference but a text."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a profile: a mistyped field is an error, not a loss."""


class Preference(_Part, frozen=True, kw_only=True):
    """One sentence about a person's taste.

    `weight` is its share of the vote, 0 for one that was not chosen. `sources` are the ids of
    the labelled pairs it was written from. A `pinned` one always votes and survives a new fit;
    a `deleted` one never votes, and a new fit does not write it again. `by` says who wrote it.
    """

    id: str
    text: str
    weight: float = 0.0
    sources: tuple[str, ...] = ()
    by: Literal["model", "person"] = "model"
    pinned: bool = False
    deleted: bool = False

    @property
    def votes(self) -> bool:
        """Whether it takes part in a judgement."""
        return not self.deleted and (self.pinned or self.weight > 0)

    @property
    def share(self) -> float:
        """Its weight in the vote; one that was only pinned counts 1."""
        return self.weight if self.weight > 0 else 1.0


class Entry(_Part, frozen=True, kw_only=True):
    """What is known for one topic; the topic "" serves every pair that has no entry of its own.

    `use` says what judges: the preferences, or the plain judge where the fit could not show a
    gain. `development` lists the ids of the pairs the entry was fitted on and `prompts` hashes of
    their prompts, so that no figure is ever computed on them. `statistics` is the fit's report.
    """

    topic: str = ""
    use: Literal["preferences", "plain"] = "preferences"
    preferences: tuple[Preference, ...] = ()
    development: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    statistics: dict[str, Any] = {}

    def voting(self) -> tuple[Preference, ...]:
        """The preferences that vote."""
        return tuple(each for each in self.preferences if each.votes)


class WrittenWith(_Part, frozen=True, kw_only=True):
    """A model and the prompt it was asked with: who judged, or who wrote the sentences."""

    name: str
    model: str
    prompt: str


class Profile(_Part, frozen=True, kw_only=True):
    """A person's profile. `version` counts fits and edits; `made` is the time of the last one."""

    format: Literal["dikast-preferences/1"] = FORMAT
    person: str
    version: int = 1
    made: str = ""
    seed: int = 0
    judge: WrittenWith
    writer: WrittenWith
    entries: tuple[Entry, ...] = ()

    def entry_for(self, topic: str | None) -> Entry | None:
        """The entry of a topic, else the one for all topics, else None: judge without."""
        by_topic = {entry.topic: entry for entry in self.entries}
        return by_topic.get(topic or "", by_topic.get(""))

    def digest(self) -> str:
        """16 hex digits of all that decides a judgement, without the texts themselves."""
        what = [
            (entry.topic, entry.use, [(each.id, each.text, each.share) for each in entry.voting()])
            for entry in self.entries
        ]
        return hashlib.sha256(msgspec.json.encode(what)).hexdigest()[:16]


ProfileLoader = Callable[[str], Profile]


def parse_profile(text: bytes | str, source: str = "profile") -> Profile:
    """Read and check a profile.

    Args:
        text: JSON.
        source: what to call it in messages, usually the path.

    Raises:
        InputError: it is no profile, or an edit broke it; names the field, quotes no text.
    """
    return _FILE.parse(text, source)


def _check(profile: Profile, source: str) -> None:
    def wrong(place: str, why: str) -> InputError:
        return InputError(why, file=source, field=place)

    if profile.version < 1:
        raise wrong("version", f"counts fits and edits from 1, and cannot be {profile.version}")
    topics = [entry.topic for entry in profile.entries]
    if len(topics) != len(set(topics)):
        raise wrong("entries", "two entries have the same topic; merge them")
    for number, entry in enumerate(profile.entries):
        where = f"entries[{number}]"
        ids = [each.id for each in entry.preferences]
        if len(ids) != len(set(ids)):
            raise wrong(where, "two preferences have the same id; give each its own")
        for at, each in enumerate(entry.preferences):
            place = f"{where}.preferences[{at}]"
            if not 0 < len(each.text.strip()) <= TEXT_CHARS_MAX:
                raise wrong(
                    f"{place}.text",
                    f"must have 1 to {TEXT_CHARS_MAX:,} characters; a preference is one sentence",
                )
            if not 0 <= each.weight < float("inf"):
                raise wrong(f"{place}.weight", "must be a number, 0 or more")
            if each.pinned and each.deleted:
                raise wrong(place, "is pinned and deleted; choose one of the two")
        if entry.use == "preferences" and not entry.voting():
            raise wrong(
                where, 'no preference votes; pin one, give one a weight, or set use to "plain"'
            )


def load_profile(path: str) -> Profile:
    """Read a profile file.

    Raises:
        InputError: it cannot be read, or it is no sound profile.
    """
    return _FILE.load(path)


_FILE = RecordFile(
    what="profile",
    made_by="dikast preferences fit",
    type=Profile,
    formats={"format": FORMAT},
    check=_check,
)


def encode_profile(profile: Profile) -> bytes:
    """A profile as the text of its file: JSON with one field a line, for people to read."""
    return msgspec.json.format(msgspec.json.encode(profile), indent=2) + b"\n"
