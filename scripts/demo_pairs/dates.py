"""Date reckoning: so many days on, and days between two dates."""

import datetime
import random

from .core import Item, pick_style

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def _name(day: datetime.date, lang: str) -> str:
    if lang == "zh":
        return f"{day.year}年{day.month}月{day.day}日"
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _tell_later(start: str, days: int, end: str, lang: str, long: bool) -> str:
    if lang == "zh":
        if not long:
            return f"是{end}。"
        return (
            f"从{start}的第二天开始数第1天，依次往后数满{days}天，"
            f"中间要注意每个月的天数。数到最后一天，就是{end}。"
        )
    if not long:
        return f"That will be {end}."
    return (
        f"Counting starts on the day after {start}. Going forward {days} days, and minding "
        f"how long each "
        f"month is, we land on {end}."
    )


def _tell_between(days: int, lang: str, long: bool) -> str:
    if lang == "zh":
        return (
            f"把每个月剩下的天数依次加起来，再加上最后一个月的日数，一共相差{days}天。"
            if long
            else f"相差{days}天。"
        )
    if long:
        return (
            f"Add up the days left in the first month, the full months after it, "
            f"and the days of the last "
            f"month. Altogether the two dates are {days} days apart."
        )
    return f"{days} days."


def _later(rng: random.Random, index: int, lang: str) -> Item:
    start = datetime.date(rng.randint(2019, 2029), rng.randint(1, 12), rng.randint(3, 27))
    days = rng.randint(25, 90)
    end = start + datetime.timedelta(days=days)
    off = rng.choice([-2, -1, 1, 2])
    bad = end + datetime.timedelta(days=off)
    long_right, long_wrong = pick_style(index)
    first, answer = _name(start, lang), _name(end, lang)
    question = (
        f"What date is {days} days after {first}?"
        if index % 4
        else (
            f"A parcel posted on {first} must be claimed exactly {days} days later. "
            "Which date is that?"
        )
    )
    question = question if lang == "en" else f"{first}之后的第{days}天是哪一天？"
    return Item(
        "dates",
        lang,
        (question,),
        _tell_later(first, days, answer, lang, long_right),
        _tell_later(first, days, _name(bad, lang), lang, long_wrong),
        f"{{wrong}} is off by {abs(off)} day{'s' * (abs(off) > 1)}",
        answer,
        meta={"start": start.isoformat(), "end": end.isoformat(), "answer": answer},
    )


def _between(rng: random.Random, index: int, lang: str) -> Item:
    start = datetime.date(rng.randint(2019, 2029), rng.randint(1, 9), rng.randint(3, 27))
    days = rng.randint(30, 95)
    end = start + datetime.timedelta(days=days)
    long_right, long_wrong = pick_style(index)
    bad = days + rng.choice([-3, -2, 2, 10])
    first, last = _name(start, lang), _name(end, lang)
    question = f"How many days are there from {first} to {last}, not counting the first day?"
    question = question if lang == "en" else f"从{first}到{last}相差多少天？（不算第一天）"
    return Item(
        "dates",
        lang,
        (question,),
        _tell_between(days, lang, long_right),
        _tell_between(bad, lang, long_wrong),
        f"{{wrong}} is off by {abs(bad - days)} days",
        str(days),
        meta={"start": start.isoformat(), "end": end.isoformat(), "answer": str(days)},
    )


def make_items(rng: random.Random) -> list[Item]:
    """Eight English and six Chinese items."""
    items: list[Item] = []
    for lang, count in (("en", 8), ("zh", 6)):
        for index in range(count):
            items.append((_between if index % 3 == 1 else _later)(rng, index, lang))
    return items
