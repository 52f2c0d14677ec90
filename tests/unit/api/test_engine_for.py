"""`engine_for`: what the command line would build, from Python and without a file."""

import subprocess
import sys
from typing import Any

import pytest

from dikast import ConfigError, Pair, RunStopped, Verdict, engine_for
from dikast.settling import Choices, settled
from dikast.wiring import build_engine

PAIR = Pair(id="p1", question="q", response_a="a", response_b="b")
CONFIG: dict[str, Any] = {
    "providers": {"main": {"kind": "simulated", "accuracy": 0.9}},
    "judges": {
        "one": {"provider": "main", "model": "m1", "prices": {"input": 1e6, "output": 1e6}},
        "two": {"provider": "main", "model": "m2"},
        "three": {"provider": "main", "model": "m3"},
    },
}


async def test_a_judge_by_its_short_name_is_the_command_lines() -> None:
    async with engine_for("simulated:careful") as engine:
        outcome = await engine.judge_one(PAIR)
        same = build_engine(settled(Choices(judges=("simulated:careful",), strategy="swap")))
        assert engine.spec == same.spec
        await same.aclose()

    assert isinstance(outcome, Verdict)
    assert outcome.calls == 2


async def test_a_config_of_plain_data_needs_no_strategy_of_its_own() -> None:
    async with engine_for("one", config=CONFIG) as engine:
        assert engine.strategy_name == "swap@1"
        assert isinstance(await engine.judge_one(PAIR), Verdict)
    async with engine_for("one", "two", "three", config=CONFIG, strategy="committee") as engine:
        assert (await engine.judge_one(PAIR)).calls == 6


async def test_the_budget_is_kept() -> None:
    async with engine_for("one", config=CONFIG, budget_usd=0.01) as engine:
        with pytest.raises(RunStopped, match=r"the budget of \$0\.0100 is used up"):
            await engine.judge_one(PAIR)


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(ConfigError, match="no judge was named"):
        engine_for()
    with pytest.raises(ConfigError, match="providerz: unknown section"):
        engine_for("one", config={"providerz": {}})
    total = {**CONFIG, "run": {"budget_total_usd": 1.0}}
    with pytest.raises(ConfigError, match="no such output here"):
        engine_for("one", config=total)


def test_the_import_loads_nothing_until_a_name_is_used() -> None:
    script = (
        "import sys, dikast; before = {m for m in sys.modules if m.startswith('dikast.')};"
        "dikast.engine_for; after = 'dikast.wiring' in sys.modules;"
        "print(sorted(before), after)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout == "[] True\n"
