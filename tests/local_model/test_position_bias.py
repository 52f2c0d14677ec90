"""A real model of half a billion parameters prefers the answer shown first; both orders cure it.

Opt-in, minutes long: see docs/local-model.md. Prints the numbers that the page quotes.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from dikast.analysis.intervals import wilson
from dikast.engine.model import flip_pick
from tests.cli.tools import Cli, rows_of, write_rows
from tests.local_model.conftest import LocalServer

pytestmark = [pytest.mark.realtime, pytest.mark.slow]
LETTER = Path(__file__).resolve().parents[2] / "examples" / "templates" / "letter.toml"
# Question, right answer, wrong answer: nobody doubts which is better.
FACTS = (
    ("What is 7 times 8?", "56", "54"),
    ("Which planet is closest to the sun?", "Mercury", "Neptune"),
    ("What is the capital of France?", "Paris", "Lyon"),
    ("How many legs does a spider have?", "Eight", "Six"),
    ("What gas do plants take in?", "Carbon dioxide", "Helium"),
    ("Write the plural of 'child'.", "children", "childs"),
    ("What is the square root of 81?", "9", "8"),
    ("Which is the largest ocean?", "The Pacific Ocean", "The Arctic Ocean"),
    ("What is the boiling point of water at sea level?", "100 degrees C", "50 degrees C"),
    ("Who wrote 'Hamlet'?", "William Shakespeare", "Isaac Newton"),
    ("What is 15 percent of 200?", "30", "45"),
    ("Translate 'good morning' into Spanish.", "Buenos dias", "Buenas noches"),
    ("Which keyword defines a function in Python?", "def", "function"),
    ("What is the past tense of 'go'?", "went", "goed"),
    ("How many days are in a leap year?", "366", "365"),
    ("What is the chemical symbol of gold?", "Au", "Ag"),
    ("Which animal barks?", "A dog", "A cat"),
    ("What is the opposite of 'hot'?", "cold", "warm"),
    ("How many sides has a hexagon?", "Six", "Five"),
    ("Which month comes after March?", "April", "May"),
    ("What is 2 to the power of 5?", "32", "25"),
    ("What do bees make?", "Honey", "Milk"),
    ("Sort 3, 1, 2 in ascending order.", "1, 2, 3", "3, 2, 1"),
    ("Is 17 a prime number?", "Yes", "No"),
    # The wording of the template was chosen on those above; these were asked once, after that.
    ("What is 9 plus 6?", "15", "16"),
    ("What is the capital of Japan?", "Tokyo", "Osaka"),
    ("Which language is spoken in Brazil?", "Portuguese", "Swedish"),
    ("How many minutes are in an hour?", "60", "100"),
    ("What color is a ripe banana?", "Yellow", "Blue"),
    ("What is the freezing point of water?", "0 degrees C", "10 degrees C"),
    ("Which animal lays eggs?", "A hen", "A cow"),
    ("What is half of 50?", "25", "20"),
    ("What is the plural of 'mouse'?", "mice", "mouses"),
    ("Who painted the Mona Lisa?", "Leonardo da Vinci", "Albert Einstein"),
    ("Which number is even?", "14", "15"),
    ("What does a fish breathe with?", "Gills", "Wings"),
    ("What is the largest planet?", "Jupiter", "Mars"),
    ("Which is a fruit?", "An apple", "A brick"),
    ("How many continents are there?", "Seven", "Three"),
    ("What is 100 minus 1?", "99", "98"),
    ("Which comes first in the alphabet?", "D", "P"),
    ("What do we call a baby dog?", "A puppy", "A kitten"),
    ("Which file extension has Python code?", ".py", ".jpg"),
    ("What is the chemical formula of water?", "H2O", "CO2"),
    ("Which day follows Monday?", "Tuesday", "Friday"),
    ("What is 3 times 3?", "9", "6"),
    ("Which metal is liquid at room temperature?", "Mercury", "Iron"),
    ("What is the first month of the year?", "January", "June"),
)


def pairs() -> list[dict[str, Any]]:
    """Half of the right answers stand first."""
    return [
        {"id": f"f{k}", "question": question, "label": "AB"[k % 2]}
        | {"response_a": (right, wrong)[k % 2], "response_b": (wrong, right)[k % 2]}
        for k, (question, right, wrong) in enumerate(FACTS)
    ]


def judged(cli: Cli, folder: Path, server: LocalServer, name: str, strategy: str) -> list[Any]:
    """The outcomes of one strategy; both share a call store, so no call is made twice."""
    provider = "".join(f"{key} = {json.dumps(value)}\n" for key, value in server.provider().items())
    config = folder / f"{name}.toml"
    config.write_text(
        f"strategy = {strategy}\n"
        f'[providers.local]\n{provider}[judges.small]\nprovider = "local"\n'
        f"model = {json.dumps(server.model)}\nmax_tokens = 4\nlogprobs = true\ntop_logprobs = 20\n"
        f"[run]\nworkers = 1\n"
    )
    source = write_rows(folder / "pairs.jsonl", pairs())
    out = folder / f"{name}.jsonl"
    ran = cli("judge", source, "-o", out, "--config", config, "--store", folder / "calls.sqlite")
    assert ran.code == 0, ran.err
    return rows_of(out)


def asked(order: str) -> str:
    """A `pairwise` node, as TOML."""
    return (
        f'{{ kind = "pairwise", judge = "small", template = {json.dumps(str(LETTER))}, '
        f'decide = "logprobs", order = "{order}" }}'
    )


def swapped(inner: str) -> str:
    """A `swap` node, as TOML."""
    return f'{{ kind = "swap", inner = {inner} }}'


def shown_first(vote: dict[str, Any]) -> bool:
    """Whether the pick was the answer that stood first."""
    pick = vote["pick"] if vote["order"] == "ab" else flip_pick(vote["pick"])
    return bool(pick == "A")


def mean_pick(votes: list[dict[str, Any]]) -> str:
    """The answer with the greater probability, averaged over both orders."""
    share = sum(vote["probabilities"]["A"] - vote["probabilities"]["B"] for vote in votes)
    return "A" if share > 0 else "B"


def told(name: str, hits: int, n: int) -> None:
    interval = wilson(hits, n)
    print(f"{name}: {hits} of {n}, {hits / n:.1%} [{interval.low:.1%}, {interval.high:.1%}]")


def test_the_first_answer_is_preferred_and_both_orders_undo_it(
    cli: Cli, tmp_path: Path, local_server: LocalServer, capfd: pytest.CaptureFixture[str]
) -> None:
    single = judged(cli, tmp_path, local_server, "single", asked("ab"))
    both = judged(cli, tmp_path, local_server, "both", swapped(asked("ab")))
    n = len(FACTS)
    labels = {each["id"]: each["label"] for each in pairs()}
    assert {each["id"] for each in single} == {each["id"] for each in both} == set(labels)
    assert all(each["kind"] == "verdict" for each in single + both)
    # The order that was asked before is not asked again.
    assert sum(each.get("stored_calls", 0) for each in both) == n
    votes = [vote for each in both for vote in each["votes"]]
    assert all(vote["decided_by"] == "logprobs" for vote in votes)
    assert all(set(vote["probabilities"]) == {"A", "B"} for vote in votes)

    first = sum(map(shown_first, votes))
    one = sum(each["winner"] == labels[each["id"]] for each in single)
    right = sum(each["winner"] == labels[each["id"]] for each in both)
    tied = sum(each["winner"] == "tie" for each in both)
    mean = sum(mean_pick(each["votes"]) == labels[each["id"]] for each in both)
    with capfd.disabled():
        told("picks of the answer shown first", first, 2 * n)
        told("one order, right", one, n)
        told("one order, wrong", n - one, n)
        told("both orders, right", right, n)
        told("both orders, tie because they disagree", tied, n)
        told("both orders, wrong", n - right - tied, n)
        told("mean probability of both orders, right", mean, n)

    # True of any model: what both orders agree on was right or wrong in each of them already.
    assert n - right - tied <= n - one
    assert all(
        each["basis"] == ("disagree" if each["winner"] == "tie" else "agree") for each in both
    )
    assert right <= mean
    # True of a small one: it looks at the position. Alone that is a verdict, wrong as often as
    # right, for half of the right answers stand first; in both orders it is a tie that says so.
    assert wilson(first, 2 * n).low > 0.5
    assert n - right - tied < (n - one) / 2
