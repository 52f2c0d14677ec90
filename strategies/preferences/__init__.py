"""Judging as one person would: a person's labels become sentences, the sentences vote.

Before a run, `labels` and `writer` serve `dikast preferences fit`; in a run, `strategy` judges
pairs with the `profile` that came of it. Nothing here needs numpy: what is chosen, is chosen in
`dikast.analysis`. Source of the method: SenseJudge (arXiv 2606.03189, sections 3.1 to 3.2), with
the differences listed in docs/preferences.md.
"""

from dikast.strategies.preferences.cells import CellPicks, Cells, cell_picks
from dikast.strategies.preferences.labels import (
    LabelBook,
    Labelled,
    PersonLabels,
    Split,
    read_labels,
    split_labels,
)
from dikast.strategies.preferences.profile import (
    Entry,
    Preference,
    Profile,
    ProfileLoader,
    WrittenWith,
    encode_profile,
    load_profile,
    parse_profile,
)
from dikast.strategies.preferences.strategy import (
    TEMPLATES,
    PreferencesConfig,
    build_preferences,
    preference_calls,
    preference_judge,
)
from dikast.strategies.preferences.writer import (
    WRITER_PROMPT,
    Example,
    Written,
    examples_text,
    preferences_text,
    write_sentence,
)

__all__ = [
    "TEMPLATES",
    "WRITER_PROMPT",
    "CellPicks",
    "Cells",
    "Entry",
    "Example",
    "LabelBook",
    "Labelled",
    "PersonLabels",
    "Preference",
    "PreferencesConfig",
    "Profile",
    "ProfileLoader",
    "Split",
    "Written",
    "WrittenWith",
    "build_preferences",
    "cell_picks",
    "encode_profile",
    "examples_text",
    "load_profile",
    "parse_profile",
    "preference_calls",
    "preference_judge",
    "preferences_text",
    "read_labels",
    "split_labels",
    "write_sentence",
]
