"""One strategy several times: n samples of the same judgement, and how far they differ.

A combinator over any strategy. Each sample's calls carry a number of their own (and a seed of
their own, where one is sent), so that they are asked, stored and resumed apart. Knows no judge,
no prompt and no provider.
"""

from typing import Any

import msgspec

from dikast.engine.errors import ConfigError
from dikast.engine.model import Item, Outcome, Pair, Subject
from dikast.engine.ports import Ask, Strategy
from dikast.strategies.aggregate import Rule, Rules
from dikast.strategies.ballot import Seat, conclude, conclude_item, take
from dikast.strategies.subjects import takes_items

VERSION = "1"
SAMPLES_MAX = 1000


class Repeat:
    """Judges every pair n times; see `repeat`."""

    def __init__(self, inner: Strategy, n: int, rules: Rules) -> None:
        if not 1 <= n <= SAMPLES_MAX:
            raise ConfigError(f"repeat: n = {n} must be at least 1 and at most {SAMPLES_MAX}")
        if rules.rule == "weighted":
            raise ConfigError("repeat: samples have no weights; use another rule than 'weighted'")
        rules.check("repeat", n)
        self._inner = inner
        self._rules = rules
        self._seats = tuple(
            Seat(name=f"sample {at}", strategy=inner, sample=at, samples=n) for at in range(n)
        )

    @property
    def name(self) -> str:
        """`repeat@version`; what is inside is in `spec()`."""
        return f"repeat@{VERSION}"

    @property
    def rules(self) -> Rules:
        """How the samples are counted."""
        return self._rules

    def spec(self) -> dict[str, Any]:
        """All that decides the result."""
        return {
            "kind": "repeat",
            "version": VERSION,
            "n": len(self._seats),
            "rules": msgspec.to_builtins(self._rules),
            "inner": dict(self._inner.spec()),
        }

    def seats(self, pair: Subject) -> tuple[Seat, ...]:
        """The samples, the same for every pair."""
        del pair
        return self._seats

    def names(self) -> list[str]:
        """Who is asked, in order."""
        return [seat.name for seat in self._seats]

    def excluded(self, pair: Pair) -> int:
        """No sample is ever excluded."""
        del pair
        return 0

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Take all samples at the same time.

        Raises:
            ProviderError: every sample failed.
            RunStopped: the run ends.
        """
        return conclude(pair, await take(self._seats, pair, ask), self._rules)

    def takes_items(self) -> bool:
        """It does where the strategy inside does."""
        return takes_items(self._inner)

    async def judge_item(self, item: Item, ask: Ask) -> Outcome:
        """Score one answer n times; each dimension is combined by the rule.

        Raises:
            ProviderError: every sample failed.
            RunStopped: the run ends.
        """
        return conclude_item(item, await take(self._seats, item, ask), self._rules)

    def __repr__(self) -> str:
        return f"Repeat({self._inner!r}, n={len(self._seats)})"


def repeat(
    strategy: Strategy,
    n: int,
    rule: Rule = "majority",
    quorum: int | None = None,
    *,
    trim: float = 0.2,
    band: float = 0.0,
) -> Repeat:
    """Ask the same thing n times; the spread of the answers is in the outcome's marks.

    Args:
        strategy: its judges should sample (a temperature above 0), else all samples are alike.
        n: samples; the first shares its stored calls with the strategy asked alone, and a larger
            n reuses the calls of a smaller one.
        rule: as for `committee`, without "weighted".
        quorum: how many samples must give a verdict; None is more than half.
        trim: as for `committee`.
        band: as for `committee`.

    Raises:
        ConfigError: numbers that cannot work.
    """
    return Repeat(strategy, n, Rules(rule=rule, quorum=quorum, trim=trim, band=band))
