"""Recorded judges, replayed through swap: picks and figures equal what was published.

The raw texts of real judges come from the replay provider and go through the engine, templates,
readers and both orders; the expected figures were computed independently of this project.
"""

import json
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bench.recorded import labelled_pairs, llmbar_reader, rows
from dikast.engine.model import Judge, Order, Pair, Undecided, Verdict
from dikast.engine.run import Engine
from dikast.engine.sources import IterableSource
from dikast.providers import ReplayProvider, ReplaySettings
from dikast.providers.replay import find_files, read_records
from dikast.sinks import MemorySink
from dikast.strategies import Pairwise, PromptTemplate, load_template, parse_template, swap

TEMPLATES = Path(__file__).resolve().parents[2] / "examples" / "templates"
LLMBAR = (
    *("llmbar__chatgpt", "llmbar__chatgpt_0301", "llmbar__falcon", "llmbar__gpt_4"),
    *("llmbar__llama2", "llmbar__palm2"),
    *("llmbar_case__chatgpt", "llmbar_case__gpt_4", "llmbar_case__palm2"),
    *("llmbar_human__chatgpt", "llmbar_human__gpt_4", "llmbar_human__llama2"),
    "llmbar_human__palm2",
)
POSITION = {
    "MTBench": (
        *("mtbench_pb__gemini-pro", "mtbench_pb__gpt-3.5-turbo-1106"),
        *("mtbench_pb__gpt-4-0613", "mtbench_pb_repetition"),
    ),
    "DevBench": (
        *("devbench_pb__claude-3-haiku-20240307", "devbench_pb__gemini-pro"),
        *("devbench_pb__gpt-3.5-turbo-0125", "devbench_pb__gpt-3.5-turbo-1106"),
        *("devbench_pb__gpt-4-0613", "devbench_pb_repetition"),
    ),
}
Picks = tuple[str | None, str | None]


@pytest.fixture(autouse=True)
def each_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file holds many judges and repetitions; every provider over it would read it whole."""
    read = cache(lambda files: read_records(list(files)))
    monkeypatch.setattr("dikast.providers.replay.read_records", lambda files: read(tuple(files)))


def template(name: str) -> PromptTemplate:
    return load_template(str(TEMPLATES / f"{name}.toml"))


async def replay(
    path: Path, records: list[dict[str, Any]], pairs: dict[str, Pair], prompt: PromptTemplate
) -> dict[str, tuple[Picks, Verdict | Undecided]]:
    """Judge every pair in both orders; the picks (None: no verdict) and the outcome by pair id.

    The words come from the replay provider over `path`; `records` are those of one judge, template
    and repetition in it, and say which. Also holds every outcome against its two picks.
    """
    first = records[0]
    settings = ReplaySettings(
        paths=(str(path),), template=first["template"], first_repeat=first.get("repeat") or 0
    )
    provider = ReplayProvider(find_files("recorded", settings), settings)
    judge = Judge(name="recorded", provider="recorded", model=first["judge"], by_pair=True)
    sink = MemorySink()
    asked = [
        pairs.get(pair_id) or Pair(id=pair_id, response_a="a", response_b="b")
        for pair_id in dict.fromkeys(row["pair_id"] for row in records)
    ]
    strategy = swap(Pairwise(judge, prompt, seed=11))
    async with Engine(strategy, {"recorded": provider}) as engine:
        report = await engine.run(IterableSource(asked), sink)
    assert report.complete
    assert report.ledger.calls == len(records)
    result: dict[str, tuple[Picks, Verdict | Undecided]] = {}
    for outcome in sink.outcomes:
        assert isinstance(outcome, Verdict | Undecided)
        by_order: dict[Order, str | None] = {
            vote.order: None if vote.pick == "none" else vote.pick for vote in outcome.votes
        }
        picks = (by_order["ab"], by_order["ba"])
        if None in picks:
            assert isinstance(outcome, Undecided)
        else:
            assert isinstance(outcome, Verdict)
            agreed = picks[0] if picks[0] == picks[1] else "tie"
            assert outcome.winner == agreed
        result[outcome.id] = (picks, outcome)
    return result


def unlike_recorded(
    records: list[dict[str, Any]], judged: dict[str, tuple[Picks, Verdict | Undecided]]
) -> list[tuple[str, str, str | None, str | None]]:
    """Every text whose reading differs from its recorded verdict: pair, order, read, recorded."""
    differing = []
    for row in records:
        read = judged[row["pair_id"]][0][0 if row["order"] == "ab" else 1]
        if read != row["verdict"]:
            differing.append((row["pair_id"], row["order"], read, row["verdict"]))
    return differing


def figures(judged: list[tuple[Picks, Verdict | Undecided]], pairs: dict[str, Pair]) -> Any:
    """LLMBar's figures: a text without a verdict is not right; two of them agree."""
    n = len(judged)
    right = both = agree = 0
    for (first, second), outcome in judged:
        label = pairs[outcome.id].label
        right += (first == label) + (second == label)
        both += (
            isinstance(outcome, Verdict) and outcome.basis == "agree" and (outcome.winner == label)
        )
        agree += first == second
    return {
        "n": n,
        "acc_avg": round(100 * right / 2 / n, 2),
        "acc_both": round(100 * both / n, 2),
        "position_agreement": round(100 * agree / n, 2),
    }


