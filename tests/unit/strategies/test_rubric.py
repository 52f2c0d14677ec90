"""Rubrics: the shipped ones, one's own, and what is refused."""

import pytest

from dikast.engine.errors import ConfigError
from dikast.strategies import Rubric, Scale, load_rubric, parse_rubric, shipped_rubrics

OWN = """
name = "own"
version = "1"
language = "en"
[scale]
low = 0
high = 4
[[bands]]
low = 0
high = 2
means = "bad"
[[bands]]
low = 3
high = 4
means = "good"
[[dimensions]]
name = "zeal"
weight = 3
criteria = "How eager?"
[[dimensions]]
name = "art"
scale = { low = 1, high = 2, step = 0.5 }
criteria = "How fine?"
[[dimensions.bands]]
low = 1
high = 2
means = "any"
"""


def test_every_shipped_rubric_is_sound_and_names_what_it_says() -> None:
    found: dict[str, list[str]] = {
        name: [each.name for each in load_rubric(name).dimensions] for name in shipped_rubrics()
    }
    assert found == {
        "code-en": ["correctness", "robustness", "security", "readability"],
        "general-en": ["accuracy", "completeness", "safety", "clarity"],
        "general-zh": ["accuracy", "completeness", "safety", "clarity"],
        "summary-en": ["coherence", "consistency", "fluency", "relevance"],
        "translation-en": ["meaning", "terminology", "fluency", "style"],
    }
    assert all(load_rubric(name).name == name for name in found)


def test_both_languages_of_the_general_rubric_weigh_and_scale_alike() -> None:
    def shape(rubric: Rubric) -> list[tuple[str, float, Scale]]:
        return [(each.name, each.weight, rubric.scale_of(each)) for each in rubric.dimensions]

    assert shape(load_rubric("general-en")) == shape(load_rubric("general-zh"))


def test_the_total_is_the_weighted_mean_of_the_places_on_each_scale() -> None:
    rubric = parse_rubric(OWN)
    assert rubric.total({"zeal": 3, "art": 1.5}) == pytest.approx((3 * 0.75 + 1 * 0.5) / 4)
    assert rubric.total({"zeal": 4, "art": 2}) == 1.0
    assert rubric.total({"zeal": 0, "art": 1}) == 0.0


def test_key_points_count_with_their_own_weight() -> None:
    heavy = parse_rubric("key_points_weight = 4\n" + OWN)
    assert heavy.total({"zeal": 4, "art": 2}, 0.5) == pytest.approx((4 + 4 * 0.5) / 8)
    without = parse_rubric("key_points_weight = 0\n" + OWN)
    assert without.total({"zeal": 4, "art": 2}, 0.5) == 1.0


def test_the_hash_is_of_what_is_said_and_not_of_the_layout() -> None:
    plain = parse_rubric(OWN)
    assert parse_rubric("# a remark\n" + OWN.replace("=", " = ")).hash == plain.hash
    assert parse_rubric(OWN.replace("How eager?", "How keen?")).hash != plain.hash
    assert plain.id == f"own@1#{plain.hash[:8]}"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "own"', 'nam = "own"', "unknown field 'nam'; did you mean 'name'"),
        ('language = "en"', 'language = "de"', "language = 'de'"),
        ('name = "zeal"', 'name = "the zeal"', "dimension 'the zeal': a name is letters"),
        ('name = "zeal"', 'name = "class"', "dimension 'class': a name is letters"),
        ('name = "zeal"', 'name = "Art"', "the name is taken"),
        ('name = "zeal"', 'name = "total"', "the name is taken"),
        ("weight = 3", "weight = -1", "weight must be 0 or more"),
        ("weight = 3", "weight = nan", "weight must be 0 or more"),
        ('criteria = "How eager?"', 'criteria = " "', "criteria is empty"),
        ("high = 2\nmeans", "high = 1\nmeans", "no band says what 2 means"),
        ("low = 3", "low = 2", "more than one band says what 2 means"),
        ("high = 4\nmeans", "high = 5\nmeans", "both must be grades of the scale"),
        ("high = 2, step", "high = 2.2, step", "never reach 2.2"),
        ("step = 0.5", "step = 0", "step above 0"),
        ('\n[[dimensions.bands]]\nlow = 1\nhigh = 2\nmeans = "any"', "", "has no bands"),
        ('means = "any"', 'means = ""', "means is empty"),
        ("low = 0\nhigh = 4", "low = 0\nhigh = 4\nstep = 0.0001", "make step larger"),
    ],
)
def test_a_rubric_that_cannot_work_is_refused_with_its_place(old: str, new: str, says: str) -> None:
    assert old in OWN
    with pytest.raises(ConfigError) as caught:
        parse_rubric(OWN.replace(old, new), "mine.toml")
    assert str(caught.value).startswith("mine.toml")
    assert says in str(caught.value)


def test_an_unknown_rubric_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="unknown rubric 'generl-en'; did you mean 'general-en'"):
        load_rubric("generl-en")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_rubric("nowhere.toml")
