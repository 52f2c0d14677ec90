"""A made-up chat log with planted faults: what is wrong with each line is known beforehand.

Seeded, half Chinese and half English, in three dialects. Beside the faults stand decoys (sound
lines that look faulty) and faults in a form that rules of thumb cannot see, so that neither the
precision nor the recall of a build is 1 by construction. The simulated models go by the markers
in the requests.
"""

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

TOPICS = ("Code", "Writing", "Translation", "Math", "QA", "NLU", "Role", "Logic")
_EN = (
    *("river", "harvest", "engine", "lantern", "market", "copper", "window", "garden", "ticket"),
    *("harbour", "mountain", "paper", "violin", "bridge", "winter", "kitchen", "planet", "signal"),
    *("forest", "teacher", "diamond", "carpet", "weather", "island", "museum", "pepper", "railway"),
    *(
        "blanket",
        "horizon",
        "candle",
        "festival",
        "tunnel",
        "library",
        "meadow",
        "compass",
        "ladder",
    ),
)
_ZH = (
    *("河流", "丰收", "引擎", "灯笼", "市场", "黄铜", "窗户", "花园", "车票", "港口"),
    *("山脉", "纸张", "提琴", "桥梁", "冬天", "厨房", "行星", "信号", "森林", "教师"),
    *("钻石", "地毯", "天气", "岛屿", "胡椒", "铁路", "毛毯", "蜡烛", "节日", "隧道"),
    *("草地", "罗盘", "梯子", "邮局", "雨伞", "瀑布", "陶瓷"),
)
_ASKS_EN = ("Explain how", "Please describe", "Can you compare", "Write about", "Tell me why")
_ASKS_ZH = ("请解释", "请描述", "帮我比较", "写一写", "告诉我为什么")

FAULTS = (
    *("not_json", "unknown_role", "empty_turn", "late_system", "damaged_text", "too_long"),
    *("assistant_first", "trailing_assistant", "role_shift", "literal_escapes"),
    *("control_characters", "repeated_speaker"),
    *("personal_email", "personal_phone", "personal_id", "personal_key", "near_duplicate"),
    *("unclear", "redundant", "low_quality", "too_easy", "other_topic"),
    *("no_difference", "weak_better"),
)
"""What is planted; each is also the name by which a build reports it."""

HARD = frozenset({"role_shift", "literal_escapes", "personal_email", "personal_phone"})
"""Faults of which one in ten is planted in a form that no rule knows."""


class Planted(NamedTuple):
    """One line of the log, the fault in it (or None), and whether it is a decoy or a hard case."""

    line: bytes
    fault: str | None
    decoy: str | None = None
    hard: bool = False


Turns = list[tuple[str, str]]


class _Writer:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.sound: list[Turns] = []

    def words(self, chinese: bool, count: int) -> str:
        if chinese:
            return "、".join(self.rng.choice(_ZH) for _ in range(count))
        return " ".join(self.rng.choice(_EN) for _ in range(count))

    def request(self, chinese: bool, mark: str = "") -> str:
        number = self.rng.randrange(10_000, 99_999)
        if chinese:
            asks = self.rng.choice(_ASKS_ZH)
            return f"{asks}{self.words(True, 14)}和第{number}号的关系。{mark}"
        return f"{self.rng.choice(_ASKS_EN)} {self.words(False, 14)} meet case {number}. {mark}"

    def answer(self, chinese: bool) -> str:
        if chinese:
            return f"以下是回答。{self.words(True, 20)}。\n{self.words(True, 10)}。"
        return f"Here is the answer. {self.words(False, 20)}.\n{self.words(False, 10)}."

    def dialogue(self, chinese: bool, mark: str) -> Turns:
        turns: Turns = []
        if self.rng.random() < 0.2:
            turns.append(("system", self.words(chinese, 6)))
        for _ in range(self.rng.choice((0, 0, 0, 1, 2))):
            turns += [("user", self.request(chinese)), ("assistant", self.answer(chinese))]
        turns.append(("user", self.request(chinese, mark)))
        return turns

    def row(self, turns: Turns, number: int) -> bytes:
        way = number % 3
        body: Any
        if way == 0:
            said = [{"role": role, "content": text} for role, text in turns]
            body = {"id": f"log-{number}", "messages": said}
        elif way == 1:
            names = {"user": "human", "assistant": "gpt", "system": "system"}
            body = {"conversations": [{"from": names.get(r, r), "value": t} for r, t in turns]}
        else:
            titles = {"user": "Human", "assistant": "Assistant", "system": "System"}
            body = [
                {"from": titles.get(role, role), "content": [{"type": "text", "value": text}]}
                for role, text in turns
            ]
        return json.dumps(body, ensure_ascii=False).encode()


