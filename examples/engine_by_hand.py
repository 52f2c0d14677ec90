"""An engine built of parts, without a file, and a deadline for every pair.

    python examples/engine_by_hand.py

The judge is simulated. A real one is `build("main", OpenAIChatSettings(), clock=clock,
env=os.environ)` of `dikast.providers`.
"""

import asyncio

from dikast import Engine, Judge, Limits, Pair, SystemClock, Verdict
from dikast.providers import SimulatedProvider, SimulatedSettings
from dikast.strategies import Pairwise, load_template, swap

PAIRS = [
    Pair(id="sum", question="What is 2 + 2?", response_a="4", response_b="5"),
    Pair(id="sea", question="Is the sea salty?", response_a="No, it is sweet.", response_b="Yes."),
]


def make_engine(latency_s: float = 0.0) -> Engine:
    clock = SystemClock()
    provider = SimulatedProvider(SimulatedSettings(latency_s=latency_s), clock)
    judge = Judge(name="pretend", provider="main", model="pretend-1")
    strategy = swap(Pairwise(judge, load_template("pairwise-en")))
    limits = {"main": Limits(requests_per_min=600)}
    return Engine(strategy, {"main": provider}, limits=limits, workers=16, clock=clock)


async def judge_within(engine: Engine, pair: Pair, limit_s: float) -> str:
    try:
        async with asyncio.timeout(limit_s):
            outcome = await engine.judge_one(pair)
    except TimeoutError:  # this pair is cancelled, the others go on
        return f"{pair.id}: no outcome within {limit_s} s"
    return f"{pair.id}: {outcome.winner if isinstance(outcome, Verdict) else outcome}"


async def main(latency_s: float = 0.0, limit_s: float = 5.0) -> None:
    async with make_engine(latency_s) as engine:
        for line in await asyncio.gather(*(judge_within(engine, each, limit_s) for each in PAIRS)):
            print(line)


if __name__ == "__main__":
    asyncio.run(main())
