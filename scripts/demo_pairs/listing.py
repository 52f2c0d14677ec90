"""Sorting and counting: answers that a few lines of code can prove."""

import random

from .core import Item, pick_style

WORDS = (
    "lantern",
    "orbit",
    "pepper",
    "quilt",
    "river",
    "saddle",
    "timber",
    "umbrella",
    "violin",
    "walnut",
    "anchor",
    "basket",
    "candle",
    "dragon",
    "engine",
    "falcon",
    "garden",
)
COUNTS: tuple[tuple[str, str], ...] = (
    ("strawberry", "r"),
    ("Mississippi", "s"),
    ("bookkeeper", "e"),
    ("assassination", "s"),
    ("parallel", "l"),
    ("committee", "t"),
    ("banana bread and jam", "a"),
)
COUNTS_ZH: tuple[tuple[str, str], ...] = (
    ("山外有山，山上有树，树下有人", "山"),
    ("知之为知之，不知为不知", "知"),
    ("妈妈骑马，马慢，妈妈骂马", "马"),
    ("天天向上，天道酬勤，天长地久", "天"),
    ("花开花落，看花的人换了又换", "花"),
)


def _sorting(rng: random.Random, index: int, lang: str) -> Item:
    by_number = lang == "zh" or index % 2 == 0
    values = [str(n) for n in rng.sample(range(-40, 160), 6)] if by_number else rng.sample(WORDS, 6)
    ordered = sorted(values, key=int) if by_number else sorted(values)
    spoiled = list(ordered)
    at = rng.randrange(1, 4)
    spoiled[at], spoiled[at + 1] = spoiled[at + 1], spoiled[at]
    if lang == "zh":
        question = f"请把下面的数从小到大排列：{'，'.join(values)}"
        short, long = "{}", "先找出最小的数，再依次比较剩下的数，最后得到从小到大的顺序：{}。"
    elif by_number:
        question = f"Sort these numbers from smallest to largest: {', '.join(values)}"
        short, long = (
            "{}",
            "Negative numbers, if any, come first, and then the rest by size. Sorted: {}.",
        )
    else:
        question = f"Put these words in alphabetical order: {', '.join(values)}"
        short, long = (
            "In order: {}",
            "I compared the words letter by letter from the left. The list is now: {}.",
        )
    joiner = "，" if lang == "zh" else ", "
    answer = joiner.join(ordered)
    long_right, long_wrong = pick_style(index + 1)
    return Item(
        "sorting",
        lang,
        (question,),
        (long if long_right else short).format(answer),
        (long if long_wrong else short).format(joiner.join(spoiled)),
        "{wrong} has two neighbours in the wrong order",
        answer,
        meta={"values": list(values), "answer": answer},
    )


def _counting(rng: random.Random, index: int, lang: str) -> Item:
    text, letter = (COUNTS if lang == "en" else COUNTS_ZH)[index]
    true = text.count(letter)
    bad = true + rng.choice([-1, 1])
    long_right, long_wrong = pick_style(index)

    def tell(n: int, long: bool) -> str:
        if lang == "zh":
            return (
                f"我把这句话从头到尾逐字看了一遍，每遇到一个“{letter}”就记一次。这样数下来，一共出现了{n}次。"
                if long
                else f"一共{n}次。"
            )
        return (
            f"Going through “{text}” one letter at a time and marking every “{letter}” on the way, "
            f"I arrive at a total of {n}."
            if long
            else f"There are {n}."
        )

    question = f"How many times does the letter “{letter}” occur in “{text}”?"
    question = question if lang == "en" else f"“{text}”这句话里，“{letter}”字出现了几次？"
    return Item(
        "counting",
        lang,
        (question,),
        tell(true, long_right),
        tell(bad, long_wrong),
        f"{{wrong}} says {bad}, it is {true}",
        str(true),
        meta={"text": text, "letter": letter, "answer": str(true)},
    )


def make_items(rng: random.Random) -> list[Item]:
    """Eleven sorting and twelve counting items."""
    items: list[Item] = []
    for lang, sorts, counts in (("en", 6, len(COUNTS)), ("zh", 5, len(COUNTS_ZH))):
        items += [_sorting(rng, n, lang) for n in range(sorts)]
        items += [_counting(rng, n, lang) for n in range(counts)]
    return sorted(items, key=lambda item: item.category)
