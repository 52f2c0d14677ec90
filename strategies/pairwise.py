"""One judge, one order: the smallest strategy, and the leaf of every comparing strategy.

Turns a pair into one call and the completion into one vote. Which answer is shown first is a
hash of the seed and the pair's id, never a matter of arrival. Knows nothing of providers,
pacing, storage or of the strategies around it.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

from dikast.engine.errors import ConfigError
from dikast.engine.model import (
    Call,
    Completion,
    Judge,
    Order,
    Outcome,
    Pair,
    Undecided,
    Verdict,
    Vote,
    flip_pick,
)
from dikast.engine.ports import Ask
from dikast.strategies.prompts import PromptTemplate
from dikast.strategies.text import mostly_chinese

OrderRule = Literal["hash", "ab", "ba"]

VERSION = "1"


def order_of(seed: int, pair_id: str) -> Order:
    """Which answer of a pair is shown first: a fair coin, fixed by the seed and the id."""
    digest = hashlib.blake2b(
        pair_id.encode("utf-8", "surrogatepass"), digest_size=1, key=str(seed).encode()[:64]
    ).digest()
    return "ab" if digest[0] & 1 else "ba"


class Pairwise:
    """Asks one judge once which of two answers is better.

    Args:
        judge: whom to ask.
        template: the prompt; several are chosen from by the language of the question (the first
            is used where no language matches).
        seed: fixes the order of the answers and the fences.
        order: "hash" (by seed and id), or always "ab" or "ba".
        sample: number of this draw; tells repeated calls of the same prompt apart.
        keep_text: keep the judge's words in the vote.

    Raises:
        ConfigError: no template, or an unknown order.
    """

    def __init__(
        self,
        judge: Judge,
        template: PromptTemplate | Sequence[PromptTemplate],
        *,
        seed: int = 0,
        order: OrderRule = "hash",
        sample: int = 0,
        keep_text: bool = False,
    ) -> None:
        templates = [template] if isinstance(template, PromptTemplate) else list(template)
        if not templates:
            raise ConfigError("a pairwise strategy needs at least one template")
        if order not in ("hash", "ab", "ba"):
            raise ConfigError(f"order = {order!r}: use 'hash', 'ab' or 'ba'")
        self._judge = judge
        self._templates = templates
        self._seed = seed
        self._order: OrderRule = order
        self._sample = sample
        self._keep_text = keep_text

    @property
    def name(self) -> str:
        """`pairwise@version`."""
        return f"pairwise@{VERSION}"

    def spec(self) -> dict[str, Any]:
        """All that decides the result; prices and what is merely kept are left out."""
        return {
            "kind": "pairwise",
            "version": VERSION,
            "judge": judge_spec(self._judge),
            "templates": [template.spec() for template in self._templates],
            "order": self._order,
            "seed": self._seed,
            "sample": self._sample,
        }

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Ask once.

        Raises:
            ProviderError: the call failed for good.
            RunStopped: the run ends.
        """
        call, template = self._call(pair)
        completion = await ask(call)
        return self._outcome(pair, call, template, completion)

    def _call(self, pair: Pair) -> tuple[Call, PromptTemplate]:
        order = order_of(self._seed, pair.id) if self._order == "hash" else self._order
        template = self._template(pair)
        call = Call(
            judge=self._judge,
            messages=template.render(pair if order == "ab" else pair.swapped(), self._seed),
            prompt=template.id,
            sample=self._sample,
            pair_id=pair.id,
            order=order,
            schema=template.schema if self._judge.params.json_mode else None,
        )
        return call, template

    def _template(self, pair: Pair) -> PromptTemplate:
        if len(self._templates) > 1:
            asked = pair.messages[-1].content if pair.messages else pair.question
            language = "zh" if mostly_chinese(asked) else "en"
            for template in self._templates:
                if template.language == language:
                    return template
        return self._templates[0]

    def _outcome(
        self, pair: Pair, call: Call, template: PromptTemplate, completion: Completion
    ) -> Outcome:
        read = template.reader.read(completion)
        pick = read.pick if call.order == "ab" else flip_pick(read.pick)
        vote = Vote(
            judge=self._judge.name,
            order=call.order,
            pick=pick,
            why=read.why,
            key=completion.key or call.key(),
            confidence=read.confidence,
            finish_reason=completion.finish_reason,
            text=completion.text if self._keep_text else None,
        )
        if pick == "A" or pick == "B" or pick == "tie":
            return Verdict(
                id=pair.id, winner=pick, basis="single", confidence=read.confidence, votes=(vote,)
            )
        return Undecided(id=pair.id, why=read.why or "unparsed", detail=read.detail, votes=(vote,))

    def __repr__(self) -> str:
        return f"Pairwise({self._judge.name!r}, {self._templates!r}, order={self._order!r})"


def judge_spec(judge: Judge) -> dict[str, Any]:
    """What of a judge decides its answers, as plain data; prices do not.

    Parameters left at their default are written out too, so that a default that changes with a
    version of this package is a change of the spec.
    """
    params = judge.params
    return {
        "name": judge.name,
        "provider": judge.provider,
        "model": judge.model,
        "params": {field: getattr(params, field) for field in params.__struct_fields__},
        "by_pair": judge.by_pair,
        "endpoint": judge.endpoint,
    }
