"""Stage 0: where is the judge wrong? Every row is judged once as a whole, reasons first.

First contact of a row with the judge that is mined. Which answer is shown first is the hash of
seed and id, as everywhere. An unreadable answer is asked for once more; if that is unreadable
too the row counts as wrong, but nothing is learned from it: it failed at the format and not at
the criteria.
"""

from typing import Literal

import msgspec

from dikast.engine.errors import ProviderError
from dikast.engine.model import Judge, Order, Pair, Record, Verdict
from dikast.engine.ports import Ask
from dikast.strategies.pairwise import Pairwise, order_of
from dikast.strategies.sesse.prompts import holistic_template
from dikast.strategies.text import blank_thoughts

_ANALYSIS_CHARS = 6000

Said = Literal["A", "B", "INVALID"]


class Judged(Record, frozen=True):
    """One row's holistic judgement, in the terms of the pair; a line of holistic.jsonl."""

    id: str
    label: str
    verdict: Said
    order: Order
    calls: int
    why: str | None = None
    category: str | None = None
    key: str | None = None
    analysis: str = ""

    @property
    def correct(self) -> bool:
        """Whether the verdict is the label; what cannot be read is not."""
        return self.verdict == self.label

    @property
    def mined(self) -> bool:
        """Whether it is an error to learn from: read, and wrong."""
        return self.verdict != "INVALID" and not self.correct


class _Words(msgspec.Struct):
    analysis: str


class Holistic:
    """The judge of stage 0.

    Args:
        judge: whom to ask.
        seed: fixes orders and fences.
    """

    def __init__(self, judge: Judge, *, seed: int) -> None:
        template = holistic_template()
        self._seed = seed
        self._tries = [
            Pairwise(judge, template, seed=seed, sample=sample, keep_text=True) for sample in (0, 1)
        ]

    @property
    def strategy(self) -> Pairwise:
        """The first question as a strategy, for specs."""
        return self._tries[0]

    async def judge(self, pair: Pair, ask: Ask) -> Judged:
        """Judge one labelled row.

        Raises:
            ProviderError: the call failed for good, refusals excepted.
            RunStopped: the run ends.
        """
        assert pair.label is not None
        why, calls = None, 0
        for strategy in self._tries:
            calls += 1
            try:
                outcome = await strategy.judge(pair, ask)
            except ProviderError as error:
                if error.kind != "refused":
                    raise
                return self._row(pair, "INVALID", calls, why="refused")
            if isinstance(outcome, Verdict) and outcome.winner != "tie":
                vote = outcome.votes[0]
                words = analysis_of(vote.text or "")
                return self._row(pair, outcome.winner, calls, key=vote.key, analysis=words)
            why = getattr(outcome, "why", "unparsed")
            if why == "refused":
                break
        return self._row(pair, "INVALID", calls, why=why)

    def _row(
        self,
        pair: Pair,
        verdict: Said,
        calls: int,
        *,
        why: str | None = None,
        key: str | None = None,
        analysis: str = "",
    ) -> Judged:
        return Judged(
            id=pair.id,
            label=str(pair.label),
            verdict=verdict,
            order=order_of(self._seed, pair.id),
            calls=calls,
            why=why,
            category=pair.category,
            key=key,
            analysis=analysis,
        )


def analysis_of(text: str) -> str:
    """The reasons in an answer: its "analysis", or all of it where there is none."""
    plain, _ = blank_thoughts(text)
    start, end = plain.find("{"), plain.rfind("}")
    found = plain
    if 0 <= start < end:
        try:
            found = msgspec.json.decode(
                plain[start : end + 1].encode("utf-8", "replace"), type=_Words
            ).analysis
        except (msgspec.DecodeError, RecursionError):
            found = plain
    return found.strip()[:_ANALYSIS_CHARS]
