"""One judge, one order: the smallest strategy, and the leaf of every comparing strategy.

Turns a pair into one call and the completion into one vote. Which answer is shown first is a
hash of the seed and the pair's id, never a matter of arrival. Knows nothing of providers,
pacing, storage or of the strategies around it.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from dikast.engine.errors import ConfigError
from dikast.engine.model import (
    Call,
    Completion,
    Judge,
    Order,
    Outcome,
    Pair,
    Pick,
    Undecided,
    Verdict,
    Vote,
    flip_pick,
)
from dikast.engine.ports import Ask
from dikast.strategies.prompts import PromptTemplate
from dikast.strategies.reader import Read
from dikast.strategies.text import mostly_chinese

OrderRule = Literal["hash", "ab", "ba"]
DecideBy = Literal["text", "logprobs"]

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
        decide: "text" (the verdict as written) or "logprobs" (the likeliest verdict of those that
            could have been written at its place).

    Raises:
        ConfigError: no template, an unknown order, or a judge that asks for no logprobs.
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
        decide: DecideBy = "text",
    ) -> None:
        templates = [template] if isinstance(template, PromptTemplate) else list(template)
        if not templates:
            raise ConfigError("a pairwise strategy needs at least one template")
        if order not in ("hash", "ab", "ba"):
            raise ConfigError(f"order = {order!r}: use 'hash', 'ab' or 'ba'")
        check_decide(decide, judge)
        self._judge = judge
        self._decide: DecideBy = decide
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
        # Left out at its default: outputs written before it existed keep their spec.
        decide = {"decide": self._decide} if self._decide != "text" else {}
        return {
            **decide,
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
        if self._decide == "logprobs":
            read = likeliest(read)
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
            decided_by="logprobs" if self._decide == "logprobs" and read.why is None else None,
            probabilities=_unshown(read.probabilities, call.order),
        )
        if pick == "A" or pick == "B" or pick == "tie":
            return Verdict(
                id=pair.id, winner=pick, basis="single", confidence=read.confidence, votes=(vote,)
            )
        return Undecided(id=pair.id, why=read.why or "unparsed", detail=read.detail, votes=(vote,))

    def __repr__(self) -> str:
        return f"Pairwise({self._judge.name!r}, {self._templates!r}, order={self._order!r})"


def _unshown(probabilities: dict[str, float], order: Order) -> dict[str, float]:
    """Probabilities of the verdicts as shown, in the terms of the pair."""
    if order == "ab":
        return probabilities
    turned = {"A": "B", "B": "A"}
    return {turned.get(pick, pick): share for pick, share in probabilities.items()}


def likeliest(read: Read) -> Read:
    """The verdict with the greatest probability instead of the one that was written.

    An answer without a verdict stays as it is. Where the provider listed nothing, there is no
    verdict: what was written is not put in its place. Two that are equally likely are a tie.
    """
    if read.pick == "none" or read.pick == "na":
        return read
    shares = {pick: read.probabilities.get(pick, 0.0) for pick in ("A", "B", "tie")}
    best = max(shares.values())
    if best <= 0.0:
        detail = "no log probabilities for the token of the verdict"
        return Read(pick="none", why="unparsed", detail=detail)
    leading = [pick for pick, share in shares.items() if share == best]
    pick: Pick = "tie" if len(leading) > 1 else leading[0]  # type: ignore[assignment]
    return msgspec.structs.replace(read, pick=pick, confidence=shares[pick])


def check_decide(decide: str, judge: Judge) -> None:
    """Refuse a judge that could never give what a strategy decides by.

    Raises:
        ConfigError: log probabilities are wanted, and the judge does not ask for alternatives.
    """
    if decide not in ("text", "logprobs"):
        raise ConfigError(f"decide = {decide!r}: use 'text' or 'logprobs'")
    if decide == "logprobs" and (judge.params.top_logprobs or 0) < 2:
        raise ConfigError(
            f"decide = 'logprobs' needs the alternatives of each token: set top_logprobs = 20 (or "
            f"what the provider allows) for the judge {judge.name!r}"
        )


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
