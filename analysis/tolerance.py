"""How far the anchors may move before a judge counts as changed.

Read by the configuration and by `dikast.analysis.drift`. Plain numbers; imports nothing heavy, so
that a run without anchors costs nothing.
"""

from dikast.engine.errors import ConfigError
from dikast.engine.model import Record


class Tolerance(Record, frozen=True):
    """Limits of a drift check; see docs/anchors.md for what each of them is held against.

    `alpha` is the chance of a false alarm of one whole check. `max_shift_sd` is in standard
    deviations of the baseline's scores, `max_ks` a distance between two cumulative shares, the
    others are shares from 0 to 1.
    """

    alpha: float = 0.01
    max_shift_sd: float = 0.2
    max_ks: float = 0.1
    max_win_shift: float = 0.05
    max_flip_rate: float = 0.25
    max_missing: float = 0.1
    min_agreement: float = 0.7


def check_tolerance(limits: Tolerance) -> None:
    """See that the limits can be held.

    Raises:
        ConfigError: one is out of range; the message names it.
    """
    if not 0 < limits.alpha < 1:
        raise ConfigError(f"anchors.alpha: must lie between 0 and 1, not at {limits.alpha}")
    if not 0 <= limits.max_shift_sd < float("inf"):
        raise ConfigError(f"anchors.max_shift_sd: must be 0 or more, not {limits.max_shift_sd}")
    for name in ("max_ks", "max_win_shift", "max_flip_rate", "max_missing", "min_agreement"):
        value = getattr(limits, name)
        if not 0 <= value <= 1:
            raise ConfigError(f"anchors.{name}: must lie between 0 and 1, not at {value}")
