"""Made-up models for building a benchmark: they screen, answer and compare by what can be counted.

Stands where model APIs would, to try a build free of charge. Asked about a dialogue, it goes by a
marker such as `{topic=Math fault=unclear}` where there is one and by plain words where not; asked
to answer, it writes as many sound steps as the model's skill gives; asked to compare, it counts
them. Markers let a test plant what a build must find. Says nothing of real models.
"""

import math
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

import orjson

from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Call, Record
from dikast.engine.ports import Clock
from dikast.providers.simulated_words import SimulatedWords
from dikast.providers.simulation import FENCE, piece

_STEPS: Final = 10


class SimulatedBenchmarkSettings(
    Record, frozen=True, tag_field="kind", tag="simulated_benchmark", forbid_unknown_fields=True
):
    """Configuration of simulated models for `dikast benchmark build`."""

    seed: int = 0
    """Another seed is other models of the same character."""
    skill: dict[str, float] = {}
    """How well each model answers, 0 to 1, by its name; a model that is not named has 0.5."""
    screen_error_rate: float = 0.0
    """Share of prompts whose fault or topic the judge gets wrong, 0 to 1."""
    position_bias: float = 0.0
    """Sound steps that the answer shown first is given for free when two are compared."""
    garbage_rate: float = 0.0
    """Share of answers of the judge that cannot be read, 0 to 1."""
    latency_s: float = 0.0
    """Seconds until an answer."""


_MARK = re.compile(r"\{((?:topic|fault|gap)=[^{}]*)\}")
_FAULTS = ("none", "unclear", "redundant", "low_quality", "too_easy")
_TOPIC_WORDS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (topic, re.compile(words, re.IGNORECASE))
    for topic, words in (
        ("Code", r"代码|程序|函数|python|javascript|\bsql\b|function|\bcode\b|\bbug\b"),
        ("Translation", r"翻译|译成|translat"),
        ("Role", r"扮演|你是|you are an?|act as|role"),
        ("Math", r"方程|计算|证明|概率|equation|integral|probability|prove|how many"),
        ("Logic", r"推理|谁在说谎|谜|puzzle|liar|riddle|must be true"),
        ("NLU", r"总结|概括|提取|情感|summari[sz]e|extract|classify|sentiment"),
        ("Writing", r"写一|作文|诗|故事|write|poem|story|essay|letter"),
        ("QA", r"什么|为什么|如何|怎么|what|why|how|which|who"),
    )
)
_ENOUGH_CHARS = 8
_SOUND = "This step holds."
_UNSOUND = "This step is left open."


class SimulatedBenchmarkProvider(SimulatedWords):
    """A `Provider` without a network whose models build benchmarks.

    Args:
        settings: the models' character.
        clock: waits out the latency.
    """

    def __init__(self, settings: SimulatedBenchmarkSettings, clock: Clock) -> None:
        check_benchmark("simulated_benchmark", settings)
        super().__init__(settings.latency_s, clock)
        self._settings = settings

    def _say(self, prompt: str, call: Call) -> str:
        opening = FENCE.search(prompt)
        if opening is None:
            return self._answered(prompt, call)
        fence = opening.group(1)
        if self._uniform("odd", prompt, call) < self._settings.garbage_rate:
            return "It is hard to say."
        dialogue = piece(prompt, "DIALOGUE", fence)
        if dialogue is not None:
            return self._screened(dialogue, fence, call)
        first, second = (piece(prompt, f"ANSWER_{side}", fence) for side in "AB")
        if first is None or second is None:
            raise ProviderError("bad_request", "simulated: no dialogue and no two answers")
        lead = first.count(_SOUND) - second.count(_SOUND) + self._settings.position_bias
        better = "A" if lead > 0 else "B" if lead < 0 else "tie"
        said = f"{first.count(_SOUND)} sound steps against {second.count(_SOUND)}."
        return orjson.dumps({"analysis": said, "verdict": better}).decode()

    def _screened(self, dialogue: str, fence: str, call: Call) -> str:
        marks = _marks(dialogue)
        last = dialogue.rpartition(f"{fence}>>\n")[2]
        short = len("".join(last.split())) < _ENOUGH_CHARS
        fault = marks.get("fault", "too_easy" if short and not marks else "none")
        topic = marks.get("topic") or next(
            (name for name, words in _TOPIC_WORDS if words.search(last)), "Other"
        )
        draw = self._uniform("screen", dialogue.replace(fence, ""), call)
        if draw < self._settings.screen_error_rate:
            fault = "unclear" if fault == "none" else "none"
        said = f"The last turn has {len(last)} characters."
        return orjson.dumps({"analysis": said, "fault": fault, "topic": topic}).decode()

    def _answered(self, dialogue: str, call: Call) -> str:
        """Steps, of which the model's skill decides how many hold; `gap` turns or levels them."""
        gap = _marks(dialogue).get("gap", "plain")
        skill = self._settings.skill.get(call.judge.model, 0.5)
        if gap == "level":
            skill = 0.5
        elif gap == "reversed":
            skill = 1 - skill
        wobble = 0.0 if gap == "level" else self._uniform("answer", dialogue, call) - 0.5
        sound = max(0, min(_STEPS, round(_STEPS * skill + wobble)))
        steps = [_SOUND if at < sound else _UNSOUND for at in range(_STEPS)]
        lines = [f"{at}. {step}" for at, step in enumerate(steps, start=1)]
        number = int(1e6 * self._uniform("number", dialogue, call))
        return f"Draft {number}:\n" + "\n".join(lines)

    def _uniform(self, what: str, text: str, call: Call) -> float:
        draw = (call.judge.params.seed or 0) + call.sample
        parts = (self._settings.seed, what, call.judge.model, draw, text)
        data = "\x1f".join(map(str, parts)).encode("utf-8", "replace")
        return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") / 2**64

    def __repr__(self) -> str:
        return f"SimulatedBenchmarkProvider(seed {self._settings.seed})"


def check_benchmark(where: str, settings: SimulatedBenchmarkSettings) -> None:
    """See that the settings can work.

    Args:
        where: the settings' place in the configuration, for messages.
        settings: to be checked.

    Raises:
        ConfigError: a value is out of range; the message names the field.
    """
    for field in ("screen_error_rate", "garbage_rate"):
        if not 0 <= getattr(settings, field) <= 1:
            raise ConfigError(f"{where}.{field}: must lie between 0 and 1")
    for model, skill in settings.skill.items():
        if not 0 <= skill <= 1:
            raise ConfigError(f"{where}.skill.{model}: must lie between 0 and 1")
    if not 0 <= settings.latency_s < math.inf:
        raise ConfigError(f"{where}.latency_s: must be a number, 0 or more")
    if not math.isfinite(settings.position_bias):
        raise ConfigError(f"{where}.position_bias: must be a number")


def benchmark_character(settings: SimulatedBenchmarkSettings) -> Mapping[str, object]:
    """What of the settings decides the words; the latency does not."""
    return {
        name: getattr(settings, name) for name in settings.__struct_fields__ if name != "latency_s"
    }


def _marks(text: str) -> dict[str, str]:
    """The last marker in a text, as names and values."""
    found = _MARK.findall(text)
    if not found:
        return {}
    pairs = (each.partition("=") for each in found[-1].split())
    marks = {name: value for name, _, value in pairs}
    if marks.get("fault", "none") not in _FAULTS:
        del marks["fault"]
    return marks
