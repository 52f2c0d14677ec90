"""A budget that several runs share: noted before it is spent, and never passed."""

import math
import random

import pytest

from dikast.engine.budget import Budget
from dikast.engine.errors import RunStopped


@pytest.mark.parametrize("total_usd", [None, 2.0])
async def test_what_is_noted_is_never_less_than_what_may_be_spent(
    total_usd: float | None,
) -> None:
    notes: list[float] = []
    budget = Budget()
    budget.share(total_usd, 0.5, notes.append)
    rng = random.Random(1)
    calls = 0
    stop: RunStopped | None = None
    while calls < 5000:
        usd = rng.uniform(0.0005, 0.002)
        try:
            await budget.reserve(usd)
        except RunStopped as error:
            stop = error
            break
        assert notes[-1] >= budget.spent_usd + budget.reserved_usd
        budget.settle(usd, usd * rng.random())
        calls += 1

    assert notes == sorted(notes)
    assert len(notes) < 250 < calls
    assert (stop is None) == (total_usd is None)
    if stop is not None:
        assert stop.reason == "budget"
        assert "total budget of $2.0000" in stop.message
        assert "$0.5000 spent by earlier runs" in stop.message
        assert notes[-1] <= 1.5
        assert 1.49 < budget.spent_usd <= 1.5
        assert math.isclose(notes[0], 0.015, abs_tol=0.003)


@pytest.mark.parametrize(
    ("run_usd", "total_usd", "before_usd", "cap_usd", "binds"),
    [
        (1.0, 5.0, 1.0, 1.0, False),
        (1.0, 1.5, 1.0, 0.5, True),
        (None, 1.5, 2.0, 0.0, True),
        (1.0, None, 9.0, 1.0, False),
    ],
)
def test_the_smaller_of_the_two_ends_the_run(
    run_usd: float | None, total_usd: float | None, before_usd: float, cap_usd: float, binds: bool
) -> None:
    budget = Budget(run_usd)
    budget.share(total_usd, before_usd, lambda _: None)

    assert budget.cap_usd == cap_usd
    assert budget.total_binds is binds


async def test_money_that_cannot_be_noted_is_not_spent() -> None:
    def full(_: float) -> None:
        raise RunStopped("sink", "the disk is full")

    budget = Budget()
    budget.share(1.0, 0.0, full)
    with pytest.raises(RunStopped, match="the disk is full"):
        await budget.reserve(0.1)

    assert budget.reserved_usd == 0.0


async def test_free_calls_are_not_noted() -> None:
    notes: list[float] = []
    budget = Budget()
    budget.share(0.0, 0.0, notes.append)
    await budget.reserve(0.0)

    assert notes == []
