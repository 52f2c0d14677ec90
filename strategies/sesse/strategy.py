"""SESSE's stage 5 as a strategy: a pair, the clusters that hold for it, votes on their questions.

A leaf of the strategy tree: Tier 1 selects clusters of the library, Tier 2 votes A, B or NA on
their questions, the votes of all clusters are pooled. What happens to a tie is said by `ladder`,
what happens to a narrow result by `mode`. Knows no provider and no statistics.

Source: Lee, Delgeanu and Youssef 2026 (arXiv 2608.18303), section 2. The prompts, the weights, the
ladder and the hybrid mode are this project's own; docs/sesse-evaluate.md says what differs.
"""

from typing import Any

from dikast.engine.model import Judge, Outcome, Pair
from dikast.engine.ports import Ask
from dikast.strategies.pairwise import judge_spec
from dikast.strategies.sesse.config import LibraryLoader, SesseConfig
from dikast.strategies.sesse.plan import Plan
from dikast.strategies.sesse.prompts import holistic_template
from dikast.strategies.sesse.sitting import Sitting
from dikast.strategies.sesse.tier_prompts import tier_prompts

VERSION = "1"


class Sesse:
    """Judges by the questions of a library; see `SesseConfig`.

    Args:
        plan: what is asked, of whom, and how it is counted.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @property
    def name(self) -> str:
        """`sesse@version`."""
        return f"sesse@{VERSION}"

    def spec(self) -> dict[str, Any]:
        """All that decides the result."""
        plan, config = self._plan, self._plan.config
        found: dict[str, Any] = {
            "kind": "sesse",
            "version": VERSION,
            "judge": judge_spec(plan.judge),
            "library": plan.hash,
            "prompts": plan.prompts.spec(),
            "mode": config.mode,
            "depth": plan.depth,
            "weights": config.weights,
            "order": config.order,
            "tier1": config.tier1,
            "batch": config.batch,
            "early_stop": config.wave if config.early_stop else None,
            "ladder": list(config.ladder),
            "seed": plan.seed,
        }
        if config.mode == "hybrid":
            found["threshold"] = plan.threshold
        if config.mode == "hybrid" or "holistic" in config.ladder:
            found["holistic"] = plan.holistic.spec()
        if plan.strong is not None:
            found["strong"] = plan.strong.spec()
        return found

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Route, vote, pool; then the ladder or the holistic verdict where they are wanted.

        Raises:
            ProviderError: a call failed for good.
            RunStopped: the run ends.
        """
        return await Sitting(self._plan, pair, ask).judge()

    def __repr__(self) -> str:
        return f"Sesse({self._plan!r})"


def build_sesse(
    config: SesseConfig,
    judge: Judge,
    *,
    seed: int,
    library_loader: LibraryLoader,
    strong: Judge | None = None,
) -> Sesse:
    """Make the strategy that a node describes.

    Args:
        config: the node.
        judge: the judge that it names.
        seed: the run's seed.
        library_loader: finds a library by its path.
        strong: the judge that `strong_judge` names.

    Raises:
        InputError: the library cannot be read or is damaged.
        ConfigError: settings that contradict each other.
    """
    library = library_loader(config.library)
    return Sesse(
        Plan(judge, library, tier_prompts(), holistic_template(), config, seed=seed, strong=strong)
    )
