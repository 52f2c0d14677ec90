"""Numbers that no run can work with are refused before it begins."""

import math

import pytest

from dikast.config import parse_settings
from dikast.engine.errors import ConfigError


@pytest.mark.parametrize(
    ("field", "value"),
    [("workers", 0), ("workers", 10**20), ("budget_usd", math.nan), ("budget_usd", -1.0)],
)
def test_a_number_out_of_range_is_refused_and_named(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"run\.{field}: must be at (least|most)"):
        parse_settings({"run": {field: value}})