def chat_log(
    rows: int, *, seed: int = 1, faulty: float = 0.5, decoys: float = 0.1
) -> list[Planted]:
    """Lines with their truth.

    Args:
        rows: how many.
        seed: of everything.
        faulty: share of lines with a planted fault, the kinds in turn.
        decoys: share of sound lines that look faulty.
    """
    writer = _Writer(seed)
    rng = writer.rng
    out: list[Planted] = []
    planted = 0
    for number in range(rows):
        chinese = rng.random() < 0.5
        draw = rng.random()
        mark = "{topic=" + rng.choice(TOPICS) + "}"
        if draw < faulty and len(writer.sound) > 5:
            fault = FAULTS[planted % len(FAULTS)]
            planted += 1
            hard = fault in HARD and rng.random() < 0.1
            out.append(
                Planted(_faulty(writer, fault, chinese, mark, number, hard), fault, None, hard)
            )
        elif draw < faulty + decoys:
            name = rng.choice(sorted(_DECOYS))
            turns = writer.dialogue(chinese, mark)
            turns[-1] = ("user", f"{turns[-1][1]} {_DECOYS[name]}")
            out.append(Planted(writer.row(turns, number), None, name))
        else:
            turns = writer.dialogue(chinese, mark)
            writer.sound.append(turns)
            out.append(Planted(writer.row(turns, number), None))
    return out


_DECOYS = {
    "latex": r"Use $\nabla f \neq 0$ and $\nu \to \theta$ in it.",
    "code": r'Keep the call printf("%d\n", total) as it is.',
    "path": r"The file lies in C:\new\table\notes there.",
    "order_number": "The order is 110105194912310029 in our list.",
    "example_mail": "Send it to user@example.com as a sample.",
    "version": "It runs on 10.24.138.1 since release 1.38.2024 there.",
    "question_back": "Is it like asking: would you like more?",
}


def _faulty(
    writer: _Writer, fault: str, chinese: bool, mark: str, number: int, hard: bool
) -> bytes:
    rng = writer.rng
    if fault == "not_json":
        return writer.row(writer.dialogue(chinese, mark), number)[:-3]
    if fault == "near_duplicate":
        return writer.row(_edited(rng, rng.choice(writer.sound)), number)
    if fault in ("unclear", "redundant", "low_quality", "too_easy"):
        return writer.row(writer.dialogue(chinese, mark[:-1] + f" fault={fault}" + "}"), number)
    if fault == "other_topic":
        return writer.row(writer.dialogue(chinese, "{topic=Other}"), number)
    if fault in ("no_difference", "weak_better"):
        gap = "level" if fault == "no_difference" else "reversed"
        return writer.row(writer.dialogue(chinese, mark[:-1] + f" gap={gap}" + "}"), number)
    turns = writer.dialogue(chinese, mark)
    if fault.startswith("personal_"):
        at = rng.choice([at for at, turn in enumerate(turns) if turn[0] == "user"])
        told = _personal(rng, fault.removeprefix("personal_"), hard)
        turns[at] = ("user", f"{told} {turns[at][1]}")
        return writer.row(turns, number)
    return writer.row(_BROKEN[fault](writer, turns, chinese, mark, hard), number)


