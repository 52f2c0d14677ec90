"""Stage 1: from each misjudged row to a few conditional questions, drafted by the judge itself.

Comes after error collection. The drafting judge sees the pair as it was shown, the wrong verdict
with its reasons, and the label. What it drafts goes through `hygiene` before it counts.
"""

import msgspec

from dikast.engine.model import Completion, Judge, Pair, flip_winner
from dikast.engine.ports import Ask
from dikast.strategies.sesse.holistic import Judged
from dikast.strategies.sesse.hygiene import Draft
from dikast.strategies.sesse.prompts import DRAFT, shown_texts, stage_template
from dikast.strategies.sesse.stages import Answered, ask_twice, read_json, stage_call


class _Drafts(msgspec.Struct):
    questions: list[Draft]


class Sketch:
    """Drafts questions.

    Args:
        judge: who drafts.
        q: the most questions for one row.
        seed: the fences.
    """

    def __init__(self, judge: Judge, *, q: int, seed: int) -> None:
        self._judge = judge
        self._template = stage_template(DRAFT)
        self._q = q
        self._seed = seed

    async def draft(self, pair: Pair, judged: Judged, ask: Ask) -> Answered[list[Draft]]:
        """The drafts for one misjudged row; `value` is None where no answer could be read.

        Raises:
            ProviderError: the call failed for good, refusals excepted.
            RunStopped: the run ends.
        """
        shown = pair if judged.order == "ab" else pair.swapped()
        assert pair.label is not None
        assert judged.verdict != "INVALID"
        ab = judged.order == "ab"
        data = {
            **shown_texts(shown, self._seed),
            "analysis": judged.analysis or "(none were given)",
            "verdict": judged.verdict if ab else flip_winner(judged.verdict),
            "better": str(shown.label),
            "count": str(self._q),
        }
        call = stage_call(self._judge, self._template, data, self._seed, pair.id)

        return await ask_twice(ask, call, _read)


def _read(completion: Completion) -> list[Draft] | None:
    """The drafts, in the object that was asked for or as a bare list."""
    found = read_json(completion, _Drafts)
    return read_json(completion, list[Draft]) if found is None else found.questions
