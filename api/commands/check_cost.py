"""What judging the named pairs will take: a sample is put to simulated judges, its calls counted.

Part of `dikast check`. The strategy runs as it will run, so the prompts are the real ones; nobody
is asked and nothing is kept. What a real judge answers, and so the shape of a cascade, is a guess.
"""

import random
from collections import Counter
from collections.abc import Sequence

from dikast import streams, wiring
from dikast.config import Settings
from dikast.engine.budget import estimate_tokens
from dikast.engine.model import BadRow, Call, Record, Subject, Usage
from dikast.engine.ports import Clock, Reply
from dikast.engine.run import Engine
from dikast.engine.sources import FileSource
from dikast.providers import SimulatedProvider, SimulatedSettings, is_free

SAMPLE = 200
ROWS_MAX = 100_000


class Cost(Record, frozen=True):
    """An estimate for the rows that were counted.

    `usd_read` is the price of the prompts alone, `usd_most` of the prompts and of answers that use
    up their `max_tokens` (1,024 where none is set); both are None where a judge has no price.
    `rows_are_all` is False when only the first 100,000 rows were counted.
    """

    rows: int
    bad_rows: int
    sampled: int
    rows_are_all: bool
    calls: int
    tokens_in: int
    tokens_out_most: int
    usd_read: float | None
    usd_most: float | None

    def lines(self) -> list[str]:
        """For a terminal."""
        some = "" if self.rows_are_all else "the first "
        bad = f", {self.bad_rows:,} bad rows left out" if self.bad_rows else ""
        out = [
            f"{some}{self.rows:,} pairs{bad}: about {self.calls:,} calls, {self.tokens_in:,} "
            f"tokens in, at most {self.tokens_out_most:,} out (from {self.sampled:,} of them)"
        ]
        if self.usd_read is None or self.usd_most is None:
            out.append("  cost unknown: a judge has no price; write [judges.NAME.prices]")
        else:
            out.append(
                f"  cost: ${self.usd_read:,.4f} for the prompts, at most ${self.usd_most:,.4f} "
                "with answers of full length"
            )
        return out


class _Counting:
    """A simulated judge in a real one's place; counts what the real one would be sent."""

    simulated = True

    def __init__(self, clock: Clock) -> None:
        self._judge = SimulatedProvider(SimulatedSettings(), clock)
        self.calls = Counter[str]()
        self.tokens_in = Counter[str]()
        self.tokens_out = Counter[str]()

    async def complete(self, call: Call) -> Reply:
        """As the simulated judge answers. Source: `Provider.complete`."""
        tokens_in, tokens_out = estimate_tokens(call)
        name = call.judge.name
        self.calls[name] += 1
        self.tokens_in[name] += tokens_in
        self.tokens_out[name] += tokens_out
        return await self._judge.complete(call)

    async def aclose(self) -> None:
        """Nothing to close."""


async def cost_of(paths: Sequence[str], settings: Settings, clock: Clock) -> Cost | None:
    """What judging the named pairs takes; None where they can be read only once.

    Raises:
        InputError: an input is missing or cannot be read.
        ConfigError: strategy and pairs do not fit each other.
    """
    if not paths or any(path == "-" or streams.is_kafka(path) for path in paths):
        return None
    sample, rows, bad, whole = await _sample(paths, settings)
    judges = wiring.judges_in(settings)
    counting = _Counting(clock)
    engine = Engine(
        wiring.build_strategy(settings),
        {judge.provider: counting for judge in judges.values()},
        workers=16,
        clock=clock,
    )
    async with engine:
        async for _ in engine.judge(sample):
            pass
    scale = rows / len(sample) if sample else 0.0
    read = most = 0.0
    priced = True
    for name, judge in judges.items():
        prices = judge.prices
        if prices is None:
            priced = priced and is_free(settings.providers[judge.provider].settings)
            continue
        tokens_in, tokens_out = counting.tokens_in[name], counting.tokens_out[name]
        read += Usage(input=tokens_in).cost_usd(prices) * scale
        most += Usage(input=tokens_in, output=tokens_out).cost_usd(prices) * scale
    return Cost(
        rows=rows,
        bad_rows=bad,
        sampled=len(sample),
        rows_are_all=whole,
        calls=round(counting.calls.total() * scale),
        tokens_in=round(counting.tokens_in.total() * scale),
        tokens_out_most=round(counting.tokens_out.total() * scale),
        usd_read=read if priced else None,
        usd_most=most if priced else None,
    )


async def _sample(paths: Sequence[str], settings: Settings) -> tuple[list[Subject], int, int, bool]:
    """Some pairs by chance, how many there are, how many rows are bad, and if all were counted."""
    how, rng = settings.input, random.Random(settings.run.seed)
    source = FileSource(paths, format=how.format or "auto", columns=how.columns, split=how.split)
    most = ROWS_MAX if settings.run.limit is None else min(settings.run.limit, ROWS_MAX)
    sample: list[Subject] = []
    seen = set[str]()
    good = bad = 0
    try:
        async for batch in source.batches():
            for row in batch:
                if good + bad >= most:
                    return sample, good, bad, most == settings.run.limit
                if isinstance(row.item, BadRow) or row.item.id in seen:
                    bad += 1
                    continue
                seen.add(row.item.id)
                good += 1
                if len(sample) < SAMPLE:
                    sample.append(row.item)
                elif (place := rng.randrange(good)) < SAMPLE:
                    sample[place] = row.item
    finally:
        await source.aclose()
    return sample, good, bad, True
