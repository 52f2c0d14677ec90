"""How the files that a strategy tree names are found and read.

Off the journey: handed to whatever builds a tree or counts its calls. The wiring makes one that
looks beside the configuration.
"""

from dataclasses import dataclass

from dikast.strategies.calibration_file import CalibrationLoader, load_calibration
from dikast.strategies.measured import WeightsLoader, load_weights
from dikast.strategies.preferences.profile import ProfileLoader, load_profile
from dikast.strategies.prompts import TemplateLoader, load_template
from dikast.strategies.rubric import RubricLoader, load_rubric
from dikast.strategies.sesse.config import LibraryLoader
from dikast.strategies.sesse.library import load_library


@dataclass(frozen=True)
class Loaders:
    """One function a kind of file.

    The defaults read paths as they stand, and shipped templates and rubrics by their names.
    """

    template: TemplateLoader = load_template
    rubric: RubricLoader = load_rubric
    calibration: CalibrationLoader = load_calibration
    weights: WeightsLoader = load_weights
    library: LibraryLoader = load_library
    profile: ProfileLoader = load_profile
