"""What an answer is scored on: rubrics, with dimensions, a scale for each, and defined bands.

Off the journey: read once, before the first pair; a strategy puts the rubric into every prompt and
weighs the scores by it. A rubric is data, and a TOML file in the package or of the user's own.
Knows no pair, no judge, no prompt and no JSON.
"""

import keyword
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from dikast.engine.errors import ConfigError
from dikast.strategies.files import parse_toml, read_named, shipped_names

_SHIPPED = Path(__file__).with_name("rubrics")
_CLOSE = 1e-9
_POINTS_MAX = 1001
_RESERVED = frozenset({"total", "key_points"})

RubricLoader = Callable[[str], "Rubric"]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all tables of a rubric file have in common."""


class Scale(_Table, frozen=True):
    """The grades that may be given: from `low` to `high` in steps of `step`."""

    low: float = 0.0
    high: float = 10.0
    step: float = 1.0

    @property
    def whole(self) -> bool:
        """Whether all grades are whole numbers."""
        return all(float(each).is_integer() for each in (self.low, self.step))

    def holds(self, value: float) -> bool:
        """Whether `value` is one of the grades."""
        if not math.isfinite(value) or not self.low - _CLOSE <= value <= self.high + _CLOSE:
            return False
        steps = (value - self.low) / self.step
        return abs(steps - round(steps)) < 1e-6

    def grades(self) -> list[float]:
        """All grades, the lowest first."""
        count = round((self.high - self.low) / self.step)
        return [round(self.low + number * self.step, 9) for number in range(count + 1)]

    def share(self, value: float) -> float:
        """Where on the scale a score stands: 0 at `low`, 1 at `high`."""
        return (value - self.low) / (self.high - self.low)


class Band(_Table, frozen=True):
    """What the grades from `low` to `high`, both included, mean: a test that can be applied."""

    low: float
    high: float
    means: str


class Dimension(_Table, frozen=True):
    """One thing that is scored.

    `name` is the key in the judge's answer and in the outcome, `title` what the judge reads
    (the name if empty), `criteria` what to look at. `scale` and `bands` stand instead of the
    rubric's.
    """

    name: str
    criteria: str
    title: str = ""
    weight: float = 1.0
    scale: Scale | None = None
    bands: tuple[Band, ...] = ()


class _RubricFile(_Table, frozen=True):
    name: str
    version: str
    language: str
    dimensions: tuple[Dimension, ...]
    description: str = ""
    scale: Scale = Scale()
    bands: tuple[Band, ...] = ()
    key_points_weight: float = 1.0


_TABLES = (_RubricFile, Dimension, Band, Scale)
_KNOWN_NAMES = tuple(dict.fromkeys(name for each in _TABLES for name in each.__struct_fields__))


class Rubric:
    """A checked rubric; build it with `parse_rubric` or `load_rubric`.

    Attributes:
        name, version, language, description: the author's.
        dimensions: each with its own scale and bands filled in.
        bands: those shared by the dimensions without bands of their own.
        key_points_weight: the weight of the share of key points met, beside the dimensions'.
        hash: SHA-256 of the parsed content; comments and layout of the file do not count.
        id: `name@version#hash8`, which goes into every call's key.
    """

    def __init__(self, parsed: _RubricFile, content_hash: str) -> None:
        _check(parsed)
        self.name = parsed.name
        self.version = parsed.version
        self.language = parsed.language
        self.description = parsed.description
        self.dimensions = tuple(
            msgspec.structs.replace(
                each,
                title=each.title or each.name,
                scale=each.scale or parsed.scale,
                bands=each.bands or (() if each.scale else parsed.bands),
            )
            for each in parsed.dimensions
        )
        self.bands = parsed.bands
        self.key_points_weight = parsed.key_points_weight
        self.hash = content_hash
        self.id = f"{parsed.name}@{parsed.version}#{content_hash[:8]}"

    def scale_of(self, dimension: Dimension) -> Scale:
        """The scale of one of this rubric's dimensions."""
        assert dimension.scale is not None  # filled in by the constructor
        return dimension.scale

    def total(self, scores: Mapping[str, float], key_points: float | None = None) -> float:
        """The weighted mean of where each score stands on its scale, from 0 to 1.

        Args:
            scores: one for each dimension, by its name.
            key_points: share of the key points met, 0 to 1; None where there are none.
        """
        parts = [
            (each.weight, self.scale_of(each).share(scores[each.name])) for each in self.dimensions
        ]
        if key_points is not None:
            parts.append((self.key_points_weight, key_points))
        # fsum: the order of the dimensions must not decide between a tie and a win.
        weights = math.fsum(weight for weight, _ in parts)
        return round(math.fsum(weight * share for weight, share in parts) / weights, 9)

    def spec(self) -> dict[str, str]:
        """What identifies the rubric, as plain data."""
        return {"name": self.name, "version": self.version, "hash": self.hash}

    def __repr__(self) -> str:
        return f"Rubric({self.id})"


