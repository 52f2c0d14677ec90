"""Personal data is found where it stands, and what only looks like it is left alone."""

import pytest

from dikast.analysis.benchmark_privacy import masked, personal_in
from dikast.engine.model import Message


def kinds(text: str) -> list[str]:
    return [each.kind for each in personal_in([Message(role="user", content=text)])]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("write to jane.doe@corp.com", "email"),
        ("邮箱是zhang@corp.cn。", "email"),
        ("电话13800138000谢谢", "phone"),
        ("+86 138-0013-8000", "phone"),
        ("call (212) 555-0199 now", "phone"),
        ("+44 20 7946 0018", "phone"),
        ("010-62345678", "phone"),
        ("身份证11010519491231002X", "id"),
        ("ssn 123-45-6789", "id"),
        ("card 4539 1488 0343 6467", "id"),
        ("GB82 WEST 1234 5698 7654 32", "id"),
        ("key sk-abcdefghij0123456789XYZ", "key"),
        ("密钥sk-abcdefghij0123456789XYZ。", "key"),
        ("AKIAIOSFODNN7EXAMPLE", "key"),
        ("-----BEGIN RSA PRIVATE KEY-----", "key"),
    ],
)
def test_each_kind_is_found(text: str, kind: str) -> None:
    assert kinds(text) == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "user@example.com is a sample",
        "身份证110105194912310021",  # the check character is wrong
        "card 4539 1488 0343 6468",
        "8 28 936294041850197 1 2 473294720906780 1 3",
        "pi is 3.14159265358979323846",
        "version 10.24.138.1 of 2024-05-06",
        "1380013800 is one digit short",
        "GB82 WEST 1234 5698 7654 33",
        "mail me at jane at corp dot com",
    ],
)
def test_numbers_with_a_wrong_check_digit_and_samples_are_left_alone(text: str) -> None:
    assert kinds(text) == []


def test_the_body_of_a_private_key_is_masked_with_it() -> None:
    text = "Use\n-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----\nplease"
    (hidden,) = masked([Message(role="user", content=text)])
    assert hidden.content == "Use\n[KEY]\nplease"
    (hidden,) = masked([Message(role="user", content=text[:40])])
    assert hidden.content == "Use\n[KEY]"


def test_a_mask_hides_exactly_what_was_found_in_every_turn() -> None:
    turns = [
        Message(role="user", content="I am jane@corp.com, 13800138000."),
        Message(role="assistant", content="Hello jane@corp.com"),
    ]
    hidden = masked(turns)
    assert [each.content for each in hidden] == ["I am [EMAIL], [PHONE].", "Hello [EMAIL]"]
    assert personal_in(hidden) == []
    assert [each.turn for each in personal_in(turns)] == [0, 0, 1]
