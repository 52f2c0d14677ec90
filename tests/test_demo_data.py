"""The demo data set is reproducible and balanced; reckoned labels are proved."""

import ast
import datetime
import json
import operator
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "api" / "data" / "demo_pairs.jsonl"
SCRIPT = ROOT / "scripts" / "make_demo_pairs.py"
OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return [json.loads(line) for line in DATA.read_text(encoding="utf-8").split("\n")[:-1]]


def split(row: Row) -> tuple[str, str]:
    """The better and the worse answer."""
    first, second = row["response_a"], row["response_b"]
    return (first, second) if row["label"] == "A" else (second, first)


def has_token(text: str, token: str) -> bool:
    """Whether `token` stands in `text` by itself, not inside a longer number or word."""
    return re.search(rf"(?<![A-Za-z\d.]){re.escape(token)}(?![A-Za-z\d]|\.\d)", text) is not None


def reckon(node: ast.expr) -> float:
    """The value of a sum of whole numbers."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    assert isinstance(node, ast.BinOp)
    return OPERATORS[type(node.op)](reckon(node.left), reckon(node.right))


def recompute(row: Row) -> str:
    """The right answer worked out from the raw fields in `meta`, not `meta.answer`."""
    meta = row["meta"]
    if "expr" in meta:
        return f"{reckon(ast.parse(meta['expr'], mode='eval').body):g}"
    if "letter" in meta:
        return str(sum(letter == meta["letter"] for letter in meta["text"]))
    numbers = all(re.fullmatch(r"-?\d+", value) for value in meta["values"])
    ordered = sorted(meta["values"], key=int) if numbers else sorted(meta["values"])
    return ("，" if meta["lang"] == "zh" else ", ").join(ordered)


def run_snippet(answer: str, call: str) -> str:
    """What `call` gives with the function defined in `answer`, or the name of its exception."""
    found = re.search(r"```python\n(.*?)```", answer, re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found.group(1), names)
    try:
        return str(eval(call, names))
    except (ZeroDivisionError, IndexError) as error:
        return type(error).__name__


def test_file_is_reproducible() -> None:
    command = [sys.executable, str(SCRIPT), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_shape_of_every_row(rows: list[Row]) -> None:
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert ("question" in row) != ("messages" in row), row["id"]
        assert row["label"] in {"A", "B", "tie"}, row["id"]
        assert row["response_a"] != row["response_b"], row["id"]
        assert all((row["response_a"], row["response_b"], row["meta"]["why"])), row["id"]
        assert row["id"].startswith(f"demo:{row['category']}:")
        for number, message in enumerate(row.get("messages", [])):
            assert message["role"] == ("user", "assistant")[number % 2]
        assert "messages" not in row or row["messages"][-1]["role"] == "user"


def test_size_and_kinds(rows: list[Row]) -> None:
    assert len(rows) >= 220
    assert len({row["category"] for row in rows}) >= 10
    assert sum(row["meta"]["lang"] == "zh" for row in rows) >= 60
    assert sum("messages" in row for row in rows) >= 20


def test_no_question_with_the_same_answers_twice(rows: list[Row]) -> None:
    asked = Counter(json.dumps(row.get("question", row.get("messages"))) for row in rows)
    assert [question for question, times in asked.items() if times > 1] == []


def test_labels_are_balanced(rows: list[Row]) -> None:
    labels = Counter(row["label"] for row in rows)
    assert abs(labels["A"] - labels["B"]) <= 0.05 * len(rows)
    assert 5 <= labels["tie"] <= 15


def test_length_does_not_tell_the_label(rows: list[Row]) -> None:
    pairs = [split(row) for row in rows if row["label"] != "tie"]
    unequal = [(len(better), len(worse)) for better, worse in pairs if len(better) != len(worse)]
    share = sum(better > worse for better, worse in unequal) / len(unequal)
    assert 0.4 <= share <= 0.6


@pytest.mark.parametrize(
    ("category", "least"), [("arith", 20), ("units", 10), ("counting", 8), ("sorting", 8)]
)
def test_reckoned_labels(rows: list[Row], category: str, least: int) -> None:
    chosen = [row for row in rows if row["category"] == category]
    assert len(chosen) >= least
    for row in chosen:
        better, worse = split(row)
        answer = recompute(row)
        assert answer == row["meta"]["answer"], row["id"]
        assert has_token(better, answer), row["id"]
        assert not has_token(worse, answer), row["id"]


def test_dates(rows: list[Row]) -> None:
    for row in (row for row in rows if row["category"] == "dates"):
        start, end = (datetime.date.fromisoformat(row["meta"][key]) for key in ("start", "end"))
        days, better, worse = str((end - start).days), *split(row)
        answer = row["meta"]["answer"]
        assert answer == days or has_token(row["question"], days), row["id"]
        assert answer == days or re.findall(r"\d+", answer)[-1] in {str(end.day), str(end.year)}, (
            row["id"]
        )
        assert has_token(better, answer), row["id"]
        assert not has_token(worse, answer), row["id"]


def test_code_snippets(rows: list[Row]) -> None:
    for row in (row for row in rows if row["category"] == "code"):
        better, worse = split(row)
        call, answer = row["meta"]["call"], row["meta"]["answer"]
        assert run_snippet(better, call) == answer, row["id"]
        assert run_snippet(worse, call) != answer, row["id"]
