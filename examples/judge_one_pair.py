"""One pair, judged in both orders, without a configuration file.

python examples/judge_one_pair.py
"""

import asyncio

from dikast import Pair, engine_for

PAIR = Pair(id="sum", question="What is 2 + 2?", response_a="4", response_b="5")


async def main() -> None:
    # "openai:gpt-4o-mini" asks a real one; this one makes its verdicts up.
    async with engine_for("simulated:careful", strategy="swap") as engine:
        print(await engine.judge_one(PAIR))


if __name__ == "__main__":
    asyncio.run(main())
