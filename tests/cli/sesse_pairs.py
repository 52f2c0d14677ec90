"""Labelled pairs for tests of SESSE from end to end, and a judge with weaknesses planted in it.

Pairs of LLMBar and JudgeBench where the data lies beside the repository, else the shipped ones.
"""

import gzip
import json
from pathlib import Path

from tests.cli.tools import DEMO, write_rows

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "pairs"
REAL = ("llmbar", "judgebench")
FIELDS = ("id", "question", "response_a", "response_b", "label", "category")

CRITERIA = {
    "count": "the request asks for an exact number of items",
    "code": "programming source is wanted by the user",
    "limit": "a bound on the length was set",
    "tone": "some tone of voice is demanded",
}
PLANTED = """
[providers.planted]
kind = "simulated"
seed = 5
truth = "pairs.jsonl"
accuracy = 0.9
concurrency_start = 64
{more}
""" + "".join(
    f"""
[[providers.planted.criteria]]
name = "{name}"
condition = "{condition}"
conclusion = "taking care of the {name}"
applies = 0.4
blind = 0.8
skill = 0.85
"""
    for name, condition in CRITERIA.items()
)
THERE = """
[providers.there]
kind = "openai"
base_url = "{url}"
api_key_env = ""
concurrency_start = 64
"""
JUDGE = """
[judges.j]
provider = "{provider}"
model = "planted-1"
{more}
"""
STRATEGY = """
[strategy]
kind = "sesse"
judge = "j"
library = "{library}"
depth = 2
"""


def write_pairs(path: Path, count: int) -> Path:
    """`count` pairs labelled A or B, in equal parts from each set, or of the shipped ones."""
    if not DATA.is_dir():
        rows = [json.loads(line) for line in DEMO.read_text("utf-8").splitlines()]
        decided = [row for row in rows if row["label"] in ("A", "B")]
        return write_rows(path, decided[:count])
    found: list[dict[str, object]] = []
    for name in REAL:
        with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            rows = [row for line in file if (row := json.loads(line))["label"] in ("A", "B")]
        found += [
            {field: row[field] for field in FIELDS if row.get(field) is not None}
            for row in rows[: count // len(REAL)]
        ]
    return write_rows(path, found)