async def check_llmbar(data: Path, file: str, prompts: dict[str, PromptTemplate] | None) -> None:
    """Replay one file; `prompts` None means: each template by the reader it was recorded with."""
    name = file.split("__")[0]
    pairs, subsets = labelled_pairs(data, name)
    reference = json.loads((data / "reference_figures_dev.json").read_text(encoding="utf-8"))
    table = {
        (entry["set"], entry["judge"], entry["template"]): entry["subsets"]
        for entry in reference["llmbar"]["table"]
    }
    path = data / "judge_outputs" / f"{file}.jsonl.gz"
    by_template: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows(path):
        if row["raw"] is not None:
            by_template[row["template"]].append(row)
    assert by_template
    for recorded, records in by_template.items():
        prompt = prompts["all"] if prompts else template(llmbar_reader(file, recorded))
        judged = await replay(path, records, pairs, prompt)
        assert unlike_recorded(records, judged) == []
        groups: dict[str, list[tuple[Picks, Verdict | Undecided]]] = defaultdict(list)
        for pair_id, result in judged.items():
            groups[subsets[pair_id]].append(result)
        expected = table[name, records[0]["judge"], recorded.removeprefix("llmbar/")]
        assert groups.keys() == expected.keys()
        for subset, group in groups.items():
            got = figures(group, pairs)
            assert got == {key: expected[subset][key] for key in got}, (file, recorded, subset)


@pytest.mark.parametrize("file", [file for file in LLMBAR if "gpt_4" in file])
async def test_one_template_reproduces_every_gpt4_figure_of_llmbar(data: Path, file: str) -> None:
    await check_llmbar(data, file, {"all": template("llmbar-comparison")})


@pytest.mark.parametrize("file", LLMBAR)
async def test_every_llmbar_figure_equals_the_published_one(data: Path, file: str) -> None:
    await check_llmbar(data, file, None)


def position_rows(
    records: list[dict[str, Any]],
) -> dict[tuple[str, int], list[dict[str, Any]]]:
    groups: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in records:
        groups[row["judge"], row["repeat"]].append(row)
    return groups


def position_figures(judged: dict[str, tuple[Picks, Verdict | Undecided]]) -> dict[str, int]:
    counts: Counter[str] = Counter(
        extracted=0, pairs=0, consistent=0, primacy_pairs=0, recency_pairs=0
    )
    for picks, _ in judged.values():
        counts["extracted"] += sum(pick is not None for pick in picks)
        if None in picks:
            continue
        counts["pairs"] += 1
        if picks[0] == picks[1]:
            counts["consistent"] += 2
            continue
        # What was picked in the order "ab" and what in "ba": A/B, A/tie and tie/B lean to the
        # answer shown first.
        leans_first = picks in (("A", "B"), ("A", "tie"), ("tie", "B"))
        counts["primacy_pairs" if leans_first else "recency_pairs"] += 1
    return dict(counts)


@pytest.mark.parametrize(
    ("bench", "file"), [(bench, file) for bench, files in POSITION.items() for file in files]
)
async def test_position_consistency_equals_the_published_one(
    data: Path, bench: str, file: str
) -> None:
    prompt = template("mtbench-marker" if bench == "MTBench" else "devbench-choice")
    reference = json.loads((data / "reference_figures_dev.json").read_text(encoding="utf-8"))
    expected = {
        (entry["judge"], entry["repeat"]): entry
        for entry in reference["position_bias"]["rows"]
        if entry["bench"] == bench
    }
    path = data / "judge_outputs" / f"{file}.jsonl.gz"
    groups = position_rows(list(rows(path)))
    assert groups
    for key, records in groups.items():
        judged = await replay(path, records, {}, prompt)
        assert unlike_recorded(records, judged) == []
        got = position_figures(judged)
        assert got == {name: expected[key][name] for name in got}, (bench, key)


# Texts with two different marks. The study recorded the first mark; a reader that does not guess
# leaves them undecided. Counted by judge: all name both marks in a sentence such as "[[A]] is
# better than [[B]]", or quote the instruction's list of marks before the verdict.
TWO_MARKS = {
    "mtbench_pb__gemini-pro": {"gemini-pro": 14},
    "mtbench_pb__gpt-3.5-turbo-1106": {},
    "mtbench_pb__gpt-4-0613": {},
    "mtbench_pb_repetition": {"gemini-pro": 4, "gpt-4-0125-preview": 1},
}


@pytest.mark.parametrize("file", TWO_MARKS)
async def test_texts_with_two_marks_are_unparsed_unless_the_template_says_which(
    data: Path, file: str
) -> None:
    text = (TEMPLATES / "mtbench-marker.toml").read_text(encoding="utf-8")
    prompt = parse_template(text.replace('take = "first"', 'take = "only"'))
    path = data / "judge_outputs" / f"{file}.jsonl.gz"
    groups = position_rows(list(rows(path)))
    unread: Counter[str] = Counter()
    for (judge, _), records in groups.items():
        judged = await replay(path, records, {}, prompt)
        for _, _, read, _ in unlike_recorded(records, judged):
            assert read is None
            unread[judge] += 1
    assert unread == TWO_MARKS[file]


async def test_no_ordinary_text_has_two_choices(data: Path) -> None:
    text = (TEMPLATES / "devbench-choice.toml").read_text(encoding="utf-8")
    prompt = parse_template(text.replace('take = "first"', 'take = "only"'))
    for file in POSITION["DevBench"]:
        path = data / "judge_outputs" / f"{file}.jsonl.gz"
        for records in position_rows(list(rows(path))).values():
            assert unlike_recorded(records, await replay(path, records, {}, prompt)) == []
