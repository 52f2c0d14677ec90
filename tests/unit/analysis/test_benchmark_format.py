"""What is wrong with a logged dialogue, and what is put right: roles, endings, escapes."""

import pytest

from dikast.analysis.benchmark_format import examine
from dikast.analysis.benchmark_text import unescaped
from dikast.engine.model import Message


def turns(*said: str) -> list[Message]:
    """Turns written as "u text", "a text" or "s text"."""
    roles = {"u": "user", "a": "assistant", "s": "system"}
    return [Message(role=roles[each[0]], content=each[2:]) for each in said]


def shape(messages: tuple[Message, ...]) -> list[str]:
    return [f"{each.role[0]} {each.content}" for each in messages]


def test_a_sound_dialogue_stays_as_it_is() -> None:
    said = ("s Be brief.", "u Hello there", "a Hi.", "u What is a prime number?")
    seen = examine(turns(*said))
    assert seen.findings == ()
    assert seen.reason is None
    assert shape(seen.messages) == list(said)


def test_a_logged_answer_at_the_end_is_taken_off() -> None:
    seen = examine(turns("u What is a prime?", "a A number with two divisors."))
    assert shape(seen.messages) == ["u What is a prime?"]
    assert seen.repairs == ("trailing_assistant",)
    assert seen.findings[0].turn == 1


@pytest.mark.parametrize(
    ("said", "fixed"),
    [
        (
            ("u 你是一名资深律师。", "a 请说明押金的规定。"),
            ["s 你是一名资深律师。", "u 请说明押金的规定。"],
        ),
        (
            ("u You are a cook.", "a How do I fry rice?", "u Heat oil first.", "a Please go on."),
            [
                "s You are a cook.",
                "u How do I fry rice?",
                "a Heat oil first.",
                "u Please go on.",
            ],
        ),
        (
            ("u 论文翻译助手", "a Long text here. 帮我翻译成中文"),
            ["s 论文翻译助手", "u Long text here. 帮我翻译成中文"],
        ),
        (
            ("u 写一份观影心得", "a 写一份观影心得", "u 影片很好。", "a 写一份自我介绍"),
            ["u 写一份观影心得", "a 影片很好。", "u 写一份自我介绍"],
        ),
    ],
)
def test_roles_that_were_shifted_by_one_are_shifted_back(
    said: tuple[str, ...], fixed: list[str]
) -> None:
    seen = examine(turns(*said))
    assert seen.repairs == ("role_shift",)
    assert shape(seen.messages) == fixed


@pytest.mark.parametrize(
    "said",
    [
        ("u You are a translator. Translate: Katze", "a Cat. Would you like more words?"),
        ("u 你是一名翻译，翻译：猫", "a 好的，cat。还需要我继续吗？"),
        ("u You are a helper.", "a Hello! How may I help you today?"),
        ("u Act as a poet. Write on rain.", "a Rain falls on the tin roofs of the town."),
        ("u 扮演丝丝：看那只猫！", "a 请提供更多信息。"),
    ],
)
def test_an_answer_to_a_persona_in_the_user_s_turn_is_no_shift(said: tuple[str, ...]) -> None:
    seen = examine(turns(*said))
    assert [each.kind for each in seen.findings] == ["trailing_assistant"]
    assert [each.role for each in seen.messages] == ["user"]


def test_a_last_request_whose_speaker_is_in_doubt_is_left_to_people() -> None:
    seen = examine(turns("u 信息技术可以分为哪些", "a 请列出工作步骤和交付物。"))
    assert seen.reason == "unclear_roles"
    assert seen.findings[-1].turn == 1


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ((), "no_turns"),
        (("a Hi.", "u Hello, what is a prime?"), "assistant_first"),
        (("u One", "a Two", "s Be brief.", "u Three"), "late_system"),
        (("u One", "a Two", "u  "), "empty_turn"),
        (("s Be brief.",), "nothing_asked"),
        (("u lost \ufffd sign",), "damaged_text"),
        (("u " + "x" * 101,), "too_long"),
    ],
)
def test_what_only_people_could_mend_is_turned_away_with_the_reason(
    said: tuple[str, ...], reason: str
) -> None:
    assert examine(turns(*said), chars_max=100).reason == reason


def test_a_speaker_twice_in_a_row_becomes_one_turn_and_control_characters_go() -> None:
    seen = examine(turns("u First\x02 part", "u second part"))
    assert shape(seen.messages) == ["u First part\n\nsecond part"]
    assert seen.repairs == ("control_characters", "repeated_speaker")


def test_an_empty_answer_at_the_end_and_an_empty_system_turn_go() -> None:
    seen = examine(turns("s ", "u What is a prime?", "a  "))
    assert shape(seen.messages) == ["u What is a prime?"]
    assert seen.reason is None


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"第一行\n第二行", "第一行\n第二行"),
        (r"First line.\nSecond line.", "First line.\nSecond line."),
        (r"one line\ntwo lines\nthree lines", "one line\ntwo lines\nthree lines"),
        (r"A\r\nB", "A\nB"),
        (r"Say \"hi\".\nThen go.", 'Say "hi".\nThen go.'),
        (
            r"$\left(\n\frac{1}{2}\n\right)$.\nSolve it",
            "$\\left(\n\\frac{1}{2}\n\\right)$.\nSolve it",
        ),
    ],
)
def test_escapes_in_place_of_line_breaks_are_undone(text: str, plain: str) -> None:
    assert unescaped(text) == plain


@pytest.mark.parametrize(
    "text",
    [
        r"Minimise $\nabla f$ where $\nu \neq \theta$.",
        r'Explain printf("%d\n", x) please.',
        r"Open C:\new\notes and C:\next\name there.",
        "Real lines\nand a \\n in code",
        r"A regex such as `\n+` splits lines",
        "no escapes",
    ],
)
def test_a_backslash_that_means_itself_stays(text: str) -> None:
    assert unescaped(text) == text
