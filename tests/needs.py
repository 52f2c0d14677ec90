"""What some tests need and a machine may lack: skipped there, unless it was said to be there."""

import importlib.util
import os

import pytest


def needs_ray() -> None:
    """Skip without Ray; fail without it where DIKAST_REQUIRE_RAY is set."""
    if importlib.util.find_spec("ray") is not None:
        return
    if os.environ.get("DIKAST_REQUIRE_RAY"):
        pytest.fail("ray is not installed, and DIKAST_REQUIRE_RAY is set")
    pytest.skip("ray is not installed (it is large: scripts/install --ray)")
