"""Pairs and single answers through the same combinators: what may be put to which strategy.

Between a combinator and the strategies inside it. A strategy that scores says so
(`ItemStrategy`); all others only compare. Knows no judge, no prompt and no provider.
"""

from dikast.engine.errors import ConfigError
from dikast.engine.model import Outcome, Pair, Subject
from dikast.engine.ports import Ask, ItemStrategy, Strategy


def takes_items(strategy: Strategy) -> bool:
    """Whether a strategy scores single answers."""
    return isinstance(strategy, ItemStrategy) and strategy.takes_items()


async def put(strategy: Strategy, subject: Subject, ask: Ask) -> Outcome:
    """Ask a strategy about a pair, or about a single answer.

    Raises:
        ProviderError: as the strategy raises it.
        RunStopped: the run ends.
        ConfigError: a single answer for a strategy that only compares.
    """
    if isinstance(subject, Pair):
        return await strategy.judge(subject, ask)
    if isinstance(strategy, ItemStrategy):
        return await strategy.judge_item(subject, ask)
    raise ConfigError(f"the strategy {strategy.name} compares answers and takes no single one")
