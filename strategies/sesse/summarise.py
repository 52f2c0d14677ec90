"""Stage 4, first half: one condition for each theme, by which the judge later picks the themes.

Comes after ordering. Where no answer can be read, the theme is labelled with the condition of its
most central question, and the library says so.
"""

from collections.abc import Sequence

import msgspec

from dikast.engine.model import Completion, Judge
from dikast.engine.ports import Ask
from dikast.strategies.sesse.library import Question
from dikast.strategies.sesse.prompts import SUMMARISE, stage_template
from dikast.strategies.sesse.stages import Answered, ask_twice, read_json, stage_call

LABEL_CHARS_MAX = 300


class _Summary(msgspec.Struct):
    condition: str


class Summariser:
    """Writes the label of a theme.

    Args:
        judge: who writes.
        seed: the fences.
    """

    def __init__(self, judge: Judge, *, seed: int) -> None:
        self._judge = judge
        self._template = stage_template(SUMMARISE)
        self._seed = seed

    async def label(self, cid: str, questions: Sequence[Question], ask: Ask) -> Answered[str]:
        """The common condition of questions in order; `value` is None where none could be read.

        Raises:
            ProviderError: the call failed for good, refusals excepted.
            RunStopped: the run ends.
        """
        conditions = "\n".join(f"- {question.condition}" for question in questions)
        call = stage_call(
            self._judge, self._template, {"conditions": conditions}, self._seed, f"cluster {cid}"
        )
        return await ask_twice(ask, call, _read)


def _read(completion: Completion) -> str | None:
    found = read_json(completion, _Summary)
    text = " ".join(found.condition.split()).rstrip(" .") if found is not None else ""
    return text if 0 < len(text) <= LABEL_CHARS_MAX else None
