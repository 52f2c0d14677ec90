"""Recorded judges played back through the product: configuration, engine, gateway, replay provider.

What a figure is computed on went the way of a paid run: a `[strategy]` table as a user writes it,
every call through the gateway, every outcome out of the sink. Only the words are recorded. The
reports beside this file and the tests of recorded figures share it.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dikast.config import parse_settings
from dikast.engine.model import Failed, Outcome, Pair, Verdict
from dikast.engine.run import RunReport
from dikast.engine.sources import IterableSource
from dikast.sinks import MemorySink
from dikast.wiring import build_engine

TEMPLATES = Path(__file__).resolve().parents[1] / "examples" / "templates"


class Recorded(NamedTuple):
    """A judge as it was recorded: the file, its name there, the prompt's name, how it is read.

    `reader` is the name of a file in examples/templates. `first_repeat` is the number of the
    recorded repetition that answers sample 0.
    """

    file: Path
    model: str
    template: str
    reader: str
    first_repeat: int = 0
    family: str | None = None


class Played(NamedTuple):
    """What a run came to."""

    outcomes: dict[str, Outcome]
    report: RunReport

    def winner(self, pair_id: str) -> str:
        """The verdict; a pair without one is no right and no wrong one: a tie."""
        outcome = self.outcomes[pair_id]
        return outcome.winner if isinstance(outcome, Verdict) else "tie"

    def winners(self, pairs: Iterable[Pair]) -> list[str]:
        """The verdicts on `pairs`, in their order."""
        return [self.winner(pair.id) for pair in pairs]


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file of JSON lines, gzip."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def reference(data: Path, name: str) -> Any:
    """One part of the independently computed figures."""
    figures = json.loads((data / "reference_figures_dev.json").read_text(encoding="utf-8"))
    return figures[name]


def configuration(judges: Mapping[str, Recorded], strategy: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a run over recorded judges, as its TOML would be read."""
    providers: dict[str, Any] = {}
    entries: dict[str, Any] = {}
    for name, judge in judges.items():
        provider = f"recorded-{name}"
        providers[provider] = {
            "kind": "replay",
            "paths": [str(judge.file)],
            "template": judge.template,
            "first_repeat": judge.first_repeat,
        }
        entries[name] = {"provider": provider, "model": judge.model}
        if judge.family is not None:
            entries[name]["family"] = judge.family
    return {"providers": providers, "judges": entries, "strategy": dict(strategy)}


def single(name: str, judge: Recorded, **more: Any) -> dict[str, Any]:
    """A `pairwise` node that asks a recorded judge."""
    return {
        "kind": "pairwise",
        "judge": name,
        "template": str(TEMPLATES / f"{judge.reader}.toml"),
        **more,
    }


def both_orders(name: str, judge: Recorded) -> dict[str, Any]:
    """A `swap` node over a recorded judge."""
    return {"kind": "swap", "inner": single(name, judge)}


def panel(judges: Mapping[str, Recorded], **rules: Any) -> dict[str, Any]:
    """A `committee` node in which every judge votes after both orders."""
    members = [{"strategy": both_orders(*each)} for each in judges.items()]
    return {"kind": "committee", "members": members, **rules}


async def play(config: Mapping[str, Any], pairs: Sequence[Pair]) -> Played:
    """Judge the pairs as `dikast judge` would; every one must come to an outcome, none may fail."""
    sink = MemorySink()
    async with build_engine(parse_settings(config)) as engine:
        report = await engine.run(IterableSource(pairs), sink)
    assert report.complete
    failed = [each for each in sink.outcomes if isinstance(each, Failed)]
    assert failed == []
    return Played({each.id: each for each in sink.outcomes}, report)


def labelled_pairs(data: Path, name: str) -> tuple[dict[str, Pair], dict[str, str]]:
    """The pairs of a set by id, and the subset of each."""
    pairs: dict[str, Pair] = {}
    subsets: dict[str, str] = {}
    for row in rows(data / "pairs" / f"{name}.jsonl.gz"):
        pairs[row["id"]] = Pair(
            id=row["id"],
            question=row["question"],
            response_a=row["response_a"],
            response_b=row["response_b"],
            label=row["label"],
        )
        subsets[row["id"]] = row["subset"]
    return pairs, subsets


# By the name in a configuration: the name under which it was recorded, and the file.
LLMBAR_JUDGES = {
    "falcon": ("falcon-180b-chat", "llmbar__falcon"),
    "chatgpt-0301": ("gpt-3.5-turbo-0301", "llmbar__chatgpt_0301"),
    "chatgpt": ("gpt-3.5-turbo-0613", "llmbar__chatgpt"),
    "gpt-4": ("gpt-4 (2023, Azure/OpenAI)", "llmbar__gpt_4"),
    "llama2": ("llama-2-70b-chat", "llmbar__llama2"),
    "palm2": ("palm2-text-bison-001", "llmbar__palm2"),
}
LLMBAR_PROMPTS = ("Vanilla", "CoT", "Metrics_Reference")


def llmbar_reader(file: str, template: str) -> str:
    """The reader by which LLMBar's outputs were recorded (its evaluator configurations).

    Args:
        file: name of the file of outputs.
        template: name of the prompt in it, such as "llmbar/CoT".
    """
    kind = template.removeprefix("llmbar/")
    if "palm2" in file or kind not in ("CoT", "Swap", "Swap_CoT"):
        return "llmbar-short"
    return "llmbar-comparison" if kind == "Swap" else "llmbar-reasoned"


def llmbar(data: Path, kind: str) -> dict[str, Recorded]:
    """LLMBar's six judges under one of its prompts, each read as when it was recorded."""
    return {
        name: Recorded(
            file=data / "judge_outputs" / f"{file}.jsonl.gz",
            model=model,
            template=f"llmbar/{kind}",
            reader=llmbar_reader(file, kind),
        )
        for name, (model, file) in LLMBAR_JUDGES.items()
    }
