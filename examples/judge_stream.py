"""Judge pairs from a program and use each outcome as soon as it is there.

python examples/judge_stream.py
"""

import asyncio
from contextlib import aclosing
from pathlib import Path

from dikast import Pair, Verdict, engine_from_file

PAIRS = [
    Pair(id="sum", question="What is 2 + 2?", response_a="4", response_b="5"),
    Pair(id="sea", question="Is the sea salty?", response_a="No, it is sweet.", response_b="Yes."),
]


async def main() -> None:
    config = Path(__file__).with_name("simulated.toml")  # made-up judges: no key, no cost
    async with engine_from_file(config) as engine, aclosing(engine.judge(PAIRS)) as outcomes:
        async for outcome in outcomes:
            print(outcome.id, outcome.winner if isinstance(outcome, Verdict) else outcome)


if __name__ == "__main__":
    asyncio.run(main())
