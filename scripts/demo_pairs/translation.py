"""Translation of simple sentences put together from parts, with one part mistranslated."""

import random

from .core import Item

Pair = tuple[str, str]
WHO: tuple[Pair, ...] = (
    ("My sister", "我姐姐"),
    ("The new teacher", "新来的老师"),
    ("Our neighbour", "我们的邻居"),
    ("Doctor Li", "李医生"),
    ("The old farmer", "那位老农"),
)
WHEN: tuple[Pair, ...] = (
    ("yesterday morning", "昨天上午"),
    ("last Friday", "上周五"),
    ("in March", "三月份"),
    ("the day before yesterday", "前天"),
)
COUNT: tuple[Pair, ...] = (("three", "三"), ("five", "五"), ("twelve", "十二"), ("thirty", "三十"))
THING: tuple[tuple[str, str, str], ...] = (
    ("umbrellas", "把", "雨伞"),
    ("history books", "本", "历史书"),
    ("tickets", "张", "票"),
    ("chairs", "把", "椅子"),
)
VERB: tuple[Pair, ...] = (
    ("bought", "买了"),
    ("sold", "卖了"),
    ("borrowed", "借来了"),
    ("lost", "丢了"),
)


def _other(rng: random.Random, pool: tuple[Pair, ...], taken: Pair) -> Pair:
    return rng.choice([pair for pair in pool if pair != taken])


def _english(who: Pair, verb: Pair, count: Pair, thing: tuple[str, str, str], when: Pair) -> str:
    return f"{who[0]} {verb[0]} {count[0]} {thing[0]} {when[0]}."


def _chinese(who: Pair, verb: Pair, count: Pair, thing: tuple[str, str, str], when: Pair) -> str:
    return f"{who[1]}{when[1]}{verb[1]}{count[1]}{thing[1]}{thing[2]}。"


def _make(rng: random.Random, index: int, to_chinese: bool) -> Item:
    who, verb, count, when = rng.choice(WHO), rng.choice(VERB), rng.choice(COUNT), rng.choice(WHEN)
    thing = rng.choice(THING)
    render = _chinese if to_chinese else _english
    right = render(who, verb, count, thing, when)
    part = ("subject", "verb", "number", "time")[index % 4]
    wrong = render(
        _other(rng, WHO, who) if part == "subject" else who,
        _other(rng, VERB, verb) if part == "verb" else verb,
        _other(rng, COUNT, count) if part == "number" else count,
        thing,
        _other(rng, WHEN, when) if part == "time" else when,
    )
    source = (_english if to_chinese else _chinese)(who, verb, count, thing, when)
    if to_chinese:
        ask = ("Translate into Chinese: {}", "How do I say this in Chinese? “{}”")[
            index % 2
        ].format(source)
        wrap = ("{}", "In Chinese: {}")
    else:
        ask = ("请把这句话翻译成英文：{}", "“{}”用英语怎么说？")[index % 2].format(source)
        wrap = ("{}", "译文：{}")
    # The wrapping is longer in the wrong answer as often as in the right one.
    longer = index // 2 % 2
    return Item(
        "translation",
        "en" if to_chinese else "zh",
        (ask,),
        wrap[longer].format(right),
        wrap[1 - longer].format(wrong),
        f"{{wrong}} mistranslates the {part}",
        right,
    )


def make_items(rng: random.Random) -> list[Item]:
    """Twelve sentences into Chinese and twelve into English."""
    return [_make(rng, n, to_chinese) for to_chinese in (True, False) for n in range(12)]
