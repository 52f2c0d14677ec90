"""What SESSE asks, in which order and with which weight: fixed before the first pair.

Between the configuration with its library and the judging of one pair. Knows no call.
"""

from collections.abc import Sequence

import msgspec

from dikast.engine.model import Judge, Order, Pair, Vote
from dikast.strategies.pairwise import Pairwise
from dikast.strategies.prompts import PromptTemplate
from dikast.strategies.sesse.config import SesseConfig, check_config, depth_of, threshold_of
from dikast.strategies.sesse.library import Cluster, Library
from dikast.strategies.sesse.pool import Cast, Pooled, capped, pool
from dikast.strategies.sesse.replay import as_cast, is_muted
from dikast.strategies.sesse.tier_prompts import TierPrompts
from dikast.strategies.sesse.tiers import Asked, orders_of


class Plan:
    """Everything about a SESSE run that does not depend on the pair.

    Args:
        judge: whom to ask.
        library: what to ask.
        prompts: of both tiers.
        holistic: the template of the holistic verdict (hybrid mode and ladder).
        config: everything else; its `judge`, `library` and `strong_judge` are only names.
        seed: fixes orders and fences.
        strong: the judge of the rung "strong".

    Raises:
        ConfigError: settings that contradict each other, or an empty library.
    """

    def __init__(
        self,
        judge: Judge,
        library: Library,
        prompts: TierPrompts,
        holistic: PromptTemplate,
        config: SesseConfig,
        *,
        seed: int = 0,
        strong: Judge | None = None,
    ) -> None:
        check_config(config, library)
        self.judge = judge
        # A vote is one token and a list is no object: a provider's JSON mode would forbid both.
        plain = msgspec.structs.replace(judge.params, json_mode=False)
        self.asked_judge = msgspec.structs.replace(judge, params=plain)
        self.library = library
        self.hash = library.hash
        self.prompts = prompts
        self.config = config
        self.seed = seed
        self.depth = depth_of(config, library)
        self.threshold = threshold_of(config, library)
        self.holistic = Pairwise(judge, holistic, seed=seed)
        self.strong = None if strong is None else Pairwise(strong, holistic, seed=seed)
        self.library_text = "\n".join(
            f"{cluster.label}\n{question.text}"
            for cluster in library.clusters
            for question in cluster.questions
        )
        self.weights = {
            question.qid: question.weight if config.weights else 1.0
            for cluster in library.clusters
            for question in cluster.questions
        }
        starts: list[int] = [0]
        for cluster in library.clusters:
            starts.append(starts[-1] + len(cluster.questions))
        self._starts = {
            cluster.cid: start for cluster, start in zip(library.clusters, starts, strict=False)
        }

    def open_clusters(self, pair: Pair) -> tuple[Cluster, ...]:
        """The clusters that may be asked about a pair: those not muted for its category."""
        return tuple(
            each
            for each in self.library.clusters
            if each.questions and not is_muted(each, pair.category)
        )

    def questions(
        self, selected: Sequence[Cluster], base: Order, start: int, end: int
    ) -> list[Asked]:
        """The questions of ranks `start` to `end` of the selected clusters, the most telling first.

        Rank by rank through all clusters; under early stop by what a vote is likely to add.
        """
        found = [
            Asked(
                question=question,
                cid=cluster.cid,
                rank=rank,
                orders=orders_of(base, self.config.order, self._starts[cluster.cid] + rank),
            )
            for cluster in selected
            for rank, question in enumerate(cluster.questions[:end])
            if rank >= start
        ]
        if self.config.early_stop:
            found.sort(key=lambda each: (-self._promise(each), each.rank, each.cid))
        else:
            found.sort(key=lambda each: each.rank)
        return found

    def _promise(self, asked: Asked) -> float:
        """How much a vote on a question is likely to move the count: its weight, where not NA."""
        rate = asked.question.stats.get("non_na_rate", 1.0)
        return float(rate) * abs(self.weights[asked.question.qid])

    def pooled(self, casts: Sequence[Cast], selected: int, factors: dict[str, float]) -> Pooled:
        """The count of the votes, weighted where wanted."""
        return pool(casts, factors=factors if self.config.weights else None, selected=selected)

    def factors(self, asked: Sequence[Asked]) -> dict[str, float]:
        """The factors that cap each cluster's weight, from all questions that may be asked."""
        if not self.config.weights:
            return {}
        return capped((each.cid, self.weights[each.question.qid]) for each in asked)

    def cast(self, vote: Vote) -> Cast:
        """A vote as it is counted."""
        return as_cast(vote, self.weights)

    def __repr__(self) -> str:
        return f"Plan({self.judge.name!r}, {self.hash[:12]}, depth {self.depth})"
