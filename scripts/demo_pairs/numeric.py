"""Arithmetic word problems and unit conversions, with working, in English and Chinese."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from .core import Item, pick_style
from .verify import has_token


@dataclass(frozen=True)
class Sum:
    """A problem: its text, the true and a mistaken way to reckon it, and what is asked for."""

    question: str
    expr: str
    answer: int
    bad_expr: str
    bad: int
    unit: str
    slip: str


def _shop(r: random.Random) -> Sum:
    who, thing = (
        r.choice(["Maya", "Tom", "Priya", "Jonas"]),
        r.choice(["notebooks", "mugs", "candles"]),
    )
    n, price, note = r.randint(3, 8), r.randint(4, 9), 100
    q = (
        f"{who} buys {n} {thing} at ${price} each and pays with a $100 note. "
        f"How much change does {who} get?"
    )
    return Sum(
        q,
        f"{note} - {n} * {price}",
        note - n * price,
        f"{note} - {n} - {price}",
        note - n - price,
        "dollars",
        "adds count and price instead of multiplying",
    )


def _orchard(r: random.Random) -> Sum:
    rows, trees, lost = r.randint(6, 15), r.randint(8, 19), r.randint(3, 9)
    q = (
        f"An orchard has {rows} rows with {trees} trees in each row. "
        f"A storm knocks down {lost} trees. "
        "How many trees are left standing?"
    )
    return Sum(
        q,
        f"{rows} * {trees} - {lost}",
        rows * trees - lost,
        f"{rows} * {trees} + {lost}",
        rows * trees + lost,
        "trees",
        "adds the lost trees",
    )


def _train(r: random.Random) -> Sum:
    fast, slow, a, b = r.randint(7, 12) * 10, r.randint(3, 6) * 10, r.randint(2, 4), r.randint(2, 5)
    q = (
        f"A train runs at {fast} km/h for {a} hours and then at {slow} km/h for {b} hours. "
        "How far does it go?"
    )
    return Sum(
        q,
        f"{fast} * {a} + {slow} * {b}",
        fast * a + slow * b,
        f"{fast} * {a} + {slow}",
        fast * a + slow,
        "kilometres",
        "counts one hour only of the second leg",
    )


def _share(r: random.Random) -> Sum:
    kids, each, more = r.randint(4, 9), r.randint(6, 14), r.randint(2, 5)
    total = kids * (each + more)
    q = (
        f"{kids} children share {total} stickers equally, and then each child gives away {more}. "
        "How many stickers does each child still have?"
    )
    return Sum(
        q,
        f"{total} / {kids} - {more}",
        each,
        f"{total} / {kids}",
        each + more,
        "stickers",
        "forgets the last step",
    )


def _shop_zh(r: random.Random) -> Sum:
    who, thing = r.choice(["小明", "王芳", "李老师"]), r.choice(["笔记本", "文件夹", "台历"])
    n, price = r.randint(3, 8), r.randint(4, 9)
    word = "本" if thing == "笔记本" else "个"
    q = f"{who}买了{n}{word}{thing}，每{word}{price}元，付了一张100元的钞票，应找回多少元？"
    return Sum(
        q,
        f"100 - {n} * {price}",
        100 - n * price,
        f"100 - {n} - {price}",
        100 - n - price,
        "元",
        "subtracts count and price instead of their product",
    )


def _bus_zh(r: random.Random) -> Sum:
    on, off, more = r.randint(28, 46), r.randint(5, 14), r.randint(3, 16)
    q = f"一辆公交车上有{on}人，到站后下去{off}人，又上来{more}人。现在车上有多少人？"
    return Sum(
        q,
        f"{on} - {off} + {more}",
        on - off + more,
        f"{on} - {off} - {more}",
        on - off - more,
        "人",
        "subtracts those who got on",
    )


def _field_zh(r: random.Random) -> Sum:
    a, b = r.randint(12, 35), r.randint(5, 11)
    q = f"一块长方形菜地长{a}米，宽{b}米，四周围一圈篱笆，篱笆一共长多少米？"
    return Sum(q, f"({a} + {b}) * 2", (a + b) * 2, f"{a} * {b}", a * b, "米", "works out the area")


EN: tuple[Callable[[random.Random], Sum], ...] = (_shop, _orchard, _train, _share)
ZH: tuple[Callable[[random.Random], Sum], ...] = (_shop_zh, _bus_zh, _field_zh)


def _write(r: random.Random, expr: str, value: int, unit: str, long: bool) -> str:
    shown = expr.replace("*", "×").replace("/", "÷")
    if unit.isascii():
        short = [
            f"{shown} = {value}, so the answer is {value} {unit}.",
            f"It comes to {value} {unit}: {shown}.",
            f"**{value} {unit}** ({shown} = {value})",
        ]
        full = [
            f"Let us take it step by step. "
            f"The numbers in the story give us the expression {shown}. "
            f"Working that out, we get {value}. The answer is {value} {unit}.",
            f"We first put the story into one line: {shown}. Multiplication and division go before "
            f"addition and subtraction, which leaves {value}. So the result is {value} {unit}.",
        ]
    else:
        short = [
            f"{shown} = {value}，所以是{value}{unit}。",
            f"答案：{value}{unit}（{shown} = {value}）。",
        ]
        full = [
            f"我们一步一步来算。根据题意可以列出算式：{shown}。算出来的结果是{value}，所以答案是{value}{unit}。",
            f"先把题目里的数量关系写成算式，得到 {shown}；"
            f"再按运算顺序计算，结果为{value}。答：{value}{unit}。",
        ]
    return r.choice(full if long else short)


def _arith(rng: random.Random, lang: str, count: int) -> list[Item]:
    makers = EN if lang == "en" else ZH
    items: list[Item] = []
    while len(items) < count:
        index = len(items)
        s = makers[index % len(makers)](rng)
        right_long, wrong_long = pick_style(index // len(makers) + index)
        right = _write(rng, s.expr, s.answer, s.unit, right_long)
        wrong = _write(rng, s.bad_expr, s.bad, s.unit, wrong_long)
        if s.bad <= 0 or has_token(wrong, str(s.answer)):
            continue
        items.append(
            Item(
                "arith",
                lang,
                (s.question,),
                right,
                wrong,
                "{wrong} " + s.slip,
                f"{s.answer} {s.unit}",
                meta={"expr": s.expr, "answer": str(s.answer)},
            )
        )
    return items


UNITS: tuple[tuple[str, str, str, str, int, int], ...] = (
    ("kilometres", "metres", "千米", "米", 1000, 100),
    ("hours", "minutes", "小时", "分钟", 60, 100),
    ("kilograms", "grams", "千克", "克", 1000, 100),
    ("days", "hours", "天", "小时", 24, 12),
    ("square metres", "square centimetres", "平方米", "平方厘米", 10000, 100),
    ("weeks", "days", "周", "天", 7, 5),
    ("litres", "millilitres", "升", "毫升", 1000, 100),
)


def _convert(index: int, unit: tuple[str, str, str, str, int, int], value: int, lang: str) -> Item:
    big, small, big_zh, small_zh, factor, bad = unit

    def tell(times: int, long: bool) -> str:
        total = value * times
        if lang == "zh":
            if not long:
                return f"{value}{big_zh}等于{total}{small_zh}。"
            return (
                f"换算时要先知道两个单位之间的关系：1{big_zh}等于{times}{small_zh}。"
                f"因此用{value}乘以{times}，得到{total}，也就是{total}{small_zh}。"
            )
        if not long:
            return f"{value} {big} = {total} {small}."
        return (
            f"To convert, remember that one {big[:-1]} is {times} {small}. "
            f"Multiply {value} by {times} "
            f"and you get {total} {small}."
        )

    right_long, wrong_long = pick_style(index + 1)
    question = (
        f"How many {small} are there in {value} {big}?"
        if index % 2
        else f"Please convert {value} {big} to {small}."
    )
    question = question if lang == "en" else f"{value}{big_zh}是多少{small_zh}？"
    answer = str(value * factor)
    return Item(
        "units",
        lang,
        (question,),
        tell(factor, right_long),
        tell(bad, wrong_long),
        f"{{wrong}} converts with {bad} instead of {factor}",
        f"{answer} {small}",
        meta={"expr": f"{value} * {factor}", "answer": answer},
    )


def make_items(rng: random.Random) -> list[Item]:
    """26 word problems and 14 conversions."""
    items = _arith(rng, "en", 16) + _arith(rng, "zh", 10)
    for lang, count in (("en", 8), ("zh", 6)):
        items += [
            _convert(n, UNITS[n % len(UNITS)], rng.randint(3, 19), lang) for n in range(count)
        ]
    return items
