"""Files that a configuration names are looked for beside it: one loader a kind of file.

Part of the wiring, used wherever a strategy tree is built or its calls are counted.
"""

from pathlib import Path

from dikast import strategies
from dikast.config import Settings
from dikast.strategies import Calibration, Library, MeasuredWeights, PromptTemplate, Rubric
from dikast.strategies.preferences import Profile, load_profile


def loaders(settings: Settings) -> strategies.Loaders:
    """The loaders of a run. Shipped templates and rubrics are found by their names."""
    base = settings.base_dir

    def template(name: str) -> PromptTemplate:
        if name in settings.templates:
            return strategies.load_template(str(base / settings.templates[name]))
        return strategies.load_template(_beside(base, name))

    def rubric(name: str) -> Rubric:
        return strategies.load_rubric(_beside(base, name))

    def calibration(name: str) -> Calibration:
        return strategies.load_calibration(str(base / name))

    def weights(name: str) -> MeasuredWeights:
        return strategies.load_weights(str(base / name))

    def library(name: str) -> Library:
        return strategies.load_library(base / name)

    def profile(name: str) -> Profile:
        beside = base / name
        return load_profile(str(beside) if beside.exists() else name)

    return strategies.Loaders(
        template=template,
        rubric=rubric,
        calibration=calibration,
        weights=weights,
        library=library,
        profile=profile,
    )


def _beside(base: Path, name: str) -> str:
    """A file beside the configuration, if there is one of that name; else the name as it stands."""
    beside = base / name
    return str(beside) if name.endswith(".toml") and beside.exists() else name
