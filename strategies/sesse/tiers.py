"""The calls of stage 5 on one pair: which clusters hold (Tier 1), then votes on questions (Tier 2).

Between the strategy, which says what to ask, and the gateway. Tier 2 is asked only when Tier 1 has
come back, so that the prefix they share is in the provider's cache. An answer that cannot be read
is asked for once more, in the same conversation; then it is INVALID. Knows no pooling.

Source: Lee, Delgeanu and Youssef 2026 (arXiv 2608.18303), section 2, stage 5.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from dikast.engine.errors import ProviderError
from dikast.engine.model import (
    Call,
    Completion,
    Judge,
    Message,
    Order,
    Pair,
    Pick,
    Usage,
    Vote,
    flip_pick,
)
from dikast.engine.ports import Ask
from dikast.strategies.sesse.library import Cluster, Question
from dikast.strategies.sesse.pool import CONFLICT
from dikast.strategies.sesse.tier_prompts import (
    Material,
    TierPrompts,
    read_numbers,
    read_vote,
    read_votes,
    read_yes_no,
)

Tier1 = Literal["listwise", "per_cluster", "off"]
Batch = Literal["question", "cluster", "sample"]
Orders = Literal["sample", "alternate", "both"]

T = TypeVar("T")

BATCH_MAX = 40
"""Questions in one prompt at most."""

_OTHER: dict[Order, Order] = {"ab": "ba", "ba": "ab"}


class Asked(NamedTuple):
    """A question that is put to the judge: where it stands and in which orders it is asked."""

    question: Question
    cid: str
    rank: int
    orders: tuple[Order, ...]


class _Answer(NamedTuple):
    """What one call, with its further try, came to; `read` None: INVALID, and `why`."""

    read: Any
    keys: tuple[str, ...]
    usage: Usage
    finish_reason: str | None
    text: str
    why: str | None


class Tiers:
    """Asks about one pair.

    Args:
        pair: what is judged.
        ask: the gateway.
        judge: who is asked; its answers here are no JSON objects.
        prompts: the prompts of stage 5.
        seed: fixes the fences and the order of questions in a batch.
        library_text: every clause and question, for the fences.
        keep_text: keep the judge's words in the votes.
    """

    def __init__(
        self,
        pair: Pair,
        ask: Ask,
        judge: Judge,
        prompts: TierPrompts,
        *,
        seed: int,
        library_text: str,
        keep_text: bool = False,
    ) -> None:
        self._pair = pair
        self._ask = ask
        self._judge = judge
        self._prompts = prompts
        self._seed = seed
        self._library_text = library_text
        self._keep_text = keep_text
        self._materials: dict[Order, Material] = {}

    async def route(
        self, clusters: Sequence[Cluster], order: Order, how: Tier1
    ) -> tuple[Cluster, ...] | None:
        """Which clusters hold for the pair; None where the answer could not be read.

        Raises:
            ProviderError: a call failed.
            RunStopped: the run ends.
        """
        if how == "off" or not clusters:
            return tuple(clusters)
        if how == "listwise":
            listed = "\n".join(f"{at}. {each.label}" for at, each in enumerate(clusters, start=1))
            answer = await self._answer(
                order,
                "tier1",
                "tier1",
                {"clauses": listed},
                lambda said: read_numbers(said, len(clusters)),
                "repair_list",
            )
            numbers: tuple[int, ...] | None = answer.read
            return None if numbers is None else tuple(clusters[each - 1] for each in numbers)
        answers = await together(
            [
                self._answer(
                    order,
                    "tier1",
                    "tier1_single",
                    {"clause": each.label},
                    read_yes_no,
                    "repair_word",
                )
                for each in clusters
            ]
        )
        if all(answer.read is None for answer in answers):
            return None
        return tuple(each for each, answer in zip(clusters, answers, strict=True) if answer.read)

    async def vote(self, asked: Sequence[Asked], batch: Batch) -> list[Vote]:
        """A vote on every question, in the order given.

        Raises:
            ProviderError: a call failed, when all have ended; what was answered is stored.
            RunStopped: the run ends.
        """
        if batch == "question":
            return await together([self._single(each) for each in asked])
        groups: dict[tuple[Order, str], list[int]] = {}
        for at, each in enumerate(asked):
            for order in each.orders:
                cid = each.cid if batch == "cluster" else ""
                groups.setdefault((order, cid), []).append(at)
        chunks: list[tuple[Order, list[int]]] = [
            (order, places[start : start + BATCH_MAX])
            for (order, _), found in groups.items()
            for places in [self._shuffled(found, asked)]
            for start in range(0, len(places), BATCH_MAX)
        ]
        said = await together(
            [self._batch(order, [asked[at] for at in places]) for order, places in chunks]
        )
        halves: dict[int, list[Vote]] = {}
        for (_, places), votes in zip(chunks, said, strict=True):
            for at, vote in zip(places, votes, strict=True):
                halves.setdefault(at, []).append(vote)
        return [combined(halves[at]) for at in range(len(asked))]

    def _shuffled(self, places: Sequence[int], asked: Sequence[Asked]) -> list[int]:
        """Places in an order that belongs to the pair: no question is always the first."""

        def key(at: int) -> bytes:
            text = f"{self._seed}\n{self._pair.id}\n{asked[at].question.qid}"
            return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

        return sorted(places, key=key)

    async def _single(self, asked: Asked) -> Vote:
        data = {"condition": asked.question.condition, "conclusion": asked.question.conclusion}
        votes: list[Vote] = []
        for order in asked.orders:
            answer = await self._answer(order, "tier2", "tier2", data, _vote_or_none, "repair_vote")
            votes.append(self._as_vote(asked, order, answer, answer.read or "none"))
        return combined(votes)

    async def _batch(self, order: Order, asked: Sequence[Asked]) -> list[Vote]:
        listed = "\n".join(
            f"{at}. If {each.question.condition}, which answer is better at: "
            f"{each.question.conclusion}?"
            for at, each in enumerate(asked, start=1)
        )

        def read(said: Completion) -> dict[int, Pick] | None:
            found = read_votes(said, len(asked))
            return found if len(found) == len(asked) else None

        answer = await self._answer(
            order, "tier2-batch", "tier2_batch", {"questions": listed}, read, "repair_votes"
        )
        # What can be read of an incomplete answer counts; the rest of it is INVALID.
        known: dict[int, Pick] = answer.read or read_votes(Completion(text=answer.text), len(asked))
        # The tokens of the call are booked once, with its first question.
        bills = [answer, *[answer._replace(usage=Usage())] * (len(asked) - 1)]
        return [
            self._as_vote(each, order, bill, known.get(at, "none"))
            for at, (each, bill) in enumerate(zip(asked, bills, strict=True), start=1)
        ]

    def _as_vote(self, asked: Asked, order: Order, answer: _Answer, pick: Pick) -> Vote:
        return Vote(
            judge=self._judge.name,
            order=order,
            pick=pick if order == "ab" else flip_pick(pick),
            why=None if pick != "none" else answer.why or "unparsed",
            key=answer.keys[-1] if answer.keys else None,
            keys=answer.keys if len(answer.keys) > 1 else (),
            finish_reason=answer.finish_reason if pick == "none" else None,
            text=answer.text if self._keep_text else None,
            question=asked.question.qid,
            cluster=asked.cid,
            rank=asked.rank,
            usage=answer.usage,
        )

    async def _answer(
        self,
        order: Order,
        prompt: str,
        task: str,
        data: dict[str, str],
        read: Callable[[Completion], Any],
        repair: str,
    ) -> _Answer:
        """Ask, and ask once more where the answer cannot be read."""
        messages = self._prompts.ask(self._material(order), task, data)
        keys: tuple[str, ...] = ()
        usage = Usage()
        completion = Completion(text="")
        for attempt in range(2):
            call = self._call(order, prompt, messages)
            try:
                completion = await self._ask(call)
            except ProviderError as error:
                if error.kind != "refused":
                    raise
                return _Answer(None, keys, usage, None, "", "refused")
            keys += (completion.key or call.key(),)
            usage = usage.plus(completion.usage)
            found = read(completion)
            if found is not None:
                return _Answer(found, keys, usage, completion.finish_reason, completion.text, None)
            if attempt == 0:
                messages = self._prompts.again(messages, completion.text, repair)
        return _Answer(None, keys, usage, completion.finish_reason, completion.text, "unparsed")

    def _call(self, order: Order, prompt: str, messages: tuple[Message, ...]) -> Call:
        return Call(
            judge=self._judge,
            messages=messages,
            prompt=self._prompts.id(f"sesse-{prompt}"),
            pair_id=self._pair.id,
            order=order,
        )

    def _material(self, order: Order) -> Material:
        found = self._materials.get(order)
        if found is None:
            shown = self._pair if order == "ab" else self._pair.swapped()
            found = self._prompts.material(shown, self._seed, self._library_text)
            self._materials[order] = found
        return found


def orders_of(base: Order, rule: Orders, place: int) -> tuple[Order, ...]:
    """In which orders a question is asked.

    Args:
        base: the pair's own order.
        rule: "sample" (the pair's), "alternate" (every other question in the other one) or "both".
        place: the question's place in the library, which no depth changes.
    """
    if rule == "both":
        return (base, _OTHER[base])
    return (_OTHER[base],) if rule == "alternate" and place % 2 else (base,)


def other_order(order: Order) -> Order:
    """The order with the answers exchanged."""
    return _OTHER[order]


def combined(votes: Sequence[Vote]) -> Vote:
    """One vote of a question's two orders: what they agree on; NA where they contradict."""
    if len(votes) == 1:
        return votes[0]
    first, second = votes
    picks = {first.pick, second.pick}
    usage = (first.usage or Usage()).plus(second.usage or Usage())
    keys = tuple(key for vote in votes for key in (vote.keys or ((vote.key,) if vote.key else ())))
    pick, why = first.pick, first.why
    if "none" in picks:
        pick, why = "none", first.why or second.why
    elif len(picks) > 1:
        pick, why = "na", CONFLICT
    return msgspec.structs.replace(first, pick=pick, why=why, keys=keys, usage=usage)


def _vote_or_none(said: Completion) -> Pick | None:
    pick = read_vote(said)
    return None if pick == "none" else pick


async def together(work: Sequence[Awaitable[T]]) -> list[T]:
    """Await all; an error is raised only when everything that was paid for has come back.

    Raises:
        ProviderError: which one does not depend on the order of arrival.
        RunStopped: the run ends.
    """
    said = await asyncio.gather(*work, return_exceptions=True)
    failed: list[ProviderError] = []
    done: list[T] = []
    for each in said:
        if isinstance(each, ProviderError):
            failed.append(each)
        elif isinstance(each, BaseException):
            raise each
        else:
            done.append(each)
    if failed:
        raise min(failed, key=lambda error: (error.kind, error.message))
    return done
