"""Boilerplate: what each rule takes, what it leaves alone, and that nothing is ever emptied."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dikast.strategies.boilerplate import RULES, strip_boilerplate


@pytest.mark.parametrize(
    ("text", "left", "rules"),
    [
        ("Hello! Paris is it.", "Paris is it.", ["greeting"]),
        ("Hi there,\n\nParis.", "Paris.", ["greeting"]),
        ("As an AI language model, I cannot vote.", "I cannot vote.", ["self_reference"]),
        ("I'm ChatGPT, a model made by OpenAI. It is 4.", "It is 4.", ["self_reference"]),
        ("Sure, here is the list: a, b", "here is the list: a, b", ["assent"]),
        ("Certainly! Below is code.", "Below is code.", ["assent"]),
        (
            "Sure! I'd be happy to help. The answer is 4.",
            "The answer is 4.",
            ["assent", "pleasantry"],
        ),
        ("That's a great question! It is 4.", "It is 4.", ["pleasantry"]),
        ("Thank you for your question. It is 4.", "It is 4.", ["pleasantry"]),
        ("It is 4.\n\nI hope this helps!", "It is 4.", ["closing_offer"]),
        (
            "It is 4. I hope this helps! Let me know if you have any other questions.",
            "It is 4.",
            ["closing_offer"],
        ),
        ("It is 4. Please feel free to ask me anything.", "It is 4.", ["closing_offer"]),
        (
            "It is 4. If you need more, don't hesitate to ask.",
            "It is 4.",
            ["closing_offer"],
        ),
        ("你好！答案是4。", "答案是4。", ["greeting"]),
        ("作为一个AI语言模型，我不能投票。", "我不能投票。", ["self_reference"]),
        ("好的，以下是清单：甲、乙。", "以下是清单：甲、乙。", ["assent"]),
        ("很高兴为您解答。答案是4。", "答案是4。", ["pleasantry"]),
        ("这是一个很好的问题。答案是4。", "答案是4。", ["pleasantry"]),
        ("答案是4。希望这对你有帮助！", "答案是4。", ["closing_offer"]),
        ("答案是4。如果你还有其他问题，请随时告诉我。", "答案是4。", ["closing_offer"]),
        (
            "您好，感谢您的提问！答案是4。欢迎随时提问。",
            "答案是4。",
            ["greeting", "pleasantry", "closing_offer"],
        ),
    ],
)
def test_each_rule_takes_its_phrase_and_counts_its_characters(
    text: str, left: str, rules: list[str]
) -> None:
    found = strip_boilerplate(text)
    assert found.text == left
    assert sorted(found.removed) == sorted(rules)
    assert set(rules) <= set(RULES)
    assert sum(found.removed.values()) == len(text) - len(left)


@pytest.mark.parametrize(
    "text",
    [
        "Sure.",
        "Of course, but only on Sundays.",
        "Yes. Absolutely!",
        "Hello!",
        "I hope this helps!",
        "Hi, ",
        "Hello world programs print a line.",
        "He said: as an AI language model, I lie.",
        "Hiking is healthy.",
        "Please let me know what system you use and I can tell more.",
        "The error says 'let me know if it fails' in the middle. It is 4.",
        "作为老师，我认为可以。",
        "好的教育很重要。",
        "print('hi')\n```",
        "",
        "   ",
    ],
)
def test_what_may_be_the_answer_is_left_alone(text: str) -> None:
    found = strip_boilerplate(text)
    assert found.text is text
    assert found.removed == {}


PIECES = (
    *(
        "Hello! ",
        "Sure! ",
        "I'd be happy to help. ",
        "As an AI, ",
        "你好！",
        "好的，",
        "以下是",
        "4",
    ),
    *(
        "It is so. ",
        "I hope this helps! ",
        "Let me know if not. ",
        "\n",
        "希望对你有帮助！",
        "。",
        "...",
    ),
)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_nothing_is_emptied_and_what_is_left_is_a_piece_of_the_text_with_nothing_more_to_take(
    text: str,
) -> None:
    found = strip_boilerplate(text)
    assert found.text in text
    assert bool(found.text.strip()) == bool(text.strip())
    assert sum(found.removed.values()) == len(text) - len(found.text)
    assert strip_boilerplate(found.text) == (found.text, {})


def test_a_long_text_costs_no_more_than_a_look_at_its_ends() -> None:
    text = "a word, " * 200_000
    assert strip_boilerplate(text).text is text