# --- checks -------------------------------------------------------------------------------------


def _check(parsed: _RubricFile) -> None:
    for what, value in (("name", parsed.name), ("version", parsed.version)):
        if not re.fullmatch(r"[\w.+-]{1,80}", value):
            raise ConfigError(
                f"{what} = {value!r}: use letters, digits, '.', '_', '+' and '-', at most 80"
            )
    if parsed.language not in ("en", "zh"):
        raise ConfigError(f"language = {parsed.language!r}: prompts exist in 'en' and 'zh'")
    if not parsed.dimensions:
        raise ConfigError("dimensions is empty; add a [[dimensions]] table with name and criteria")
    if not (math.isfinite(parsed.key_points_weight) and parsed.key_points_weight >= 0):
        raise ConfigError("key_points_weight must be 0 or more")
    seen: set[str] = set()
    for each in parsed.dimensions:
        _check_dimension(each, seen)
        scale = each.scale or parsed.scale
        where = f"dimension {each.name!r}: " if each.scale or each.bands else ""
        _check_scale(scale, where)
        bands = each.bands or (() if each.scale else parsed.bands)
        if not bands:
            raise ConfigError(
                f"dimension {each.name!r} has no bands: say what the grades mean in [[bands]], or "
                "scores collapse to the middle"
            )
        _check_bands(bands, scale, where)
    if math.fsum(each.weight for each in parsed.dimensions) <= 0:
        raise ConfigError("all weights are 0; give at least one dimension a weight")


def _check_dimension(each: Dimension, seen: set[str]) -> None:
    name = each.name
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise ConfigError(
            f"dimension {name!r}: a name is letters, digits and '_'; put other words into title"
        )
    if name in _RESERVED or name.casefold() in seen:
        raise ConfigError(f"dimension {name!r}: the name is taken; choose another")
    seen.add(name.casefold())
    if not each.criteria.strip():
        raise ConfigError(f"dimension {name!r}: criteria is empty; say what to look at")
    if not (math.isfinite(each.weight) and each.weight >= 0):
        raise ConfigError(f"dimension {name!r}: weight must be 0 or more, not {each.weight}")


def _check_scale(scale: Scale, where: str) -> None:
    finite = all(map(math.isfinite, (scale.low, scale.high, scale.step)))
    if not finite or scale.step <= 0 or scale.high <= scale.low:
        raise ConfigError(f"{where}scale: low must be below high, and step above 0")
    if not scale.holds(scale.high):
        raise ConfigError(
            f"{where}scale: steps of {scale.step:g} from {scale.low:g} never reach {scale.high:g}"
        )
    if (scale.high - scale.low) / scale.step >= _POINTS_MAX:
        raise ConfigError(f"{where}scale: more than {_POINTS_MAX} grades; make step larger")


def _check_bands(bands: tuple[Band, ...], scale: Scale, where: str) -> None:
    for band in bands:
        if not (scale.holds(band.low) and scale.holds(band.high) and band.low <= band.high):
            raise ConfigError(
                f"{where}band {band.low:g} to {band.high:g}: both must be grades of the scale "
                f"({scale.low:g} to {scale.high:g} in steps of {scale.step:g})"
            )
        if not band.means.strip():
            raise ConfigError(f"{where}band {band.low:g} to {band.high:g}: means is empty")
    for grade in scale.grades():
        holding = sum(band.low - _CLOSE <= grade <= band.high + _CLOSE for band in bands)
        if holding != 1:
            found = "no band" if not holding else "more than one band"
            raise ConfigError(f"{where}bands: {found} says what {grade:g} means")


# --- files --------------------------------------------------------------------------------------


def parse_rubric(text: str, source: str = "rubric") -> Rubric:
    """Read the text of a rubric file.

    Args:
        text: TOML.
        source: what to call it in error messages, usually the path.

    Raises:
        ConfigError: what is wrong, in which field, and what to do.
    """
    parsed, content = parse_toml(text, _RubricFile, source, _KNOWN_NAMES)
    try:
        return Rubric(parsed, content)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from error


def shipped_rubrics() -> list[str]:
    """Names of the rubrics that come with the package."""
    return shipped_names(_SHIPPED)


def load_rubric(name: str) -> Rubric:
    """A rubric by the name of a shipped one, or by the path of a TOML file.

    Args:
        name: "general-en", or a path that ends in ".toml".

    Raises:
        ConfigError: there is no such rubric, or it is wrong.
    """
    text, path = read_named("rubric", name, _SHIPPED)
    return parse_rubric(text, path)