def _edited(rng: random.Random, turns: Turns) -> Turns:
    """The same requests with a few characters exchanged, other spacing and other case."""
    out: Turns = []
    for role, text in turns:
        signs = list(text)
        if role == "user":
            for _ in range(max(1, len(signs) // 60)):
                place = rng.randrange(len(signs))
                if signs[place].isalpha():
                    signs[place] = rng.choice("xyz")
        changed = "".join(signs)
        body, brace, mark = changed.partition("{")
        out.append((role, body.upper().replace(" ", "  ") + brace + mark))
    return [*out[:-1], turns[-1]] if len(out) > 1 else out


def _trailing(writer: _Writer, turns: Turns, chinese: bool, mark: str, hard: bool) -> Turns:
    answer = writer.answer(chinese)
    if writer.rng.random() < 0.3:
        answer += " 还需要我继续吗？" if chinese else " Would you like me to go on?"
    if writer.rng.random() < 0.2:
        persona = "你是一名翻译。" if chinese else "You are a translator. "
        turns = [("user", persona + turns[-1][1])]
    return [*turns, ("assistant", answer)]


def _shifted(writer: _Writer, turns: Turns, chinese: bool, mark: str, hard: bool) -> Turns:
    persona = "你是一名耐心的老师，" if chinese else "You are a patient teacher of "
    if hard:
        persona = "规则如下：" if chinese else "House rules: "
    said = [persona + writer.words(chinese, 8)]
    for _ in range(writer.rng.choice((0, 1))):
        said += [writer.request(chinese), writer.answer(chinese)]
    said.append(writer.request(chinese, mark))
    return [("user" if at % 2 == 0 else "assistant", text) for at, text in enumerate(said)]


def _escaped(writer: _Writer, turns: Turns, chinese: bool, mark: str, hard: bool) -> Turns:
    lines = [writer.words(chinese, 6) for _ in range(3)]
    if hard:
        return [("user", turns[-1][1] + "\n" + r"\n".join(lines))]
    return [("user", r"\n".join([turns[-1][1], *lines]))]


def _repeated(writer: _Writer, turns: Turns, chinese: bool, mark: str, hard: bool) -> Turns:
    return [*turns[:-1], ("user", writer.request(chinese)), turns[-1]]


def _late(writer: _Writer, turns: Turns, chinese: bool, mark: str, hard: bool) -> Turns:
    first = [("user", writer.request(chinese)), ("assistant", writer.answer(chinese))]
    return [*first, ("system", "be brief"), turns[-1]]


_BROKEN: dict[str, Any] = {
    "unknown_role": lambda w, turns, c, m, h: [("narrator", "once"), *turns],
    "empty_turn": lambda w, turns, c, m, h: [*turns[:-1], ("user", "  ")],
    "late_system": _late,
    "damaged_text": lambda w, turns, c, m, h: [*turns[:-1], ("user", "\ufffd" + turns[-1][1])],
    "too_long": lambda w, turns, c, m, h: [("user", w.words(c, 9000) + turns[-1][1])],
    "assistant_first": lambda w, turns, c, m, h: [("assistant", w.answer(c)), turns[-1]],
    "trailing_assistant": _trailing,
    "role_shift": _shifted,
    "literal_escapes": _escaped,
    "control_characters": lambda w, turns, c, m, h: [*turns[:-1], ("user", "\x02" + turns[-1][1])],
    "repeated_speaker": _repeated,
}


def _personal(rng: random.Random, kind: str, hard: bool) -> str:
    digits = "".join(rng.choice("0123456789") for _ in range(8))
    name = "".join(rng.choice("abcdefghkmnprstw") for _ in range(7))
    if kind == "email":
        return f"{name} at corp dot com" if hard else f"{name}.{digits[:2]}@corp-mail.cn"
    if kind == "phone":
        if hard:
            return "call one three eight zero zero one three"
        ways = (f"138{digits}", f"+44 20 {digits[:4]} {digits[4:]}", f"(212) 555-{digits[:4]}")
        return rng.choice((*ways, f"139-{digits[:4]}-{digits[4:]}", f"010-{digits}"))
    if kind == "key":
        ways = (
            f"sk-proj{digits}{name}{digits}{name}",
            f"AKIA{digits}{digits[::-1]}",
            f"ghp_{digits * 4}",
        )
        return rng.choice(ways)
    return rng.choice((_citizen(digits), _card(digits), f"1{digits[:2]}-45-6789"))


def _citizen(digits: str) -> str:
    body = "11010519" + "491231" + digits[:3]
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(digit) * weight for digit, weight in zip(body, weights, strict=True))
    return body + "10X98765432"[total % 11]


def _card(digits: str) -> str:
    body = "4539" + digits + "123"
    total = 0
    for place, digit in enumerate(reversed(body)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return body + str(-total % 10)


def write_log(path: Path, log: list[Planted]) -> Path:
    """The lines as a file."""
    path.write_bytes(b"".join(each.line + b"\n" for each in log))
    return path
