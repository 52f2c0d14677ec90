"""Recorded LLMBar judges as an `Ask` in memory: many strategies over the same words in a moment."""

from pathlib import Path

from bench.recorded import llmbar_reader, rows
from dikast.engine.model import Call, Completion, Judge, Order
from dikast.strategies import PromptTemplate, load_template

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "templates"
JUDGES = {
    "falcon-180b-chat": "llmbar__falcon",
    "gpt-3.5-turbo-0301": "llmbar__chatgpt_0301",
    "gpt-3.5-turbo-0613": "llmbar__chatgpt",
    "gpt-4 (2023, Azure/OpenAI)": "llmbar__gpt_4",
    "llama-2-70b-chat": "llmbar__llama2",
    "palm2-text-bison-001": "llmbar__palm2",
}
TEMPLATES = ("Vanilla", "CoT", "Metrics_Reference")


class Recorded:
    """Serves what each judge said of each pair in each order, by number of the draw."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str, Order, int], str] = {}

    async def __call__(self, call: Call) -> Completion:
        text = self.texts[call.judge.name, call.pair_id, call.order, call.sample]
        return Completion(text=text, finish_reason="stop")


def recorded_judge(name: str) -> Judge:
    return Judge(name=name, provider="replay", model=name, by_pair=True)


def llmbar(data: Path, kind: str) -> tuple[Recorded, dict[str, PromptTemplate]]:
    """What all judges said under one template, and the prompt that reads each of them."""
    ask, prompts = Recorded(), {}
    for name, file in JUDGES.items():
        for row in rows(data / "judge_outputs" / f"{file}.jsonl.gz"):
            if row["template"] == f"llmbar/{kind}":
                ask.texts[name, row["pair_id"], row["order"], 0] = row["raw"]
        reader = llmbar_reader(file, f"llmbar/{kind}")
        prompts[name] = load_template(str(EXAMPLES / f"{reader}.toml"))
    return ask, prompts
