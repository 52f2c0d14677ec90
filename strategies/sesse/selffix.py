"""Does a question fix the error that it was drafted from? Each is asked on its own source row.

One strategy for the run of `sesse tune`: a pair is asked the questions that were drafted from it,
and nothing else. Its outcomes are read again by `fixes`.
"""

from collections.abc import Iterable
from typing import Any

from dikast.engine.model import Outcome, Pair, Undecided
from dikast.engine.ports import Ask
from dikast.strategies.pairwise import judge_spec, order_of
from dikast.strategies.sesse.library import Library
from dikast.strategies.sesse.plan import Plan
from dikast.strategies.sesse.tiers import Asked, Tiers

VERSION = "1"


class SelfFix:
    """Asks a pair the questions that were drafted from it.

    Args:
        plan: of the library whose questions are verified.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._own: dict[str, list[Asked]] = {}
        for cluster in plan.library.clusters:
            for rank, question in enumerate(cluster.questions):
                asked = Asked(question, cluster.cid, rank, ("ab",))
                self._own.setdefault(question.source_id, []).append(asked)

    @property
    def name(self) -> str:
        """`sesse_self_fix@version`."""
        return f"sesse_self_fix@{VERSION}"

    def spec(self) -> dict[str, Any]:
        """All that decides the result."""
        plan = self._plan
        return {
            "kind": "sesse_self_fix",
            "version": VERSION,
            "judge": judge_spec(plan.judge),
            "library": plan.hash,
            "prompts": plan.prompts.spec(),
            "seed": plan.seed,
        }

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Votes on the pair's own questions; no verdict.

        Raises:
            ProviderError: a call failed for good.
            RunStopped: the run ends.
        """
        plan = self._plan
        order = order_of(plan.seed, pair.id)
        tiers = Tiers(
            pair,
            ask,
            plan.asked_judge,
            plan.prompts,
            seed=plan.seed,
            library_text=plan.library_text,
        )
        own = [asked._replace(orders=(order,)) for asked in self._own.get(pair.id, [])]
        votes = await tiers.vote(own, "question")
        return Undecided(id=pair.id, why="abstained", votes=tuple(votes))


def sources_of(library: Library) -> set[str]:
    """Ids of the pairs that questions were drafted from."""
    return {each.source_id for cluster in library.clusters for each in cluster.questions}


def fixes(outcomes: Iterable[Outcome]) -> dict[str, bool]:
    """By qid, whether the vote on the question's source row is the label."""
    return {
        vote.question: vote.pick == outcome.label
        for outcome in outcomes
        for vote in outcome.votes
        if vote.question is not None and outcome.label is not None
    }
