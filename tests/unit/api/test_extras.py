"""Optional packages: absent ones are told in one sentence, before anything is paid."""

import pytest

from dikast.engine.errors import ConfigError
from dikast.extras import needed, needs, see_installed


def test_a_package_that_is_not_there_is_named_with_the_remedy() -> None:
    said = (
        r"^the report needs the package nonesuch, which is not .*pip install 'dikast\[analysis\]'$"
    )
    with pytest.raises(ConfigError, match=said):
        needed("nonesuch.part", "analysis", "the report")
    with pytest.raises(ConfigError, match=said):
        see_installed("analysis", "the report", "json", "nonesuch")


def test_a_module_of_our_own_that_is_not_there_is_a_defect_and_no_remedy() -> None:
    with pytest.raises(ModuleNotFoundError), needs("analysis", "the report"):
        raise ModuleNotFoundError("No module named 'dikast.nonesuch'", name="dikast.nonesuch")


def test_what_is_there_is_handed_over() -> None:
    import json

    assert needed("json", "analysis", "the report") is json
    see_installed("analysis", "the report", "json")
