"""One pair's way through SESSE: routed, voted on, pooled; then the ladder or the holistic verdict.

The heart of stage 5. Every step is a part of the outcome with its calls and their price, every
vote stands in it with its question, its cluster and its tokens. Knows no provider.
"""

from typing import Any

from dikast.engine.errors import ProviderError
from dikast.engine.model import Order, Outcome, Pair, Part, Pick, Undecided, Verdict, Vote
from dikast.engine.ports import Ask
from dikast.strategies.ballot import Metered
from dikast.strategies.pairwise import Pairwise, order_of
from dikast.strategies.sesse.config import Rung
from dikast.strategies.sesse.library import Cluster
from dikast.strategies.sesse.plan import Plan
from dikast.strategies.sesse.pool import CONFLICT, Pooled, settled
from dikast.strategies.sesse.tiers import Asked, Tiers, other_order


class Sitting:
    """One pair's way through the tiers and the ladder."""

    def __init__(self, plan: Plan, pair: Pair, ask: Ask) -> None:
        self._plan = plan
        self._config = plan.config
        self._pair = pair
        self._ask = ask
        self._base: Order = order_of(plan.seed, pair.id)
        self._votes: list[Vote] = []
        self._parts: list[Part] = []
        self._selected: tuple[Cluster, ...] = ()
        self._factors: dict[str, float] = {}
        self._spared = 0

    async def judge(self) -> Outcome:
        meter = Metered(self._ask)
        tiers = self._tiers(meter)
        routed = await tiers.route(
            self._plan.open_clusters(self._pair), self._base, self._config.tier1
        )
        self._book("tier1", "none", None if routed is not None else "unparsed", meter)
        if routed is None:
            return Undecided(
                id=self._pair.id,
                why="unparsed",
                detail="Tier 1 gave no list of clusters, twice",
                parts=tuple(self._parts),
                notes=self._notes(None),
            )
        self._selected = routed
        meter = Metered(self._ask)
        pooled = await self._vote(self._questions(0, self._plan.depth), meter)
        self._book("sesse", pooled.winner or "none", _why(pooled), meter)
        if self._config.mode == "hybrid":
            return await self._hybrid(pooled)
        return await self._climb(pooled)

    async def _hybrid(self, pooled: Pooled) -> Outcome:
        """SESSE's winner where its margin is wide enough, else the holistic verdict."""
        if pooled.winner in ("A", "B") and pooled.margin >= self._plan.threshold:
            return self._conclude(pooled)
        said = await self._whole("holistic", self._plan.holistic)
        if said is None and pooled.winner is not None:
            return self._conclude(pooled)
        return self._conclude(pooled, said)

    async def _climb(self, pooled: Pooled) -> Outcome:
        """One rung of the ladder after another, until there is no tie or no rung."""
        said: Verdict | None = None
        for rung in self._config.ladder:
            if pooled.winner in ("A", "B") or (said is not None and said.winner != "tie"):
                break
            if rung == "holistic":
                said = await self._whole(rung, self._plan.holistic) or said
            elif rung == "strong" and self._plan.strong is not None:
                said = await self._whole(rung, self._plan.strong) or said
            else:
                pooled = await self._further(rung)
        return self._conclude(pooled, said)

    async def _further(self, rung: Rung) -> Pooled:
        """More votes: the questions below the depth, or those asked so far in the other order."""
        meter = Metered(self._ask)
        if rung == "deeper":
            asked = self._questions(self._plan.depth, self._plan.library.params.n_max)
        else:
            asked = [
                each._replace(orders=tuple(other_order(order) for order in each.orders))
                for each in self._questions(0, self._reached())
            ]
        pooled = await self._vote(asked, meter)
        self._book(rung, pooled.winner or "none", _why(pooled), meter)
        return pooled

    def _reached(self) -> int:
        return max((vote.rank for vote in self._votes if vote.rank is not None), default=-1) + 1

    def _questions(self, start: int, end: int) -> list[Asked]:
        return self._plan.questions(self._selected, self._base, start, end)

    async def _vote(self, asked: list[Asked], meter: Metered) -> Pooled:
        """Ask, in waves where it may end early, and count everything voted so far."""
        tiers = self._tiers(meter)
        # A second vote on a question (the other order) counts like a first one of its own.
        so_far = self._questions(0, self._reached())
        self._factors = self._plan.factors([*so_far, *asked])
        wave = self._config.wave if self._config.early_stop else max(1, len(asked))
        pooled = self._count()
        for start in range(0, len(asked), wave):
            left = asked[start:]
            if start and settled(pooled, sum(self._worth(each) for each in left)):
                self._spared += len(left)
                break
            self._votes += await tiers.vote(left[:wave], self._config.batch)
            pooled = self._count()
        return pooled

    def _worth(self, asked: Asked) -> float:
        weight = abs(self._plan.weights[asked.question.qid])
        return weight * self._factors.get(asked.cid, 1.0)

    def _count(self) -> Pooled:
        casts = [self._plan.cast(vote) for vote in self._votes if vote.question is not None]
        return self._plan.pooled(casts, len(self._selected), self._factors)

    async def _whole(self, name: str, strategy: Pairwise) -> Verdict | None:
        """A verdict on the whole pair, noted as a part; None where it could not be read."""
        meter = Metered(self._ask)
        try:
            said = await strategy.judge(self._pair, meter)
        except ProviderError as error:
            if error.kind != "refused":
                raise
            self._book(name, "none", "refused", meter)
            return None
        self._votes += said.votes
        if isinstance(said, Verdict):
            self._book(name, said.winner, None, meter)
            return said
        self._book(name, "none", "unparsed", meter)
        return None

    def _conclude(self, pooled: Pooled, said: Verdict | None = None) -> Outcome:
        """The outcome; `said` is the verdict on the whole pair that takes the count's place."""
        shared: dict[str, Any] = {
            "id": self._pair.id,
            "votes": tuple(self._votes),
            "parts": tuple(self._parts),
            "marks": pooled.marks(self._spared),
            "notes": self._notes(pooled),
        }
        scores = {"A.votes": round(pooled.a, 6), "B.votes": round(pooled.b, 6)}
        if said is not None:
            return Verdict(
                winner=said.winner,
                basis="votes",
                confidence=said.confidence,
                scores=scores,
                **shared,
            )
        if pooled.winner is None:
            return Undecided(
                why="unparsed", detail=f"none of {pooled.invalid} votes could be read", **shared
            )
        total = pooled.a + pooled.b
        sure = round(max(pooled.a, pooled.b) / total, 6) if pooled.winner != "tie" else None
        return Verdict(
            winner=pooled.winner, basis="votes", confidence=sure, scores=scores, **shared
        )

    def _notes(self, pooled: Pooled | None) -> dict[str, Any]:
        """What the reports need and no other field says."""
        notes: dict[str, Any] = {
            "library": self._plan.hash[:16],
            "depth": self._plan.depth,
            "selected": [each.cid for each in self._selected],
        }
        if pooled is not None:
            notes |= {"na": pooled.na, "invalid": pooled.invalid}
            if pooled.reason is not None:
                notes["tie"] = pooled.reason
            conflicts = sum(vote.why == CONFLICT for vote in self._votes)
            if conflicts:
                notes["position_conflicts"] = conflicts
        return notes

    def _book(self, name: str, pick: Pick, why: str | None, meter: Metered) -> None:
        self._parts.append(
            Part(name=name, pick=pick, why=why, calls=meter.calls, cost_usd=meter.cost_usd)
        )

    def _tiers(self, ask: Ask) -> Tiers:
        return Tiers(
            self._pair,
            ask,
            self._plan.asked_judge,
            self._plan.prompts,
            seed=self._plan.seed,
            library_text=self._plan.library_text,
            keep_text=self._config.keep_text,
        )


def _why(pooled: Pooled) -> str | None:
    return "unparsed" if pooled.winner is None else pooled.reason
